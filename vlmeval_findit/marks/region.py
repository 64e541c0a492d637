"""Where a mark belongs: a box, and the outlines of what lies in it if they are known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .rle import RLE, rle_of

# x, y of one vertex after the other, in pixels; the last joins the first
Polygon = tuple[float, ...]

FARTHEST = 100_000  # no picture is as wide; OpenCV counts in 32 bits


class RegionError(ValueError):
    """Numbers that are no region of a picture."""


@dataclass(frozen=True, slots=True)
class Region:
    """What a mark points at, in pixels of its image.

    >>> Region((10, 20, 30, 40), ((10, 20, 40, 20, 40, 60),)).box
    (10, 20, 30, 40)

    Raises:
        RegionError: a number is missing, not finite or no picture's, or a side is negative.
    """

    box: tuple[float, float, float, float]  # (x, y, w, h) from the upper left corner
    # Polygons, or one RLE of the whole image; (): only the box is known
    outlines: tuple[Polygon, ...] | RLE = ()

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

    @classmethod
    def from_coco(cls, bbox: Any, segmentation: Any = None) -> Region:
        """Make a region of COCO's ``bbox`` and ``segmentation``: polygons, an RLE, or nothing.

        >>> Region.from_coco([0, 0, 2, 1], {"size": [1, 3], "counts": [0, 2, 1]}).outlines
        RLE(height=1, width=3, counts=(0, 2, 1))

        Raises:
            RegionError: it is none of these.
            RLEError: the RLE cannot be read.
        """
        try:
            x, y, w, h = bbox
            box = (float(x), float(y), float(w), float(h))
            if isinstance(segmentation, Mapping):
                return cls(box, rle_of(segmentation))
            polygons = tuple(tuple(float(v) for v in polygon) for polygon in segmentation or ())
        except TypeError as error:
            raise RegionError(f"no box or segmentation of COCO: {error}") from None
        return cls(box, tuple(polygon for polygon in polygons if polygon))


def _check(numbers: tuple[float, ...], what: str) -> None:
    for number in numbers:
        if not math.isfinite(number) or abs(number) > FARTHEST:
            raise RegionError(f"{what} of a picture has no coordinate {number}")
