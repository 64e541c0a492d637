"""Sums per query and the metrics over them, for boxes and points (protocol section 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from math import isfinite
from typing import Any, NamedTuple

from ...boxes.answer_kinds import AnswerKind, answer_kind
from ...boxes.box_records import FormatFailure, MatchResult, ParsedReply, Truth
from ...boxes.lenient import LenientReply, parse_leniently
from ...boxes.matching import match, points_inside
from ...boxes.representation import Corners, MatchRule, ReplyFormat
from ...boxes.spaces import ImageExtent, ToPixels
from ...protocol.metric import Better, Metric, Sums
from ...protocol.replies import Reply

# --- lenient parsing of replies that do not adhere: no score depends on it ------------------------


class LenientResult(NamedTuple):
    """A lenient reading matched with the ground truth."""

    lenient: LenientReply
    match: MatchResult


def lenient_matches(
    replies: Sequence[str],
    formats: Sequence[ReplyFormat],
    readings: Sequence[ParsedReply],
    truths: Sequence[Truth],
    maps: Sequence[ToPixels],
    match_rule: MatchRule = MatchRule.BOX_OVERLAP,
    extents: Sequence[ImageExtent | None] = (),
) -> dict[int, LenientResult]:
    """Match the lenient readings, by index of their replies.

    ``extents`` are where the images lie in the replies' numbers; location tokens need them.
    """
    result: dict[int, LenientReply] = {}
    for place, reading in enumerate(readings):
        extent = extents[place] if extents else None
        lenient = parse_leniently(replies[place], formats[place], reading, extent)
        if lenient is not None:
            result[place] = lenient
    read = [lenient.reading for lenient in result.values()]
    true = [truths[place] for place in result]
    in_pixels = [maps[place] for place in result]
    matched = match(read, true, in_pixels, match_rule)
    return dict(zip(result, map(LenientResult, result.values(), matched), strict=True))


def recovered_objects(strict: MatchResult, lenient: LenientResult) -> tuple[int, ...]:
    """List the indices of the objects that only the lenient reading finds."""
    both = zip(lenient.match.hits, strict.hits, strict=True)
    return tuple(j for j, (now, before) in enumerate(both) if now and not before)


def lenient_details(strict: MatchResult, lenient: LenientResult) -> dict[str, Any]:
    """Return a lenient reading's details: boxes in pixels, those of the strict reading first."""
    reading = lenient.lenient.reading
    matched = lenient.match
    result: dict[str, Any] = {
        "repairs": [repair.value for repair in lenient.lenient.repairs],
        "boxes": finite(matched.boxes),
        "hits": list(matched.hits),
        "recoverable": list(recovered_objects(strict, lenient)),
    }
    return result | labels_and_frames(reading)


def labels_and_frames(reading: ParsedReply) -> dict[str, Any]:
    """Return the labels and frames of boxes for a row's details, where there are any."""
    stated = {"labels": list(reading.labels), "frames": list(reading.frames)}
    return {name: values for name, values in stated.items() if values}


def finite(boxes: Sequence[Corners]) -> list[list[float | None]]:
    """Return boxes as in JSON, with null for a number that is not finite."""
    return [[n if isfinite(n) else None for n in box] for box in boxes]


def kind_of(reply: Reply, reading: ParsedReply, lenient: LenientResult | None) -> AnswerKind:
    """Return what a reply says, with or without objects to find."""
    return answer_kind(reply.answer, reading, lenient and lenient.lenient, reply.cut)


# --- queries with nothing to find -----------------------------------------------------------------
# An empty reply, an unreadable reply or prose is no rejection.


class NegativeOutcome(Enum):
    """Outcome of a reply to a query without objects; the value is its name in tables."""

    REJECTED = "rejected rightly"  # an empty answer in the format asked for
    FALSE_ALARM = "false alarm"
    UNREADABLE = "not readable"
    REFUSED = "refused"  # words instead of an answer
    EMPTY = "empty reply"
    FAILED = "failed call"

    @property
    def sum(self) -> str:
        return f"negatives_{self.name.lower()}"


