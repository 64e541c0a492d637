"""Bounds of average precision over all orders of boxes that all have one confidence.

Precision at a hit falls with the misses before it.  So the lowest value has as many misses as any
order allows before each hit, the highest as few.  Where boxes compete for objects not every miss
can come first: of two boxes on one object the first is always the hit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..protocol import Array
from .confidence_measures import RECALLS
from .equal_confidences import HIT, MISS, Chain, Whole


@dataclass(frozen=True, slots=True)
class MissLimits:
    """How many hits boxes of an image can have, and misses before a hit of theirs.

    >>> MissLimits.of_chain(Chain(("HM",), (1.0,)))
    MissLimits(fewest_hits=(0, 1, 1), most=(0, 1), fewest=(0, 0))
    """

    fewest_hits: tuple[int, ...]  # Among the first 0, 1 … of the boxes
    most: tuple[int, ...]  # After 0, 1 … hits, before the next one
    fewest: tuple[int, ...]  # Before 0, 1 … hits have come; as many as there may be hits

    @classmethod
    def of_chain(cls, chain: Chain) -> MissLimits:
        """Return the limits of words."""
        words = chain.words
        fewest_hits = []
        for first in range(len(words[0]) + 1):
            fewest_hits.append(min(word[:first].count(HIT) for word in words))
        most = []
        fewest = []
        for number in range(max(word.count(HIT) for word in words) + 1):
            most.append(max(_misses_after(word, number) for word in words))
            enough = [word for word in words if word.count(HIT) >= number]
            fewest.append(min(_misses_before(word, number) for word in enough))
        return cls(tuple(fewest_hits), tuple(most), tuple(fewest))

    @classmethod
    def of_first(
        cls, count: int, hits: int, misses: int, ignored: int, groups: Sequence[MissLimits]
    ) -> MissLimits:
        """Return the limits of an image of which the first boxes count, in whatever order.

        Args:
            count: how many count, at most as many as there are.
            hits: boxes of the image that are hits in each order, and compete with none.
            misses: boxes that are hits in none, and compete with none.
            ignored: boxes that never count, and compete with none.
            groups: of those that compete.

        >>> MissLimits.of_first(2, 1, 1, 1, [])
        MissLimits(fewest_hits=(0, 0, 0), most=(1, 1), fewest=(0, 0))
        """
        others = np.zeros(min(misses + ignored, count) + 1, np.int64)
        fewest_hits = _joined(others, np.arange(min(hits, count) + 1), count)
        most = np.zeros(min(hits, count) + 1, np.int64)  # Negative: the least is the most
        fewest = most
        for group in groups:
            fewest_hits = _joined(fewest_hits, np.array(group.fewest_hits), count)
            most = _joined(most, -np.array(group.most), count)
            fewest = _joined(fewest, np.array(group.fewest), count)
        # So many hits leave no place for more misses.
        most = np.minimum(misses - most, count - np.arange(len(most)))
        return cls(tuple(fewest_hits.tolist()), tuple(most.tolist()), tuple(fewest.tolist()))


def _joined(left: Whole, right: Whole, longest: int) -> Whole:
    """Return the least sum of an entry of each, by the sum of their places, up to a place."""
    count = min(len(left) + len(right) - 2, longest) + 1
    joined = np.full(count, np.iinfo(np.int64).max)
    for place, value in enumerate(right[:count]):
        some = left[: count - place] + value
        joined[place : place + len(some)] = np.minimum(joined[place : place + len(some)], some)
    return joined


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
    count = hits + sum(group.fewest_hits[-1] for group in groups)
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
