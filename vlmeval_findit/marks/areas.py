"""Marks that follow outlines: masks and contours.  Hard edges; each draws into its canvas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np

from .geometry import Canvas, Colour, PixelBox, Points, pixel_points
from .loose import loosened
from .region import Polygon
from .rle import RLE, Mask


class Area(NamedTuple):
    """A piece of a mask or contour: its closed outlines, and its pixels where those are given."""

    outlines: Sequence[Points]
    given: Mask | None = None

    def filled(self, size: tuple[int, ...]) -> Mask:
        """height x width, 1 inside the outlines and on them."""
        if self.given is not None:
            return self.given
        mask = np.zeros(size, dtype=np.uint8)
        cv2.fillPoly(mask, self.outlines, 1)
        return mask


def of_polygons(polygons: Sequence[Polygon]) -> list[Area]:
    """One area a polygon: where they overlap, they are drawn twice."""
    return [Area([pixel_points(polygon)]) for polygon in polygons]


def of_rle(rle: RLE) -> Area:
    """All that an RLE covers, with an outline around each of its parts; holes get none."""
    mask = rle.mask()
    return Area(traced(mask), mask)


def traced(mask: Mask) -> list[Points]:
    """The outline (n x 2) of every part of a mask, its first vertex once more at the end."""
    found, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    return [_ring(outline.reshape(-1, 2)) for outline in found]


def of_box(box: PixelBox) -> Area:
    """The box as an area, for want of an outline."""
    return Area([_ring(np.array(box.corners, dtype=np.int32))])


def _ring(outline: Points) -> Points:
    # Loose contours give up the last vertex.
    return np.vstack([outline, outline[:1]])


def outlined_mask(canvas: Canvas, area: Area, colour: Colour, width: int) -> None:
    """A stroke around it, then the filling over both."""
    tight_contour(canvas, area, colour, width)
    _blend(canvas, area, colour)


def plain_mask(canvas: Canvas, area: Area, colour: Colour, width: int) -> None:
    """The filling alone; opaque where the pixels themselves are given."""
    if area.given is not None:
        canvas[area.given.view(np.bool_)] = colour
    else:
        _blend(canvas, area, colour)


def _blend(canvas: Canvas, area: Area, colour: Colour) -> None:
    """Half of a lighter tint over half of what has been drawn so far; halves to the even number."""
    inside = area.filled(canvas.shape[:2]).view(np.bool_)
    values = np.arange(256, dtype=np.uint16)
    for place, part in enumerate(colour):
        total = values + (part + (255 - part) // 2)
        half = total >> 1
        blended = (half + (total & half & 1)).astype(np.uint8)
        channel = canvas[..., place]
        channel[inside] = blended[channel[inside]]


def under_mask(canvas: Canvas, area: Area, colour: Colour, width: int) -> None:
    """What contrast looks at: the stroke, or the pixels themselves where they are given."""
    if area.given is not None:
        canvas[area.given.view(np.bool_)] = colour
    else:
        tight_contour(canvas, area, colour, width)


def tight_contour(canvas: Canvas, area: Area, colour: Colour, width: int) -> None:
    """The outline itself."""
    _closed(canvas, area.outlines, colour, width)


def loose_contour(canvas: Canvas, area: Area, colour: Colour, width: int) -> None:
    """A smooth line at some distance around it."""
    size = canvas.shape[1], canvas.shape[0]
    _closed(canvas, [loosened(one, size) for one in area.outlines], colour, width)


def _closed(canvas: Canvas, outlines: Sequence[Points], colour: Colour, width: int) -> None:
    cv2.polylines(canvas, outlines, True, colour, width)
