"""Intervals and paired tests: the bootstrap over queries, in clusters of one picture.

The figures are ratios of sums, so a resample needs no queries, only how often every cluster was
drawn: (resamples x clusters) counts times (clusters x sums) is one matrix product.  Queries of the
same picture or video are drawn together, because a model that sees one of them well is likely to
see the others well, and intervals that forget it are too narrow.

Runs over the same rows are resampled with the same draws, so that differences are paired: what
makes a picture hard for both does not count as a difference between them.  Everything is seeded;
the same runs give the same intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .metrics import FIGURES, Totals
from .runs import Run

METRICS = FIGURES
"""The figures, in the order of the last axis of :func:`metric_values`."""

RESAMPLES = 10_000
SEED = 0
LEVEL = 0.95

_SUMS = tuple(field.name for field in fields(Totals))
"""The order of sums in arrays: that of :class:`.metrics.Totals`."""

_CHUNK = 1_000_000
"""Counts that are held at a time: bounds the memory, whatever the number of clusters."""

Array = NDArray[np.float64]


class StatisticsError(ValueError):
    """Runs that cannot be resampled together; the message says what differs."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval, in percent (or percentage points for a difference)."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """One run's figure minus another's, in percentage points.

    ``p_value`` is two-sided; None where there is one cluster and so nothing to resample.
    """

    value: float
    interval: Interval | None
    p_value: float | None

    @property
    def significant(self) -> bool:
        return self.p_value is not None and self.p_value < 1 - LEVEL


# --- sums and figures -----------------------------------------------------------------------------


def cluster_sums(run: Run) -> tuple[tuple[str, ...], Array]:
    """The sums of a run by cluster.

    Returns:
        The clusters (pictures or videos) in alphabetical order, and a (clusters, 8) array of their
        sums in the order of the fields of :class:`.metrics.Totals`.
    """
    names = tuple(sorted({answer.source for answer in run.answers}))
    place = {name: at for at, name in enumerate(names)}
    sums = np.zeros((len(names), len(_SUMS)))
    for answer in run.answers:
        t = answer.totals
        sums[place[answer.source]] += [getattr(t, name) for name in _SUMS]
    return names, sums


def metric_values(sums: Array) -> Array:
    """Figures from sums, in percent; an empty denominator gives 0.

    Args:
        sums: (..., 8), in the order of the fields of :class:`.metrics.Totals`.

    Returns:
        (..., 5) in the order of :data:`METRICS`.
    """
    of = {name: sums[..., at] for at, name in enumerate(_SUMS)}
    parts = (2 * of["tp"], of["iou_sum"], of["adherent"], of["tp"], of["tp"])
    wholes = (of["n_pred"] + of["n_gt"], of["n_gt"], of["responses"], of["n_pred"], of["n_gt"])
    part, whole = np.stack(parts, axis=-1), np.stack(wholes, axis=-1)
    values: Array = 100.0 * np.divide(part, whole, out=np.zeros_like(part), where=whole != 0)
    return values


# --- resampling -----------------------------------------------------------------------------------


def draw_counts(
    clusters: int, resamples: int = RESAMPLES, seed: int = SEED
) -> Iterator[NDArray[np.int64]]:
    """How often every cluster is drawn in every resample, in blocks of rows.

    Yields:
        (rows, clusters) counts; every row adds up to ``clusters``: multinomial, equal chances.
    """
    generator = np.random.default_rng(seed)
    rows = max(1, _CHUNK // clusters)
    for start in range(0, resamples, rows):
        block = min(rows, resamples - start)
        drawn = generator.integers(clusters, size=(block, clusters))
        # Counting all rows at once: row r counts in its own range of numbers.
        drawn += np.arange(block)[:, None] * clusters
        yield np.bincount(drawn.ravel(), minlength=block * clusters).reshape(block, clusters)


def resample(runs: Sequence[Run], resamples: int = RESAMPLES, seed: int = SEED) -> Array:
    """The figures of runs in every resample, all with the same draws.

    Args:
        runs: runs over the same rows of the same table.
        resamples: how many.
        seed: of the draws.

    Returns:
        (runs, resamples, 5) figures in percent, in the order of :data:`METRICS`; where there is
        only one cluster, and so nothing to resample, NaN.

    Raises:
        StatisticsError: the runs have other rows, or none.
    """
    sums = _stacked(runs)
    clusters = sums.shape[1]
    if clusters < 2:
        return np.full((len(runs), resamples, len(METRICS)), np.nan)
    flat = sums.transpose(1, 0, 2).reshape(clusters, -1)
    blocks = [counts @ flat for counts in draw_counts(clusters, resamples, seed)]
    drawn = np.concatenate(blocks).reshape(resamples, len(runs), len(_SUMS))
    return metric_values(drawn.transpose(1, 0, 2))


def _stacked(runs: Sequence[Run]) -> Array:
    """(runs, clusters, 8) sums of runs over the same rows."""
    first = runs[0]
    if not first.answers:
        raise StatisticsError(f"{first.path}: a run without rows has no interval")
    names, sums = cluster_sums(first)
    stack = [sums]
    for run in runs[1:]:
        other, more = cluster_sums(run)
        if run.basis.rows != first.basis.rows or other != names:
            raise StatisticsError(
                f"{run.path} has {len(run.basis.rows)} rows of {len(other)} pictures, "
                f"{first.path} has {len(first.basis.rows)} of {len(names)}: "
                "only runs over the same rows can be compared"
            )
        stack.append(more)
    return np.stack(stack)


# --- what is read off the resamples ---------------------------------------------------------------


def interval(draws: Array) -> Interval | None:
    """The 95 % percentile interval of (resamples,) figures; None where there were no draws."""
    if not draws.size or np.isnan(draws).any():
        return None
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(draws, (tail, 100 - tail))
    return Interval(float(low), float(high))


def difference(value: float, other: float, draws: Array, other_draws: Array) -> Difference:
    """One figure minus another, from resamples with the same draws.

    The p-value is twice the smaller share of resamples on either side of 0, which is below 5 % just
    when the 95 % interval leaves out 0; one is added to every count, so it is never 0.

    Args:
        value, other: the two figures, in percent.
        draws, other_draws: (resamples,) figures of the resamples, in the same order of draws.
    """
    apart = draws - other_draws
    bounds = interval(apart)
    if bounds is None:
        return Difference(value - other, None, None)
    # Sums in another order differ in their last bits: what is equal must count as equal.
    apart = np.where(np.abs(apart) < 1e-9, 0.0, apart)
    smaller = min(int((apart <= 0).sum()), int((apart >= 0).sum()))
    p_value = min(1.0, 2 * (smaller + 1) / (len(apart) + 1))
    return Difference(value - other, bounds, p_value)


def intervals(run: Run, resamples: int = RESAMPLES, seed: int = SEED) -> dict[str, Interval | None]:
    """The interval of every figure of a run."""
    draws = resample([run], resamples, seed)[0]
    return {name: interval(draws[:, at]) for at, name in enumerate(METRICS)}


def compare(
    run: Run, other: Run, resamples: int = RESAMPLES, seed: int = SEED
) -> dict[str, Difference]:
    """Paired tests of two runs over the same rows: of two models, or of two formats of one.

    Raises:
        StatisticsError: the runs have other rows.
    """
    ours, theirs = resample([run, other], resamples, seed)
    values = metric_values(_stacked([run, other]).sum(axis=1))
    return {
        name: difference(float(values[0, at]), float(values[1, at]), ours[:, at], theirs[:, at])
        for at, name in enumerate(METRICS)
    }
