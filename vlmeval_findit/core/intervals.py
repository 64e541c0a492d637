"""Intervals and paired tests over images, from the influences of :mod:`.influences`.

A difference subtracts each image's influences, so what is hard for both runs cancels. Results are
always the same. Near 0 or 100 % few images promise too much: see :func:`bounds`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from .influences import FEWEST, Estimate, aligned
from .metric import Array

LEVEL = 0.95  # Of intervals
ALPHA = 0.05  # Corrected p-values below it are significant

INTERVALS = f"95 % over images; none where fewer than {FEWEST} images count"

_ROUNDING = 1e-6  # By which sums of rounded numbers may leave a share's range
_UNSEEN = 1 / 3  # How much of an unseen image is allowed for; checked against simulated coverage


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval, in the unit of its metric."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """One value minus another, in percentage points where they are shares."""

    value: float
    interval: Interval | None  # 95 %; excludes 0 exactly where p_value is below 5 %
    p_value: float | None  # Two-sided; None, like the interval, for too few images
    corrected: float | None  # After :func:`correct`

    @property
    def significant(self) -> bool:
        return self.corrected is not None and self.corrected < ALPHA


# Imported late: SciPy takes half a second, and most commands need no interval.
def _quantile(freedom: float) -> float:
    """Return how many standard errors Student's interval reaches to either side."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def _tail(freedom: float, value: float) -> float:
    """Return the probability of a smaller value of Student's t."""
    from scipy.special import stdtr

    return float(stdtr(freedom, value))


def bounds(value: float, variance: float, images: float) -> Interval | None:
    """Return the 95 % interval, in percent, of a share of 1; None below :data:`.FEWEST` images.

    Wilson's interval at the effective sample size, with Student's t. The variance includes a third
    of a missed image and a third of a found one, since few images cannot show that there are none.
    Where nothing varies, every image is one trial.
    """
    if images < FEWEST:
        return None
    value = min(1.0, max(0.0, value))
    if value in (0.0, 1.0):
        trials = images
    else:
        spread = value * (1 - value)
        unseen = (_UNSEEN / images) ** 2 * (value**2 + (1 - value) ** 2)
        trials = spread / (variance + min(unseen, spread / images))
    t2 = _quantile(images - 1) ** 2
    middle = value + t2 / (2 * trials)
    reach = np.sqrt(t2 * (value * (1 - value) / trials + t2 / (4 * trials**2)))
    # Rounding must not exclude the value.
    low = min(value, (middle - reach) / (1 + t2 / trials))
    high = max(value, (middle + reach) / (1 + t2 / trials))
    return Interval(100 * max(0.0, float(low)), 100 * min(1.0, float(high)))


def mean_bounds(value: float, variance: float, images: float) -> Interval | None:
    """Return Student's 95 % interval of hundredths of what is no share; None as in bounds."""
    if images < FEWEST:
        return None
    reach = float(_quantile(images - 1) * np.sqrt(variance))
    return Interval(100 * (value - reach), 100 * (value + reach))


def metric_intervals(estimate: Estimate) -> dict[str, Interval | None]:
    """Return all intervals (None: too few images); a ValueError if a share is not 0 to 100 %."""
    variances = (estimate.influence**2).sum(axis=0)
    for metric, value, images in zip(
        estimate.metrics, estimate.values, estimate.counted, strict=True
    ):
        if metric.share and images and not -_ROUNDING <= value <= 1 + _ROUNDING:
            raise ValueError(
                f"{metric.name} is {100 * value:g} %, which no share of a whole can be: "
                f'write Metric({metric.name!r}, …, unit="")'
            )
    return {
        metric.name: (bounds if metric.share else mean_bounds)(
            float(value), float(variance), float(images)
        )
        for metric, value, variance, images in zip(
            estimate.metrics, estimate.values, variances, estimate.counted, strict=True
        )
        if not np.isnan(value)
    }


def difference(left: Estimate, right: Estimate, metric: str) -> Difference:
    """Subtract one value from another, with a paired t-test over the images.

    As in :func:`bounds`, the interval of shares allows for a third of an image that only one of
    them finds, so it has a width even where all images agree.
    """
    at = left.place(metric)
    value = float(left.values[at] - right.values[at])
    images = float(min(left.counted[at], right.counted[at]))
    if not images:
        return Difference(100 * value, None, None, None)
    _, (left_moves, right_moves) = aligned([left, right])
    error = float(np.sqrt(((left_moves[:, at] - right_moves[:, at]) ** 2).sum()))
    p_value = _p_value(value, error, images)
    share = left.metrics[at].share
    unseen = 2 * (_UNSEEN / images) ** 2 * (1 + value**2) if share else 0.0
    reach = float(_quantile(images - 1) * np.sqrt(error**2 + unseen))
    reach = min(reach, abs(value)) if p_value < ALPHA else max(reach, abs(value))
    low, high = value - reach, value + reach
    if share:
        low, high = max(-1.0, low), min(1.0, high)
    return Difference(100 * value, Interval(100 * low, 100 * high), p_value, p_value)


def _p_value(value: float, error: float, images: float) -> float:
    # Sums in another order differ in their last bits, but are equal.
    if abs(value) < 1e-11:
        return 1.0
    # At least that of as many coins that fall alike: few images cannot say more.
    tail = _tail(images - 1, -abs(value) / error) if error else 0.0
    return max(2 * tail, float(2.0 ** (1 - images)))


def chance_of_lead(run: Estimate, front: Estimate, metric: str, share: float) -> float | None:
    """Estimate how likely a share is the higher one over all images; None: too few were seen.

    ``share`` (0 to 1) of them were seen. This is Student's t around the difference, with its paired
    variance over the unseen rest of a finite population. As in :func:`bounds`, a third of an image
    is allowed for.
    """
    at = run.place(metric)
    images = float(min(run.counted[at], front.counted[at]))
    if not images:
        return None
    _, (run_moves, front_moves) = aligned([run, front])
    values = np.array([run.values[at], front.values[at]])
    unseen = (_UNSEEN / images) ** 2 * (values**2 + (1 - values) ** 2).sum()
    variance = ((run_moves[:, at] - front_moves[:, at]) ** 2).sum() + unseen
    lead = values[0] - values[1]
    return _tail(images - 1, float(lead / np.sqrt(variance * (1 - share))))


DRAWN = 500  # Bootstrap samples, for what is no ratio of sums
_SEED = 11


def drawn_again(images: int) -> Array:
    """Return how often each bootstrap sample draws each image: (samples, images), seeded."""
    if images < FEWEST:
        return np.zeros((0, images))
    generator = np.random.default_rng(_SEED)
    return generator.multinomial(images, [1 / images] * images, DRAWN).astype(float)


def drawn_interval(values: Array) -> Interval | None:
    """Return the 95 % interval of values over :func:`drawn_again`; None without any."""
    if not len(values):
        return None
    ends = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    low, high = np.nanquantile(values, ends, method="nearest")
    return Interval(float(low), float(high))


def correct(differences: Iterable[Difference]) -> list[Difference]:
    """Correct p-values by Holm's method: smallest times n, next n - 1, never descending."""
    corrected = list(differences)
    tested = sorted(
        (each.p_value, at) for at, each in enumerate(corrected) if each.p_value is not None
    )
    so_far = 0.0
    for rank, (p_value, at) in enumerate(tested):
        so_far = max(so_far, min(1.0, (len(tested) - rank) * p_value))
        corrected[at] = replace(corrected[at], corrected=so_far)
    return corrected
