"""Which of several values are worse than the best, where the best was chosen by these values.

The best of many equally good ones is the luckiest, so its tests stand for those of all pairs. The
largest difference of a table is at most that between the largest and the smallest of as many
independent normal values, in standard errors of a difference (Tukey's range). So all differences
between any two lie in their intervals with 95 %, and 5 % hold for all stars of a table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..protocol import Array
from .influences import Estimate
from .intervals import ALPHA, Difference, difference

_STEP = 0.02  # Of the integral over the largest value
_FARTHEST = 38.0  # Standard errors; a difference of more has a chance of 0
_HALVINGS = 60
_CLOSE = 1e-15  # To a chance of 1


@dataclass(frozen=True, slots=True)
class Choice:
    """How many values the best was chosen from, by the values that are tested."""

    count: int
    alpha_share: float = 1.0  # Of 5 %: tables that are shown together share them

    @property
    def p_value(self) -> float:
        """The largest p-value of a pair that is significant."""
        return _largest_p_value(self.count, ALPHA * self.alpha_share)

    def difference(self, other: Estimate, best: Estimate, metric: str) -> Difference:
        """Subtract the best value from another; test and interval hold for all pairs.

        The interval excludes 0 exactly where the corrected p-value is below 5 %.
        """
        test = difference(other, best, metric, level=1 - self.p_value)
        if test.p_value is None:
            return test
        corrected = corrected_for_pairs(test.p_value, self.count) / self.alpha_share
        return replace(test, corrected=min(1.0, corrected))


def corrected_for_pairs(p_value: float, count: int) -> float:
    """Return the chance that any two of so many equal values differ as much as a pair does.

    ``p_value`` is that of the pair, two-sided.

    >>> round(corrected_for_pairs(0.03, 2), 6), round(corrected_for_pairs(0.001, 19), 3)
    (0.03, 0.1)
    """
    from scipy.special import ndtri

    errors = float(np.clip(-ndtri(p_value / 2), 0.0, _FARTHEST))
    # The difference of two values has the variance of both.
    return min(1.0, max(p_value, _chance_of_range(np.sqrt(2) * errors, count)))


@lru_cache(maxsize=256)
def _largest_p_value(count: int, alpha: float) -> float:
    """Return the p-value of a pair that is corrected to ``alpha``."""
    least, most = alpha / (count * (count - 1) / 2), alpha
    for _ in range(_HALVINGS):
        middle = (least + most) / 2
        if corrected_for_pairs(middle, count) < alpha:
            least = middle
        else:
            most = middle
    return least


def _chance_of_range(width: float, count: int) -> float:
    """Return the chance that the range of so many standard normal values exceeds a width.

    It is an integral over the largest value: some other lies more than the width below it.
    """
    from scipy.special import ndtr

    largest: Array = np.arange(-8.0, width + 8.0, _STEP)
    density = np.exp(-(largest**2) / 2) / np.sqrt(2 * np.pi)
    below = ndtr(largest)
    is_far = np.minimum(ndtr(largest - width) / below, 1 - _CLOSE)
    # Of a small chance 1 minus its complement would leave nothing.
    some_far = -np.expm1((count - 1) * np.log1p(-is_far))
    return float(count * (density * below ** (count - 1) * some_far).sum() * _STEP)
