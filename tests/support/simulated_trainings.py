"""Trainings whose checkpoints' true values are known, to measure how often a claim is false."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from simulated import ALIKE, METRICS, SUMS, names, sums_of

from vlmeval_findit.leaderboard import LearningCurve, learning_curve
from vlmeval_findit.statistics import ClusteredSums, Estimate, estimate_metrics

_F1 = METRICS[0]  # No simulated call fails


class SimulatedRun:
    """What a learning curve needs of a run."""

    benchmark = SimpleNamespace(headline_counting_failures=_F1, metrics=[_F1])

    def __init__(self, model: str, estimated: Estimate) -> None:
        self.model = model
        self.estimated = estimated


@dataclass(frozen=True)
class Claims:
    """How many checkpoints a training's tables call worse than the best: falsely in any table, and
    rightly in the last."""

    false: int
    right_at_last: int


def claims_of(
    rng: np.random.Generator, rates: Sequence[float], pictures: int, alike: float = ALIKE
) -> Claims:
    """Count the claims of a training whose table is made again after each checkpoint.

    ``rates``: how often each checkpoint finds a box; what is hard is hard for all. ``alike``: the
    correlation of the hits of a picture.
    """
    hard = rng.random((pictures, 2))
    checkpoints = []
    false = right = 0
    for step, rate in enumerate(rates, 1):
        sums = sums_of(rng, pictures, rate, hard, alike)
        by_name = {name: sums[:, at] for at, name in enumerate(SUMS)}
        of_pictures = ClusteredSums(names(pictures), np.arange(pictures), by_name, {})
        run: Any = SimulatedRun(f"training-{step}", estimate_metrics((_F1,), of_pictures))
        checkpoints.append(learning_curve._Checkpoint("training", step, run))
        curve = learning_curve._curve(checkpoints, curves=1)
        best = rates[curve.best.step - 1]
        worse = [rates[at - 1] for at in _claimed(curve)]
        false += sum(rate >= best for rate in worse)
        right = sum(rate < best for rate in worse)
    return Claims(false, right)


def _claimed(curve: LearningCurve) -> Iterator[int]:
    """Yield the steps that the best is significantly better than."""
    for point in curve.points:
        if point.to_best is not None and point.to_best.significant:
            yield point.step


@pytest.fixture
def simulated_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let learning curves be made of :class:`SimulatedRun`, without intervals of their values."""
    monkeypatch.setattr(learning_curve, "metric_intervals", lambda _: {_F1.name: None})
    monkeypatch.setattr(learning_curve, "estimate_run", lambda run, _: run.estimated)
