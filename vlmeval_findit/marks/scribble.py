"""Scribbles: a short curve through the middle of every part of an area."""

from __future__ import annotations

import math
from collections.abc import Iterator

import cv2
import numpy as np

from .geometry import Canvas, Colour, Points
from .parabola import Fit, curve
from .rle import Mask
from .thinning import thinned

SMALLEST = 50
"""A part of fewer pixels gets no scribble."""
ENOUGH = 10
"""A part is eroded until it has no more pixels than this, or erosion takes none away."""


def scribbles(mask: Mask, fit: Fit) -> Iterator[Points]:
    """The line (n x 2) for each 8-connected part of a mask that is large enough, from the top.

    A part whose skeleton is one pixel has a line without points.
    """
    count, parts, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    for part in range(1, count):
        x, y, w, h, area = (int(value) for value in stats[part])
        if area < SMALLEST:
            continue
        side = max(1, int(0.1 * math.sqrt(area)))
        # With room for the kernel: only at the picture's own edge does erosion see no outside.
        left, top = max(0, x - side), max(0, y - side)
        whole = (parts[top : y + h + side, left : x + w + side] == part).astype(np.uint8)
        skeleton = np.argwhere(thinned(_eroded(whole, side)))
        yield curve((skeleton[:, ::-1] + (left, top)).astype(np.int32), fit)


def _eroded(part: Mask, side: int) -> Mask:
    """What is left of a part as its edge is taken away again and again; all if nothing is."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))
    left = part
    while np.count_nonzero(left) > ENOUGH:
        less = cv2.erode(left, kernel).astype(np.uint8, copy=False)
        if np.array_equal(less, left):
            break
        left = less
    return left if left.any() else part


def scribble(canvas: Canvas, line: Points, colour: Colour, width: int) -> None:
    """One stroke; none without points."""
    cv2.polylines(canvas, [line], False, colour, width)
