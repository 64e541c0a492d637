"""Answers of models whose true values are known, to measure the coverage of intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from vlmeval_findit.benchmarks.findit.box_metrics import METRICS as ALL_METRICS
from vlmeval_findit.core.influences import ClusteredSums, Estimate, estimate_metrics, mean
from vlmeval_findit.core.intervals import difference, metric_intervals

METRICS = tuple(metric for metric in ALL_METRICS if metric.empty is not None)
"""Those that need no query without objects: here every query has some."""

NAMES = tuple(metric.name for metric in METRICS)
FIGURES = NAMES[:3]
SUMS = ("responses", "adherent", "failed", "tp", "n_pred", "n_gt", "n_gt_failed", "iou_sum")
ALIKE = 0.2
"""Correlation of the hits of a picture."""


def sums_of(
    generator: np.random.Generator,
    pictures: int,
    rate: float,
    hard: np.ndarray | None = None,
    alike: float = ALIKE,
) -> np.ndarray:
    """Return (pictures, 8) sums of a model that finds a box, and adheres to the format, at a rate.

    A picture has 1 to 5 queries of 1 to 3 boxes.  Hits lie close (most IoUs are above 0.95); two in
    three of the missed objects have a box elsewhere, which overlaps a little.

    Args:
        hard: (pictures, 2) how hard it is to find boxes and to adhere to the format, from 0 to 1;
            drawn by default.
        alike: the correlation of the hits of a picture.
    """
    from scipy.special import betaincinv

    hard = generator.random((pictures, 2)) if hard is None else hard
    sure = 1 / alike - 1
    chance = betaincinv(rate * sure, (1 - rate) * sure, hard) if 0 < rate < 1 else hard * 0 + rate
    asked = np.arange(5) < generator.integers(1, 6, pictures)[:, None]
    there = asked[..., None] & (np.arange(3) < generator.integers(1, 4, (pictures, 5))[..., None])
    hit = there & (generator.random(there.shape) < chance[:, 0, None, None])
    elsewhere = there & ~hit & (generator.random(there.shape) < 2 / 3)
    near = 1 - 0.5 * generator.beta(1, 40, there.shape)
    far = 0.5 * generator.random(there.shape) if rate else np.zeros(there.shape)
    adherent = asked & (generator.random(asked.shape) < chance[:, 1, None])
    of = {
        "responses": asked.sum(axis=1),
        "adherent": adherent.sum(axis=1),
        "tp": hit.sum(axis=(1, 2)),
        "n_pred": (hit | elsewhere).sum(axis=(1, 2)),
        "n_gt": there.sum(axis=(1, 2)),
        "iou_sum": (near * hit + far * elsewhere).sum(axis=(1, 2)),
    }
    return np.stack([of.get(name, np.zeros(pictures)) for name in SUMS], axis=1).astype(float)


def estimate_from(pictures: Sequence[str], sums: np.ndarray) -> Estimate:
    """Return the estimate of (pictures, 8) sums."""
    by_name = {name: sums[:, at] for at, name in enumerate(SUMS)}
    places = np.arange(len(pictures))
    return estimate_metrics(METRICS, ClusteredSums(tuple(pictures), places, by_name, {}))


def shares(sums: np.ndarray) -> np.ndarray:
    """Return the metrics of (..., 8) sums, as shares of 1."""
    by_name = {name: sums[..., at] for at, name in enumerate(SUMS)}
    return np.stack([metric.values(by_name) for metric in METRICS], axis=-1) / 100


def names(count: int, prefix: str = "") -> tuple[str, ...]:
    """Return names of pictures, in alphabetical order."""
    return tuple(f"{prefix}{at:07d}" for at in range(count))


def true_values(rate: float) -> np.ndarray:
    """Return the metrics of a model at a rate over 400,000 pictures, as shares of 1."""
    if rate == 0:
        return np.zeros(len(METRICS))
    parts = [sums_of(np.random.default_rng(seed), 20_000, rate).sum(axis=0) for seed in range(20)]
    return shares(np.sum(parts, axis=0))


@dataclass(frozen=True)
class Coverage:
    """The share of intervals with the truth, and their mean width, in percent."""

    held: float
    width: float
    printed: float


def coverage(estimates: Iterable[Estimate], truth: np.ndarray) -> dict[str, Coverage]:
    """Return the coverage of intervals over many simulated runs, by metric."""
    held: dict[str, list[bool]] = {name: [] for name in FIGURES}
    widths: dict[str, list[float]] = {name: [] for name in FIGURES}
    count = 0
    for estimate in estimates:
        count += 1
        for name, interval in metric_intervals(estimate).items():
            if name in held and interval is not None:
                true = 100 * truth[NAMES.index(name)]
                held[name].append(interval.low - 1e-9 <= true <= interval.high + 1e-9)
                widths[name].append(interval.high - interval.low)
    return {
        name: Coverage(
            100 * float(np.mean(held[name])),
            float(np.mean(widths[name])),
            100 * len(held[name]) / count,
        )
        for name in FIGURES
    }


def runs_of(
    seed: int, times: int, pictures: int, rate: float, alike: float = ALIKE
) -> Iterable[Estimate]:
    """Yield the estimates of a dataset, simulated a number of times."""
    generator = np.random.default_rng(seed)
    for _ in range(times):
        yield estimate_from(names(pictures), sums_of(generator, pictures, rate, alike=alike))


def means_of(
    seed: int, times: int, pictures: int, rates: Sequence[float], shared: float
) -> Iterable[Estimate]:
    """Yield means over datasets with different rates that share a part of their pictures."""
    generator = np.random.default_rng(seed)
    common = round(shared * pictures)
    for _ in range(times):
        hard = generator.random((common, 2))
        parts = []
        for at, rate in enumerate(rates):
            other = generator.random((pictures - common, 2))
            sums = sums_of(generator, pictures, rate, np.concatenate([hard, other]))
            parts.append(
                estimate_from((*names(common), *names(pictures - common, f"of {at} ")), sums)
            )
        yield mean(parts)


def false_alarms(seed: int, times: int, pictures: int, rate: float) -> dict[str, float]:
    """Return how often, in percent, two equally good models differ significantly."""
    generator = np.random.default_rng(seed)
    alarms = dict.fromkeys(FIGURES, 0)
    for _ in range(times):
        hard = generator.random((pictures, 2))
        left, right = (
            estimate_from(names(pictures), sums_of(generator, pictures, rate, hard))
            for _ in range(2)
        )
        for name in FIGURES:
            alarms[name] += difference(left, right, name).significant
    return {name: 100 * count / times for name, count in alarms.items()}
