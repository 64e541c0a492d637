"""Scoring one run: replies and a task in, a score out.  Needs neither torch nor vlmeval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from ...boxes.matching import match
from ...boxes.reading import Reader, reader
from ...boxes.records import Matched, Reading, Reason
from ...boxes.reply_format import ReplyFormat
from ...boxes.spaces import Space, SpaceError, reference_size, space_from
from ...core.files import file_sha256
from ...core.identity import (
    SPACE,
    Contradiction,
    Identity,
    IdentityError,
    overruled,
    read_identity,
    rows_text,
)
from ...core.prediction_reader import PredictionError, read_predictions
from ...core.replies import Reply
from ...core.settings import Settings, settings_from
from ...core.spelling import nearest
from ...models.table import MODELS, find_model, unknown_space
from ...runs.prediction_names import split_name
from .metrics import Figures, Totals, add_up, figures, totals
from .query import Query
from .task import Task, load_task
from .variant import Variant, parse

# --- the coordinate space of a run ----------------------------------------------------------------


def check_settings(settings: Settings, variant: Variant) -> None:
    """Refuse settings that no score could be made with.

    Raises:
        SpaceError: an unknown space or model; the message says which is nearest.
    """
    if settings.space is not None:
        space_from(settings.space)
    if settings.reads_like is not None:
        reply_format("", variant, settings)


@dataclass(frozen=True, slots=True)
class SpaceInForce:
    """The coordinate space of a run and where it is known from."""

    space: Space
    source: str


def run_space(
    model: str, variant: Variant, settings: Settings, recorded: Mapping[str, Any] | None = None
) -> SpaceInForce:
    """The space of a run: what it recorded, the user's setting, or its row, in this order.

    Whether a setting contradicts the record is asked before (:func:`_against_space`).

    Raises:
        SpaceError: none of them says it; the message lists the spaces.
    """
    if recorded is not None:
        return SpaceInForce(space_from(recorded), "recorded by the run")
    if settings.space is not None:
        return SpaceInForce(space_from(settings.space), settings.source)
    row = find_model(model)
    if row is None:
        raise unknown_space(model)
    return SpaceInForce(row.space(variant.row), f"model table: {row.name}")


def _against_space(
    replies: Sequence[Reply], settings: Settings, run: Identity | None
) -> list[Contradiction]:
    """Spaces that contradict what the run recorded: a setting's, or those of single replies."""
    recorded = run.space if run is not None else None
    said = space_from(settings.space) if settings.space is not None else None
    found: dict[tuple[Space, Space], Contradiction] = {}
    for reply in replies:
        own = reply.recorded.space
        kept = recorded if recorded is not None else own
        for what, other in (
            (SPACE, said),
            (f"{SPACE} of row {reply.index}", space_from(own) if own else None),
        ):
            if kept is None or other is None or space_from(kept) == other:
                continue
            pair = (space_from(kept), other)
            found.setdefault(pair, Contradiction(what, pair[0].as_dict(), other.as_dict()))
    return list(found.values())


def _spaces(
    replies: Sequence[Reply], model: str, variant: Variant, settings: Settings, run: Identity | None
) -> list[SpaceInForce]:
    """The space of every reply, where nothing contradicts or what contradicts is forced."""
    if settings.space is not None and settings.force:
        forced = SpaceInForce(space_from(settings.space), settings.source)
        return [forced] * len(replies)
    recorded = run.space if run is not None else None
    if recorded is not None or not any(reply.recorded.space for reply in replies):
        return [run_space(model, variant, settings, recorded)] * len(replies)
    return [run_space(model, variant, settings, reply.recorded.space) for reply in replies]


def reply_format(
    model: str, variant: Variant, settings: Settings, recorded_row: str = ""
) -> ReplyFormat:
    """How the replies of a model to a variant are read.

    ``recorded_row`` is the row of the model table that the run recorded, whatever it was named.
    """
    if settings.reads_like is not None:
        row = find_model(settings.reads_like)
        if row is None:
            raise SpaceError(
                f"reads_like: no model {settings.reads_like!r} in the model table"
                f"{nearest(settings.reads_like, MODELS)}"
            )
    else:
        row = MODELS.get(recorded_row) or find_model(model)
    return variant.reply if row is None else row.reads(variant)


