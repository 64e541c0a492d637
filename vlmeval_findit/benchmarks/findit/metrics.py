"""F1@0.5, mIoU and format adherence over a dataset (protocol section 5).

Sums are additive: totals of shards add up to the totals of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from ...boxes.records import Matched, Reading, Reason


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over queries.  ``failed`` calls are no responses and enter none of the other sums,
    but the ground-truth boxes that they left unanswered are counted in ``n_gt_failed``.
    """

    responses: int = 0
    adherent: int = 0
    failed: int = 0
    tp: int = 0
    n_pred: int = 0
    n_gt: int = 0
    n_gt_failed: int = 0
    iou_sum: float = 0.0

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.responses + other.responses,
            self.adherent + other.adherent,
            self.failed + other.failed,
            self.tp + other.tp,
            self.n_pred + other.n_pred,
            self.n_gt + other.n_gt,
            self.n_gt_failed + other.n_gt_failed,
            self.iou_sum + other.iou_sum,
        )


FIGURES = ("F1@0.5", "mIoU", "Adherence", "Precision", "Recall")
"""Names of the figures in tables; F1@0.5 is the one that VLMEvalKit's summary shows."""

SHOWN = FIGURES[:3]
"""Those of short tables."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What is reported, in percent.  An empty denominator gives 0.

    ``f1`` is micro-averaged F1 at IoU 0.5 over the queries that were answered;
    ``f1_failed_missed`` the same when every failed call counts as an answer without boxes.
    """

    f1: float
    miou: float
    adherence: float
    precision: float
    recall: float
    f1_failed_missed: float

    @property
    def named(self) -> dict[str, float]:
        """The figures by their names in tables (:data:`FIGURES`)."""
        values = (self.f1, self.miou, self.adherence, self.precision, self.recall)
        return dict(zip(FIGURES, values, strict=True))


def totals(reading: Reading, matched: Matched) -> Totals:
    """The sums of one query."""
    if reading.reason is Reason.FAILED_CALL:
        return Totals(failed=1, n_gt_failed=len(matched.ious))
    return Totals(
        responses=1,
        adherent=int(reading.reason is None),
        tp=matched.tp,
        n_pred=len(matched.boxes),
        n_gt=len(matched.ious),
        iou_sum=sum(matched.ious),
    )


def add_up(parts: Iterable[Totals]) -> Totals:
    """The sums of many."""
    return reduce(Totals.__add__, parts, Totals())


def figures(t: Totals) -> Figures:
    """The figures of a dataset from its sums."""
    precision, recall = _percent(t.tp, t.n_pred), _percent(t.tp, t.n_gt)
    return Figures(
        f1=_percent(2 * t.tp, t.n_pred + t.n_gt),
        miou=_percent(t.iou_sum, t.n_gt),
        adherence=_percent(t.adherent, t.responses),
        precision=precision,
        recall=recall,
        f1_failed_missed=_percent(2 * t.tp, t.n_pred + t.n_gt + t.n_gt_failed),
    )


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole else 0.0
