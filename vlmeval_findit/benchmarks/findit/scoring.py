"""Replies to boxes: read, brought to pixels, matched (protocol sections 3 to 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from typing import Any

from ...boxes.confidences import Confidences, confidences
from ...boxes.matching import match
from ...boxes.reading import Reader, reader
from ...boxes.records import NO_BOX, Matched, Reading, Reason
from ...boxes.reply_format import ReplyFormat
from ...boxes.spaces import Space, reference_size
from ...core.identity import Identity
from ...core.replies import Reply
from ...core.scored_row import ScoredRow
from ...core.settings import Settings
from .metrics import sums
from .query import Query
from .run_space import SpaceInForce, reply_format, spaces_of
from .sources import source_of
from .task import FindItTask


@dataclass(frozen=True, slots=True)
class MatchedReply:
    """One query with its reply, reading and match.

    ``confidences`` are of its boxes; None where its tokens' probabilities were not recorded.
    """

    query: Query
    reply: Reply
    reading: Reading
    matched: Matched
    confidences: Confidences | None = None


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


def match_replies(
    model: str,
    task: FindItTask,
    replies: Sequence[Reply],
    settings: Settings,
    run: Identity | None,
) -> tuple[list[MatchedReply], list[SpaceInForce]]:
    """Read and match replies; the second are the spaces in force, each once.

    Raises:
        SpaceError: the coordinate space is not known.
    """
    variant = task.question
    spaces = spaces_of(replies, model, variant, settings, run)
    row_of_run = run.answering.row or "" if run is not None else ""
    rows = [reply.recorded.model.get("row", row_of_run) for reply in replies]
    formats = {row: reply_format(model, variant, settings, row) for row in {*rows}}
    readers = {row: reader(how) for row, how in formats.items()}
    queries = [task.queries[reply.index] for reply in replies]
    readings = [read_reply(reply, readers[row]) for reply, row in zip(replies, rows, strict=True)]
    matched = match(
        readings,
        [query.truth for query in queries],
        [_scale(s.space, query) for s, query in zip(spaces, queries, strict=True)],
    )
    sure = [
        _confidences(reply, formats[row], reading)
        for reply, row, reading in zip(replies, rows, readings, strict=True)
    ]
    found = list(map(MatchedReply, queries, replies, readings, matched, sure))
    return found, [*dict.fromkeys(spaces)]


def _confidences(reply: Reply, how: ReplyFormat, reading: Reading) -> Confidences | None:
    logprobs = reply.recorded.token_logprobs
    if logprobs is None or not reading.boxes:
        return None
    return confidences(reply.text, how, reading, logprobs)


def _scale(space: Space, query: Query) -> tuple[float, float]:
    w, h = reference_size(space, query.width, query.height)
    return query.width / w, query.height / h


def scored_row(one: MatchedReply, is_video: bool) -> ScoredRow:
    """One query as a row of sums, with all that is known of it."""
    reason, image = one.reading.reason, one.query.images[0]
    return ScoredRow(
        index=one.query.index,
        source=source_of(image) if is_video else image,
        sums=sums(one.reading, one.matched),
        failed=one.reply.failed,
        reason=reason.value if reason else None,
        slices=one.query.slices,
        details=_details(one),
    )


def _details(one: MatchedReply) -> Mapping[str, Any]:
    """Boxes in pixels of the original picture; the rest as in :class:`.Matched`."""
    reading, matched = one.reading, one.matched
    found: dict[str, Any] = {
        "label": one.query.label,
        "image": one.query.images[0],
        "adherent": reading.reason is None,
        "boxes": _finite(matched.boxes),
        "ious": [round(value, 6) for value in matched.ious],
        "hits": matched.hits,
        "assigned": [None if box == NO_BOX else box for box in matched.assigned],
        "tp": matched.tp,
        "n_pred": len(matched.boxes),
        "n_gt": len(matched.ious),
    }
    if matched.labels_agree:
        found["labels_agree"] = list(matched.labels_agree)
    if reading.labels:
        found["labels"] = reading.labels
    if reading.frames:
        found["frames"] = reading.frames
    if one.confidences:
        found["confidences"] = one.confidences
    return found


def _finite(boxes: list[list[float]]) -> list[list[float]] | list[list[float | None]]:
    """Boxes as JSON may have them: null for what is no finite number."""
    if all(map(isfinite, chain.from_iterable(boxes))):
        return boxes
    return [[n if isfinite(n) else None for n in box] for box in boxes]
