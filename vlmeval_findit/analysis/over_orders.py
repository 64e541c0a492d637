"""Average precision of the boxes of a class over all their orders: its ends and expected value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..statistics import ExpectedPrecision, expected_precision
from .box_orders import FOUND, IGNORED, AtThreshold, BoxOrders
from .order_ends import OrderEnds, find_ends

_DRAWN = 256  # Orders at a time, where the expected value is not exact
_MOST_DRAWN = 8192
_CLOSE_ENOUGH = 3e-4  # Three standard errors of a class's value, a share of 1


@dataclass(frozen=True, slots=True)
class PrecisionOverOrders:
    """The mean over IoU thresholds of average precision, over all orders; shares of 1."""

    ends: OrderEnds
    expected: float  # Over orders that are equally likely
    within: float  # ``expected`` is within so much of its exact value; 0: exact
    simulated: bool  # ``within`` is three standard errors, as some orders were drawn


def precision_over_orders(boxes: BoxOrders) -> PrecisionOverOrders:
    """Return what the boxes of a class are worth over all orders."""
    if not boxes.boxes:
        return PrecisionOverOrders(OrderEnds(0.0, 0.0, 0.0, 0.0), 0.0, 0.0, False)
    at_thresholds = [boxes.at_threshold(at) for at in range(len(boxes.thresholds))]
    ends = find_ends(boxes, at_thresholds)
    expected, simulated = _expect(boxes, at_thresholds)
    return PrecisionOverOrders(ends, expected.value, expected.within, simulated)


def _expect(
    boxes: BoxOrders, at_thresholds: Sequence[AtThreshold]
) -> tuple[ExpectedPrecision, bool]:
    """Return the expected value, and whether orders were drawn, as too many boxes compete."""
    known: list[ExpectedPrecision] = []
    drawn: list[int] = []  # Places of thresholds
    for place, at in enumerate(at_thresholds):
        exact = None
        if at.chains is not None:
            exact = expected_precision(at.hits, at.misses, boxes.objects, at.chains)
        if exact is None:
            drawn.append(place)
        else:
            known.append(exact)
    count = len(at_thresholds)
    value = sum(each.value for each in known) / count
    within = sum(each.within for each in known) / count
    if drawn:
        simulated = _simulate(boxes, drawn)
        value += simulated.value * len(drawn) / count
        within += simulated.within * len(drawn) / count
    return ExpectedPrecision(value, within), bool(drawn)


def _simulate(boxes: BoxOrders, places: Sequence[int]) -> ExpectedPrecision:
    """Return the mean of some thresholds over drawn orders, within three standard errors.

    What is drawn is only how much more an order is worth than one in which the same hits and misses
    stand anywhere and all count, whose expected value is exact.
    """
    own = np.arange(boxes.boxes)
    outcomes = boxes.matched(own[None])[0]
    exact: list[ExpectedPrecision] = []
    for place in places:
        hits = int((outcomes[place] == FOUND).sum())
        misses = boxes.boxes - hits - int((outcomes[place] == IGNORED).sum())
        anywhere = expected_precision(hits, misses, boxes.objects)
        assert anywhere is not None  # Nothing competes
        exact.append(anywhere)
    generator = np.random.default_rng(0)
    gains: list[float] = []
    within = np.inf
    while len(gains) < _MOST_DRAWN and within > _CLOSE_ENOUGH:
        orders = generator.permuted(np.tile(own, (min(_DRAWN, boxes.at_a_time), 1)), axis=1)
        anywhere_of = np.tile(own, (len(orders), 1))
        for group in boxes.competing:
            anywhere_of[:, group.boxes] = generator.permuted(anywhere_of[:, group.boxes], axis=1)
        shuffled = outcomes[:, anywhere_of].swapaxes(0, 1)
        gain = boxes.precision(orders) - boxes.precision(orders, shuffled)
        gains += gain[:, places].mean(axis=1).tolist()
        if len(gains) > 1:
            within = 3 * float(np.std(gains, ddof=1)) / len(gains) ** 0.5
    return ExpectedPrecision(
        value=float(np.mean([each.value for each in exact]) + np.mean(gains)),
        within=float(np.mean([each.within for each in exact]) + within),
    )
