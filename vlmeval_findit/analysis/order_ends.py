"""The worst and the best order of the boxes of a class, over all IoU thresholds together.

Boxes that hit at more thresholds come later in the worst order and earlier in the best one, which
are both ends at once unless boxes compete. Where they do, orders are tried; an end that was reached
is stated beside the bound that no order passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from ..protocol import Array
from ..statistics import highest_precision, lowest_precision
from .box_orders import FOUND, MISSED, AtThreshold, BoxOrders, Places

ALL_ORDERS = 7  # Boxes of a class, up to which all orders are looked at
_SAME = 1e-9
_SORTS = 6  # An order is sorted by what comes of its boxes, so often
_ROUNDS = 60  # Of changes to the best order, and those in vain after which it stays
_IN_VAIN = 10
_CHANGES = 128  # Tried a round
_MOST_CHANGED = 300  # Boxes of a class, up to which changes are tried


@dataclass(frozen=True, slots=True)
class OrderEnds:
    """The ends of the mean over thresholds; shares of 1."""

    low: float  # Reached by an order
    high: float
    low_bound: float  # No order is below it
    high_bound: float


def find_ends(boxes: BoxOrders, at_thresholds: Sequence[AtThreshold]) -> OrderEnds:
    """Find the worst and the best order of a class.

    Args:
        boxes: of the class, at least one.
        at_thresholds: what they are at each threshold.
    """
    if boxes.boxes <= ALL_ORDERS:
        orders = np.array(list(permutations(range(boxes.boxes))), np.intp)
        values = _means(boxes, orders)
        low, high = float(values.min()), float(values.max())
        return OrderEnds(low, high, low, high)
    lows = []
    highs = []
    for at in at_thresholds:
        lows.append(lowest_precision(at.hits, at.misses, boxes.objects, at.limits))
        highs.append(highest_precision(at.hits, boxes.objects, at.limits))
    low_bound, high_bound = float(np.mean(lows)), float(np.mean(highs))
    low = -_highest(boxes, -low_bound, -1)
    high = _highest(boxes, high_bound, 1)
    # Sums in another order differ in their last bits.
    return OrderEnds(low, high, min(low, low_bound), max(high, high_bound))


def _means(boxes: BoxOrders, orders: Places) -> Array:
    """Return (orders,) the mean over thresholds."""
    parts = []
    for first in range(0, len(orders), boxes.at_a_time):
        some = orders[first : first + boxes.at_a_time]
        parts.append(boxes.precision(some).mean(axis=1))
    return np.concatenate(parts)


def _highest(boxes: BoxOrders, bound: float, sign: int) -> float:
    """Return the highest value of ``sign`` times the mean of orders that are tried."""
    best = -np.inf
    best_order = np.arange(boxes.boxes)
    for start in _starts(boxes, sign):
        for order in _sorted_again(boxes, start, sign):
            value = sign * float(_means(boxes, order[None])[0])
            if value > best:
                best, best_order = value, order
            if best > bound - _SAME:
                return best
    if boxes.boxes <= _MOST_CHANGED:
        best = _changed(boxes, best_order, best, bound, sign)
    return best


def _starts(boxes: BoxOrders, sign: int) -> Iterator[Places]:
    """Yield orders from which to begin: those of the reply, by IoU, and by the best matches."""
    own = np.arange(boxes.boxes)
    yield np.argsort(-sign * boxes.best_iou, kind="stable")
    yield own
    rank = boxes.best_iou.copy()
    for group in boxes.competing:
        if group.listed is None:
            continue
        hits = (group.listed == FOUND).sum(axis=(1, 2))
        best = int(np.argmax(sign * hits))
        found = (group.listed[best] == FOUND).sum(axis=0)
        missed = (group.listed[best] == MISSED).sum(axis=0)
        rank[group.boxes] = (found - missed) / len(boxes.thresholds)
    yield np.argsort(-sign * rank, kind="stable")


def _sorted_again(boxes: BoxOrders, order: Places, sign: int) -> Iterator[Places]:
    """Yield an order, and orders by the thresholds at which its boxes are found and missed."""
    yield order
    seen = {order.tobytes()}
    for _ in range(_SORTS):
        outcomes = boxes.outcomes(order[None])[0]
        worth = (outcomes == FOUND).sum(axis=0) - (outcomes == MISSED).sum(axis=0)
        order = order[np.argsort(-sign * worth[order], kind="stable")]
        if order.tobytes() in seen:
            return
        seen.add(order.tobytes())
        yield order


def _changed(boxes: BoxOrders, order: Places, best: float, bound: float, sign: int) -> float:
    """Move boxes of an order elsewhere as long as that helps; return the best value."""
    generator = np.random.default_rng(0)
    in_vain = 0
    for _ in range(_ROUNDS):
        tried = np.stack([_moved(order, boxes, generator) for _ in range(_CHANGES)])
        values = sign * _means(boxes, tried)
        at = int(np.argmax(values))
        in_vain += 1
        if values[at] > best + _SAME:
            in_vain = 0
            best = float(values[at])
            order = tried[at]
        if best > bound - _SAME or in_vain == _IN_VAIN:
            break
    return best


def _moved(order: Places, boxes: BoxOrders, generator: np.random.Generator) -> Places:
    """Return an order in which one or two boxes that compete stand elsewhere."""
    for _ in range(generator.integers(1, 3)):
        competing = np.flatnonzero(boxes.competes[order])
        if generator.random() < 0.3:  # Others give way, too
            competing = np.arange(len(order))
        rank = int(generator.choice(competing))
        new_rank = int(generator.integers(len(order)))
        order = np.insert(np.delete(order, rank), new_rank, order[rank])
    return order
