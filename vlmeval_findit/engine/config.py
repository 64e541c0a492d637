"""What a sweep is: models, tables and formats, and how calls are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from ..benchmarks.findit.formats import Format
from ..benchmarks.findit.grid import AXIS_FIELDS, WINNER, Axes, Table, Views
from ..benchmarks.findit.grid import variants as cells_of
from ..boxes.reply_format import KEYS
from ..core.config import (
    Checked,
    Config,
    Count,
    Name,
    Number,
    Seconds,
    Text,
    Values,
    Wanted,
    Whole,
)
from ..core.question import Question
from ..core.spelling import nearest
from ..models.http.batch.records import BatchKind
from ..models.http.providers.table import find_provider
from ..models.own_models import DescribedModel
from ..models.prices import SaidPrices
from ..models.table import MODELS, find_model
from .server_programs import Serving


def _known_row(name: str) -> str:
    if find_model(name) is None:
        raise ValueError(f"no model {name!r} in the model table{nearest(name, MODELS)}")
    return name


def _provider(name: str) -> str:
    return find_provider(name).name


@dataclass(frozen=True, slots=True)
class ModelEntry(DescribedModel):
    """A model of a sweep."""

    row: Annotated[Name, Checked(_known_row)] | None = None
    resources: Values = field(default_factory=dict)
    """Go to its class, as ``settings`` do, but what it says does not depend on them."""
    reads_like: Annotated[Name, Checked(_known_row)] | None = None
    """As in :class:`.Settings`."""
    provider: Annotated[Name, Checked(_provider)] | None = None
    """Asks it in its own protocol; None: OpenRouter, a server or this machine does."""
    prices: SaidPrices | None = None
    """Of its calls, where the model table has none; None: nobody says them."""
    headers: Mapping[Text, Annotated[str, Wanted("a text", secret=True, strict=True)]] | None = (
        field(default=None, repr=False)
    )
    """Go with every request to its server and are kept nowhere."""


@dataclass(frozen=True, slots=True)
class Inference(Config):
    """How calls are made: nothing that an answer may depend on."""

    threads: Count = 8
    """Calls at a time to an API, or to each endpoint."""
    timeout: Seconds = 600.0
    """For one attempt of such a call."""
    batch_size: Count = 8
    """The most calls of one variant that a local model gets together."""
    variants: Count = 32
    """The most calls over one image that a local model gets together."""
    poll: Seconds = 60.0
    """The longest between two looks at a batch."""
    replicas: Annotated[int, Wanted("at least 0 (as many as fit)", strict=True, ge=0)] = 0
    """Of a model on a Ray cluster; 0: as many as fit."""
    cpus: Number = 1.0
    """Of each replica."""
    gpus: Number = 0.0
    """Of each replica."""


@dataclass(frozen=True, slots=True)
class Race(Config):
    """Formats that can hardly win are dropped on the way."""

    seed: Whole = 0
    """Orders the pictures."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Models x tables x formats, in stages."""

    models: tuple[ModelEntry, ...]
    tables: tuple[Table, ...] = ()
    questions: tuple[Question, ...] = ()
    """Asked as they are, beside the tables."""
    stages: tuple[Axes, ...] = (Axes(),)
    views: Views = field(default_factory=Views)
    limit: int | None = None
    """The number of rows of every table; None: all."""
    work_dir: Path = Path("outputs")
    journal: Path = Path("outputs/calls.jsonl")
    skip_missing: bool = False
    force: bool = False
    """Overrules what runs recorded."""
    confidences: bool = False
    """Log-probabilities of the replies' tokens are recorded."""
    inference: Inference = field(default_factory=Inference)
    max_usd: float | None = None
    """What all calls of a run may cost together, in US dollars; None: no limit."""
    serve: Serving | None = None
    """How models on this machine are served; None: they run in this process."""
    race: Race | None = None
    """The formats of a stage race each other; None: all are asked everything."""
    batch: BatchKind | None = None
    """Whose batch interface answers; None: calls are made one by one."""


def questions_of(sweep: Sweep, wanted: Iterable[Format]) -> list[Question]:
    """All that a sweep asks in some formats: cells of its tables, then questions of their own."""
    cells: list[Question] = [*cells_of(sweep.tables, wanted, sweep.views)]
    return list(dict.fromkeys([*cells, *sweep.questions]))


# --- the search for a format -----------------------------------------------------------------

STAGES = (
    Axes(keys=("bbox_2d",)),
    Axes(representations=(WINNER,), outputs=("json",), keys=KEYS),
)
"""The paper's two stages: all representations in both outputs, then all keys at the winner."""


def search_sweep(
    entry: ModelEntry,
    table: Table,
    limit: int,
    places: tuple[Path, Path],
    marks: Sequence[str] = (),
    race: Race | None = None,
) -> Sweep:
    """The stages for one model, as a sweep; ``places`` are its work dir and its journal.

    With ``marks`` there is a third: the winner with every one of them on its reference pictures.

    Raises:
        ValueError: there are ``marks``, and the table has no reference pictures.
    """
    if marks and not table.data.family.has_references:
        raise ValueError(f"{table.name} shows no reference pictures: there is nothing to mark")
    marked = Axes(**{**dict.fromkeys(AXIS_FIELDS, (WINNER,)), "marks": tuple(marks)})
    return Sweep(
        models=(entry,),
        tables=(table,),
        stages=(*STAGES, marked) if marks else STAGES,
        limit=limit,
        work_dir=places[0],
        journal=places[1],
        race=race,
    )
