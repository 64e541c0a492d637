"""What a run's confidences are worth: average precision, calibration, F1 over a threshold.

A box is a hit as the score has it: matched to an object of its label with an IoU of at least 0.5.
Where boxes below a threshold are left out, the assignment of the others stays the score's.
Intervals rest on images that are resampled, always the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..protocol import Array, Curve
from ..scoring import RunScore
from ..statistics import (
    Bin,
    CalibrationError,
    Interval,
    Threshold,
    best_threshold,
    bootstrap_interval,
    bootstrap_weights,
    estimate_calibration_error,
    f1_curve,
    reliability,
    share_bounds,
)
from .coco_boxes import CocoBoxes, NoConfidenceError, boxes_of_rows, definitions_in
from .coco_evaluator import CocoEvaluator, Precision


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
    evaluator: CocoEvaluator,
    scores: Sequence[float],
    resampled: Array,
    base: Precision | None = None,
) -> tuple[Precision, RankingResult]:
    """Compute AP of the boxes by these scores, and what they gain over another order.

    ``resampled`` are (sets, images) weights; the first entry of the precision is of all images.
    ``base`` is the precision of the other order.
    """
    weights = np.concatenate([np.ones((1, evaluator.images)), resampled])
    precision = evaluator.precision(scores, weights)

    def measure(values: Array, others: Array | None) -> APValue:
        value = float(values[0])
        interval = None
        if len(resampled):
            interval = share_bounds(value, float(np.nanvar(values[1:], ddof=1)), evaluator.images)
        if others is None:
            return APValue(100 * value, interval)
        gain = 100 * (values - others)
        return APValue(100 * value, interval, float(gain[0]), bootstrap_interval(gain[1:]))

    return precision, RankingResult(*map(measure, precision, base or (None, None)))


# --- a run ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DefinitionResult:
    """What one definition of confidence is worth."""

    definition: str
    unsure: int  # Boxes without it: last in the order, in no bin, counted at the threshold 0 only
    ranking: RankingResult
    bins: tuple[Bin, ...]
    error: CalibrationError | None
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
    evaluator = CocoEvaluator(coco)
    resampled = bootstrap_weights(evaluator.images)
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
            error=estimate_calibration_error(boxes, resampled),
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
