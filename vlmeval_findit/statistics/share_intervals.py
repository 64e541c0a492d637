"""The interval of a share, and of the mean of shares over several datasets: a score interval.

The ends are the means that lie Student's t standard errors away from what was measured, where the
errors are those of runs that have that mean (Wilson's interval, for one dataset). Of the datasets'
shares that have a mean, those that fit best are taken. A dataset with :math:`T` trials has the
variance :math:`p (1 - p) / T` at a share :math:`p`.

A graded share (mIoU) is the share of hits times the worth of a hit. A sample without a miss shows
only how hits differ, though a miss costs nearly all of a hit. So the share of hits has its interval
as above, times that worth; the variance that hits do not explain joins it by the root of squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..protocol import Array, divide

CONFIDENCE_LEVEL = 0.95  # Of intervals


# Imported late: SciPy takes half a second, and most commands need no interval.
def quantile(freedom: Array | float, level: float = CONFIDENCE_LEVEL) -> Array:
    """Return how many standard errors Student's two-sided interval reaches to either side.

    >>> float(quantile(9.0).round(3))
    2.262
    """
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, (1 + level) / 2), dtype=float)


def tail(freedom: Array | float, value: Array | float) -> Array:
    """Return the probability of a smaller value of Student's t.

    >>> float(tail(9.0, -2.262).round(3))
    0.025
    """
    from scipy.special import stdtr

    return np.asarray(stdtr(freedom, value), dtype=float)


def total_freedom(variances: Array, images: Array, overlap: Array | float) -> Array:
    """Return the degrees of freedom of a sum over datasets, after Welch and Satterthwaite.

    Args:
        variances: (datasets, metrics), in any unit.
        images: (datasets, metrics) effective numbers of images.
        overlap: in how many datasets an image is, by metric.

    >>> variances, images = np.array([[1.0], [1.0], [0.0]]), np.array([[10.0], [10.0], [99.0]])
    >>> total_freedom(variances, images, 1.0)
    array([18.])
    """
    by_dataset = np.maximum(images - 1, 1.0)
    total = variances.sum(axis=0)
    parts = (variances**2 / by_dataset).sum(axis=0)
    # Where nothing varies: as if all had the same variance.
    of_equal_variances = len(images) ** 2 / (1 / by_dataset).sum(axis=0)
    freedom = np.where(parts > 0, divide(total**2, parts), of_equal_variances)
    return np.maximum(freedom / overlap, 1.0)


# Both were chosen by simulated coverage: benchmarks/test_coverage.py
UNSEEN = 1 / 3  # How much of an image that nobody saw is allowed for
_SKEWED = 1 / 3  # How much the skewness grows where the queries of an image differ
_GRADED_SKEWED = 1.0  # The same of a graded share: an unreadable reply misses all objects at once

_STEPS = 20  # Of Newton's method, from one side
_CLOSE = 1e-9  # How near it comes, relative to t squared
_ROUNDING = 1e-7  # A share so near to 0 or 1 is 0 or 1


@dataclass(frozen=True, slots=True)
class Sampled:
    """What is known of shares: (datasets, metrics) arrays."""

    value: Array  # 0 to 1
    variance: Array
    hits: Array  # Share of hits; the value itself where each hit counts as one
    hit_variance: Array
    images: Array
    effective: Array  # Number of images, after Kish
    skewness: Array  # Of unequal images, relative to equal ones
    queries: Array  # Effective number

    @property
    def is_graded(self) -> NDArray[np.bool_]:
        graded: NDArray[np.bool_] = self.hits != self.value
        graded |= self.hit_variance != self.variance
        return graded


def mean_ends(sampled: Sampled, together: Array, overlap: Array) -> tuple[Array, Array]:
    """Return the lower and upper ends of the 95 % intervals of means over datasets, 0 to 1.

    Args:
        sampled: the datasets.
        together: by how much common images raise a mean's variance, by metric.
        overlap: the same if all datasets agree on them: in how many datasets an image is.
    """
    worth = _worth_of_hits(sampled)
    low, high, t = _ends_by_hits(sampled, worth, together, overlap)
    by_hits = (worth * sampled.hits).mean(axis=0)
    rest = np.maximum(sampled.variance - worth**2 * sampled.hit_variance, 0.0)
    reach_of_rest = t * np.sqrt(together * rest.mean(axis=0) / len(rest))
    mean = sampled.value.mean(axis=0)
    is_graded = sampled.is_graded.any(axis=0)
    low = np.where(is_graded, mean - np.hypot(by_hits - low, reach_of_rest), low)
    high = np.where(is_graded, mean + np.hypot(high - by_hits, reach_of_rest), high)
    # Rounding must not exclude the value.
    return np.clip(low, 0.0, mean), np.clip(high, mean, 1.0)


def _worth_of_hits(sampled: Sampled) -> Array:
    """Return how much the mean loses by a miss, 0 to 1: the mean value of a hit.

    Where misses have values, too, a miss costs less; no more than explains the whole variance.
    """
    mean_of_hits = divide(sampled.value, sampled.hits, 1.0)
    of_variance = np.sqrt(divide(sampled.variance, sampled.hit_variance, 1.0))
    worth: Array = np.minimum(np.minimum(mean_of_hits, of_variance), 1.0)
    return worth


def _ends_by_hits(
    sampled: Sampled, worth: Array, together: Array, overlap: Array
) -> tuple[Array, Array, Array]:
    """Return the ends as if hits were the same to the end, and Student's t.

    Args:
        sampled: the datasets.
        worth: of a hit, by :func:`_worth_of_hits`.
        together: as of :func:`mean_ends`.
        overlap: as of :func:`mean_ends`.
    """
    whole = np.round(sampled.hits)
    at_end = np.abs(sampled.hits - whole) < _ROUNDING
    sampled = replace(sampled, hits=np.where(at_end, whole, sampled.hits))
    trials = _trials(sampled, together, overlap)
    # Near 0 and 100 % no variance is small for sure: one more hit and one more miss.
    value = (sampled.hits * trials + 1) / (trials + 2)
    freedom = total_freedom(worth**2 * value * (1 - value) / trials, sampled.effective, overlap)
    t = quantile(freedom)
    fewest = np.minimum(sampled.effective / overlap, trials)
    # The upper end is the lower end of the misses; both at once.
    hits_and_misses = np.concatenate([sampled.hits, 1 - sampled.hits], axis=1)
    growth = np.where(sampled.is_graded, _GRADED_SKEWED, _SKEWED)
    low_ends = _low_ends(
        value=hits_and_misses,
        worth=np.tile(worth, 2),
        trials=np.tile(trials, 2),
        fewest=np.tile(fewest, 2),
        skewness=np.tile(sampled.skewness * (1 + growth * (1 - fewest / trials)), 2),
        t=np.tile(t, 2),
    )
    low, missed = np.split(low_ends, 2)
    return low, worth.mean(axis=0) - missed, t


def _trials(sampled: Sampled, together: Array, overlap: Array) -> Array:
    """Return how many independent trials have each dataset's variance.

    It includes a third of a missed image, and a third of a hit one: few images cannot show that
    there are none. Where nothing varies an image is one trial, or more if the queries of the
    other datasets' images differ among themselves, but no more than there are queries.
    """
    value = sampled.hits
    fewest = sampled.effective / overlap
    spread = value * (1 - value)
    unseen = (UNSEEN / np.maximum(sampled.images, 1)) ** 2 * (value**2 + (1 - value) ** 2)
    unseen = np.minimum(unseen, spread / np.maximum(sampled.effective, 1))
    variance = np.where(
        spread > 0, sampled.hit_variance * together + unseen * overlap**2 / len(value), 0.0
    )
    variance_by_images = divide(spread, fewest).sum(axis=0)
    per_image = np.maximum(1.0, divide(variance_by_images, variance.sum(axis=0)))
    most = sampled.queries / overlap
    at_ends = np.maximum(np.minimum(fewest * per_image, most), np.maximum(fewest, 1e-9))
    return np.where(variance > 0, divide(spread, variance), at_ends)


def _low_ends(
    value: Array, worth: Array, trials: Array, fewest: Array, skewness: Array, t: Array
) -> Array:
    """Return the lower ends of the intervals of means over datasets."""
    shares = _low_shares(value, worth, trials, t)
    trials = _trials_at(shares, value, trials, fewest, skewness)
    end: Array = (worth * _low_shares(value, worth, trials, t)).mean(axis=0)
    return end


def _trials_at(shares: Array, value: Array, trials: Array, fewest: Array, skewness: Array) -> Array:
    """Return how many trials have the variance of shares below the measured ones.

    Above 50 % a run that is good by chance looks too certain, too. Trials of equal size make up for
    that by themselves. Unequal images are more skewed, and so are queries that agree in part:
    there the variance grows faster, though not beyond that of images of equal queries.
    """
    growth = (skewness - 1) * (2 * value - 1) * divide(value - shares, shares * (1 - shares))
    growth = np.where(value < 1, np.maximum(growth, 0.0), 0.0)
    return np.maximum(trials / (1 + growth), fewest)


def _low_shares(value: Array, worth: Array, trials: Array, t: Array) -> Array:
    """Return the shares of the datasets at the lower end of their mean's interval.

    Among the shares that have a mean, those fit best that lie ``tilt`` variances below the measured
    ones. In the mean each share counts as much as it is ``worth``.
    """
    lowest = _wilson_low(value, trials, t)
    if len(value) == 1:
        return lowest
    # The tilt of every dataset alone is too large for their mean.
    tilts = divide(trials * (value - lowest), worth * lowest * (1 - lowest), np.inf)
    tilt = tilts.min(axis=0)
    has_tilt = np.isfinite(tilt)
    tilt = np.where(has_tilt, tilt, 0.0)
    shares = lowest
    for _ in range(_STEPS):
        own_tilt = worth * tilt
        shares = _tilted(value, trials, own_tilt)
        spread = worth**2 * shares * (1 - shares)
        slope = divide(spread, trials + own_tilt * (1 - 2 * shares)).sum(axis=0)
        below = (worth * (value - shares)).sum(axis=0)
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


# --- values that reviews corrected: as measured on random rows alone ------------------------------

# Most random rows change nothing, so a standard error says little: as many more rows may change as
# in Wilson's interval of a share.


@dataclass(frozen=True, slots=True)
class SampledChanges:
    """What would change in each metric, were all rows that random rows were drawn from like one."""

    change: Array  # (random rows, metrics), in hundredths of the metrics
    drawn_from: int
    rows: int  # Of the run

    def minus(self, other: SampledChanges) -> SampledChanges:
        """Return the changes of a difference of two runs over the same random rows."""
        return replace(self, change=self.change - other.change)


def reaches_of_changes(changes: SampledChanges, place: int) -> tuple[float, float]:
    """Return how far the 95 % interval of the mean change of a metric reaches down, and up."""
    sampled = len(changes.change)
    unsampled = 1 - sampled / changes.drawn_from
    if unsampled <= 0:
        return 0.0, 0.0
    # What a row does to its score, from -1 to 1
    scale = changes.drawn_from / changes.rows
    by_row = changes.change[:, place] / scale
    mean = float(by_row.mean())
    variance = float(by_row.var(ddof=1)) / sampled if sampled > 1 else 1.0
    unseen = 2 * (UNSEEN / 2 / sampled) ** 2 * (1 + mean**2)
    error = float(np.sqrt((variance + unseen) * unsampled))
    reach = float(quantile(max(sampled - 1, 1))) * error
    to_zero, away = reaches_of_share(min(abs(mean), 1.0), reach, error, sampled / unsampled)
    down, up = (to_zero, away) if mean >= 0 else (away, to_zero)
    return scale * down, scale * up


def reaches_of_mean(datasets: Sequence[SampledChanges | None], place: int) -> tuple[float, float]:
    """Return the same for the mean over datasets, whose random rows were drawn apart."""
    reaches = [reaches_of_changes(each, place) for each in datasets if each is not None]
    down = float(np.linalg.norm([each[0] for each in reaches])) / len(datasets)
    up = float(np.linalg.norm([each[1] for each in reaches])) / len(datasets)
    return down, up
