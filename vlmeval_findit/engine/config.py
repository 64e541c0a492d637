"""What a sweep is: models, tables and formats, and how calls are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..benchmarks.findit.formats import Format
from ..benchmarks.findit.grid import (
    Axes,
    Table,
    Views,
)
from ..benchmarks.findit.grid import variants as cells_of
from ..core.question import Question
from ..models.http.batch.dialects import BatchKind
from ..models.prices import Prices


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model of a sweep.

    ``settings`` go to its class (or, with endpoints, into every request) and are part of every
    call's key; ``resources`` go to its class too, but what it says does not depend on them.
    ``space`` and ``reads_like`` are as in :class:`.Settings`; ``checkpoint`` is a folder
    or an identifier of a model on this machine, and ``row`` the row of the model table that it is
    run like; ``provider`` asks it in its own protocol (None: OpenRouter, a server or this machine);
    ``served`` is the server's or provider's name for it, ``prices`` are those of its calls where
    the model table has none (None: nobody says them), ``headers`` go with every request there
    and are kept nowhere; ``line`` is where the file names it.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    space: str | Mapping[str, Any] | None = None
    reads_like: str | None = None
    checkpoint: str | None = None
    row: str | None = None
    provider: str | None = None
    served: str | None = None
    prices: Prices | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    line: int = 0


@dataclass(frozen=True, slots=True)
class Inference:
    """How calls are made: nothing that an answer may depend on.

    ``threads`` are calls at a time to an API or to each endpoint, ``timeout`` the seconds for one
    attempt of such a call, ``batch_size`` and ``variants``
    the most calls that a local model gets together (of one variant; over one image), ``poll`` the
    most seconds between two looks at a batch, ``replicas``
    the models of a Ray cluster (0: as many as fit), each with so many ``cpus`` and ``gpus``.
    """

    threads: int = 8
    timeout: float = 600.0
    batch_size: int = 8
    variants: int = 32
    poll: float = 60.0
    replicas: int = 0
    cpus: float = 1.0
    gpus: float = 0.0


@dataclass(frozen=True, slots=True)
class Race:
    """Formats that can hardly win are dropped on the way; ``seed`` orders the pictures."""

    seed: int = 0


@dataclass(frozen=True, slots=True)
class Sweep:
    """Models x tables x formats, in stages.  ``questions`` are asked as they are, too.

    ``limit`` is the number of rows (None: all), ``max_usd`` what all calls of a run may cost
    together, in US dollars (None: no limit); ``force`` overrules what runs recorded;
    ``confidences``: log-probabilities of the replies' tokens are recorded; ``race`` says that the
    formats of a stage race each other (None: all are asked everything); ``batch`` whose batch
    interface answers (None: calls are made one by one).
    """

    models: tuple[ModelEntry, ...]
    tables: tuple[Table, ...] = ()
    questions: tuple[Question, ...] = ()
    stages: tuple[Axes, ...] = (Axes(),)
    views: Views = field(default_factory=Views)
    limit: int | None = None
    work_dir: Path = Path("outputs")
    journal: Path = Path("outputs/calls.jsonl")
    skip_missing: bool = False
    force: bool = False
    confidences: bool = False
    inference: Inference = field(default_factory=Inference)
    max_usd: float | None = None
    race: Race | None = None
    batch: BatchKind | None = None
    source: Path | None = None


def questions_of(sweep: Sweep, wanted: Iterable[Format]) -> list[Question]:
    """All that a sweep asks in some formats: cells of its tables, then questions of their own."""
    cells: list[Question] = [*cells_of(sweep.tables, wanted, sweep.views)]
    return list(dict.fromkeys([*cells, *sweep.questions]))
