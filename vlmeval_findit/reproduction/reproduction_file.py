"""A reproduction as a file next to its runs: all that another person needs to compare with it.

It names files and checkpoints without their folders, and no server, so that it can be sent; only
what a cause advises to type may repeat a path that the user typed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, Literal

from ..core import (
    Count,
    Finite,
    MisplacedError,
    Name,
    Number,
    Share,
    Text,
    TextError,
    Values,
    Whole,
    counted,
    file_sha256,
    installed,
    parse_json,
    quoted_value,
    read_text,
    validate,
    write_text_once,
)
from ..data import PublishedFigure
from ..models import RunningProgram, may_be_same_model
from ..protocol import Answering, AnyDataset, Identity, Predictions, StoredRows, rows_text
from ..scoring import as_values, count_models, models_in, scored_with_now
from ..storage import meta_path
from .reproduction_records import (
    Attempt,
    Cause,
    CauseLook,
    ConditionAgreement,
    ConditionSet,
    FigureJudgement,
    FigureVerdict,
    Reproduction,
)

REPRODUCTION = "reproduction.json"  # Its name, in the folder of its runs
FORMAT: Literal[1] = 1


class ReproductionFileError(ValueError):
    """A file that holds no reproduction; the message names file and key."""


# --- what the file has ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredFigure:
    """The published figure."""

    model: Name
    set: Name  # As the table of figures names it
    metric: Name
    value: Finite  # In percent, as all values
    measured_by: Text
    source: Text
    sure: Text
    n: Count | None = None
    date: Text = ""
    note: Text = ""  # What else is told of it


@dataclass(frozen=True, slots=True)
class StoredTable:
    """The copy of a dataset that was asked about."""

    file: Text
    sha256: Text
    rows: Whole
    facts: Mapping[str, Text]  # Of its ``.meta.json``: of which set and which files it was made


@dataclass(frozen=True, slots=True)
class WhoAnswered:
    """What a run recorded of the model."""

    kind: Text | None = None  # Class of the model
    row: Text | None = None  # Its row of the model table
    checkpoint: Text | None = None  # Of a folder its name
    revision: Text | None = None
    program: Text | None = None  # That serves it
    served: Text | None = None  # The checkpoint that a server says it serves
    settings: Values = field(default_factory=dict)
    headers: Mapping[Text, Text] = field(default_factory=dict)
    named: tuple[Text, ...] = ()  # As the replies name it


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The replies about one dataset; ``images``, ``hits`` and ``weights`` have a value a row."""

    dataset: Name
    variant: Name
    predictions: Text  # File, from the folder of the reproduction
    predictions_sha256: Text
    table: StoredTable
    prompts: Text | None  # Prompt set
    prompt_hash: Text | None
    space: Values | None
    answering: WhoAnswered
    versions: Mapping[str, Text]  # At inference
    failed: Whole
    rows: StoredRows
    images: tuple[Text, ...]  # ``<image folder's key>/<name>``
    hits: tuple[Share, ...]
    weights: tuple[Number, ...] = ()  # In the metric; none: all rows weigh the same

    def __post_init__(self) -> None:
        """Refuse lists of another length than the rows with a MisplacedError."""
        for name in ("images", "hits", "weights"):
            values = getattr(self, name)
            if len(values) != len(self.rows) and (values or name != "weights"):
                raise MisplacedError(
                    f"{counted(len(values), 'value')} for {counted(len(self.rows), 'row')}", name
                )


