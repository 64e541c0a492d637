"""What one error costs of an F1 (Aumann and Shapley's prices).

F1 is 2 T / (P + G), of T boxes found, P said and G true.  An error leaves out a box, an object or
a pair of both: were it fixed, a box too many would go (P - 1), an object too few would be found
(T + 1, P + 1), a pair would be a hit (T + 1).  Fixing all at once gives F1 = 1.  The price of an
error is what it adds on average while all are fixed in the same proportion, so that counts times
prices add up to 1 - F1 exactly, whatever the order and however errors are divided into kinds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class Prices(NamedTuple):
    """Shares of 1 that one error takes from an F1: a wrong pair, a box too many, one too few."""

    pair: Floats
    box: Floats
    object: Floats


def prices(found: ArrayLike, said: ArrayLike, true: ArrayLike) -> Prices:
    """The prices of the errors of a run; arrays of one shape give arrays.

    Args:
        found: T, boxes that are hits.
        said: P, all boxes.
        true: G, all objects.

    Where there is neither box nor object nothing has a price.

    >>> [round(100 * float(price), 2) for price in prices(2, 7, 6)]
    [16.01, 5.2, 10.81]
    """
    t, p, g = (np.asarray(n, dtype=float) for n in (found, said, true))
    both = p + g
    with np.errstate(divide="ignore", invalid="ignore"):
        # With a share s of all errors fixed F1 is 2 (t + s (g - t)) / (both (1 + s x)).
        x = (g - p) / both
        pair = 2 * _log_ratio(x) / both
        box = t / (both * g) + 2 * (g - t) / both**2 * _log_excess(x)
    nothing = np.zeros_like(both)
    # Without an object F1 is 0 as long as there is a box: each of them takes its part of 1.
    pair = np.where(g > 0, pair, nothing)
    box = np.where(g > 0, box, np.divide(1.0, p, out=nothing.copy(), where=p > 0))
    return Prices(pair, box, np.where(g > 0, pair - box, nothing))


_NEAR_0 = 0.01
"""Below it quotients lose digits, and a few terms of a series are exact."""


def _log_ratio(x: Any) -> Any:
    """ln(1 + x) / x: the mean of 1 / (1 + s x) over s from 0 to 1."""
    return np.where(np.abs(x) < _NEAR_0, _series(x, lambda k: 1 / (k + 1)), np.log1p(x) / x)


def _log_excess(x: Any) -> Any:
    """(ln(1 + x) - x / (1 + x)) / x²: the mean of s / (1 + s x)² over s from 0 to 1."""
    direct = (np.log1p(x) - x / (1 + x)) / x**2
    return np.where(np.abs(x) < _NEAR_0, _series(x, lambda k: (k + 1) / (k + 2)), direct)


def _series(x: Any, term: Any) -> Any:
    """The sum of term(k) (-x)^k."""
    return sum(term(k) * (-x) ** k for k in range(10))
