"""The conventions that a deployment may answer in: what numbers refer to, and in which order.

One row of :data:`SPACES` is one hypothesis about what numbers refer to, one of :data:`ORDERS` one
about their order.  Each costs some nats of evidence before it is believed, the more the rarer it
is.  Sources of the rows: the faults that users of the common runners and providers reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..boxes.representation import REPRESENTATIONS
from ..boxes.spaces import Space
from . import frames
from .frames import Floats, FrameOf, constant, of_space, sized


class SpaceRow(NamedTuple):
    """What numbers refer to.

    ``space`` is the same as the score knows it (None: it does not), ``cost`` in nats.
    """

    name: str
    means: str
    cost: float
    frame: FrameOf
    space: Space | None = None


class Order(NamedTuple):
    """The order of four numbers: x1, y1, x2, y2 are ``corners @ numbers``; ``cost`` in nats."""

    name: str
    cost: float
    corners: Floats

    @property
    def numbers(self) -> Floats:
        """(4, 4): the inverse of ``corners``."""
        return np.linalg.inv(self.corners).astype(float)


class Convention(NamedTuple):
    """A space and an order."""

    space: SpaceRow
    order: Order

    @property
    def name(self) -> str:
        return f"{self.space.name}/{self.order.name}"

    @property
    def cost(self) -> float:
        return self.space.cost + self.order.cost


USUAL, KNOWN, RARE, EXOTIC = 0.0, 1.0, 2.5, 4.0
"""What a space costs, in nats."""


def _known(name: str, means: str, cost: float, space: Space) -> SpaceRow:
    return SpaceRow(name, means, cost, of_space(space), space)


def _within(
    low: int, high: int, cost: float = KNOWN, two_step: bool = False, factor: int | None = None
) -> SpaceRow:
    space = Space("smart_resize", None, low, high, two_step, factor)
    means = f"pixels of the processor's resize within {low}..{high}"
    means += f", to multiples of {factor}" if factor else ""
    name = f"smart{'2' if two_step else ''}{factor or ''}_{low}_{high}"
    return _known(name, means + (", in two steps" if two_step else ""), cost, space)


_GRID = constant(1000, 1000)
_PIXELS = of_space(Space("pixels"))
_SMART = of_space(Space("smart_resize", min_pixels=200704, max_pixels=1605632))
_BOUNDS = "the processor's resize within 200704..1605632"


def _turned_rows() -> list[SpaceRow]:
    found = []
    for name, means, size in (("grid1000", "thousandths", _GRID), ("pixels", "pixels", _PIXELS)):
        for turn, what, frame in (
            ("rot90cw", "turned clockwise", frames.quarter_turned(size, (True, False))),
            ("rot90ccw", "turned anticlockwise", frames.quarter_turned(size, (False, True))),
            ("rot180", "turned by 180 degrees", frames.mirrored(size, (True, True))),
            ("flipy", "counted from the bottom", frames.mirrored(size, (False, True))),
        ):
            found.append(
                SpaceRow(f"{name}_{turn}", f"{means} of the picture {what}", EXOTIC, frame)
            )
    return found


_COMMON = [
    _known("grid1000", "thousandths of width and height", USUAL, Space("grid1000")),
    _known("unit", "fractions of width and height", USUAL, Space("unit")),
    _known("pixels", "pixels of the picture", USUAL, Space("pixels")),
    _within(200704, 1605632, USUAL),
    _within(3136, 12845056, USUAL),
    SpaceRow("percent", "percent of width and height", KNOWN, constant(100, 100)),
    _known("openai_high", "pixels after OpenAI's 'high' resize", KNOWN, Space("openai_high")),
    _known(
        "claude_standard",
        "pixels after Anthropic's resize to 1568",
        KNOWN,
        Space("claude_standard"),
    ),
    _known(
        "claude_highres", "pixels after Anthropic's resize to 2576", KNOWN, Space("claude_highres")
    ),
    SpaceRow(
        "letterbox1000",
        "thousandths of the picture padded to a square",
        KNOWN,
        frames.squared(1000, frames.longer_edge),
    ),
    SpaceRow("longer1000", "thousandths of the longer side", KNOWN, frames.longer(1000)),
]
"""Those whose numbers come in rare orders too."""

_ROWS = [
    *_COMMON,
    _within(3136, 1003520),
    _within(200704, 1003520),
    _within(401408, 1605632),
    _within(3136, 200704),
    _within(401408, 3211264),
    _within(200704, 1605632, two_step=True),
    _within(65536, 16777216, factor=32),
    # That of FindIt-Nano-px.
    _within(2304, 28224, RARE, factor=24),
    SpaceRow("grid1024", "1024ths of width and height", RARE, constant(1024, 1024)),
    SpaceRow("original", "pixels of the picture, however large", RARE, frames.at_most(np.inf)),
    SpaceRow("openai_tiles768", "pixels after OpenAI's resize to 768", RARE, sized(frames.tiles)),
    *(
        SpaceRow(f"square{n}", f"pixels of a {n} x {n} input", RARE, constant(n, n))
        for n in (224, 336, 448, 512, 768, 896)
    ),
    *(
        SpaceRow(f"limit{n}", f"pixels after shrinking to {n}", RARE, frames.at_most(n))
        for n in (512, 640, 768, 1024, 1280, 1568, 2048)
    ),
    SpaceRow("longer1", "fractions of the longer side", RARE, frames.longer(1)),
    *(
        SpaceRow(f"longer{n}", f"pixels after scaling to {n}", RARE, frames.longer(n))
        for n in (336, 448, 640, 896, 1024)
    ),
    SpaceRow(
        "letterbox1",
        "fractions of the picture padded to a square",
        RARE,
        frames.squared(1, frames.longer_edge),
    ),
    *(
        SpaceRow(
            f"letterbox{n}",
            f"pixels of the picture padded to {n} x {n}",
            RARE,
            frames.squared(n, frames.longer_edge),
        )
        for n in (336, 448)
    ),
    SpaceRow(
        "crop1",
        "fractions of the square in its middle",
        RARE,
        frames.squared(1, frames.shorter_edge),
    ),
    SpaceRow(
        "crop1000",
        "thousandths of the square in its middle",
        RARE,
        frames.squared(1000, frames.shorter_edge),
    ),
    SpaceRow("twice_grid", "thousandths scaled a second time", EXOTIC, frames.twice(_GRID)),
    SpaceRow(
        "pixels_times_size",
        "pixels scaled as if they were thousandths",
        EXOTIC,
        frames.backwards(_GRID),
    ),
    SpaceRow("smart_twice", f"{_BOUNDS}, scaled twice", EXOTIC, frames.twice(_SMART)),
    SpaceRow("smart_wrong_way", f"{_BOUNDS}, the wrong way", EXOTIC, frames.backwards(_SMART)),
    SpaceRow(
        "grid_sizes_swapped",
        "thousandths scaled with width and height exchanged",
        EXOTIC,
        frames.axes_exchanged(_GRID),
    ),
    SpaceRow(
        "smart_sizes_swapped",
        f"{_BOUNDS}, width and height exchanged",
        EXOTIC,
        frames.sizes_exchanged(_SMART),
    ),
    *_turned_rows(),
]

SPACES: Mapping[str, SpaceRow] = {row.name: row for row in _ROWS}


def _of_representation(name: str) -> Floats:
    """The matrix of a representation, from what it makes of unit vectors: it is linear."""
    to_corners = REPRESENTATIONS[name].to_corners
    return np.array([to_corners(row) for row in np.eye(4).tolist()]).T


_CX, _X, _XX = _of_representation("cxcywh"), _of_representation("xyxy"), [0, 2, 1, 3]
_EXCHANGED = [1, 0, 3, 2]

ORDERS: Mapping[str, Order] = {
    order.name: order
    for order in (
        Order("xyxy", 0.0, _X),
        Order("yxyx", 0.5, _of_representation("yxyx")),
        Order("xywh", 0.5, _of_representation("xywh")),
        Order("cxcywh", 1.0, _CX),
        Order("yxhw", 1.0, _of_representation("yxhw")),
        Order("cycxhw", 3.0, _CX[:, _EXCHANGED]),
        Order("xxyy", 3.0, _X[:, _XX]),
        Order("yyxx", 3.0, _of_representation("yxyx")[:, _XX]),
    )
}

_EVERYWHERE = ("xyxy", "yxyx", "xywh", "cxcywh", "yxhw")


def conventions(first: Convention | None = None) -> list[Convention]:
    """Every convention: usual orders of every space, rare orders of spaces that are not rare.

    Args:
        first: the declared one; added where it is none of the rows.

    >>> len(conventions()), conventions()[0].name
    (333, 'grid1000/xyxy')
    """
    found = [Convention(row, ORDERS[name]) for row in _ROWS for name in _EVERYWHERE]
    rare = [order for order in ORDERS.values() if order.name not in _EVERYWHERE]
    found += [Convention(row, order) for row in _COMMON for order in rare]
    if first is not None and first.name not in {one.name for one in found}:
        others = [Convention(first.space, ORDERS[name]) for name in _EVERYWHERE]
        found += [first, *(one for one in others if one.name != first.name)]
    return found


def row_of(space: Space) -> SpaceRow:
    """The row of a space that a run declares; one of its own where it has settings of its own.

    >>> row_of(Space("grid1000")).name
    'grid1000'
    >>> row_of(Space("smart_resize", min_pixels=100, max_pixels=200)).name
    'smart_resize min_pixels=100 max_pixels=200'
    """
    for row in _ROWS:
        if row.space == space:
            return row
    settings = [f"{key}={value}" for key, value in space.as_dict().items() if key != "kind"]
    name = " ".join([space.kind, *settings])
    return SpaceRow(name, name, USUAL, of_space(space), space)
