"""Sums per query and the metrics over them, for boxes and points (protocol section 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ...boxes import (
    AnswerKind,
    FormatFailure,
    ImageExtent,
    LenientReply,
    MatchResult,
    MatchRule,
    ParsedReply,
    ReplyFormat,
    ToPixels,
    Truth,
    answer_kind,
    match,
    parse_leniently,
    points_inside,
)
from ...core import counted
from ...marks import MaskReading, read_masks
from ...protocol import Better, Metric, Ratio, Reply, Sums
from ...storage import Size

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
    asked: Sequence[Sequence[str]] = (),
    units: Sequence[str] = (),
) -> dict[int, LenientResult]:
    """Match the lenient readings, by index of their replies.

    ``extents`` are where the images lie in the replies' numbers: tokens and stated units need
    them. ``asked`` are the labels that each query asks for, ``units`` what each reply's numbers
    count.
    """
    lenient: dict[int, LenientReply] = {}
    for place, reading in enumerate(readings):
        extent = extents[place] if extents else None
        labels = asked[place] if asked else ()
        unit = units[place] if units else ""
        parsed = parse_leniently(replies[place], formats[place], reading, extent, labels, unit)
        if parsed is not None:
            lenient[place] = parsed
    matches = match(
        [parsed.reading for parsed in lenient.values()],
        [truths[place] for place in lenient],
        [maps[place] for place in lenient],
        match_rule,
    )
    results: dict[int, LenientResult] = {}
    for (place, parsed), matched in zip(lenient.items(), matches, strict=True):
        results[place] = LenientResult(parsed, matched)
    return results


# --- masks in replies: no score depends on them, either -------------------------------------------


class MaskResult(NamedTuple):
    """The masks of a reply, as boxes matched with the ground truth."""

    masks: MaskReading
    match: MatchResult


def mask_matches(
    replies: Sequence[str],
    formats: Sequence[ReplyFormat],
    read: Sequence[bool],
    truths: Sequence[Truth],
    maps: Sequence[ToPixels],
    sizes: Sequence[Size],
    asked: Sequence[Sequence[str]],
    units: Sequence[str],
) -> dict[int, MaskResult]:
    """Match the boxes around the masks of replies, by index of the replies.

    ``read`` says of which replies they are read: a reply with a box or a right form has none.
    ``sizes`` are (width, height) of the images, the rest is as for :func:`lenient_matches`.
    """
    found: dict[int, MaskReading] = {}
    for place, is_read in enumerate(read):
        if not is_read:
            continue
        extent = maps[place].extent(*sizes[place])
        masks = read_masks(
            replies[place], formats[place], sizes[place], extent, asked[place], units[place]
        )
        if masks is not None:
            found[place] = masks
    matches = match(
        [masks.reading for masks in found.values()],
        [truths[place] for place in found],
        [maps[place] for place in found],
    )
    results: dict[int, MaskResult] = {}
    for (place, masks), matched in zip(found.items(), matches, strict=True):
        results[place] = MaskResult(masks, matched)
    return results


_BOXES_OF_FILES = "mask_boxes_of_files"
_BOXES_IN_REPLIES = "mask_boxes"
_EMPTY_MASKS = "mask_empty"
_HITS = "mask_tp"
_COUNTED = "mask_pred"
# Sums of masks: no metric of a score has them
MASK_SUMS = (_BOXES_OF_FILES, _BOXES_IN_REPLIES, _EMPTY_MASKS, _HITS, _COUNTED)


def mask_sums(of_file: int, result: MaskResult | None) -> dict[str, float]:
    """Return the sums of one reply's masks, where not 0.

    ``of_file``: how many of its boxes were made around masks of another program's file.
    """
    sums: dict[str, float] = {_BOXES_OF_FILES: of_file}
    if result is not None:
        sums[_BOXES_IN_REPLIES] = len(result.match.boxes)
        sums[_EMPTY_MASKS] = result.masks.empty
        sums[_HITS] = result.match.tp
        sums[_COUNTED] = result.match.counted
    return {name: value for name, value in sums.items() if value}


def mask_line(sums: Sums) -> str | None:
    """Say how many boxes of a run are around masks; None where there are no masks.

    >>> mask_line({"mask_boxes_of_files": 3})
    '3 boxes around masks: the shape of the masks, and the format, are not judged'
    >>> mask_line({"mask_boxes": 1, "mask_tp": 1, "mask_pred": 1, "n_gt": 2})
    '1 box around masks in replies, which no score counts: F1@0.5 would be 66.7, not 0.0'
    """
    parts = []
    of_files = round(sums.get(_BOXES_OF_FILES, 0))
    if of_files:
        parts.append(
            f"{counted(of_files, 'box')} around masks: the shape of the masks, and the format, "
            "are not judged"
        )
    in_replies = round(sums.get(_BOXES_IN_REPLIES, 0))
    if in_replies:
        line = f"{counted(in_replies, 'box')} around masks in replies, which no score counts"
        if "n_gt" in sums:
            with_masks = _F1_MASKS.value(sums) or 0.0
            line += f": {F1.name} would be {with_masks:.1f}, not {F1.value(sums) or 0.0:.1f}"
        parts.append(line)
    empty = round(sums.get(_EMPTY_MASKS, 0))
    if empty:
        parts.append(f"{counted(empty, 'empty mask')} in replies")
    return "; ".join(parts) or None


def box_answer_kind(
    reply: Reply, reading: ParsedReply, lenient: LenientResult | None
) -> AnswerKind:
    """Return what a reply says, with or without objects to find."""
    return answer_kind(reply.answer, reading, lenient and lenient.lenient, reply.cut)


# --- queries with nothing to find -----------------------------------------------------------------
# An empty reply, an unreadable reply or prose is no rejection.


class NegativeOutcome(Enum):
    """Outcome of a reply to a query without objects; the value is its name in tables."""

    REJECTED = "rejected rightly"  # An empty answer in the format asked for
    FALSE_ALARM = "false alarm"
    UNREADABLE = "not readable"
    REFUSED = "refused"  # Words instead of an answer
    EMPTY = "empty reply"
    FAILED = "failed call"

    @property
    def sum(self) -> str:
        return f"negatives_{self.name.lower()}"


# Outcome, by kind of answer, of a query without objects
NEGATIVE_OUTCOMES: Mapping[AnswerKind, NegativeOutcome] = {
    AnswerKind.NO_BOX: NegativeOutcome.REJECTED,
    AnswerKind.BOXES: NegativeOutcome.FALSE_ALARM,
    AnswerKind.UNREADABLE: NegativeOutcome.UNREADABLE,
    AnswerKind.WORDS: NegativeOutcome.REFUSED,
    AnswerKind.EMPTY: NegativeOutcome.EMPTY,
    AnswerKind.FAILED: NegativeOutcome.FAILED,
}

_ALL = {item.sum: 1 for item in NegativeOutcome}

# The share of each outcome, failed calls included
NEGATIVE_SHARES = tuple(
    Metric(item.value, {item.sum: 1}, _ALL, empty=None) for item in NegativeOutcome
)

_ANSWERED = {item.sum: 1 for item in NegativeOutcome if item is not NegativeOutcome.FAILED}
# Share of answered queries without objects that were rejected rightly
REJECTION_ACCURACY = Metric(
    "Rejection accuracy",
    {NegativeOutcome.REJECTED.sum: 1},
    _ANSWERED,
    key="rejection_accuracy",
    empty=None,
    in_short_tables=False,
)
# Share of answered queries without objects that got boxes
FALSE_ALARM_RATE = Metric(
    "False-alarm rate",
    {NegativeOutcome.FALSE_ALARM.sum: 1},
    _ANSWERED,
    key="false_alarm_rate",
    better=Better.LOWER,
    empty=None,
    in_short_tables=False,
)


def rejections(sums: Sums) -> dict[NegativeOutcome, int]:
    """Count the queries of each outcome; empty where every query has something to find."""
    # Where random rows stand for others, sums are no whole numbers.
    counts = {item: round(sums.get(item.sum, 0)) for item in NegativeOutcome}
    return counts if any(counts.values()) else {}


def rejection_line(sums: Sums) -> str | None:
    """Summarise a run's rejections; None where every query has something to find.

    >>> rejection_line({"negatives_rejected": 6, "negatives_failed": 1})
    '7 with nothing to find: rejected rightly 6, failed call 1'
    """
    counts = rejections(sums)
    if not counts:
        return None
    parts = [f"{item.value} {count:,}" for item, count in counts.items() if count]
    return f"{sum(counts.values()):,} with nothing to find: {', '.join(parts)}"


# --- boxes ----------------------------------------------------------------------------------------


def _reply_sums(reading: ParsedReply) -> dict[str, float]:
    """Compute the sums that boxes and points have: replies, adherent replies, failed calls."""
    failed = int(reading.reason is FormatFailure.FAILED_CALL)
    return {"responses": 1 - failed, "adherent": int(reading.reason is None), "failed": failed}


def box_sums(reading: ParsedReply, matched: MatchResult) -> dict[str, float]:
    """Compute one query's sums; the objects of a failed call are only in ``n_gt_failed``."""
    sums = _reply_sums(reading)
    if sums["failed"]:
        sums |= {"tp": 0, "n_pred": 0, "n_gt": 0, "n_gt_failed": len(matched.ious), "iou_sum": 0.0}
        return sums
    sums["tp"] = matched.tp
    sums["n_pred"] = matched.counted
    sums["n_gt"] = len(matched.ious)
    sums["n_gt_failed"] = 0
    sums["iou_sum"] = float(sum(matched.ious))
    return sums


