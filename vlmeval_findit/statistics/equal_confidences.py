"""Average precision of boxes that all have one confidence: what it is over the orders of them.

COCO's average precision ranks boxes by confidence.  Models that answer in words state none, so
tables give every box the same, and the value is that of whatever order the boxes have.  An image's
boxes are matched in the order in which they were answered, which stays; arbitrary is how the boxes
of all images are ranked.  Every rank order of so many hits and misses is taken as equally likely.

Interpolated precision from the k-th hit on is the highest from there, so it is more than ``p``
if the last hit at which precision is more than ``p`` is the k-th or a later one.  The area is the
integral over ``p`` of the recalls that this last hit reaches.  Its law follows from a walk from the
last rank to the first, which ends where the precision is more than ``p``: no orders are listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import log

import numpy as np
from numpy.typing import NDArray

from ..protocol import Array
from .confidence_measures import RECALLS

Whole = NDArray[np.int64]
Steps = tuple[Whole, Whole]  # Ascending precisions: numerators and denominators

MOST_STEPS = 1500  # Values that precision may take, up to which each is looked at
_FIRST_STEPS = 64  # Of those where there are more
_PARTS = 2**20  # Into which precision is divided where there are more values
# Of each walk so little is left out: a path so far from the mean (Bernstein, Hoeffding 1963)
_FAR = log(1e16)


@dataclass(frozen=True, slots=True)
class OverOrders:
    """Average precision over all orders of equal boxes; shares of 1.

    >>> over = OverOrders(0.5, 0.625, 0.75)
    >>> over.low, over.expected, over.high, over.within
    (0.5, 0.625, 0.75, 0.0)
    """

    low: float  # Misses first
    expected: float  # Over orders that are equally likely
    high: float  # Hits first
    within: float = 0.0  # The expected value is within so much of it; 0: exact


@lru_cache(100_000)
def precision_over_orders(hits: int, misses: int, objects: int) -> OverOrders:
    """Return COCO's average precision of one category over all orders of its boxes.

    Args:
        hits: boxes matched to an object.
        misses: other boxes that count.
        objects: number of objects that count, at least ``hits`` and 1.

    >>> precision_over_orders(1, 1, 1)
    OverOrders(low=0.5, expected=0.75, high=1.0, within=0.0)
    >>> precision_over_orders(0, 3, 5).high
    0.0
    """
    if not hits:
        return OverOrders(0.0, 0.0, 0.0)
    reached = np.searchsorted(RECALLS, np.arange(hits + 1) / objects, side="right")
    reached[0] = 0  # Without a hit there is no precision
    high = float(reached[-1] / len(RECALLS))
    least = hits / (hits + misses)
    steps = _all_steps(hits, misses)
    if steps is None:
        lower, upper = _bounded_area(hits, misses, reached)
    else:
        # The integrand is constant from each step up to the next one.
        _, upper = _area_between(steps, _mean_reached(hits, misses, reached, *steps))
        lower = upper
    expected = least * high + (lower + upper) / 2 / len(RECALLS)
    within = (upper - lower) / 2 / len(RECALLS)
    return OverOrders(high * least, expected, high, within)


def _all_steps(hits: int, misses: int) -> Steps | None:
    """Return all values that precision may take, from that of all boxes on; None: too many."""
    if hits * misses > 8 * MOST_STEPS:
        return None
    least = Fraction(hits, hits + misses)
    values = {Fraction(1), least}
    for hit in range(1, hits + 1):
        for miss in range(misses + 1):
            value = Fraction(hit, hit + miss)
            if value > least:
                values.add(value)
    if len(values) > MOST_STEPS:
        return None
    ordered = sorted(values)
    numerators = np.array([value.numerator for value in ordered], np.int64)
    denominators = np.array([value.denominator for value in ordered], np.int64)
    return numerators, denominators


def _area_between(steps: Steps, mean_reached: Array) -> tuple[float, float]:
    """Return bounds of the integral from the first step on, given its falling values at steps."""
    widths = np.diff(steps[0] / steps[1])
    return float(widths @ mean_reached[1:]), float(widths @ mean_reached[:-1])


def _bounded_area(hits: int, misses: int, reached: Whole) -> tuple[float, float]:
    """Return bounds of the integral from the precision of all boxes on.

    A few steps show where the integrand falls; the others lie where it does, so that bounds narrow
    most.
    """
    # At its first step the integrand is that of the precision of all boxes: nothing lies between.
    first = -(-hits * _PARTS // (hits + misses))
    numerators = np.unique(np.linspace(first, _PARTS, _FIRST_STEPS + 1).astype(np.int64))
    steps = numerators, np.full(len(numerators), _PARTS)
    values = _mean_reached(hits, misses, reached, *steps)
    need = np.sqrt(np.maximum(-np.diff(values), 0.0) * np.diff(numerators))
    shares = np.ceil(MOST_STEPS * need / max(need.sum(), 1e-300)).astype(np.int64)
    parts = [numerators]
    for start, end, share in zip(numerators[:-1], numerators[1:], shares, strict=True):
        parts.append(np.linspace(start, end, int(share) + 2).astype(np.int64))
    numerators = np.unique(np.concatenate(parts))
    steps = numerators, np.full(len(numerators), _PARTS)
    lower, upper = _area_between(steps, _mean_reached(hits, misses, reached, *steps))
    before = (first / _PARTS - hits / (hits + misses)) * float(reached[-1])
    return lower, upper + max(before, 0.0)


def _mean_reached(
    hits: int, misses: int, reached: Whole, numerators: Whole, denominators: Whole
) -> Array:
    """Return, for each precision, the mean number of recalls that the last hit above it reaches.

    Args:
        hits: boxes that are hits.
        misses: boxes that are not.
        reached: recalls that each number of hits reaches.
        numerators: of the precisions, at least that of all boxes.
        denominators: of the precisions.
    """
    boxes = hits + misses
    paths = np.zeros((hits + 2, len(numerators)))  # By number of hits among the first boxes
    paths[hits] = 1.0
    means = np.zeros(len(numerators))
    limits = numerators * boxes // denominators  # The most hits whose precision is not above
    lows, highs = _likely_hits(hits, misses)
    low = high = hits
    for first in range(boxes, 0, -1):
        new_low, new_high = int(lows[first - 1]), int(highs[first - 1])
        some = np.arange(new_low, new_high + 1)
        stay = (first - some) / first
        fall = (some + 1) / first
        above = paths[new_low + 1 : new_high + 2] * fall[:, None]
        paths[new_low : new_high + 1] *= stay[:, None]
        paths[new_low : new_high + 1] += above
        paths[low:new_low] = 0.0
        paths[new_high + 1 : high + 1] = 0.0
        low, high = new_low, new_high
        new_limits = numerators * (first - 1) // denominators
        at = np.flatnonzero((new_limits < limits) & (limits <= high) & (limits >= low))
        ended = limits[at]
        means[at] += paths[ended, at] * reached[ended]
        paths[ended, at] = 0.0
        limits = new_limits
    return means


def _likely_hits(hits: int, misses: int) -> tuple[Whole, Whole]:
    """Return the fewest and the most hits among so many first boxes that are likely at all."""
    boxes = hits + misses
    first = np.arange(boxes + 1)
    mean = first * hits / boxes
    variance = mean * misses / boxes * (boxes - first) / max(boxes - 1, 1)
    reach = _FAR / 3 + np.sqrt((_FAR / 3) ** 2 + 2 * _FAR * variance)
    lows = np.maximum.reduce([np.zeros(len(first)), first - misses, np.floor(mean - reach)])
    highs = np.minimum.reduce([np.full(len(first), hits), first, np.ceil(mean + reach)])
    return lows.astype(np.int64), highs.astype(np.int64)