# --- the score ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scored:
    """One query with its reply, reading and match."""

    query: Query
    reply: Reply
    reading: Reading
    matched: Matched


@dataclass(frozen=True, slots=True)
class RunScore:
    """The score of one run and all that it rests on."""

    model: str
    task: Task
    scored: tuple[Scored, ...]
    totals: Totals
    figures: Figures
    spaces: tuple[SpaceInForce, ...]
    identity: Identity | None
    forced: tuple[str, ...] = ()

    @property
    def reasons(self) -> Counter[str]:
        """How often each reason stands against a reply."""
        found = (one.reading.reason for one in self.scored)
        return Counter(reason.value for reason in found if reason is not None)


_FAILED_READING = Reading([], [], [], Reason.FAILED_CALL)


def read_reply(reply: Reply, read: Reader) -> Reading:
    """The reading of one row: a failed call is no answer; one that was cut off says so."""
    if reply.failed:
        return _FAILED_READING
    reading = read(reply.text)
    if reading.reason is not None and reply.recorded.ends_in_thought:
        return reading._replace(reason=Reason.TRUNCATED_THINKING)
    if reply.cut and reading.reason is Reason.NOT_JSON:
        return reading._replace(reason=Reason.TRUNCATED)
    return reading


def score(
    model: str,
    task: Task,
    replies: Sequence[Reply],
    settings: Settings | None = None,
    run: Identity | None = None,
) -> RunScore:
    """Score the replies of a model to a task.

    Args:
        model: its name.
        task: what was asked.
        replies: what came of it.
        settings: what the user says (default: what the environment says).
        run: what the run recorded.

    Raises:
        SpaceError: the coordinate space is not known.
        PredictionError: a reply to a row that the table does not have.
        IdentityError: the task, a reply or a setting contradicts what the run recorded.
    """
    settings = settings or settings_from({})
    for reply in replies:
        if reply.index not in task.queries:
            raise PredictionError(
                f"{task.name}: index {reply.index} is not in {task.table} "
                f"({len(task.queries)} rows): the predictions are of another table"
            )
    forced = _overruled(model, task, replies, settings, run)
    if run is not None and settings.reads_like is None:
        settings = replace(settings, reads_like=run.reads_like)
    spaces = _spaces(replies, model, task.variant, settings, run)
    row_of_run = run.answering.row or "" if run is not None else ""
    rows = {reply.recorded.model.get("row", row_of_run) for reply in replies}
    readers = {row: reader(reply_format(model, task.variant, settings, row)) for row in rows}
    queries = [task.queries[reply.index] for reply in replies]
    readings = [
        read_reply(reply, readers[reply.recorded.model.get("row", row_of_run)]) for reply in replies
    ]
    matched = match(
        readings,
        [query.truth for query in queries],
        [_scale(s.space, query) for s, query in zip(spaces, queries, strict=True)],
    )
    scored = tuple(map(Scored, queries, replies, readings, matched))
    sums = add_up(totals(one.reading, one.matched) for one in scored)
    in_force = tuple(dict.fromkeys(spaces))
    return RunScore(model, task, scored, sums, figures(sums), in_force, run, forced)


def _overruled(
    model: str, task: Task, replies: Sequence[Reply], settings: Settings, run: Identity | None
) -> tuple[str, ...]:
    """What of a scoring contradicts its run, where that is forced.

    Raises:
        IdentityError: something contradicts and is not forced.
    """
    spaces = _against_space(replies, settings, run)
    where = f"{model} on {task.name}: the predictions are of something else than is scored now"
    refuse_variable(settings, spaces, where)
    against = [*_against_run(task, replies, settings, run), *_against_table(task, replies), *spaces]
    return tuple(overruled(against, settings.force, where, "Score what was asked."))


def refuse_variable(settings: Settings, spaces: Sequence[Contradiction], where: str) -> None:
    """Refuse a space of the environment that contradicts a record, forced or not.

    Raises:
        IdentityError: it does.
    """
    if spaces and settings.space is not None and settings.source != "setting":
        raise IdentityError(
            f"{where}:\n  {spaces[0]} ({settings.source})\nAn environment variable does not go "
            "before what a run recorded: unset it, or say the space in so many words, with --force."
        )