OUTCOMES: Mapping[AnswerKind, NegativeOutcome] = {
    AnswerKind.NO_BOX: NegativeOutcome.REJECTED,
    AnswerKind.BOXES: NegativeOutcome.FALSE_ALARM,
    AnswerKind.UNREADABLE: NegativeOutcome.UNREADABLE,
    AnswerKind.WORDS: NegativeOutcome.REFUSED,
    AnswerKind.EMPTY: NegativeOutcome.EMPTY,
    AnswerKind.FAILED: NegativeOutcome.FAILED,
}

_ALL = {item.sum: 1 for item in NegativeOutcome}

# Share of each outcome, failed calls included.
SHARES = tuple(Metric(item.value, {item.sum: 1}, _ALL, empty=None) for item in NegativeOutcome)

_ANSWERED = {name: 1 for name in _ALL if name != NegativeOutcome.FAILED.sum}
_of_answered = partial(Metric, whole=_ANSWERED, empty=None, in_short_tables=False)
REJECTION_ACCURACY = _of_answered(
    "Rejection accuracy", {NegativeOutcome.REJECTED.sum: 1}, key="rejection_accuracy"
)
FALSE_ALARM_RATE = _of_answered(
    "False-alarm rate",
    {NegativeOutcome.FALSE_ALARM.sum: 1},
    key="false_alarm_rate",
    better=Better.LOWER,
)


def rejections(sums: Sums) -> dict[NegativeOutcome, int]:
    """Count the queries of each outcome; empty where every query has something to find."""
    result = {item: int(sums.get(item.sum, 0)) for item in NegativeOutcome}
    return result if any(result.values()) else {}


def rejection_line(sums: Sums) -> str | None:
    """Summarise a run's rejections; None where every query has something to find.

    >>> rejection_line({"negatives_rejected": 6, "negatives_failed": 1})
    '7 with nothing to find: rejected rightly 6, failed call 1'
    """
    result = {item: count for item, count in rejections(sums).items() if count}
    parts = ", ".join(f"{item.value} {count:,}" for item, count in result.items())
    return f"{sum(result.values()):,} with nothing to find: {parts}" if result else None


# --- boxes ----------------------------------------------------------------------------------------


def _replied(reading: ParsedReply) -> dict[str, float]:
    failed = int(reading.reason is FormatFailure.FAILED_CALL)
    return {"responses": 1 - failed, "adherent": int(reading.reason is None), "failed": failed}


def sums(reading: ParsedReply, matched: MatchResult) -> dict[str, float]:
    """Compute one query's sums; the objects of a failed call are only in ``n_gt_failed``."""
    replied, objects = _replied(reading), len(matched.ious)
    if replied["failed"]:
        return {**replied, "tp": 0, "n_pred": 0, "n_gt": 0, "n_gt_failed": objects, "iou_sum": 0.0}
    counted = {"tp": matched.tp, "n_pred": matched.counted, "n_gt": objects, "n_gt_failed": 0}
    return {**replied, **counted, "iou_sum": float(sum(matched.ious))}


ADHERENCE = Metric("Adherence", {"adherent": 1}, {"responses": 1}, key="adherence")

_F1_LENIENT = Metric(  # the headline of the lenient reading
    "F1@0.5 (lenient)", {"tp": 2, "lenient_tp": 2}, {"n_pred": 1, "lenient_pred": 1, "n_gt": 1},
    key="f1_lenient", in_short_tables=False,
)  # fmt: skip

# Micro-averaged over the answered queries; F1@0.5 is the headline.
METRICS = (
    Metric("F1@0.5", {"tp": 2}, {"n_pred": 1, "n_gt": 1}, key="f1"),
    Metric("mIoU", {"iou_sum": 1}, {"n_gt": 1}, key="miou"),
    ADHERENCE,
    Metric("Precision", {"tp": 1}, {"n_pred": 1}, key="precision", in_short_tables=False),
    Metric("Recall", {"tp": 1}, {"n_gt": 1}, key="recall", in_short_tables=False),
    _F1_LENIENT,
    REJECTION_ACCURACY,
    FALSE_ALARM_RATE,
)

F1_FAILED_MISSED = Metric(  # every failed call is an answer without boxes
    "F1@0.5 (failed calls as misses)", {"tp": 2}, {"n_pred": 1, "n_gt": 1, "n_gt_failed": 1},
    key="f1_failed_missed",
)  # fmt: skip

RANKING = (F1_FAILED_MISSED, METRICS[1], ADHERENCE)  # else failing on hard images would pay

