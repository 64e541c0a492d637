"""Regions in whole pixels, as everything that is drawn begins: truncated, never rounded."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .region import Polygon

Canvas = npt.NDArray[np.uint8]
"""height x width x 3, RGB; or height x width, where pixels under a mark are collected."""
Colour = tuple[int, ...]
"""As many numbers as the canvas has channels."""
Points = npt.NDArray[np.int32]
"""n x 2: x, y."""

Point = tuple[int, int]


class PixelBox(NamedTuple):
    """A box in whole pixels."""

    x: int
    y: int
    w: int
    h: int

    @property
    def centre(self) -> Point:
        return self.x + self.w // 2, self.y + self.h // 2

    @property
    def far(self) -> Point:
        """The corner opposite to (x, y)."""
        return self.x + self.w, self.y + self.h

    @property
    def corners(self) -> tuple[Point, Point, Point, Point]:
        """Clockwise from (x, y)."""
        x2, y2 = self.far
        return (self.x, self.y), (x2, self.y), (x2, y2), (self.x, y2)


def pixel_box(box: tuple[float, ...]) -> PixelBox:
    """Truncated towards zero, x, y, w and h each.

    >>> pixel_box((-0.5, 2.9, 10.9, 4.0))
    PixelBox(x=0, y=2, w=10, h=4)
    """
    return PixelBox(*(int(value) for value in box))


def pixel_points(polygon: Polygon) -> Points:
    """The vertices of a polygon, truncated towards zero."""
    return np.asarray(polygon, dtype=np.float64).astype(np.int32).reshape(-1, 2)
