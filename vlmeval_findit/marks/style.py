"""Styles of marks (shape, variant, line width, colour), their names, and contrasting colours."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..core import suggestion

RGB = tuple[int, int, int]


class StyleError(ValueError):
    """An unknown variant, or an invalid width."""


class Shape(Enum):
    """The eight shapes. The release calls our contour ``mask`` and our mask ``fill_contour``."""

    BOX = "box"
    OVAL = "oval"
    ARROW = "arrow"
    MASK = "mask"
    CONTOUR = "contour"
    TAG = "tag"
    POINT = "point"
    SCRIBBLE = "scribble"


class MarkVariant(NamedTuple):
    """A variant of a shape."""

    words: str  # Its name in questions
    has_width: bool = True  # Whether the line width shows


ONLY_VARIANT = ""  # The single variant of a shape

# All variants of a shape; those of a box differ in its corners
STYLES: Mapping[Shape, Mapping[str, MarkVariant]] = {
    Shape.BOX: dict.fromkeys(("square", "round", "none"), MarkVariant("box")),
    Shape.OVAL: {ONLY_VARIANT: MarkVariant("oval")},
    Shape.ARROW: dict.fromkeys(("open", "filled"), MarkVariant("arrow")),
    Shape.MASK: {"outlined": MarkVariant("mask"), "plain": MarkVariant("mask", has_width=False)},
    Shape.CONTOUR: dict.fromkeys(("tight", "loose"), MarkVariant("contour")),
    Shape.TAG: {
        **dict.fromkeys(("digit square", "digit round"), MarkVariant("digit tag")),
        **dict.fromkeys(("letter square", "letter round"), MarkVariant("letter tag")),
    },
    Shape.POINT: dict.fromkeys(("round", "square"), MarkVariant("point")),
    Shape.SCRIBBLE: {ONLY_VARIANT: MarkVariant("scribble")},
}

# RGB, 0 to 255, of the colours that a mark may have
COLOURS: Mapping[str, RGB] = {
    "black": (0, 0, 0),
    "red": (255, 0, 0),
    "green": (0, 128, 0),
    "blue": (0, 0, 255),
}

# Chooses from :data:`COLOURS` the colour that differs most from the pixels under the mark
CONTRAST = "contrast"

DEFAULT_WIDTH = 4  # Pixels of a line, if a style names no width


@dataclass(frozen=True, slots=True)
class Style:
    """How a mark is drawn.

    >>> Style(Shape.BOX, "rounded", 4)
    Traceback (most recent call last):
    vlmeval_findit.marks.style.StyleError: unknown variant 'rounded' of box: did you mean round?

    Raises:
        StyleError: an unknown variant, or an invalid width.
    """

    shape: Shape
    variant: str = ONLY_VARIANT
    width: int = DEFAULT_WIDTH  # Of lines, in pixels

    def __post_init__(self) -> None:
        variants = STYLES[self.shape]
        if self.variant not in variants:
            near = suggestion(self.variant, variants)
            raise StyleError(f"unknown variant {self.variant!r} of {self.shape.value}{near}")
        if self.width < 1:
            raise StyleError(f"the width of a line should be 1, 2, 3 … pixels, not {self.width!r}")


def default_style(shape: Shape) -> Style:
    """Return the first variant of a shape, with lines 4 pixels wide.

    >>> default_style(Shape.ARROW)
    Style(shape=<Shape.ARROW: 'arrow'>, variant='open', width=4)
    """
    return Style(shape, next(iter(STYLES[shape])))


def words_of(style: Style, colour: str) -> str:
    """Name a mark as a question does, by the colour that it was drawn in and its shape.

    >>> words_of(Style(Shape.TAG, "digit round"), "green")
    'green digit tag'
    """
    return f"{colour} {STYLES[style.shape][style.variant].words}"


# --- the colour that stands out -------------------------------------------------------------------


def contrasting_colour(under: npt.NDArray[np.uint8], used: Collection[str]) -> str:
    """Return the unused colour farthest (CIE 1976) from the most frequent of n x 3 RGB pixels.

    Black if there are no pixels or every colour is used.

    >>> grey = np.full((9, 3), 128, dtype=np.uint8)
    >>> contrasting_colour(grey, ()), contrasting_colour(grey, ("blue",))
    ('blue', 'red')
    """
    unused = [name for name in COLOURS_IN_ORDER if name not in used]
    if not unused or not len(under):
        return COLOURS_IN_ORDER[0]
    pixel = lab(most_frequent(under))
    distances = [float(np.linalg.norm(pixel - lab(COLOURS[name]))) for name in unused]
    return unused[int(np.argmax(distances))]


# Of equally distant colours the first is chosen.
COLOURS_IN_ORDER = ("black", "blue", "green", "red")


def most_frequent(pixels: npt.NDArray[np.uint8]) -> RGB:
    """Return the most frequent of n x 3 pixels, the first of equals.

    >>> most_frequent(np.array([[9, 9, 9], [1, 1, 1], [1, 1, 1], [9, 9, 9]], dtype=np.uint8))
    (9, 9, 9)
    """
    numbers = pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    _, first, counts = np.unique(numbers, return_index=True, return_counts=True)
    red, green, blue = pixels[first[counts == counts.max()].min()].tolist()
    return red, green, blue


# Linear sRGB to CIE XYZ under D65 (ITU-R BT.709 primaries)
_TO_XYZ = np.array(
    [(0.412453, 0.357580, 0.180423), (0.212671, 0.715160, 0.072169), (0.019334, 0.119193, 0.950227)]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def lab(colour: RGB) -> npt.NDArray[np.float64]:
    """Convert sRGB (0 to 255) to CIE L*, a*, b* under D65.

    >>> lab((255, 0, 0)).round(2).tolist()
    [53.24, 80.09, 67.2]
    """
    value = np.asarray(colour, dtype=np.float64) / 255
    linear = np.where(value > 0.04045, ((value + 0.055) / 1.055) ** 2.4, value / 12.92)
    part = _TO_XYZ @ linear / _WHITE
    x, y, z = np.where(part > 0.008856, np.cbrt(part), 7.787 * part + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
