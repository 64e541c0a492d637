"""Frames of numbers, orders of numbers, and the conventions that a deployment may answer in.

A convention is a row of :data:`SPACES` and a row of :data:`ORDERS`. Rare conventions cost
more nats before they are believed. The rows are faults that users of runners and providers
reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..boxes import REPRESENTATIONS, Space, reply_extent

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


# --- frames: affine maps per axis from shares of the image (0 left or top, 1) to numbers ----------


# From (2, n) widths and heights of images in pixels to their frame
CoordinateMapOf = Callable[[Floats], "CoordinateMap"]


class CoordinateMap(NamedTuple):
    """u = scale[0] * x + offset[0], v = scale[1] * y + offset[1] for n images."""

    scale: Floats  # (2, n) the size that numbers refer to; negative: mirrored
    offset: Floats  # (2, n)
    turned: bool = False  # u follows y and v follows x

    def of(self, rows: NDArray[np.intp]) -> CoordinateMap:
        return CoordinateMap(self.scale[:, rows], self.offset[:, rows], self.turned)

    def distorted(self, distortion: Distortion) -> CoordinateMap:
        if distortion is NO_DISTORTION:
            return self
        axes = [1, 0] if self.turned else [0, 1]
        scale = distortion.scale[axes, None]
        start = distortion.at_origin[axes, None]
        return CoordinateMap(self.scale * scale, self.offset + self.scale * start, self.turned)


SMALL_SCALE = 0.05  # Deviations of scale that weak models have, too
SMALL_OFFSET = 0.015  # Offsets that they have, too, in shares of the image


@dataclass(frozen=True)
class Distortion:
    """A map of a point c to ½ + offset + scale (c − ½), by axis in shares of the image; all (2,).

    ``shift`` and ``size`` are a model's habits in any frame.
    """

    scale: Floats
    offset: Floats  # of the middle
    shift: Floats  # of boxes, in shares of the object's side
    size: Floats  # logarithm of the ratio of sides to the object's
    scale_error: Floats  # standard errors, clustered by image
    offset_error: Floats

    @property
    def at_origin(self) -> Floats:
        """Return the offset of the corner (0, 0)."""
        corner: Floats = 0.5 + self.offset - self.scale / 2
        return corner

    @property
    def at_origin_error(self) -> Floats:
        # The offset of the middle and the scale are nearly independent.
        error: Floats = np.hypot(self.offset_error, self.scale_error / 2)
        return error

    @property
    def is_small(self) -> bool:
        """Return whether it is a few per cent, or weak models' drift to the middle."""
        offset = np.abs(self.offset)
        either = np.minimum(offset, np.abs(self.at_origin))
        if (np.abs(self.scale - 1) < SMALL_SCALE).all() and (either < SMALL_OFFSET).all():
            return True
        # The offset is only known up to two standard errors.
        middle = np.maximum(0.01, 0.15 * (1 - self.scale)) + 2 * np.nan_to_num(self.offset_error)
        return bool(((self.scale > 0.75) & (self.scale < 1) & (offset < middle)).all())


def scaling_of(scale: float) -> Distortion:
    """Scale both axes about the corner (0, 0)."""
    both = np.full(2, scale)
    none = np.zeros(2)
    nan = np.full(2, np.nan)
    return Distortion(both, (both - 1) / 2, none, none, nan, nan)


NO_DISTORTION = scaling_of(1.0)  # Boxes lie where they were meant: scale 1, no offset


def of_space(space: Space) -> CoordinateMapOf:
    """Make the frame of a coordinate space of the score."""

    def frame(sizes: Floats) -> CoordinateMap:
        result = [reply_extent(space, int(w), int(h)) for w, h in sizes.T.tolist()]
        both = np.array(result, float).reshape(-1, 4).T
        return CoordinateMap(both[:2], both[2:])

    return frame


def cropped(side: float) -> CoordinateMapOf:
    """Make the frame of the square in the image's middle, with sides of ``side``."""

    def frame(sizes: Floats) -> CoordinateMap:
        edge = sizes.min(0)
        return CoordinateMap(sizes * side / edge, (edge - sizes) / 2 * side / edge)

    return frame


def seen_turned(kind: str, far: tuple[bool, bool], turned: bool) -> CoordinateMapOf:
    """Make the frame of an image that is mirrored, or turned by 90 degrees.

    ``far`` tells for u and v whether they count from the far edge: both at 180 degrees; u, from the
    bottom, if turned clockwise.
    """

    size = of_space(Space(kind))

    def frame(sizes: Floats) -> CoordinateMap:
        scale = size(sizes[::-1] if turned else sizes).scale
        back = np.array(far)[:, None]
        return CoordinateMap(np.where(back, -scale, scale), np.where(back, scale, 0), turned)

    return frame


# --- conventions ----------------------------------------------------------------------------------


class SpaceRow(NamedTuple):
    """What numbers refer to."""

    name: str
    description: str
    cost: float  # nats
    map_of: CoordinateMapOf
    space: Space | None = None  # as the score has it
    one_of_many: bool = False  # a row of this kind lies near any scale

    @property
    def is_upright(self) -> bool:
        """Return whether numbers count from the left and the top, as in every space of a score."""
        a_map = self.map_of(np.array([[640.0], [480.0]]))
        return not a_map.turned and bool((a_map.scale > 0).all())


