"""Models whose formats have known true rates, to measure what the best of many formats says.

Model "many" is asked in many formats, model "one" in one. Each image has one object; what makes it
hard is partly shared by all formats of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from vlmeval_findit.benchmarks.findit import METRICS
from vlmeval_findit.statistics import (
    ClusteredSums,
    Difference,
    Estimate,
    Interval,
    estimate_metrics,
    join_rows,
    mean_of_estimates,
    metric_intervals,
    paired_difference,
    second_half,
)

F1 = METRICS[0]


@dataclass(frozen=True)
class Choice:
    """One simulated board: the best format of "many", its value elsewhere, and both tests."""

    truth: float  # The true value of the format that is best over all images; all in percent
    reported: float
    reported_interval: Interval
    elsewhere: float
    elsewhere_interval: Interval
    reported_test: Difference  # "many" minus "one"
    elsewhere_test: Difference
    named_test: Difference  # In the first format, which nobody chose


@dataclass(frozen=True)
class Setting:
    """What is simulated: true rates of the formats of "many", and the rate of "one"."""

    rates: Sequence[float]
    one: float
    images: int
    datasets: int
    shared: float  # Correlation of the formats


def simulate(rng: np.random.Generator, setting: Setting) -> Choice:
    """Draw a board, and choose the format with the highest mean over datasets."""
    rates = np.array([*setting.rates, setting.one])
    names = [
        tuple(f"{dataset}/{at:06d}" for at in range(setting.images))
        for dataset in range(setting.datasets)
    ]
    hits = [_hits(rng, rates, setting) for _ in names]
    halves = [second_half(images) for images in names]
    best = _best(hits, [np.ones(setting.images, dtype=bool)] * len(hits))
    by_first = _best(hits, [~second for second in halves])
    by_second = _best(hits, halves)
    one = mean_of_estimates(
        [_estimate(of[:, -1], images) for of, images in zip(hits, names, strict=True)]
    )

    def of_format(at: int) -> Estimate:
        return mean_of_estimates(
            [_estimate(of[:, at], images) for of, images in zip(hits, names, strict=True)]
        )

    parts = []
    for of, images, second in zip(hits, names, halves, strict=True):
        first_half = _sums(of[:, by_second], images), ~second
        other_half = _sums(of[:, by_first], images), second
        parts.append(estimate_metrics((F1,), join_rows((first_half, other_half), images)))
    reported, elsewhere, named = of_format(best), mean_of_estimates(parts), of_format(0)
    return Choice(
        truth=100 * float(rates[best]),
        reported=reported.value(F1.name) or 0.0,
        reported_interval=_interval(reported),
        elsewhere=elsewhere.value(F1.name) or 0.0,
        elsewhere_interval=_interval(elsewhere),
        reported_test=paired_difference(reported, one, F1.name),
        elsewhere_test=paired_difference(elsewhere, one, F1.name),
        named_test=paired_difference(named, one, F1.name),
    )


def _hits(rng: np.random.Generator, rates: np.ndarray, setting: Setting) -> np.ndarray:
    """Return (images, formats and "one") whether the object was found."""
    hard = rng.normal(0, setting.shared**0.5, (setting.images, 1))
    own = rng.normal(0, (1 - setting.shared) ** 0.5, (setting.images, len(rates)))
    return (hard + own < ndtri(rates)).astype(float)


def _best(hits: Sequence[np.ndarray], images: Sequence[np.ndarray]) -> int:
    """Return the format of the highest mean over datasets, to a tenth; of equals the first."""
    rates = [of[rows, :-1].mean(axis=0) for of, rows in zip(hits, images, strict=True)]
    return int(np.round(100 * np.mean(rates, axis=0), 1).argmax())


def _sums(hits: np.ndarray, images: tuple[str, ...]) -> ClusteredSums:
    ones = np.ones(len(images))
    sums = {"tp": hits, "n_pred": ones, "n_gt": ones}
    return ClusteredSums(images, np.arange(len(images)), sums, {})


def _estimate(hits: np.ndarray, images: tuple[str, ...]) -> Estimate:
    return estimate_metrics((F1,), _sums(hits, images))


def _interval(estimate: Estimate) -> Interval:
    interval = metric_intervals(estimate)[F1.name]
    assert interval is not None
    return interval
