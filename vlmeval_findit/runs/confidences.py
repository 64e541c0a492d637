"""What a run's confidences are worth: average precision, calibration, the best threshold.

Orders that know nothing stand beside them: the order of the reply, and random ones.  Intervals
rest on pictures that are drawn again, always the same, so that the same run gives the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..boxes.confidences import DEFINITIONS
from ..core.drawing import Curve
from ..core.statistics import Interval, bounds, drawn_again, drawn_interval
from .average_precision import Evaluator, Precision
from .boxes_of_rows import Array, ConfidenceError, boxes_of_rows, defined
from .calibration import (
    Bin,
    Threshold,
    best_threshold,
    calibration_error,
    curve,
    reliability,
)
from .coco_boxes import Origin, collect
from .score import RunScore

ORDERS = 20
"""Random orders."""

_SEED = 11
"""Of random orders."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure in percent, its interval, and by how much it is above that of the reply's order.

    Intervals are None where there are fewer than :data:`.FEWEST` pictures, ``gain`` where there is
    nothing to compare.
    """

    value: float
    interval: Interval | None
    gain: float | None = None
    gain_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """AP and AP50 of the boxes in one order."""

    ap: Figure
    ap50: Figure


@dataclass(frozen=True, slots=True)
class AtRandom:
    """AP and AP50 in percent over random orders: mean, least and most."""

    ap: tuple[float, float, float]
    ap50: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """What one definition of confidence is worth.

    ``unsure`` counts boxes without such a confidence: they come last in the order, are no part of
    the reliability diagram, and are kept at the threshold 0 only.
    """

    definition: str
    unsure: int
    ranked: Ranked
    bins: tuple[Bin, ...]
    error: float | None
    curve: Curve
    threshold: Threshold | None


@dataclass(frozen=True, slots=True)
class RankingResult:
    """A run's confidences, by all definitions that it has; ``boxes`` are those that COCO has."""

    model: str
    dataset: str
    queries: int
    pictures: int
    boxes: int
    as_output: Ranked
    at_random: AtRandom
    by_definition: tuple[CalibrationResult, ...]

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def judge(run: RunScore, predictions: Path) -> RankingResult:
    """Hold the confidences of a run against what its boxes are.

    Raises:
        ConfidenceError: the run has none; or pycocotools is missing.
        NotBoxesError: its answers are no boxes.
    """
    found = collect(run)
    there = defined(run.rows)
    if not there:
        raise ConfidenceError.of_run(predictions)
    evaluator = Evaluator(found)
    drawn = drawn_again(evaluator.pictures)
    as_output = _both(evaluator, [1 / (1 + one.box) for one in found.origins], drawn)

    def sureness(name: str) -> CalibrationResult:
        boxes = boxes_of_rows(run.rows, name)
        bins = tuple(reliability(boxes))
        return CalibrationResult(
            definition=name,
            unsure=int(np.isnan(boxes.confidence).sum()),
            ranked=_ranked(_both(evaluator, scores_of(found.origins, name), drawn), as_output),
            bins=bins,
            error=calibration_error(bins),
            curve=curve(boxes),
            threshold=best_threshold(boxes, drawn),
        )

    return RankingResult(
        model=run.model,
        dataset=run.task.name,
        queries=len(run.rows) - run.failed,
        pictures=evaluator.pictures,
        boxes=len(found.origins),
        as_output=_ranked(as_output),
        at_random=_at_random(evaluator, len(found.origins)),
        by_definition=tuple(sureness(name) for name in DEFINITIONS if name in there),
    )


def scores_of(origins: list[Origin], definition: str) -> list[float]:
    """The scores that rank boxes by a confidence: those without one come last."""
    said = (one.confidence(definition) for one in origins)
    return [-1.0 if confidence is None else confidence for confidence in said]


@dataclass(frozen=True, slots=True)
class _Both:
    """The precision of an order on all pictures, and on those of each set."""

    whole: Precision
    sets: Precision
    pictures: int


def _both(evaluator: Evaluator, scores: list[float], drawn: Array) -> _Both:
    every = np.ones((1, evaluator.pictures))
    both = evaluator.precision(scores, np.concatenate([every, drawn]))
    return _Both(
        Precision(both.ap[:1], both.ap50[:1]),
        Precision(both.ap[1:], both.ap50[1:]),
        evaluator.pictures,
    )


def _ranked(one: _Both, other: _Both | None = None) -> Ranked:
    def figure(of: Callable[[Precision], Array]) -> Figure:
        value, sets = float(of(one.whole)[0]), of(one.sets)
        interval = gain = gain_interval = None
        if len(sets):
            interval = bounds(value, float(np.nanvar(sets, ddof=1)), one.pictures)
        if other is not None:
            gain = 100 * (value - float(of(other.whole)[0]))
            gain_interval = drawn_interval(100 * (sets - of(other.sets)))
        return Figure(100 * value, interval, gain, gain_interval)

    return Ranked(figure(lambda of: of.ap), figure(lambda of: of.ap50))


def _at_random(evaluator: Evaluator, boxes: int) -> AtRandom:
    generator = np.random.default_rng(_SEED)
    made = [evaluator.precision(generator.permutation(boxes).tolist()) for _ in range(ORDERS)]

    def spread(values: list[float]) -> tuple[float, float, float]:
        return 100 * float(np.mean(values)), 100 * min(values), 100 * max(values)

    return AtRandom(
        spread([float(one.ap[0]) for one in made]), spread([float(one.ap50[0]) for one in made])
    )