class Convention(NamedTuple):
    """A space and an order."""

    space: SpaceRow
    order: Order

    @property
    def name(self) -> str:
        return f"{self.space.name}/{self.order.name}"

    @property
    def description(self) -> str:
        remark = f" ({self.order.remark})" if self.order.remark else ""
        return f"{self.space.description}, {self.order.name}{remark}"

    @property
    def cost(self) -> float:
        return self.space.cost + self.order.cost


USUAL, KNOWN, RARE, EXOTIC = 0.0, 1.0, 2.5, 4.0  # nats


def _space(name: str, description: str, cost: float, space: Space | None = None) -> SpaceRow:
    space = space or Space(name)
    return SpaceRow(name, description, cost, of_space(space), space)


def _letterbox(side: int, description: str, cost: float = RARE) -> SpaceRow:
    return _space(f"letterbox{side}", description, cost, Space("letterbox", side=side))


def _within(
    low: int, high: int, cost: float = KNOWN, two_step: bool = False, factor: int | None = None
) -> SpaceRow:
    name = f"smart{'2' if two_step else ''}{factor or ''}_{low}_{high}"
    space = Space("smart_resize", None, low, high, two_step, factor)
    return _space(name, _resized(space), cost, space)


def _resized(space: Space) -> str:
    """Describe a space of kind ``smart_resize``."""
    settings = f"{space.min_pixels} to {space.max_pixels}"
    if space.factor:
        settings += f", factor {space.factor}"
    if space.two_step:
        settings += ", in two steps"
    return f"pixels after smart_resize ({settings})"


# From (2, n) sizes of images to the sizes that numbers refer to, from the same corner (0, 0)
SizeOf = Callable[[Floats], Floats]


def _sized(name: str, description: str, cost: float, size: SizeOf) -> SpaceRow:
    return SpaceRow(
        name, description, cost, lambda sizes: CoordinateMap(size(sizes), np.zeros_like(sizes))
    )


def _square(side: float) -> SizeOf:
    return lambda sizes: 0 * sizes + side


def _longer(side: float) -> SizeOf:
    return lambda sizes: sizes * (side / sizes.max(0))


def _at_most(side: float) -> SizeOf:
    return lambda sizes: sizes * np.minimum(1, side / sizes.max(0))


def _tiles(sizes: Floats) -> Floats:
    # OpenAI's older sizing: within 2048 x 2048 pixels, then a shorter side of at most 768.
    within = sizes * np.minimum(1, 2048 / sizes.max(0))
    sent: Floats = within * np.minimum(1, 768 / within.min(0))
    return sent


_SMART = of_space(Space("smart_resize", min_pixels=200704, max_pixels=1605632))
_BOUNDS = "pixels after smart_resize (200704 to 1605632)"

# Spaces that are tried in rare orders, too
_COMMON = [
    _space("grid1000", "thousandths of width and height", USUAL),
    _space("unit", "fractions of width and height", USUAL),
    _space("pixels", "pixels of the image", USUAL),
    _within(200704, 1605632, USUAL),
    _within(3136, 12845056, USUAL),
    _space("percent", "percent of width and height", KNOWN),
    _space("openai_high", "pixels after OpenAI's 'high' resize", KNOWN),
    _space("claude_standard", "pixels after Anthropic's resize to 1568", KNOWN),
    _space("claude_highres", "pixels after Anthropic's resize to 2576", KNOWN),
    _letterbox(1000, "thousandths of the image padded to a square", KNOWN),
    _sized("longer1000", "thousandths of the longer side", KNOWN, _longer(1000)),
]

_SWAPPED = "width and height exchanged"

# Numbers scaled by mistake, and the size that they then refer to
_MISTAKES: list[tuple[str, str, SizeOf]] = [
    ("twice_grid", "thousandths scaled a second time", lambda s: 1e6 / s),
    ("pixels_times_size", "pixels scaled as if they were thousandths", lambda s: s**2 / 1000),
    ("smart_twice", f"{_BOUNDS}, scaled twice", lambda s: _SMART(s).scale ** 2 / s),
    ("smart_wrong_way", f"{_BOUNDS}, scaled the wrong way", lambda s: s**2 / _SMART(s).scale),
    ("grid_sizes_swapped", f"thousandths scaled with {_SWAPPED}", lambda s: 1e3 * s / s[::-1]),
    ("smart_sizes_swapped", f"{_BOUNDS}, {_SWAPPED}", lambda s: _SMART(s).scale[::-1]),
]

# Which axes count from the far edge, and whether x and y are exchanged
_TURNS = [
    ("rot90cw", "turned clockwise", ((True, False), True)),
    ("rot90ccw", "turned anticlockwise", ((False, True), True)),
    ("rot180", "turned by 180 degrees", ((True, True), False)),
    ("flipy", "counted from the bottom", ((False, True), False)),
    ("flipx", "mirrored left to right", ((True, False), False)),
]