@dataclass(frozen=True, slots=True)
class StoredReproduction:
    """A reproduction, as its file and ``--json`` have it."""

    format: Literal[1]
    model: Name  # As the user names it
    figure: StoredFigure
    conditions: tuple[ConditionSet, ...]
    seed: Whole
    judgement: FigureJudgement
    checked: tuple[CauseLook, ...]
    runs: tuple[StoredRun, ...]
    made_with: Mapping[str, Text]  # Versions of packages; what scored the replies
    made_at: Text  # UTC, ISO 8601

    @property
    def queries(self) -> int:
        return sum(len(run.rows) for run in self.runs)

    @property
    def failed(self) -> int:
        return sum(run.failed for run in self.runs)

    def condition(self, name: str) -> ConditionSet | None:
        """Return a condition by its name; None where the file has none of the name."""
        return next((each for each in self.conditions if each.name == name), None)

    @property
    def engine(self) -> str:
        """The program that answered, with its version where it is known; "" if nothing is."""
        condition = self.condition("engine")
        return condition.here if condition is not None else ""

    @property
    def causes(self) -> tuple[Cause, ...]:
        """What was noticed, the cheapest first."""
        return tuple(each.cause for each in self.checked if each.cause is not None)

    @property
    def others(self) -> tuple[str, ...]:
        """The names of the published conditions of which the setup has others."""
        return tuple(each.name for each in self._not_as_published if each.here)

    @property
    def not_known(self) -> tuple[str, ...]:
        """The names of the published conditions of which it is not known what the setup has."""
        return tuple(each.name for each in self._not_as_published if not each.here)

    @property
    def other_models(self) -> tuple[str, ...]:
        """What answered and is not the published model, as a server or the replies name it."""
        names: dict[str, None] = {}
        for run in self.runs:
            who = run.answering
            # The name that was asked may be any.
            said = [who.served or "", *who.named]
            names |= dict.fromkeys(name for name in said if name and name != who.checkpoint)
        return tuple(name for name in names if not may_be_same_model(self.figure.model, name))

    @property
    def _not_as_published(self) -> tuple[ConditionSet, ...]:
        unlike = (ConditionAgreement.YOURS, ConditionAgreement.CANNOT_BE_SET)
        return tuple(each for each in self.conditions if each.agreement in unlike)


# --- from a reproduction --------------------------------------------------------------------------


