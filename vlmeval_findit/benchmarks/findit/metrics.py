"""F1@0.5, mIoU and format adherence as ratios of sums (protocol section 5); the figures of points.

Answers that are judged otherwise have other figures and other sums: nothing of points is in a
figure of boxes, and nothing of boxes in one of points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...boxes.pointing import points_inside
from ...boxes.records import Matched, Reading, Reason, Truth
from ...boxes.representation import Judging
from ...core.metric import Metric
from .rejection import FALSE_ALARM_RATE, REJECTION_ACCURACY
from .salvaging import FOUND_MORE, PLACES_MORE, POINTED_MORE, SAID_MORE

F1_SALVAGED = Metric(
    "F1@0.5 (salvaged)",
    {"tp": 2, FOUND_MORE: 2},
    {"n_pred": 1, SAID_MORE: 1, "n_gt": 1},
    key="f1_salvaged",
    in_short_tables=False,
)
"""The headline of a tolerant reading, beside that of the score."""

ADHERENCE = Metric("Adherence", {"adherent": 1}, {"responses": 1}, key="adherence")

METRICS = (
    Metric("F1@0.5", {"tp": 2}, {"n_pred": 1, "n_gt": 1}, key="f1"),
    Metric("mIoU", {"iou_sum": 1}, {"n_gt": 1}, key="miou"),
    ADHERENCE,
    Metric("Precision", {"tp": 1}, {"n_pred": 1}, key="precision", in_short_tables=False),
    Metric("Recall", {"tp": 1}, {"n_gt": 1}, key="recall", in_short_tables=False),
    F1_SALVAGED,
    REJECTION_ACCURACY,
    FALSE_ALARM_RATE,
)
"""Micro-averaged over the queries that were answered; F1@0.5 is the headline.

The last two are of the queries that have nothing to find; datasets without such have none.
"""

F1_FAILED_MISSED = Metric(
    "F1@0.5 (failed calls as misses)",
    {"tp": 2},
    {"n_pred": 1, "n_gt": 1, "n_gt_failed": 1},
    key="f1_failed_missed",
)
"""The same when every failed call counts as an answer without boxes."""

RANKING = (F1_FAILED_MISSED, METRICS[1], METRICS[2])
"""By which formats are compared: one would gain else by failing on hard pictures."""

COUNTS = {"boxes": "n_gt", "predicted": "n_pred", "found": "tp"}
"""Sums that stand in a score's table, by what they are called there."""


def sums(reading: Reading, matched: Matched) -> dict[str, float]:
    """The sums of one query.

    A failed call is no response and enters none of the other sums, but the objects that it left
    unanswered are counted in ``n_gt_failed``.
    """
    failed = reading.reason is Reason.FAILED_CALL
    objects = len(matched.ious)
    return {
        **_replied(reading),
        "tp": 0 if failed else matched.tp,
        "n_pred": 0 if failed else matched.counted,
        "n_gt": 0 if failed else objects,
        "n_gt_failed": objects if failed else 0,
        "iou_sum": 0.0 if failed else float(sum(matched.ious)),
    }


def _replied(reading: Reading) -> dict[str, float]:
    """The sums that say whether there is a reply, and whether it is as asked."""
    failed = reading.reason is Reason.FAILED_CALL
    return {
        "responses": 0 if failed else 1,
        "adherent": 0 if failed else int(reading.reason is None),
        "failed": int(failed),
    }


# --- points ---------------------------------------------------------------------------------------

POINTING_SALVAGED = Metric(
    "Pointing accuracy (salvaged)",
    {"pointed": 1, POINTED_MORE: 1},
    {"places": 1, PLACES_MORE: 1},
    key="pointing_salvaged",
    in_short_tables=False,
)

POINTING = (
    Metric("Pointing accuracy", {"pointed": 1}, {"places": 1}, key="pointing"),
    Metric("Points inside", {"inside": 1}, {"targets": 1}, key="points_inside", empty=None),
    ADHERENCE,
    Metric("Point precision", {"pointed": 1}, {"points": 1}, key="point_precision",
           in_short_tables=False),
    Metric("Point recall", {"pointed": 1}, {"objects": 1}, key="point_recall",
           in_short_tables=False),
    POINTING_SALVAGED,
    REJECTION_ACCURACY,
    FALSE_ALARM_RATE,
)  # fmt: skip
"""Over the queries that were answered; the pointing accuracy is the headline.

``pointed`` are objects with a point of their own in them, one point an object (the assignment of
boxes).  ``places`` of a query are as many as it has objects, or as many as points were said where
those are more: a point too many costs as much as an object too few, and no answer is better for
being long.  With one object and at most one point this is the share of answers that lie in the
target, which is how ScreenSpot-Pro counts (a reply without a point is a miss there too).
``inside`` is of each query with objects the share of its points that lie in any, 0 without a point:
with one object this is how RefSpatial-Bench counts, however many points a reply has.
"""

POINTING_FAILED_MISSED = Metric(
    "Pointing accuracy (failed calls as misses)",
    {"pointed": 1},
    {"places": 1, "objects_failed": 1},
    key="pointing_failed_missed",
)

POINTING_RANKING = (POINTING_FAILED_MISSED, POINTING[1], ADHERENCE)

POINTING_COUNTS = {"objects": "objects", "points": "points", "pointed at": "pointed"}


def point_sums(reading: Reading, matched: Matched, truth: Truth) -> dict[str, float]:
    """The sums of one query that is answered with points; see :data:`POINTING`."""
    replied, objects, points = _replied(reading), len(truth.boxes), matched.counted
    if replied["failed"]:
        counted = dict.fromkeys(("pointed", "points", "objects", "places", "inside", "targets"), 0)
        return {**replied, **counted, "objects_failed": objects}
    inside = points_inside(matched, reading, truth)
    return {
        **replied,
        "pointed": matched.tp,
        "points": points,
        "objects": objects,
        "places": max(points, objects),
        "inside": inside / points if points else 0.0,
        "targets": int(objects > 0),
        "objects_failed": 0,
    }


SumsOf = Callable[[Reading, Matched, Truth], dict[str, float]]

SUMS: Mapping[Judging, SumsOf] = {
    Judging.BY_OVERLAP: lambda reading, matched, _: sums(reading, matched),
    Judging.BY_LYING_INSIDE: point_sums,
}
"""The sums of one query, by how its answers are judged."""
