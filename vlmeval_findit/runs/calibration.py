"""Whether a model's confidence means what it says: calibration, and F1 over a threshold.

A box is a hit as the score has it: assigned to an object of its label with an IoU of at least 0.5.
Where boxes below a threshold are left out, the assignment of the others stays the score's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.drawing import Curve
from ..core.statistics import Interval, drawn_interval
from .boxes_of_rows import RowBoxes

Array = NDArray[np.float64]

BINS = 10
"""Of equal width, 0 to 1; a confidence on an edge belongs to the bin above it."""

POINTS = 100
"""Points of a curve that is drawn, at most."""


class Bin(NamedTuple):
    """Boxes of about the same confidence: its mean, and the share of hits among them."""

    low: float
    high: float
    boxes: int
    confidence: float
    hits: float


def reliability(boxes: RowBoxes) -> list[Bin]:
    """The reliability diagram: every bin that has a box; of boxes with a confidence."""
    known = boxes.known
    bins = np.minimum((known.confidence * BINS).astype(int), BINS - 1)
    return [
        Bin(
            low=at / BINS,
            high=(at + 1) / BINS,
            boxes=int((bins == at).sum()),
            confidence=float(known.confidence[bins == at].mean()),
            hits=float(known.hit[bins == at].mean()),
        )
        for at in np.unique(bins).tolist()
    ]


def calibration_error(bins: Sequence[Bin]) -> float | None:
    """The expected calibration error, 0 to 1: how far bins are off, weighted by their boxes.

    >>> calibration_error([Bin(0, 0.1, 1, 0.05, 0.05), Bin(0.9, 1, 3, 0.95, 0.75)])
    0.15
    """
    boxes = sum(one.boxes for one in bins)
    if not boxes:
        return None
    off = sum(one.boxes * abs(one.confidence - one.hits) for one in bins)
    return round(off / boxes, 12)


class _Kept(NamedTuple):
    """What is kept from each threshold on, the highest threshold first.

    ``hits`` and ``said`` are (sets, thresholds) sums, ``objects`` (sets,).
    """

    thresholds: Array
    hits: Array
    said: Array
    objects: Array

    @property
    def f1(self) -> Array:
        whole = self.said + self.objects[:, None]
        return np.divide(2 * self.hits, whole, out=np.zeros_like(whole), where=whole > 0)


def _kept(boxes: RowBoxes, weights: Array) -> _Kept:
    """A box without a confidence is kept at the threshold 0 only, where every box is."""
    confidence = np.nan_to_num(boxes.confidence, nan=0.0)
    order = np.argsort(-confidence, kind="stable")
    sorted_by = confidence[order]
    # The last box of each confidence: what is equal is kept together.
    last = np.flatnonzero(np.append(sorted_by[1:] != sorted_by[:-1], True)[: len(sorted_by)])
    of_box = weights[:, boxes.picture[order]]
    hits = np.cumsum(of_box * boxes.hit[order], axis=-1)[:, last]
    said = np.cumsum(of_box, axis=-1)[:, last]
    return _Kept(sorted_by[last], hits, said, weights @ boxes.objects)


def curve(boxes: RowBoxes) -> Curve:
    """Precision, recall and F1 in percent over a threshold of the confidence, rising."""
    kept = _kept(boxes, np.ones((1, len(boxes.objects))))
    if not len(kept.thresholds):
        return Curve((), (), (), ())
    few = np.unique(np.linspace(0, len(kept.thresholds) - 1, POINTS).astype(int))[::-1]
    hits, said = kept.hits[0, few], kept.said[0, few]
    recall = np.divide(hits, kept.objects, out=np.zeros_like(hits), where=kept.objects > 0)
    return Curve(
        _plain(kept.thresholds[few]),
        _plain(100 * hits / said),
        _plain(100 * recall),
        _plain(100 * kept.f1[0, few]),
    )


def _plain(values: Array) -> tuple[float, ...]:
    return tuple(round(value, 6) for value in values.tolist())


@dataclass(frozen=True, slots=True)
class Threshold:
    """The threshold of the highest F1, and what it is worth; figures in percent.

    It was chosen on the boxes that ``f1`` is of, so ``f1`` promises too much.  ``elsewhere`` is F1
    where each half of the pictures is cut at the threshold that is best on the other half; None
    where a half has no boxes.  ``without`` is F1 of all boxes.
    """

    value: float
    interval: Interval | None
    f1: float
    elsewhere: float | None
    without: float


def best_threshold(boxes: RowBoxes, weights: Array) -> Threshold | None:
    """The best threshold of a run; of equally good ones the lowest.  None where it has no boxes.

    Args:
        boxes: those of the run.
        weights: (sets, pictures) pictures drawn again, for the interval; none where there are too
            few pictures.
    """
    pictures = len(boxes.objects)
    kept = _kept(boxes, np.ones((1, pictures)))
    if not len(kept.thresholds):
        return None
    best = _last_best(kept.f1)[0]
    drawn = kept.thresholds[_last_best(_kept(boxes, weights).f1)]
    return Threshold(
        value=float(kept.thresholds[best]),
        interval=drawn_interval(drawn),
        f1=100 * float(kept.f1[0, best]),
        elsewhere=_elsewhere(boxes),
        without=100 * float(_all(boxes)),
    )


def _last_best(f1: Array) -> NDArray[np.intp]:
    """The last of the best, set by set: thresholds fall, so it is the lowest."""
    # Sums in another order differ in their last bits: what is equal must count as equal.
    rounded = np.round(f1, 12)
    last: NDArray[np.intp] = rounded.shape[1] - 1 - np.argmax(rounded[:, ::-1], axis=1)
    return last


def _all(boxes: RowBoxes) -> float:
    whole = len(boxes.hit) + boxes.objects.sum()
    return float(2 * boxes.hit.sum() / whole) if whole else 0.0


def _elsewhere(boxes: RowBoxes) -> float | None:
    """F1 in percent at thresholds that were chosen on other pictures: every second one by name."""
    half = np.arange(len(boxes.objects)) % 2
    confidence = np.nan_to_num(boxes.confidence, nan=0.0)
    hits = said = 0.0
    for here in (0, 1):
        kept = _kept(_of(boxes, half[boxes.picture] != here), (half != here)[None].astype(float))
        if not len(kept.thresholds):
            return None
        chosen = kept.thresholds[_last_best(kept.f1)[0]]
        taken = (half[boxes.picture] == here) & (confidence >= chosen)
        hits += float(boxes.hit[taken].sum())
        said += float(taken.sum())
    whole = said + float(boxes.objects.sum())
    return 100 * 2 * hits / whole if whole else None


def _of(boxes: RowBoxes, kept: NDArray[np.bool_]) -> RowBoxes:
    return RowBoxes(boxes.confidence[kept], boxes.hit[kept], boxes.picture[kept], boxes.objects)