# Units of one side; an entry may have another for each side
_OF_A_SIDE: list[tuple[str, str, SizeOf]] = [
    ("unit", "fractions", _square(1)),
    ("percent", "percent", _square(100)),
    ("grid1000", "thousandths", _square(1000)),
    ("pixels", "pixels", lambda sizes: sizes),
]


def _mixed() -> Iterator[SpaceRow]:
    """Yield spaces with one unit for x and another for y."""
    for x_name, x_words, of_x in _OF_A_SIDE:
        for y_name, y_words, of_y in _OF_A_SIDE:
            if x_name != y_name:
                name = f"x_{x_name}_y_{y_name}"
                words = f"{x_words} for x, {y_words} for y"
                yield _sized(name, words, EXOTIC, _by_side(of_x, of_y))


def _by_side(of_x: SizeOf, of_y: SizeOf) -> SizeOf:
    return lambda sizes: np.stack([of_x(sizes)[0], of_y(sizes)[1]])


# Inputs of vision encoders and detectors. None lies within 4 % of 1000, where it could not be told
# from thousandths that a weak model draws to a corner; 1024 is a separate row.
_SQUARES = (
    224,
    256,
    288,
    320,
    336,
    384,
    416,
    448,
    490,
    512,
    560,
    600,
    640,
    672,
    728,
    768,
    800,
    840,
    896,
    1120,
    1152,
    1280,
    1344,
)


def _input(side: int) -> SpaceRow:
    words = f"pixels of a {side} x {side} input"
    return _sized(f"square{side}", words, RARE, _square(side))._replace(one_of_many=True)


_ROWS = [
    *_COMMON,
    *(_within(low, 1003520) for low in (3136, 200704)),
    _within(401408, 1605632),
    _within(3136, 200704),
    _within(401408, 3211264),
    _within(200704, 1605632, two_step=True),
    _within(65536, 16777216, factor=32),
    # FindIt-Nano-px
    _within(2304, 28224, RARE, factor=24),
    _sized("grid1024", "1024ths of width and height", RARE, _square(1024)),
    _space("file_pixels", "pixels of the image file, however large", RARE),
    _sized("openai_tiles768", "pixels after OpenAI's resize to 768", RARE, _tiles),
    *map(_input, _SQUARES),
    *(
        _sized(f"limit{n}", f"pixels after shrinking to {n}", RARE, _at_most(n))
        for n in (512, 640, 768, 1024, 1280, 1568, 2048)
    ),
    _sized("longer1", "fractions of the longer side", RARE, _longer(1)),
    *(
        _sized(f"longer{n}", f"pixels after scaling to {n}", RARE, _longer(n))
        for n in (336, 448, 640, 896, 1024)
    ),
    _letterbox(1, "fractions of the image padded to a square"),
    *(_letterbox(n, f"pixels of the image padded to {n} x {n}") for n in (336, 448)),
    SpaceRow("crop1", "fractions of the square in its middle", RARE, cropped(1)),
    SpaceRow("crop1000", "thousandths of the square in its middle", RARE, cropped(1000)),
    *(_sized(name, description, EXOTIC, size) for name, description, size in _MISTAKES),
    *_mixed(),
    *(
        SpaceRow(f"{kind}_{turn}", f"{units} of the image {what}", EXOTIC, seen_turned(kind, *how))
        for kind, units in (("grid1000", "thousandths"), ("pixels", "pixels"))
        for turn, what, how in _TURNS
    ),
]

# Coordinate spaces that the check tries, by name
SPACES: Mapping[str, SpaceRow] = {row.name: row for row in _ROWS}


def conventions(first: Convention | None = None) -> list[Convention]:
    """List usual orders of all spaces, rare orders of common ones, and ``first`` (declared).

    >>> len(conventions()), conventions()[0].name
    (554, 'grid1000/xyxy')
    """
    result = [Convention(row, order) for row in _ROWS for order in USUAL_ORDERS]
    result += [Convention(row, order) for row in _COMMON for order in RARE_ORDERS]
    if first is not None and first.name not in {each.name for each in result}:
        others = [Convention(first.space, order) for order in USUAL_ORDERS]
        result += [first, *(each for each in others if each.name != first.name)]
    return result


def space_row_of(space: Space) -> SpaceRow:
    """Return the row of a declared space; make it if there is none with these settings.

    >>> space_row_of(Space("grid1000")).name
    'grid1000'
    >>> space_row_of(Space("smart_resize", min_pixels=100, max_pixels=200)).name
    'smart_resize min_pixels=100 max_pixels=200'
    """
    for row in _ROWS:
        if row.space == space:
            return row
    settings = [f"{key}={value}" for key, value in space.as_dict().items() if key != "kind"]
    name = " ".join([space.kind, *settings])
    description = _resized(space) if space.kind == "smart_resize" else name
    return SpaceRow(name, description, USUAL, of_space(space), space)


def describe_convention(name: str) -> str:
    """Return the description of a convention by its name.

    >>> describe_convention("grid1000/xywh")
    'thousandths of width and height, xywh'
    """
    space, _, order = name.rpartition("/")
    description = SPACES[space].description if space in SPACES else space
    return f"{description}, {order}"