def _against_run(
    task: Task, replies: Sequence[Reply], settings: Settings, run: Identity | None
) -> Iterator[Contradiction]:
    if run is None:
        return
    if run.dataset != task.variant.name and parse(run.dataset) != task.variant:
        yield Contradiction("dataset", run.dataset, task.variant.name)
    table = file_sha256(task.table)
    if run.table_sha256 not in (None, table):
        yield Contradiction("SHA-256 of the table", run.table_sha256, f"{table} ({task.table})")
    foreign = {reply.index for reply in replies} - set(run.rows or task.queries)
    if foreign:
        yield Contradiction("rows", rows_text(run.rows or ()), f"also {rows_text(foreign)}")
    if None not in (run.reads_like, settings.reads_like) and run.reads_like != settings.reads_like:
        yield Contradiction("reads_like", run.reads_like, settings.reads_like)


def _against_table(task: Task, replies: Sequence[Reply]) -> Iterator[Contradiction]:
    """Rows of a prediction file that say another label or size than the table does."""
    for reply in replies:
        query = task.queries[reply.index]
        for name, said in reply.stated.items():
            true = getattr(query, name)
            if _as_stated(said) != _as_stated(true):
                yield Contradiction(f"{name} of row {reply.index}", said, f"{true} ({task.table})")


def _as_stated(value: object) -> str:
    """A label or a size as any format of prediction files writes it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = " ".join(str(value).split())
    return text.removesuffix(".0") if text.removesuffix(".0").isdigit() else text


def joined(parts: Iterable[RunScore]) -> RunScore:
    """The score of a run whose rows were scored in parts, in their order; at least one part."""
    first, *others = parts
    runs = (first, *others)
    sums = add_up(run.totals for run in runs)
    return replace(
        first,
        scored=tuple(chain.from_iterable(run.scored for run in runs)),
        totals=sums,
        figures=figures(sums),
        spaces=tuple(dict.fromkeys(chain.from_iterable(run.spaces for run in runs))),
        forced=tuple(dict.fromkeys(chain.from_iterable(run.forced for run in runs))),
    )


def without_details(one: Scored) -> Scored:
    """What a run's summary needs of one query: no boxes, no match, and the reply's first words."""
    reply = one.reply
    recorded = replace(reply.recorded, thought="")
    return Scored(
        one.query,
        replace(reply, text=reply.text[:_FIRST_WORDS], recorded=recorded),
        Reading([], [], [], one.reading.reason),
        Matched([], [], []),
    )


_FIRST_WORDS = 100
"""They tell a failed call from an answer."""


def _scale(space: Space, query: Query) -> tuple[float, float]:
    w, h = reference_size(space, query.width, query.height)
    return query.width / w, query.height / h


def score_file(
    path: Path, settings: Settings | None = None, dataset: str | None = None
) -> RunScore:
    """Score a prediction file; see :func:`score` for what it raises.

    The file may have any name where its run recorded what it is, or ``dataset`` is given.
    """
    settings = settings or settings_from({})
    run = read_identity(path)
    model, name, renamed = _named(path, dataset, run)
    replies = read_predictions(path)
    try:
        notes = overruled(renamed, settings.force, f"{path}", "Give it back its name.")
        done = score(model, load_task(name), replies, settings, run)
    except SpaceError as error:
        raise SpaceError(
            f"{error}\nThe predictions are safe in {path}; score them without running the model "
            f"again:\n  python run_findit.py score --space SPACE {path}"
        ) from None
    return replace(done, forced=(*notes, *done.forced))


def _named(
    path: Path, dataset: str | None, run: Identity | None
) -> tuple[str, str, list[Contradiction]]:
    """(model, dataset) of a prediction file, and where its name contradicts its run or the user."""
    try:
        model, named = split_name(path)
    except PredictionError:
        if run is not None:
            model, named = run.model, run.dataset
        elif dataset is not None:
            model, named = path.stem.removesuffix(f"_{dataset}"), dataset
        else:
            raise
    name = dataset or named
    recorded = (run.model, run.dataset) if run is not None else (model, named)
    against = [Contradiction("model", recorded[0], model)] * (model != recorded[0])
    if parse(name) != parse(recorded[1]):
        against.append(Contradiction("dataset", recorded[1], name))
    return model, name, against
