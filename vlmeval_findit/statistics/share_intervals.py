"""The interval of a share, and of the mean of shares over several datasets: a score interval.

The ends are the means that lie Student's t standard errors away from what was measured, where the
errors are those of runs that have that mean (Wilson's interval, for one dataset). Of the datasets'
shares that have a mean, those that fit best are taken. A dataset with :math:`T` trials has the
variance :math:`p (1 - p) / T` at a share :math:`p`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..protocol.metric import Array, divide
from .student import quantile, total_freedom

# Both were chosen by simulated coverage: benchmarks/test_coverage.py
UNSEEN = 1 / 3  # How much of an image that nobody saw is allowed for
_SKEWED = 1 / 3  # How much the skewness grows where the queries of an image differ

_STEPS = 20  # Of Newton's method, from one side
_CLOSE = 1e-9  # How near it comes, relative to t squared
_ROUNDING = 1e-7  # A share so near to 0 or 1 is 0 or 1


@dataclass(frozen=True, slots=True)
class Sampled:
    """What is known of shares: (datasets, metrics) arrays."""

    value: Array  # 0 to 1
    variance: Array
    images: Array
    effective: Array  # Number of images, after Kish
    skewness: Array  # Of unequal images, relative to equal ones
    queries: Array  # Effective number


def mean_ends(sampled: Sampled, together: Array, overlap: Array) -> tuple[Array, Array]:
    """Return the lower and upper ends of the 95 % intervals of means over datasets, 0 to 1.

    Args:
        sampled: the datasets.
        together: by how much common images raise a mean's variance, by metric.
        overlap: the same if all datasets agree on them: in how many datasets an image is.
    """
    whole = np.round(sampled.value)
    at_end = np.abs(sampled.value - whole) < _ROUNDING
    sampled = replace(sampled, value=np.where(at_end, whole, sampled.value))
    trials = _trials(sampled, together, overlap)
    # Near 0 and 100 % no variance is small for sure: one more hit and one more miss.
    value = (sampled.value * trials + 1) / (trials + 2)
    freedom = total_freedom(value * (1 - value) / trials, sampled.effective, overlap)
    t = quantile(freedom)
    fewest = np.minimum(sampled.effective / overlap, trials)
    # The upper end is the lower end of the misses; both at once.
    hits_and_misses = np.concatenate([sampled.value, 1 - sampled.value], axis=1)
    low_ends = _low_ends(
        value=hits_and_misses,
        trials=np.tile(trials, 2),
        fewest=np.tile(fewest, 2),
        skewness=np.tile(sampled.skewness, 2),
        t=np.tile(t, 2),
    )
    low, high = np.split(low_ends, 2)
    # Rounding must not exclude the value.
    mean = sampled.value.mean(axis=0)
    return np.minimum(low, mean), np.maximum(1 - high, mean)


def _trials(sampled: Sampled, together: Array, overlap: Array) -> Array:
    """Return how many independent trials have each dataset's variance.

    It includes a third of a missed image, and a third of a hit one: few images cannot show that
    there are none. Where nothing varies an image is one trial, or more if the queries of the
    other datasets' images differ among themselves, but no more than there are queries.
    """
    value = sampled.value
    fewest = sampled.effective / overlap
    spread = value * (1 - value)
    unseen = (UNSEEN / np.maximum(sampled.images, 1)) ** 2 * (value**2 + (1 - value) ** 2)
    unseen = np.minimum(unseen, spread / np.maximum(sampled.effective, 1))
    variance = np.where(
        spread > 0, sampled.variance * together + unseen * overlap**2 / len(value), 0.0
    )
    variance_by_images = divide(spread, fewest).sum(axis=0)
    per_image = np.maximum(1.0, divide(variance_by_images, variance.sum(axis=0)))
    most = sampled.queries / overlap
    at_ends = np.maximum(np.minimum(fewest * per_image, most), np.maximum(fewest, 1e-9))
    return np.where(variance > 0, divide(spread, variance), at_ends)


def _low_ends(value: Array, trials: Array, fewest: Array, skewness: Array, t: Array) -> Array:
    """Return the lower ends of the intervals of means over datasets."""
    shares = _low_shares(value, trials, t)
    trials = _trials_at(shares, value, trials, fewest, skewness)
    end: Array = _low_shares(value, trials, t).mean(axis=0)
    return end


def _trials_at(shares: Array, value: Array, trials: Array, fewest: Array, skewness: Array) -> Array:
    """Return how many trials have the variance of shares below the measured ones.

    Above 50 % a run that is good by chance looks too certain, too. Trials of equal size make up for
    that by themselves. Unequal images are more skewed, and so are queries that agree in part:
    there the variance grows faster, though not beyond that of images of equal queries.
    """
    skewness = skewness * (1 + _SKEWED * (1 - fewest / trials))
    growth = (skewness - 1) * (2 * value - 1) * divide(value - shares, shares * (1 - shares))
    growth = np.where(value < 1, np.maximum(growth, 0.0), 0.0)
    return np.maximum(trials / (1 + growth), fewest)


def _low_shares(value: Array, trials: Array, t: Array) -> Array:
    """Return the shares of the datasets at the lower end of their mean's interval.

    Among the shares that have a mean, those fit best that lie ``tilt`` variances below the measured
    ones.
    """
    lowest = _wilson_low(value, trials, t)
    if len(value) == 1:
        return lowest
    # The tilt of every dataset alone is too large for their mean.
    tilts = divide(trials * (value - lowest), lowest * (1 - lowest), np.inf)
    tilt = tilts.min(axis=0)
    has_tilt = np.isfinite(tilt)
    tilt = np.where(has_tilt, tilt, 0.0)
    shares = lowest
    for _ in range(_STEPS):
        shares = _tilted(value, trials, tilt)
        slope = divide(shares * (1 - shares), trials + tilt * (1 - 2 * shares)).sum(axis=0)
        below = (value - shares).sum(axis=0)
        excess = tilt * below - t**2
        if (np.abs(excess) <= _CLOSE * t**2).all():
            break
        tilt = tilt - divide(excess, below + tilt * slope)
    return np.where(has_tilt, shares, 0.0)


def _wilson_low(value: Array, trials: Array, t: Array) -> Array:
    """Return the lower end of Wilson's interval."""
    middle = value + t**2 / (2 * trials)
    reach = t * np.sqrt(value * (1 - value) / trials + t**2 / (4 * trials**2))
    # Rounding must not exclude the value, nor 0.
    end: Array = np.clip((middle - reach) / (1 + t**2 / trials), 0.0, value)
    return end