# --- points ---------------------------------------------------------------------------------------


def _point_sums(reading: ParsedReply, matched: MatchResult, truth: Truth) -> dict[str, float]:
    """Compute the sums of a query answered with points; see :data:`_POINTING`."""
    replied = _replied(reading)
    objects = len(truth.boxes)
    points = matched.counted
    if replied["failed"]:
        counted = dict.fromkeys(("pointed", "points", "objects", "places", "inside", "targets"), 0)
        return {**replied, **counted, "objects_failed": objects}
    inside = points_inside(matched, reading, truth) / points if points else 0.0
    return {
        **{**replied, "pointed": matched.tp, "points": points, "objects": objects},
        **{"places": max(points, objects), "inside": inside, "targets": int(objects > 0)},
        "objects_failed": 0,
    }


_POINTING_LENIENT = Metric(
    "Pointing accuracy (lenient)",
    {"pointed": 1, "lenient_pointed": 1}, {"places": 1, "lenient_places": 1},
    key="pointing_lenient", in_short_tables=False,
)  # fmt: skip

# Over the answered queries; pointing accuracy is the headline.  ``pointed``: objects with a point
# assigned to them.  ``places``: max(objects, points), so that an extra point costs as much as a
# missed object; with one object and at most one point this is ScreenSpot-Pro's accuracy.
# ``inside``: the share of a query's points in any object (0 without a point), with one object as in
# RefSpatial-Bench.
_POINTING = (
    Metric("Pointing accuracy", {"pointed": 1}, {"places": 1}, key="pointing"),
    Metric("Points inside", {"inside": 1}, {"targets": 1}, key="points_inside", empty=None),
    ADHERENCE,
    Metric("Point precision", {"pointed": 1}, {"points": 1}, key="point_precision",
           in_short_tables=False),
    Metric("Point recall", {"pointed": 1}, {"objects": 1}, key="point_recall",
           in_short_tables=False),
    _POINTING_LENIENT,
    REJECTION_ACCURACY,
    FALSE_ALARM_RATE,
)  # fmt: skip

_POINTING_FAILED_MISSED = Metric(
    "Pointing accuracy (failed calls as misses)",
    {"pointed": 1}, {"places": 1, "objects_failed": 1}, key="pointing_failed_missed",
)  # fmt: skip

# --- match rules ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleMetrics:
    """Sums and metrics of answers under a match rule."""

    metrics: tuple[Metric, ...]
    ranking: tuple[Metric, ...]
    headline_counting_failures: Metric
    lenient: Metric
    counts: Mapping[str, str]  # sums in a score's table
    sums: Callable[[ParsedReply, MatchResult, Truth], dict[str, float]]  # of a query
    # the sums of the surplus over strict reading, by name, as counted in one reading
    surplus: Mapping[str, Callable[[MatchResult], int]]
    undetailed: tuple[str, ...] = ()  # details that these answers do not have

    def lenient_sums(self, strict: MatchResult, lenient: LenientResult) -> dict[str, float]:
        """Return the lenient surplus where not 0; another assignment can make it negative."""
        more = {name: of(lenient.match) - of(strict) for name, of in self.surplus.items()}
        return {name: value for name, value in more.items() if value}


BOXES = RuleMetrics(
    METRICS,
    RANKING,
    F1_FAILED_MISSED,
    _F1_LENIENT,
    {"boxes": "n_gt", "predicted": "n_pred", "found": "tp"},
    lambda reading, matched, _: sums(reading, matched),
    {"lenient_tp": lambda of: of.tp, "lenient_pred": lambda of: of.counted},
)
POINTS = RuleMetrics(
    _POINTING,
    (_POINTING_FAILED_MISSED, _POINTING[1], ADHERENCE),
    _POINTING_FAILED_MISSED,
    _POINTING_LENIENT,
    {"objects": "objects", "points": "points", "pointed at": "pointed"},
    _point_sums,
    {
        "lenient_pointed": lambda of: of.tp,
        "lenient_places": lambda of: max(len(of.hits), of.counted),
    },
    undetailed=("ious", "tp", "n_pred", "n_gt"),
)
RULES = {MatchRule.BOX_OVERLAP: BOXES, MatchRule.POINT_IN_OBJECT: POINTS}
