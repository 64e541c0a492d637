"""F1 over a threshold of the confidence, below which boxes are left out.

The assignment of the other boxes stays the score's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..protocol import Array, Curve
from .intervals import Interval, bootstrap_interval
from .reliability import ConfidentBoxes

POINTS = 100  # Points of a curve that is drawn, at most


class _ThresholdSums(NamedTuple):
    """Sums over the boxes from each threshold on, the highest threshold first."""

    thresholds: Array
    hits: Array  # (sets, thresholds)
    boxes: Array  # (sets, thresholds)
    objects: Array  # (sets,)

    @property
    def f1(self) -> Array:
        whole = self.boxes + self.objects[:, None]
        return np.divide(2 * self.hits, whole, out=np.zeros_like(whole), where=whole > 0)


def _add_up(boxes: ConfidentBoxes, weights: Array) -> _ThresholdSums:
    """Add up; a box without a confidence counts at the threshold 0 only, where every box does."""
    confidence = np.nan_to_num(boxes.confidence, nan=0.0)
    order = np.argsort(-confidence, kind="stable")
    descending = confidence[order]
    # The last box of each confidence: equal confidences stay or go together.
    last = np.flatnonzero(np.append(descending[1:] != descending[:-1], True)[: len(descending)])
    weight_of_box = weights[:, boxes.image[order]]
    hits = np.cumsum(weight_of_box * boxes.hit[order], axis=-1)[:, last]
    counts = np.cumsum(weight_of_box, axis=-1)[:, last]
    return _ThresholdSums(descending[last], hits, counts, weights @ boxes.objects)


def f1_curve(boxes: ConfidentBoxes) -> Curve:
    """Return precision, recall and F1 in percent over a rising threshold of the confidence."""
    sums = _add_up(boxes, np.ones((1, len(boxes.objects))))
    if not len(sums.thresholds):
        return Curve((), (), (), ())
    few = np.unique(np.linspace(0, len(sums.thresholds) - 1, POINTS).astype(int))[::-1]
    hits, counts = sums.hits[0, few], sums.boxes[0, few]
    recall = np.divide(hits, sums.objects, out=np.zeros_like(hits), where=sums.objects > 0)
    columns = sums.thresholds[few], 100 * hits / counts, 100 * recall, 100 * sums.f1[0, few]
    return Curve(*(tuple(round(value, 6) for value in column.tolist()) for column in columns))


@dataclass(frozen=True, slots=True)
class Threshold:
    """The threshold of the highest F1; metrics in percent.

    It was chosen on the boxes that ``f1`` is of, so ``f1`` is optimistic; ``f1_elsewhere`` is not.
    """

    value: float
    interval: Interval | None
    f1: float
    # Each half of the images cut where the other half is best; None: no boxes
    f1_elsewhere: float | None
    f1_uncut: float  # F1 of all boxes


def best_threshold(boxes: ConfidentBoxes, weights: Array) -> Threshold | None:
    """Return the best threshold of a run, of equals the lowest; None where it has no boxes.

    ``weights`` are (sets, images) of resampled images for the interval; empty: too few images.
    """
    sums = _add_up(boxes, np.ones((1, len(boxes.objects))))
    if not len(sums.thresholds):
        return None
    best = _last_best(sums.f1)[0]
    resampled = sums.thresholds[_last_best(_add_up(boxes, weights).f1)]
    whole = len(boxes.hit) + boxes.objects.sum()
    return Threshold(
        value=float(sums.thresholds[best]),
        interval=bootstrap_interval(resampled),
        f1=100 * float(sums.f1[0, best]),
        f1_elsewhere=_f1_elsewhere(boxes),
        f1_uncut=100 * float(2 * boxes.hit.sum() / whole) if whole else 0.0,
    )


def _last_best(f1: Array) -> NDArray[np.intp]:
    """Return the last of the best, set by set: thresholds fall, so it is the lowest."""
    # Sums in another order differ in their last bits: equal values must count as equal.
    rounded = np.round(f1, 12)
    last: NDArray[np.intp] = rounded.shape[1] - 1 - np.argmax(rounded[:, ::-1], axis=1)
    return last


def _f1_elsewhere(boxes: ConfidentBoxes) -> float | None:
    """Return F1 in percent at thresholds chosen on other images: every second one by name."""
    half = np.arange(len(boxes.objects)) % 2
    confidence = np.nan_to_num(boxes.confidence, nan=0.0)
    hits = counted = 0.0
    for here in (0, 1):
        inside = half[boxes.image] == here
        sums = _add_up(boxes.where(~inside), (half != here)[None].astype(float))
        if not len(sums.thresholds):
            return None
        remaining = inside & (confidence >= sums.thresholds[_last_best(sums.f1)[0]])
        hits += float(boxes.hit[remaining].sum())
        counted += float(remaining.sum())
    whole = counted + float(boxes.objects.sum())
    return 100 * 2 * hits / whole if whole else None
