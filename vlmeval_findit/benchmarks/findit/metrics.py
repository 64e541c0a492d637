"""F1@0.5, mIoU and format adherence as ratios of sums (protocol section 5)."""

from __future__ import annotations

from ...boxes.records import Matched, Reading, Reason
from ...core.metric import Metric
from .rejection import FALSE_ALARM_RATE, REJECTION_ACCURACY
from .salvaging import FOUND_MORE, SAID_MORE

F1_SALVAGED = Metric(
    "F1@0.5 (salvaged)",
    {"tp": 2, FOUND_MORE: 2},
    {"n_pred": 1, SAID_MORE: 1, "n_gt": 1},
    key="f1_salvaged",
    in_short_tables=False,
)
"""The headline of a tolerant reading, beside that of the score."""

METRICS = (
    Metric("F1@0.5", {"tp": 2}, {"n_pred": 1, "n_gt": 1}, key="f1"),
    Metric("mIoU", {"iou_sum": 1}, {"n_gt": 1}, key="miou"),
    Metric("Adherence", {"adherent": 1}, {"responses": 1}, key="adherence"),
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
        "responses": 0 if failed else 1,
        "adherent": 0 if failed else int(reading.reason is None),
        "failed": int(failed),
        "tp": 0 if failed else matched.tp,
        "n_pred": 0 if failed else len(matched.boxes),
        "n_gt": 0 if failed else objects,
        "n_gt_failed": objects if failed else 0,
        "iou_sum": 0.0 if failed else float(sum(matched.ious)),
    }