# Micro-averaged over the answered queries, as are the next four
F1 = Metric("F1@0.5", {"tp": 2}, {"n_pred": 1, "n_gt": 1}, key="f1")
# Mean IoU over objects; an object without a matched box has 0
MIOU = Metric("mIoU", {"iou_sum": 1}, {"n_gt": 1}, key="miou", hits=Ratio({"tp": 1}, {"n_gt": 1}))
# Share of answered replies in the requested format
ADHERENCE = Metric("Adherence", {"adherent": 1}, {"responses": 1}, key="adherence")
# Share of predicted boxes that hit an object (IoU of 0.5 or more)
PRECISION = Metric("Precision", {"tp": 1}, {"n_pred": 1}, key="precision", in_short_tables=False)
# Share of objects that a box hits (IoU of 0.5 or more)
RECALL = Metric("Recall", {"tp": 1}, {"n_gt": 1}, key="recall", in_short_tables=False)

# The headline of the lenient reading
_F1_LENIENT = Metric(
    "F1@0.5 (lenient)",
    {"tp": 2, "lenient_tp": 2},
    {"n_pred": 1, "lenient_pred": 1, "n_gt": 1},
    key="f1_lenient",
    in_short_tables=False,
)

# What F1@0.5 would be if masks in replies were boxes; only said where there are some
_F1_MASKS = Metric(
    "F1@0.5 (masks as boxes)",
    {"tp": 2, _HITS: 2},
    {"n_pred": 1, _COUNTED: 1, "n_gt": 1},
    key="f1_masks",
)

