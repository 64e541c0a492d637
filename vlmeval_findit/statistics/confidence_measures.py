"""What confidences of boxes are worth: average precision, reliability, and the best threshold.

The matches of boxes do not change when images are resampled, only their sums do: intervals add up
weighted matches and match nothing again. Where boxes below a threshold are left out, the assignment
of the others stays the score's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..protocol import Array, Curve
from .intervals import Interval, bootstrap_interval

Flags = NDArray[np.bool_]

RECALLS = np.linspace(0.0, 1.0, 101)  # COCO's
_AT_A_TIME = 2_000_000  # Numbers of an array while weighted matches are added up


class Matches(NamedTuple):
    """The boxes and objects of one category; boxes of the highest scores come first."""

    matched: Flags  # (thresholds, boxes): to an object
    counted: Flags  # (thresholds, boxes): not to an ignored object
    image: NDArray[np.intp]  # Index of each box's image
    objects: Array  # Number of objects of each image that are not ignored


def average_precision(matches: Matches, weights: Array) -> Array:
    """Return (sets, thresholds) the average precision; NaN where a set has no objects.

    ``weights`` are (sets, images): how often each image counts.
    """
    thresholds, boxes = matches.matched.shape
    values = np.zeros((len(weights), thresholds))
    sets = max(1, _AT_A_TIME // max(1, matches.matched.size))
    for start in range(0, len(weights), sets):
        some = slice(start, start + sets)
        objects = weights[some] @ matches.objects
        if boxes:
            values[some] = _areas(matches, weights[some][:, matches.image], objects)
        values[some][objects == 0] = np.nan
    return values


def _areas(matches: Matches, weights: Array, objects: Array) -> Array:
    """Return the areas under interpolated precision, at COCO's 101 recalls.

    ``weights`` are (sets, boxes), ``objects`` the weighted number of objects of each set.
    """
    is_hit = matches.matched & matches.counted
    hits = np.cumsum(weights[:, None] * is_hit, axis=-1)
    boxes = np.cumsum(weights[:, None] * matches.counted, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        recall = hits / objects[:, None, None]
        precision = np.where(boxes > 0, hits / boxes, 0.0)
    best_from_here = np.maximum.accumulate(precision[..., ::-1], axis=-1)[..., ::-1]
    # How many of the recalls are reached at each box: the new ones have its precision.
    reached = np.searchsorted(RECALLS, np.nan_to_num(recall), side="right")
    newly_reached = np.diff(reached, axis=-1, prepend=0)
    area: Array = (best_from_here * newly_reached).sum(axis=-1) / len(RECALLS)
    return area


BINS = 10  # Of equal width, 0 to 1; a confidence on an edge belongs to the bin above it


class Bin(NamedTuple):
    """Boxes of about the same confidence: its mean, and the share of hits among them."""

    low: float
    high: float
    boxes: int
    confidence: float
    hits: float


class ConfidentBoxes(NamedTuple):
    """Boxes of a run that count, an entry per box; and the objects of its images."""

    confidence: Array  # NaN: none
    hit: NDArray[np.bool_]  # Matched to an object of its label with an IoU of at least 0.5
    image: NDArray[np.intp]  # Index of its image
    objects: Array  # Number of objects of each image, all queries together

    def where(self, inside: NDArray[np.bool_]) -> ConfidentBoxes:
        """Return some of the boxes, with all objects."""
        return self._replace(
            confidence=self.confidence[inside], hit=self.hit[inside], image=self.image[inside]
        )


def reliability(boxes: ConfidentBoxes) -> list[Bin]:
    """Return the reliability diagram: every bin with a box that has a confidence."""
    boxes = boxes.where(~np.isnan(boxes.confidence))
    bins = np.minimum((boxes.confidence * BINS).astype(int), BINS - 1)
    return [
        Bin(
            low=at / BINS,
            high=(at + 1) / BINS,
            boxes=int((bins == at).sum()),
            confidence=float(boxes.confidence[bins == at].mean()),
            hits=float(boxes.hit[bins == at].mean()),
        )
        for at in np.unique(bins).tolist()
    ]


def calibration_error(bins: Sequence[Bin]) -> float | None:
    """Return the expected calibration error, 0 to 1, weighted by boxes.

    >>> calibration_error([Bin(0, 0.1, 1, 0.05, 0.05), Bin(0.9, 1, 3, 0.95, 0.75)])
    0.15
    """
    boxes = sum(each.boxes for each in bins)
    if not boxes:
        return None
    error = sum(each.boxes * abs(each.confidence - each.hits) for each in bins)
    return round(error / boxes, 12)


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """The calibration error of boxes, and what chance adds to it; 0 to 1.

    A sum of absolute differences is above 0 for a model whose confidences are right, and the
    farther, the fewer boxes there are. Only ``beyond_chance`` can be compared.
    """

    value: float  # As usual: ECE
    by_chance: float | None = None  # What few boxes add to it; None: too few images
    beyond_chance: float | None = None
    interval: Interval | None = None  # Of ``beyond_chance``


def estimate_calibration_error(boxes: ConfidentBoxes, weights: Array) -> CalibrationError | None:
    """Return the calibration error of boxes; None where none has a confidence.

    The square of what was measured is that of the true error and that of chance. Resampled images
    have the chance of their drawing on top, so their mean square says how large it is.

    Args:
        boxes: of a run.
        weights: (sets, images), how often each resampled set has each image; empty: too few images.
    """
    boxes = boxes.where(~np.isnan(boxes.confidence))
    value = calibration_error(reliability(boxes))
    if value is None:
        return None
    if not len(weights):
        return CalibrationError(value)
    resampled = _resampled_errors(boxes, weights) ** 2
    chance = max(0.0, float(np.nanmean(resampled)) - value**2)
    # A set has the chance of the boxes and as much of its drawing.
    true = np.sqrt(np.maximum(resampled - 2 * chance, 0.0))
    return CalibrationError(
        value=value,
        by_chance=float(np.sqrt(chance)),
        beyond_chance=float(np.sqrt(max(0.0, value**2 - chance))),
        interval=bootstrap_interval(true),
    )


def _resampled_errors(boxes: ConfidentBoxes, weights: Array) -> Array:
    """Return the calibration error of each resampled set of images; NaN: it has no box."""
    bins = np.minimum((boxes.confidence * BINS).astype(int), BINS - 1)
    weight_of_box = weights[:, boxes.image]
    errors = np.zeros(len(weights))
    for at in np.unique(bins).tolist():
        inside = bins == at
        off = boxes.confidence[inside] - boxes.hit[inside]
        errors += np.abs(weight_of_box[:, inside] @ off)
    total = weight_of_box.sum(axis=1)
    mean: Array = np.divide(errors, total, out=np.full_like(errors, np.nan), where=total > 0)
    return mean


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
    hits = sums.hits[0, few]
    counts = sums.boxes[0, few]
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
