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
    # With room for every kernel: only at the picture's own edge does erosion see no outside.
    room = _kernel_side(int(np.count_nonzero(mask)))
    x, y, w, h = cv2.boundingRect(mask)
    left, top = max(0, x - room), max(0, y - room)
    window = mask[top : y + h + room, left : x + w + room]
    count, parts, stats, _ = cv2.connectedComponentsWithStats(window, connectivity=8)
    for part in range(1, count):
        area = int(stats[part, cv2.CC_STAT_AREA])
        if area >= SMALLEST:
            eroded = _eroded((parts == part).astype(np.uint8), _kernel_side(area))
            skeleton = np.argwhere(thinned(eroded))
            yield curve((skeleton[:, ::-1] + (left, top)).astype(np.int32), fit)


def _kernel_side(area: int) -> int:
    return max(1, int(0.1 * math.sqrt(area)))


def _eroded(part: Mask, side: int) -> Mask:
    """What is left of a part as its edge is taken away again and again; all if nothing is."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side)).astype(np.float32)
    left = part
    while np.count_nonzero(left) > ENOUGH:
        # What cv2.erode finds, but in time that hardly grows with the kernel: how much outside
        # lies under it.  Beyond the picture is no outside.
        outside = cv2.filter2D(1 - left, cv2.CV_32F, kernel, borderType=cv2.BORDER_CONSTANT)
        less = (outside < 0.5).astype(np.uint8)
        if np.array_equal(less, left):
            break
        left = less
    return left if left.any() else part


def scribble(canvas: Canvas, line: Points, colour: Colour, width: int) -> None:
    """One stroke; none without points."""
    cv2.polylines(canvas, [line], False, colour, width)