# Every failed call is an answer without boxes.
F1_FAILED_MISSED = Metric(
    "F1@0.5 (failed calls as misses)",
    {"tp": 2},
    {"n_pred": 1, "n_gt": 1, "n_gt_failed": 1},
    key="f1_failed_missed",
)

# The first is the headline.
METRICS = (
    F1,
    MIOU,
    ADHERENCE,
    PRECISION,
    RECALL,
    _F1_LENIENT,
    REJECTION_ACCURACY,
    FALSE_ALARM_RATE,
)

# Failed calls count as misses: else failing on hard images would pay.
RANKING = (F1_FAILED_MISSED, MIOU, ADHERENCE)

# --- points ---------------------------------------------------------------------------------------


def _point_sums(reading: ParsedReply, matched: MatchResult, truth: Truth) -> dict[str, float]:
    """Compute the sums of a query answered with points.

    ``pointed``: objects with a point assigned to them. ``places``: max(objects, points), so that an
    extra point costs as much as a missed object. ``inside``: the share of the points in any object.
    """
    sums = _reply_sums(reading)
    objects = len(truth.boxes)
    points = matched.counted
    if sums["failed"]:
        names = ("pointed", "points", "objects", "places", "inside", "targets")
        return {**sums, **dict.fromkeys(names, 0), "objects_failed": objects}
    sums["pointed"] = matched.tp
    sums["points"] = points
    sums["objects"] = objects
    sums["places"] = max(points, objects)
    sums["inside"] = points_inside(matched, reading, truth) / points if points else 0.0
    sums["targets"] = int(objects > 0)
    sums["objects_failed"] = 0
    return sums


