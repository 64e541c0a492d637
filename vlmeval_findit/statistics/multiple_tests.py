"""How 5 % hold where there are many tests: several at once, looks one after another, best of many.

Several tests that were chosen beforehand are corrected by Holm's method.

Races and learning curves look again and again, so each look may spend a part of the 5 %.

The best of many equally good values is the luckiest, so its tests stand for those of all pairs. The
largest difference of a table is at most that between the largest and the smallest of as many
independent normal values, in standard errors of a difference (Tukey's range). So all differences
between any two lie in their intervals with 95 %, and 5 % hold for all stars of a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import pow, sqrt

import numpy as np

from ..protocol import Array
from .influences import Estimate
from .intervals import ALPHA, Difference, FamilyOfTests, paired_difference

# --- several tests at once ----------------------------------------------------------------------


def correct_by_holm(differences: Iterable[Difference], family: FamilyOfTests) -> list[Difference]:
    """Correct p-values by Holm's method: smallest times n, next n - 1, never descending.

    ``differences`` are all tests of the family.
    """
    corrected = [replace(each, family=family) for each in differences]
    tested = sorted(
        (each.p_value, at) for at, each in enumerate(corrected) if each.p_value is not None
    )
    so_far = 0.0
    for rank, (p_value, at) in enumerate(tested):
        so_far = max(so_far, min(1.0, (len(tested) - rank) * p_value))
        corrected[at] = replace(corrected[at], corrected=so_far)
    return corrected


# --- races: formats are dropped round by round ----------------------------------------------------

# How late chances are spent. The leader of a few queries is often a lucky one, whose lead looks
# surer than it is: spent in proportion (1), races of equal formats used up all of the 5 %.
_LATE = 1.5


def drop_allowance(stage: int, stages: int, share: float, spent: float) -> float:
    """Return what may be spent on dropping formats after a round.

    >>> round(drop_allowance(0, 2, 0.2, 0.0), 4), round(drop_allowance(1, 2, 1.0, 0.02), 4)
    (0.0022, 0.03)
    """
    return ALPHA * (stage + pow(share, _LATE)) / stages - spent


def least_likely(chances: Mapping[str, float], allowed: float) -> list[str]:
    """Return the names of the lowest chances that add up to ``allowed`` at most.

    Of equal chances the last goes first.

    >>> least_likely({"a": 0.5, "b": 0.01, "c": 0.02, "d": 0.01}, allowed=0.03)
    ['d', 'b']
    """
    names = list(chances)
    names.reverse()
    names.sort(key=lambda name: chances[name])
    chosen = []
    for name in names:
        allowed -= chances[name]
        if allowed < 0:
            break
        chosen.append(name)
    return chosen


# --- learning curves: a table after every checkpoint ----------------------------------------------


def alpha_share(checkpoints: int) -> float:
    """Return which share of 5 % the table of so many checkpoints is tested at, from two on.

    With the shares of a training's tables 1 - 1 / sqrt(k) of the 5 % is spent by the k-th
    checkpoint. The first false claim of a table is about the best and the worst of k equally good
    checkpoints, and one of them is new with a chance of 2 / k: earlier tables, which are tested at
    higher levels, had all other pairs.

    >>> [round(alpha_share(checkpoints), 3) for checkpoints in (2, 3, 20)]
    [0.293, 0.195, 0.058]
    >>> round(sum(alpha_share(checkpoints) * 2 / checkpoints for checkpoints in range(2, 101)), 9)
    0.9
    """
    spent_now = 1 / sqrt(checkpoints - 1) - 1 / sqrt(checkpoints)
    return spent_now * checkpoints / 2


# Of the integral over the largest value. So smooth a sum is exact to 1e-13 with steps of 0.1
_STEP = 0.1
_FARTHEST = 38.0  # Standard errors; a difference of more has a chance of 0
_HALVINGS = 60
_CLOSE = 1e-15  # To a chance of 1


@dataclass(frozen=True, slots=True)
class BestOf:
    """How many values the best was chosen from, by the values that are tested."""

    count: int
    alpha_share: float = 1.0  # Of 5 %: tables that are shown together share them
    family: FamilyOfTests = FamilyOfTests.MODELS

    @property
    def p_value(self) -> float:
        """The largest p-value of a pair that is significant."""
        return _largest_p_value(self.count, ALPHA * self.alpha_share)

    def difference(self, other: Estimate, best: Estimate, metric: str) -> Difference:
        """Subtract the best value from another; test and interval hold for all pairs.

        The interval excludes 0 exactly where the corrected p-value is below 5 %.
        """
        test = paired_difference(other, best, metric, level=1 - self.p_value)
        if test.p_value is None:
            return Difference.untested(test.value, self.family)
        corrected = corrected_for_pairs(test.p_value, self.count) / self.alpha_share
        return replace(test, corrected=min(1.0, corrected), family=self.family)


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
