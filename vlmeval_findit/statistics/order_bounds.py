"""Bounds of average precision over all orders of boxes that all have one confidence.

Precision at a hit falls with the misses before it.  So the lowest value has as many misses as any
order allows before each hit, the highest as few.  Where boxes compete for objects not every miss
can come first: of two boxes on one object the first is always the hit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..protocol import Array
from .confidence_measures import RECALLS
from .equal_confidences import HIT, MISS, Chain


@dataclass(frozen=True, slots=True)
class MissLimits:
    """How many misses boxes that compete can have before a hit of theirs.

    >>> MissLimits.of_chain(Chain(("HM",), (1.0,)))
    MissLimits(fewest_hits=1, most=(0, 1), fewest=(0, 0))
    """

    fewest_hits: int
    most: tuple[int, ...]  # After 0, 1 … hits, before the next one
    fewest: tuple[int, ...]  # Before 0, 1 … hits have come; as many as there may be hits

    @classmethod
    def of_chain(cls, chain: Chain) -> MissLimits:
        """Return the limits of words."""
        hits = [word.count(HIT) for word in chain.words]
        most = []
        fewest = []
        for number in range(max(hits) + 1):
            most.append(max(_misses_after(word, number) for word in chain.words))
            enough = [word for word in chain.words if word.count(HIT) >= number]
            fewest.append(min(_misses_before(word, number) for word in enough))
        return cls(min(hits), tuple(most), tuple(fewest))


def _misses_after(word: str, hits: int) -> int:
    """Return the misses before the hit that follows so many hits, or before the end."""
    parts = word.split(HIT)
    return sum(part.count(MISS) for part in parts[: hits + 1])


def _misses_before(word: str, hits: int) -> int:
    """Return the misses before so many hits have come."""
    return _misses_after(word, hits - 1) if hits else 0


def lowest_precision(
    hits: int, misses: int, objects: int, limits: Iterable[MissLimits] = ()
) -> float:
    """Return a share of 1 that the average precision of no order is below.

    Args:
        hits: boxes that are matched to an object in each order.
        misses: boxes that count and are matched in no order.
        objects: number of objects that count.
        limits: of boxes that compete, a group each.

    >>> lowest_precision(1, 1, 1)
    0.5
    >>> lowest_precision(0, 0, 1, [MissLimits.of_chain(Chain(("HM",), (1.0,)))])
    1.0
    """
    groups = list(limits)
    count = hits + sum(group.fewest_hits for group in groups)
    before = np.zeros(count)  # Most misses before each hit
    for group in groups:
        best = before + group.most[0]
        for number in range(1, min(len(group.most), count)):
            best[number:] = np.maximum(best[number:], before[:-number] + group.most[number])
        before = best
    return _area(before + misses, objects)


def highest_precision(hits: int, objects: int, limits: Iterable[MissLimits] = ()) -> float:
    """Return a share of 1 that the average precision of no order is above.

    >>> highest_precision(1, 2)  # 51 of 101 recalls
    0.504950495049505
    """
    groups = list(limits)
    count = hits + sum(len(group.fewest) - 1 for group in groups)
    before = np.where(np.arange(count + 1) <= hits, 0.0, np.inf)  # Fewest misses, by hits so far
    for group in groups:
        best = before + group.fewest[0]
        for number in range(1, len(group.fewest)):
            best[number:] = np.minimum(best[number:], before[:-number] + group.fewest[number])
        before = best
    return _area(before[1:], objects)


def _area(misses: Array, objects: int) -> float:
    """Return the area under interpolated precision, given the misses before each hit."""
    numbers = np.arange(1, len(misses) + 1)
    best_from_here = np.maximum.accumulate((numbers / (numbers + misses))[::-1])[::-1]
    reached = np.searchsorted(RECALLS, numbers / objects, side="right")
    newly_reached = np.diff(reached, prepend=0)
    return float((best_from_here * newly_reached).sum() / len(RECALLS))
