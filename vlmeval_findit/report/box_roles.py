"""Which box was taken for which object: the assignment of the score, with its pairs.

A score keeps the IoU of every object; to draw a box as hit or miss, and to count hits at other IoU
thresholds, one must know the pairs.  They come from the same function over the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..benchmarks.findit.metrics import Totals, figures
from ..boxes.matching import HIT, assign, iou, plain_label
from ..boxes.records import Truth
from ..runs.scored_run import ScoredRow

THRESHOLDS = tuple(at / 20 for at in range(1, 20))
"""IoU thresholds of curves: 0.05 to 0.95."""


class Role(Enum):
    """What a drawn box is."""

    TRUTH = "truth"
    HIT = "hit"
    MISS = "miss"
    WRONG_LABEL = "wrong label"


class Pair(NamedTuple):
    """A box and the object that it was assigned to, by their places in answer and truth."""

    box: int
    target: int
    iou: float
    labels_agree: bool


def pairs(answer: ScoredRow, truth: Truth) -> list[Pair]:
    """The assignment of one answer, frame by frame (protocol section 5).

    Args:
        answer: boxes in pixels of the original image; one that is not finite has no pair.
        truth: the ground truth of the same query.
    """
    found: list[Pair] = []
    said_frames = answer.frames or (0,) * len(answer.boxes)
    for frame in sorted({*truth.frames}):
        boxes = [i for i, f in enumerate(said_frames) if f == frame]
        targets = [j for j, f in enumerate(truth.frames) if f == frame]
        if boxes:
            found += _frame_pairs(answer, truth, boxes, targets)
    return found


def _frame_pairs(
    answer: ScoredRow, truth: Truth, boxes: Sequence[int], targets: Sequence[int]
) -> list[Pair]:
    left = _array(answer.boxes[i] or (np.nan,) * 4 for i in boxes)
    right = _array(truth.boxes[j] for j in targets)
    rows, columns = len(boxes), len(targets)
    values = iou(np.repeat(left, columns, axis=0), np.tile(right, (rows, 1))).reshape(rows, columns)
    agree = _agreement(answer, truth, boxes, targets)
    labelled = bool(truth.labels or answer.labels)
    cost = np.float32(1) - values - agree if labelled else np.float32(1) - values
    return [
        Pair(boxes[r], targets[c], float(values[r, c]), bool(agree[r, c]))
        for r, c in zip(*assign(cost), strict=True)
    ]


def _array(boxes: Iterable[Sequence[float]]) -> NDArray[np.float32]:
    # A huge number that a model said is infinite in 32 bits, and then its IoU is 0, as scored.
    with np.errstate(over="ignore"):
        return np.array(list(boxes), dtype=np.float64).reshape(-1, 4).astype(np.float32)


def _agreement(
    answer: ScoredRow, truth: Truth, boxes: Sequence[int], targets: Sequence[int]
) -> NDArray[np.bool_]:
    said = [plain_label(answer.labels[i]) if answer.labels else "" for i in boxes]
    true = [plain_label(truth.labels[j]) if truth.labels else "" for j in targets]
    return np.array([[one == other for other in true] for one in said], dtype=np.bool_)


def roles(answer: ScoredRow, truth: Truth) -> list[tuple[Role, float]]:
    """What every box of an answer is, and the IoU with its object (0: it has none)."""
    found = [(Role.MISS, 0.0)] * len(answer.boxes)
    for pair in pairs(answer, truth):
        role = Role.MISS
        if pair.iou >= HIT:
            role = Role.HIT if pair.labels_agree else Role.WRONG_LABEL
        found[pair.box] = (role, pair.iou)
    return found


class Curve(NamedTuple):
    """Precision, recall and F1 in percent, one value a threshold of :data:`THRESHOLDS`."""

    precision: tuple[float, ...]
    recall: tuple[float, ...]
    f1: tuple[float, ...]


def curve(answers: Iterable[tuple[ScoredRow, Truth]]) -> Curve:
    """Precision and recall by IoU threshold; a failed call adds nothing to any sum.

    The assignment is the score's at every threshold; only what counts as a hit changes.
    """
    n_pred = n_gt = 0
    ious: list[float] = []
    for answer, truth in answers:
        n_pred += answer.totals.n_pred
        n_gt += answer.totals.n_gt
        ious += [pair.iou for pair in pairs(answer, truth) if pair.labels_agree]
    values = np.array(ious, dtype=np.float32)
    hits = [int((values >= np.float32(threshold)).sum()) for threshold in THRESHOLDS]
    sums = (Totals(tp=tp, n_pred=n_pred, n_gt=n_gt) for tp in hits)
    found = [figures(one) for one in sums]
    return Curve(
        tuple(one.precision for one in found),
        tuple(one.recall for one in found),
        tuple(one.f1 for one in found),
    )