# Over the answered queries; with one object and at most one point ScreenSpot-Pro's accuracy
POINTING = Metric("Pointing accuracy", {"pointed": 1}, {"places": 1}, key="pointing")

# With one object as in RefSpatial-Bench
POINTS_INSIDE = Metric(
    "Points inside", {"inside": 1}, {"targets": 1}, key="points_inside", empty=None
)
_POINT_PRECISION = Metric(
    "Point precision", {"pointed": 1}, {"points": 1}, key="point_precision", in_short_tables=False
)
_POINT_RECALL = Metric(
    "Point recall", {"pointed": 1}, {"objects": 1}, key="point_recall", in_short_tables=False
)
_POINTING_LENIENT = Metric(
    "Pointing accuracy (lenient)",
    {"pointed": 1, "lenient_pointed": 1},
    {"places": 1, "lenient_places": 1},
    key="pointing_lenient",
    in_short_tables=False,
)
_POINTING_FAILED_MISSED = Metric(
    "Pointing accuracy (failed calls as misses)",
    {"pointed": 1},
    {"places": 1, "objects_failed": 1},
    key="pointing_failed_missed",
)

# The first is the headline.
_POINT_METRICS = (
    POINTING,
    POINTS_INSIDE,
    ADHERENCE,
    _POINT_PRECISION,
    _POINT_RECALL,
    _POINTING_LENIENT,
    REJECTION_ACCURACY,
    FALSE_ALARM_RATE,
)

# --- match rules ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleMetrics:
    """Sums and metrics of answers under a match rule."""

    metrics: tuple[Metric, ...]
    ranking: tuple[Metric, ...]
    headline_counting_failures: Metric
    lenient: Metric
    counts: Mapping[str, str]  # Sums in a score's table
    sums: Callable[[ParsedReply, MatchResult, Truth], dict[str, float]]  # Of a query
    # By sum of what lenient parsing adds: its count in one reading
    lenient_counts: Mapping[str, Callable[[MatchResult], int]]

    def lenient_sums(self, strict: MatchResult, lenient: LenientResult) -> dict[str, float]:
        """Return what lenient parsing adds, where not 0; another assignment can take away."""
        sums: dict[str, float] = {}
        for name, count in self.lenient_counts.items():
            added = count(lenient.match) - count(strict)
            if added:
                sums[name] = added
        return sums


# Metrics and sums of variants that ask for boxes
BOX_METRICS = RuleMetrics(
    metrics=METRICS,
    ranking=RANKING,
    headline_counting_failures=F1_FAILED_MISSED,
    lenient=_F1_LENIENT,
    counts={"boxes": "n_gt", "predicted": "n_pred", "found": "tp"},
    sums=lambda reading, matched, truth: box_sums(reading, matched),
    lenient_counts={
        "lenient_tp": lambda matched: matched.tp,
        "lenient_pred": lambda matched: matched.counted,
    },
)
# Metrics and sums of variants that ask for points
POINT_METRICS = RuleMetrics(
    metrics=_POINT_METRICS,
    ranking=(_POINTING_FAILED_MISSED, POINTS_INSIDE, ADHERENCE),
    headline_counting_failures=_POINTING_FAILED_MISSED,
    lenient=_POINTING_LENIENT,
    counts={"objects": "objects", "points": "points", "pointed at": "pointed"},
    sums=_point_sums,
    lenient_counts={
        "lenient_pointed": lambda matched: matched.tp,
        "lenient_places": lambda matched: max(len(matched.hits), matched.counted),
    },
)
# Metrics and sums by the rule that matches answers with objects
METRICS_BY_RULE = {MatchRule.BOX_OVERLAP: BOX_METRICS, MatchRule.POINT_IN_OBJECT: POINT_METRICS}