def _tilted(value: Array, trials: Array, tilt: Array) -> Array:
    """Return the share p of each dataset with ``value - p = tilt * p * (1 - p) / trials``."""
    total = trials + tilt
    root = np.sqrt(np.maximum(total**2 - 4 * tilt * trials * value, 0.0))
    share: Array = 2 * trials * value / (total + root)
    return share


# --- differences of shares ------------------------------------------------------------------------


def reaches_of_share(size: float, reach: float, error: float, images: float) -> tuple[float, float]:
    """Return how far the interval of a difference reaches towards 0, and away from it.

    A larger difference has a larger variance: where no image differs, or few do, as many more may
    differ as in Wilson's interval of a share.

    Args:
        size: the difference without its sign, 0 to 1.
        reach: Student's, with the standard error ``error``.
        images: their effective number; each is one trial, or more if all differ by little.
    """
    growth = (reach / error) ** 2 / max(images, size * (1 - size) / error**2)
    away = max(reach, _larger_root(1 + growth, -growth * (1 - 2 * size), -(reach**2)))
    if reach < size:
        return reach, away
    beyond_zero = _larger_root(1 + growth, 2 * size - growth, size**2 - reach**2)
    return size + beyond_zero, away


def _larger_root(square: float, linear: float, constant: float) -> float:
    """Return the larger solution of a quadratic equation that has a negative constant, or 0."""
    return float((-linear + np.sqrt(linear**2 - 4 * square * constant)) / (2 * square))
