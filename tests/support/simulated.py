"""Answers of models whose true values are known, to measure the coverage of intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vlmeval_findit.benchmarks.findit import METRICS as ALL_METRICS
from vlmeval_findit.statistics import (
    ClusteredSums,
    Difference,
    Estimate,
    Interval,
    estimate_metrics,
    mean_of_estimates,
    metric_intervals,
    paired_difference,
)

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


def true_values(rate: float, parts: int = 20) -> np.ndarray:
    """Return the metrics of a model at a rate over 20,000 pictures a part, as shares of 1."""
    if rate == 0:
        return np.zeros(len(METRICS))
    sums = [sums_of(np.random.default_rng(seed), 20_000, rate).sum(axis=0) for seed in range(parts)]
    return shares(np.sum(sums, axis=0))


@dataclass(frozen=True)
class Coverage:
    """The share of intervals with the truth, their mean width, and the width that is needed.

    All in percent.  The needed width is that of equally wide intervals around the values, of which
    95 % hold the truth.
    """

    held: float
    width: float
    printed: float
    needed: float


def coverage(
    estimates: Iterable[Estimate], truth: np.ndarray, metrics: Sequence[str] = FIGURES
) -> dict[str, Coverage]:
    """Return the coverage of intervals over many simulated runs, by metric.

    Args:
        truth: of all :data:`METRICS`, as shares of 1.
    """
    true = {name: 100 * truth[NAMES.index(name)] for name in metrics}
    away: dict[str, list[float]] = {name: [] for name in metrics}
    intervals: dict[str, list[Interval]] = {name: [] for name in metrics}
    for estimate in estimates:
        for name, interval in metric_intervals(estimate).items():
            if name in metrics:
                away[name].append(abs((estimate.value(name) or 0.0) - true[name]))
                intervals[name] += [interval] if interval else []
    return {name: _covered(intervals[name], true[name], away[name]) for name in metrics}


def _covered(intervals: Sequence[Interval], true: float, away: Sequence[float]) -> Coverage:
    held = [each.low - 1e-9 <= true <= each.high + 1e-9 for each in intervals]
    widths = [each.high - each.low for each in intervals]
    return Coverage(
        held=100 * float(np.mean(held)),
        width=float(np.mean(widths)),
        printed=100 * len(intervals) / len(away),
        needed=2 * float(np.quantile(away, 0.95)),
    )


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
        yield mean_of_estimates(parts)


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
            alarms[name] += paired_difference(left, right, name).significant
    return {name: 100 * count / times for name, count in alarms.items()}


# --- F1 alone, of images of any number of objects -------------------------------------------------

F1 = METRICS[0]


@dataclass(frozen=True)
class Pictures:
    """A simulated dataset: images with objects, found at a rate."""

    count: int
    rate: float
    alike: float = ALIKE
    """Correlation of the hits of a picture."""
    objects: tuple[int, ...] = ()
    """Numbers of objects to draw from; none: 1 to 5 queries of 1 to 3 objects."""

    @property
    def truth(self) -> float:
        """The true F1 as a share of 1: two in three missed objects have a box elsewhere."""
        return 2 * self.rate / (1 + self.rate + (1 - self.rate) * 2 / 3)

    def drawn(self, generator: np.random.Generator) -> np.ndarray:
        """Draw the pictures: (count, 3) numbers of objects, of queries, and how hard they are."""
        if self.objects:
            there = generator.choice(self.objects, self.count)
            asked = np.ones(self.count)
        else:
            asked = generator.integers(1, 6, self.count)
            of_query = generator.integers(1, 4, (self.count, 5))
            there = (of_query * (np.arange(5) < asked[:, None])).sum(axis=1)
        return np.stack([there, asked, generator.random(self.count)], axis=1)

    def answered(self, generator: np.random.Generator, drawn: np.ndarray, name: str) -> Estimate:
        """Estimate F1 of one model's answers to pictures that were drawn."""
        from scipy.special import betaincinv

        there = drawn[:, 0].astype(int)
        chance = np.full(self.count, self.rate)
        if 0 < self.rate < 1:
            sure = 1 / self.alike - 1
            chance = betaincinv(self.rate * sure, (1 - self.rate) * sure, drawn[:, 2])
        hits = generator.binomial(there, chance)
        elsewhere = generator.binomial(there - hits, 2 / 3 if self.rate else 0.0)
        by_picture = {"tp": hits, "n_pred": hits + elsewhere, "n_gt": there}
        queries = drawn[:, 1].astype(int)
        sums = {
            # The objects of a picture are divided evenly among its queries.
            key: np.repeat(values / queries, queries)
            for key, values in by_picture.items()
        }
        places = np.repeat(np.arange(self.count), queries)
        pictures = names(self.count, name)
        return estimate_metrics((F1,), ClusteredSums(pictures, places, sums, {}))


def means(seed: int, times: int, datasets: Sequence[Pictures]) -> Iterable[Estimate]:
    """Yield means over datasets that share no picture; of one dataset its own values."""
    generator = np.random.default_rng(seed)
    for _ in range(times):
        yield mean_of_estimates(
            [
                each.answered(generator, each.drawn(generator), f"{at} ")
                for at, each in enumerate(datasets)
            ]
        )


def differences(
    seed: int, times: int, datasets: Sequence[Pictures], other: Sequence[float]
) -> Iterable[Difference]:
    """Yield differences of two models, the second with other rates, over the same pictures."""
    generator = np.random.default_rng(seed)
    for _ in range(times):
        pictures = [each.drawn(generator) for each in datasets]
        sides = []
        for rates in ([each.rate for each in datasets], other):
            models = [replace(each, rate=rate) for each, rate in zip(datasets, rates, strict=True)]
            answers = [
                model.answered(generator, drawn, f"{at} ")
                for at, (model, drawn) in enumerate(zip(models, pictures, strict=True))
            ]
            sides.append(mean_of_estimates(answers))
        yield paired_difference(sides[0], sides[1], F1.name)
