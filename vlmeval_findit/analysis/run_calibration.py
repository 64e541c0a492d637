"""What a run's confidences are worth: average precision, calibration, F1 over a threshold.

A box is a hit as the score has it: matched to an object of its label with an IoU of at least 0.5.
Where boxes below a threshold are left out, the assignment of the others stays the score's.
Intervals rest on images that are resampled, always the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..protocol.benchmark import Curve
from ..scoring.run_score import RunScore
from ..statistics.intervals import Interval, bounds, drawn_again, drawn_interval
from .average_precision import Evaluator, Precision
from .coco_boxes import Array, CocoBoxes, NoConfidenceError, RowBoxes, boxes_of_rows, definitions_in

BINS = 10  # Of equal width, 0 to 1; a confidence on an edge belongs to the bin above it

POINTS = 100  # Points of a curve that is drawn, at most


class Bin(NamedTuple):
    """Boxes of about the same confidence: its mean, and the share of hits among them."""

    low: float
    high: float
    boxes: int
    confidence: float
    hits: float


def reliability(boxes: RowBoxes) -> list[Bin]:
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


# --- thresholds -----------------------------------------------------------------------------------


class _Thresholds(NamedTuple):
    """Sums over the boxes from each threshold on, the highest threshold first."""

    thresholds: Array
    hits: Array  # (sets, thresholds)
    boxes: Array  # (sets, thresholds)
    objects: Array  # (sets,)

    @property
    def f1(self) -> Array:
        whole = self.boxes + self.objects[:, None]
        return np.divide(2 * self.hits, whole, out=np.zeros_like(whole), where=whole > 0)


def _thresholds(boxes: RowBoxes, weights: Array) -> _Thresholds:
    """Add up; a box without a confidence counts at the threshold 0 only, where every box does."""
    confidence = np.nan_to_num(boxes.confidence, nan=0.0)
    order = np.argsort(-confidence, kind="stable")
    descending = confidence[order]
    # The last box of each confidence: equal confidences stay or go together.
    last = np.flatnonzero(np.append(descending[1:] != descending[:-1], True)[: len(descending)])
    of_box = weights[:, boxes.image[order]]
    hits = np.cumsum(of_box * boxes.hit[order], axis=-1)[:, last]
    counts = np.cumsum(of_box, axis=-1)[:, last]
    return _Thresholds(descending[last], hits, counts, weights @ boxes.objects)


def f1_curve(boxes: RowBoxes) -> Curve:
    """Return precision, recall and F1 in percent over a rising threshold of the confidence."""
    sums = _thresholds(boxes, np.ones((1, len(boxes.objects))))
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

    It was chosen on the boxes that ``f1`` is of, so ``f1`` is optimistic; ``elsewhere`` is not.
    """

    value: float
    interval: Interval | None
    f1: float
    elsewhere: float | None  # Each half of the images cut where the other is best; None: no boxes
    without: float  # F1 of all boxes


def best_threshold(boxes: RowBoxes, weights: Array) -> Threshold | None:
    """Return the best threshold of a run, of equals the lowest; None where it has no boxes.

    ``weights`` are (sets, images) of resampled images for the interval; empty: too few images.
    """
    sums = _thresholds(boxes, np.ones((1, len(boxes.objects))))
    if not len(sums.thresholds):
        return None
    best = _last_best(sums.f1)[0]
    resampled = sums.thresholds[_last_best(_thresholds(boxes, weights).f1)]
    whole = len(boxes.hit) + boxes.objects.sum()
    return Threshold(
        value=float(sums.thresholds[best]),
        interval=drawn_interval(resampled),
        f1=100 * float(sums.f1[0, best]),
        elsewhere=_f1_elsewhere(boxes),
        without=100 * float(2 * boxes.hit.sum() / whole) if whole else 0.0,
    )


def _last_best(f1: Array) -> NDArray[np.intp]:
    """Return the last of the best, set by set: thresholds fall, so it is the lowest."""
    # Sums in another order differ in their last bits: equal values must count as equal.
    rounded = np.round(f1, 12)
    last: NDArray[np.intp] = rounded.shape[1] - 1 - np.argmax(rounded[:, ::-1], axis=1)
    return last


