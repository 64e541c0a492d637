"""The region that a mark points at: a box, and the outlines of the object if known."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .rle import RLE

Polygon = tuple[float, ...]  # x1, y1, x2, y2, … in pixels; closed

FARTHEST = 100_000  # larger than any image, and safe for OpenCV's 32-bit coordinates


class RegionError(ValueError):
    """Numbers that are no region of an image."""


@dataclass(frozen=True, slots=True)
class Region:
    """What a mark points at, in pixels of its image.

    >>> Region((10, 20, 30, 40), ((10, 20, 40, 20, 40, 60),)).box
    (10, 20, 30, 40)

    Raises:
        RegionError: a number is missing, not finite or too large, or a side is negative.
    """

    box: tuple[float, float, float, float]  # (x, y, w, h) from the upper left corner
    outlines: tuple[Polygon, ...] | RLE = ()  # polygons, or one RLE of the image; (): unknown

    def __post_init__(self) -> None:
        if len(self.box) != 4:
            raise RegionError(f"a box is x, y, w, h, not {self.box}")
        _check(self.box, "a box")
        if min(self.box[2:]) < 0:
            raise RegionError(f"a box has no negative side: {self.box}")
        if isinstance(self.outlines, RLE):
            return
        for polygon in self.outlines:
            if len(polygon) % 2 or not polygon:
                raise RegionError(f"a polygon is pairs of x and y, not {len(polygon)} numbers")
            _check(polygon, "a polygon")


def _check(numbers: tuple[float, ...], what: str) -> None:
    for number in numbers:
        if not math.isfinite(number) or abs(number) > FARTHEST:
            raise RegionError(f"{what} of a picture has no coordinate {number}")