def stored_reproduction(reproduction: Reproduction, folder: Path) -> StoredReproduction:
    """Return what is stored of a reproduction in the folder of its runs."""
    attempt = reproduction.attempt
    setup = attempt.setup
    return StoredReproduction(
        format=FORMAT,
        model=setup.entry.name,
        figure=_figure(setup.figure),
        conditions=setup.conditions,
        seed=setup.sample.seed,
        judgement=reproduction.judgement,
        checked=tuple(reproduction.checked),
        runs=tuple(_runs(attempt, folder)),
        made_with={**installed(("pillow",)), **_scored_with(attempt)},
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _scored_with(attempt: Attempt) -> dict[str, str]:
    """Return what scored the replies, of all datasets together."""
    scored_with: dict[str, str] = {}
    for predictions in attempt.predictions:
        identity = predictions.identity
        row = identity.answering.row if identity is not None else None
        spaces = [identity.space["kind"]] if identity is not None and identity.space else []
        scored_with |= scored_with_now(predictions.dataset.variant, row, spaces)
    return scored_with


def _figure(figure: PublishedFigure) -> StoredFigure:
    return StoredFigure(
        model=figure.model,
        set=figure.set_name,
        metric=figure.set.metric,
        value=figure.value,
        measured_by=figure.measured_by,
        source=figure.source,
        sure=figure.sure,
        n=figure.n,
        date=figure.date,
        note="; ".join(filter(None, (figure.conditions.note, figure.note))),
    )


def _runs(attempt: Attempt, folder: Path) -> Iterator[StoredRun]:
    for predictions in attempt.predictions:
        dataset = predictions.dataset
        name = dataset.variant.board_dataset
        hits = attempt.hits[name]
        rows = sorted(hits)
        images = dataset.variant.images
        weights = attempt.weights.get(name, {})
        identity = predictions.identity or Identity(predictions.model, dataset.variant.name)
        path = predictions.path
        yield StoredRun(
            dataset=name,
            variant=dataset.variant.name,
            predictions=path.relative_to(folder).as_posix() if path is not None else "",
            predictions_sha256=file_sha256(path) if path is not None else "",
            table=stored_table(dataset),
            prompts=identity.prompts,
            prompt_hash=identity.prompt_hash,
            space=identity.space,
            answering=_who(identity.answering, predictions, attempt.setup.program),
            versions={**identity.host, **identity.versions},
            failed=sum(reply.failed for reply in predictions.replies),
            rows=tuple(rows),
            images=tuple(f"{images}/{dataset.queries[row].cluster}" for row in rows),
            hits=tuple(hits[row] for row in rows),
            weights=tuple(weights[row] for row in rows) if weights else (),
        )


def stored_table(dataset: AnyDataset) -> StoredTable:
    """Return what is stored of a dataset's table."""
    path = meta_path(dataset.table)
    facts = parse_json(read_text(path)) if path.is_file() else {}
    return StoredTable(
        file=dataset.table.name,
        sha256=file_sha256(dataset.table),
        rows=len(dataset.queries),
        facts={key: value for key, value in facts.items() if isinstance(value, str)},
    )


def _who(
    answering: Answering, predictions: Predictions, program: RunningProgram | None
) -> WhoAnswered:
    checkpoint = answering.checkpoint
    if checkpoint is not None and Path(checkpoint).expanduser().is_absolute():
        checkpoint = PurePath(checkpoint).name
    models = models_in(as_values(count_models(predictions.replies)))
    who = WhoAnswered(
        kind=answering.kind,
        row=answering.row,
        checkpoint=checkpoint,
        revision=answering.revision,
        program=answering.server,
        settings=answering.settings,
        headers=answering.headers or {},
        named=tuple(model.name for model in models),
    )
    if program is None:
        return who
    return replace(
        who,
        program=program.words,
        served=program.checkpoint or None,
        revision=program.revision or answering.revision,
    )


# --- the file -------------------------------------------------------------------------------------


def stored_values(stored: StoredReproduction) -> dict[str, Any]:
    """Return plain values of JSON, with the badge; :func:`reproduction_from` reads them."""
    values = asdict(stored)
    for run, written in zip(stored.runs, values["runs"], strict=True):
        written["rows"] = rows_text(run.rows)
    plain = _plain(values)
    return {"format": plain.pop("format"), "badge": reproduction_line(stored), **plain}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of JSON, with the value of each member of an enumeration."""
    plain: dict[str, Any] = json.loads(json.dumps(values, default=_value_of))
    return plain


def _value_of(member: Enum) -> Any:
    return member.value


def write_reproduction(
    path: Path, stored: StoredReproduction, more: Mapping[str, Any] | None = None
) -> None:
    """Write a reproduction atomically, also for ``--json``, which may have ``more`` keys."""
    values = {**stored_values(stored), **_plain(more or {})}
    write_text_once(path, f"{_indented(values, '')}\n")


def _indented(value: Any, margin: str) -> str:
    """Write JSON with a line for each key, and a list without keys on one line."""
    inner = f"{margin} "
    if isinstance(value, dict) and value:
        parts = [
            f"{inner}{_one_line(key)}: {_indented(part, inner)}" for key, part in value.items()
        ]
        return "\n".join(["{", ",\n".join(parts), f"{margin}}}"])
    if isinstance(value, list) and any(isinstance(part, dict) for part in value):
        parts = [f"{inner}{_indented(part, inner)}" for part in value]
        return "\n".join(["[", ",\n".join(parts), f"{margin}]"])
    return _one_line(value)


def _one_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


_NAME_ANOTHER = f"Name a {REPRODUCTION} that python run_findit.py reproduce wrote"
_MAKE_AGAIN = "Delete it, or type its python run_findit.py reproduce MODEL again"


def read_reproduction(path: Path, advice: str = _NAME_ANOTHER) -> StoredReproduction:
    """Read a reproduction; ``advice`` says what to do if that fails.

    Raises:
        ReproductionFileError: it is damaged, or none.
        OSError: it cannot be read.
    """
    try:
        return reproduction_from(parse_json(read_text(path), only_numbers=True))
    except MisplacedError as error:
        why = f"{path}: no reproduction: {error.below()}"
    except TextError as error:
        why = error.message_for(path)
    raise ReproductionFileError(f"{why}. {advice}")


@dataclass(frozen=True, slots=True)
class NearbyReproduction:
    """A reproduction that lies next to runs which it judged."""

    file: Path
    stored: StoredReproduction
    changed: tuple[str, ...]  # Datasets whose replies are others than those that were judged


def reproductions_of(runs: Mapping[Path, str]) -> tuple[NearbyReproduction, ...]:
    """Return the reproductions that judged runs.

    Args:
        runs: SHA-256 of prediction files, by their paths.

    Raises:
        ReproductionFileError: a file of a reproduction next to runs is damaged.
    """
    digests = {path.resolve(): digest for path, digest in runs.items()}
    nearby = []
    for file in _files_near(runs):
        stored = read_reproduction(file, _MAKE_AGAIN)
        judged = {(file.parent / run.predictions).resolve(): run for run in stored.runs}
        here = {path: run for path, run in judged.items() if path in digests}
        changed = [
            run.dataset for path, run in here.items() if run.predictions_sha256 != digests[path]
        ]
        if here:
            nearby.append(NearbyReproduction(file, stored, tuple(changed)))
    return tuple(nearby)


def _files_near(runs: Iterable[Path]) -> Iterable[Path]:
    """Return the files of reproductions in the folders of runs, and in those above them."""
    folders: dict[Path, None] = {}
    for run in runs:
        # Runs lie in a folder of their model.
        folders |= {run.parent: None, run.parent.parent: None}
    files = (folder / REPRODUCTION for folder in folders)
    return [file for file in files if file.is_file()]


def reproduction_from(values: Any) -> StoredReproduction:
    """Make a reproduction of plain values, or raise a MisplacedError."""
    number = values.get("format") if isinstance(values, Mapping) else None
    if isinstance(number, int) and number > FORMAT:
        raise MisplacedError(
            f"{quoted_value(number)} is of a newer version of this package (here {FORMAT}): "
            "pip install -U vlmeval-findit",
            "format",
        )
    return validate(StoredReproduction, values)


# --- one line for a model's card ------------------------------------------------------------------


def reproduction_line(stored: StoredReproduction) -> str:
    """Say in one line what was reproduced, and how.

    The number behind ± is the longer side of the 95 % interval.
    """
    judgement = stored.judgement
    name = stored.figure.set
    measured = f"{judgement.measured:.1f}"
    if judgement.interval is not None:
        low = judgement.measured - judgement.interval.low
        high = judgement.interval.high - judgement.measured
        measured += f" ± {max(low, high):.1f}"
    if judgement.verdict is FigureVerdict.AGREES:
        words = f"reproduces {name} {measured}"
    elif judgement.verdict is FigureVerdict.CANNOT_BE_TOLD:
        words = f"cannot tell yet whether it reproduces {name}: {measured}"
    else:
        words = f"{judgement.verdict.value} than published on {name}: {measured}"
    what = "expression" if stored.figure.metric.startswith("acc@") else "item"
    how = [f"published {judgement.published:.1f}", counted(stored.queries, what)]
    if stored.failed:
        how.append(f"{counted(stored.failed, 'failed call')} as misses")
    if stored.engine:
        how.append(stored.engine)
    line = f"{words} ({', '.join(how)}"
    if stored.other_models:
        line += f"; answered by {', '.join(stored.other_models)}"
    if stored.others:
        line += f"; not as published: {', '.join(stored.others)}"
    if stored.not_known:
        line += f"; not known: {', '.join(stored.not_known)}"
    return f"{line})"
