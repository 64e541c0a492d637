"""The orders in which a box's four numbers may be written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..boxes import REPRESENTATIONS

Floats = NDArray[np.float64]


class Order(NamedTuple):
    """The order of a box's four numbers."""

    name: str
    cost: float  # nats
    corners: Floats  # (4, 4): (x1, y1, x2, y2) = ``corners @ numbers``
    remark: str = ""  # what to call it in words

    @property
    def numbers(self) -> Floats:
        return np.linalg.inv(self.corners).astype(float)


# Tried in every space; other orders only in common ones
_USUAL = {"xyxy": 0.0, "yxyx": 0.5, "xywh": 0.5, "cxcywh": 1.0, "yxhw": 1.0}


def _order(
    name: str, cost: float, of: str, exchanged: Sequence[int] = range(4), remark: str = ""
) -> Order:
    # A representation is linear, so that unit vectors give its matrix.
    to_corners = REPRESENTATIONS[of].to_corners
    corners = np.array([to_corners(row) for row in np.eye(4).tolist()]).T
    return Order(name, cost, corners[:, exchanged], remark)


# Remark on orders of other corners than top left, then bottom right
CORNERS_EXCHANGED = "corners exchanged"


def _exchanged() -> Iterator[Order]:
    """Yield orders that name two other corners than the top left and the bottom right, or first."""
    for usual in ("xyxy", "yxyx"):
        u = usual[0]
        v = usual[1]
        yield _order(f"{u}1{v}2{u}2{v}1", 3.0, usual, [0, 3, 2, 1], CORNERS_EXCHANGED)
        yield _order(f"{u}2{v}1{u}1{v}2", 3.0, usual, [2, 1, 0, 3], CORNERS_EXCHANGED)
        yield _order(f"{u}2{v}2{u}1{v}1", 3.0, usual, [2, 3, 0, 1], CORNERS_EXCHANGED)


_ORDERS = [
    *(_order(name, cost, name) for name, cost in _USUAL.items()),
    _order("cycxhw", 3.0, "cxcywh", [1, 0, 3, 2]),
    _order("xxyy", 3.0, "xyxy", [0, 2, 1, 3]),
    _order("yyxx", 3.0, "yxyx", [0, 2, 1, 3]),
    *_exchanged(),
]
# Orders of a box's four numbers, by name
ORDERS: Mapping[str, Order] = {each.name: each for each in _ORDERS}
USUAL_ORDERS = _ORDERS[: len(_USUAL)]
RARE_ORDERS = _ORDERS[len(_USUAL) :]