def _f1_elsewhere(boxes: RowBoxes) -> float | None:
    """Return F1 in percent at thresholds chosen on other images: every second one by name."""
    half = np.arange(len(boxes.objects)) % 2
    confidence = np.nan_to_num(boxes.confidence, nan=0.0)
    hits = counted = 0.0
    for here in (0, 1):
        inside = half[boxes.image] == here
        sums = _thresholds(boxes.where(~inside), (half != here)[None].astype(float))
        if not len(sums.thresholds):
            return None
        remaining = inside & (confidence >= sums.thresholds[_last_best(sums.f1)[0]])
        hits += float(boxes.hit[remaining].sum())
        counted += float(remaining.sum())
    whole = counted + float(boxes.objects.sum())
    return 100 * 2 * hits / whole if whole else None


# --- orders of the boxes --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class APValue:
    """AP or AP50 in percent, and its gain over the order of the reply.

    Intervals are None where too few images count, ``gain`` where there is nothing to compare.
    """

    value: float
    interval: Interval | None
    gain: float | None = None
    gain_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class RankingResult:
    """AP and AP50 of the boxes in one order."""

    ap: APValue
    ap50: APValue


def evaluate_order(
    evaluator: Evaluator, scores: Sequence[float], resampled: Array, base: Precision | None = None
) -> tuple[Precision, RankingResult]:
    """Compute AP of the boxes by these scores, and what they gain over another order.

    ``resampled`` are (sets, images) weights; the first entry of the precision is of all images.
    ``base`` is the precision of the other order.
    """
    weights = np.concatenate([np.ones((1, evaluator.images)), resampled])
    precision = evaluator.precision(scores, weights)

    def measure(values: Array, others: Array | None) -> APValue:
        value, interval = float(values[0]), None
        if len(resampled):
            interval = bounds(value, float(np.nanvar(values[1:], ddof=1)), evaluator.images)
        if others is None:
            return APValue(100 * value, interval)
        gain = 100 * (values - others)
        return APValue(100 * value, interval, float(gain[0]), drawn_interval(gain[1:]))

    return precision, RankingResult(*map(measure, precision, base or (None, None)))


# --- a run ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DefinitionResult:
    """What one definition of confidence is worth."""

    definition: str
    unsure: int  # Boxes without it: last in the order, in no bin, counted at the threshold 0 only
    ranking: RankingResult
    bins: tuple[Bin, ...]
    error: float | None
    curve: Curve
    threshold: Threshold | None


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """What a run's confidences are worth, by all definitions that it has."""

    model: str
    dataset: str
    queries: int
    images: int
    boxes: int  # As COCO counts them
    as_output: RankingResult  # In the order of the reply
    by_definition: tuple[DefinitionResult, ...]


def measure_calibration(run: RunScore, predictions: Path) -> CalibrationResult:
    """Compare the confidences of a run with what its boxes are.

    Raises:
        NoConfidenceError: the run has none.
        ConfidenceError: pycocotools is missing.
        NotBoxesError: its answers are no boxes.
    """
    coco = CocoBoxes(run.dataset, run.rows)
    names = definitions_in(run.rows)
    if not names:
        raise NoConfidenceError(predictions)
    evaluator = Evaluator(coco)
    resampled = drawn_again(evaluator.images)
    by_place = [1 / (1 + origin.box) for origin in coco.origins]
    base, as_output = evaluate_order(evaluator, by_place, resampled)

    def measure(name: str) -> DefinitionResult:
        boxes = boxes_of_rows(run.rows, name)
        bins = tuple(reliability(boxes))
        # Boxes without a confidence come last.
        values = (origin.confidence(name) for origin in coco.origins)
        scores = [-1.0 if value is None else value for value in values]
        return DefinitionResult(
            definition=name,
            unsure=int(np.isnan(boxes.confidence).sum()),
            ranking=evaluate_order(evaluator, scores, resampled, base)[1],
            bins=bins,
            error=calibration_error(bins),
            curve=f1_curve(boxes),
            threshold=best_threshold(boxes, resampled),
        )

    return CalibrationResult(
        model=run.model,
        dataset=run.dataset.name,
        queries=len(run.rows) - run.failed,
        images=evaluator.images,
        boxes=len(coco.origins),
        as_output=as_output,
        by_definition=tuple(map(measure, names)),
    )
