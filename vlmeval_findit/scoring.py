"""Scoring one run: replies and a task in, a score out.  Needs neither torch nor vlmeval."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from .matching import match
from .metrics import Figures, Totals, add_up, figures, totals
from .models.table import MODELS, find_model, unknown_space
from .predictions import PredictionError, Reply, read_predictions, split_name
from .reading import Reader, reader
from .records import Matched, Query, Reading, Reason
from .spaces import Space, SpaceError, reference_size, space_from
from .tasks import Asked, Task, load_task, read_asked
from .variant import ReplyFormat, Variant, nearest

# --- the coordinate space of a run ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user says about the scoring of a run; all of it goes before what is known otherwise.

    ``space`` is a name or the fields of :class:`.Space`; ``reads_like`` a row of the model table
    whose way of answering ``unconstrained`` prompts the model shares.
    """

    space: str | Mapping[str, Any] | None = None
    reads_like: str | None = None


def settings_from(values: Mapping[str, Any]) -> Settings:
    """Settings from ``--judge-args`` (other keys are the host's) or, where it has none, from
    ``FINDIT_SPACE`` (a name or a JSON object) and ``FINDIT_READS_LIKE``.
    """
    space = values.get("space") or os.environ.get("FINDIT_SPACE")
    if isinstance(space, str) and space.lstrip().startswith("{"):
        try:
            space = json.loads(space)
        except ValueError as error:
            raise SpaceError(f"FINDIT_SPACE={space}: {error}") from None
    return Settings(space, values.get("reads_like") or os.environ.get("FINDIT_READS_LIKE"))


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
    model: str, variant: Variant, settings: Settings, asked: Asked | None
) -> SpaceInForce:
    """The space of a run: the user's setting, the run's record, or the model's row, in this order.

    Raises:
        SpaceError: none of them says it; the message lists the spaces.
    """
    if settings.space is not None:
        return SpaceInForce(space_from(settings.space), "setting")
    if asked is not None and asked.space is not None:
        return SpaceInForce(space_from(asked.space), "recorded by the run")
    row = find_model(model)
    if row is None:
        raise unknown_space(model)
    return SpaceInForce(row.space(variant.row), f"model table: {row.name}")


def _spaces(
    replies: Sequence[Reply], model: str, variant: Variant, settings: Settings, asked: Asked | None
) -> list[SpaceInForce]:
    """The space of every reply: what was recorded with it, unless the user says otherwise."""
    if settings.space is None and any(reply.recorded.space for reply in replies):
        return [
            SpaceInForce(space_from(reply.recorded.space), "recorded by the run")
            if reply.recorded.space
            else run_space(model, variant, settings, asked)
            for reply in replies
        ]
    return [run_space(model, variant, settings, asked)] * len(replies)


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
    asked: Asked | None

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
    asked: Asked | None = None,
) -> RunScore:
    """Score the replies of a model to a task.

    Raises:
        SpaceError: the coordinate space is not known.
        PredictionError: a reply to a row that the table does not have.
    """
    settings = settings or settings_from({})
    for reply in replies:
        if reply.index not in task.queries:
            raise PredictionError(
                f"{task.name}: index {reply.index} is not in {task.table} "
                f"({len(task.queries)} rows): the predictions are of another table"
            )
    spaces = _spaces(replies, model, task.variant, settings, asked)
    rows = {reply.recorded.model.get("row", "") for reply in replies}
    readers = {row: reader(reply_format(model, task.variant, settings, row)) for row in rows}
    queries = [task.queries[reply.index] for reply in replies]
    readings = [
        read_reply(reply, readers[reply.recorded.model.get("row", "")]) for reply in replies
    ]
    matched = match(
        readings,
        [query.truth for query in queries],
        [_scale(s.space, query) for s, query in zip(spaces, queries, strict=True)],
    )
    scored = tuple(map(Scored, queries, replies, readings, matched))
    sums = add_up(totals(one.reading, one.matched) for one in scored)
    in_force = tuple(dict.fromkeys(spaces))
    return RunScore(model, task, scored, sums, figures(sums), in_force, asked)


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
    """Score a prediction file; see :func:`score` for what it raises."""
    model, name = split_name(path, dataset)
    replies = read_predictions(path)
    try:
        return score(model, load_task(name), replies, settings, read_asked(path))
    except SpaceError as error:
        raise SpaceError(
            f"{error}\nThe predictions are safe in {path}; score them without running the model "
            f"again:\n  python run_findit.py score --space SPACE {path}"
        ) from None
