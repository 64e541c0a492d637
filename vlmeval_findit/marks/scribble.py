"""Scribbles: a short curve through the middle of each connected part of a mask."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import cv2
import numpy as np
import numpy.typing as npt

from .region import MaskArray
from .shapes import Canvas, Colour, Points

SMALLEST = 50  # Pixels; smaller parts get no scribble
ENOUGH = 10  # Pixels; a part is eroded until at most so many are left


def scribbles(mask: MaskArray) -> Iterator[Points]:
    """Yield the line (n x 2) of each large 8-connected part; empty if its skeleton is one pixel."""
    # A margin as wide as the largest kernel keeps erosion the same as on the whole image.
    room = _kernel_side(int(np.count_nonzero(mask)))
    x, y, w, h = cv2.boundingRect(mask)
    left = max(0, x - room)
    top = max(0, y - room)
    window = mask[top : y + h + room, left : x + w + room]
    count, parts, stats, _ = cv2.connectedComponentsWithStats(window, connectivity=8)
    for part in range(1, count):
        area = int(stats[part, cv2.CC_STAT_AREA])
        if area >= SMALLEST:
            eroded = _eroded((parts == part).astype(np.uint8), _kernel_side(area))
            skeleton = np.argwhere(skeleton_of(eroded))
            yield skeleton_curve((skeleton[:, ::-1] + (left, top)).astype(np.int32))


def _kernel_side(area: int) -> int:
    return max(1, int(0.1 * math.sqrt(area)))


def _eroded(part: MaskArray, side: int) -> MaskArray:
    """Erode a part repeatedly; return the part itself if nothing is left."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side)).astype(np.float32)
    left = part
    while np.count_nonzero(left) > ENOUGH:
        # As cv2.erode, but its time hardly grows with the kernel: pixels with no background under
        # the kernel stay. Beyond the image's edge there is no background.
        outside = cv2.filter2D(1 - left, cv2.CV_32F, kernel, borderType=cv2.BORDER_CONSTANT)
        less = (outside < 0.5).astype(np.uint8)
        if np.array_equal(less, left):
            break
        left = less
    return left if left.any() else part


def scribble(canvas: Canvas, line: Points, colour: Colour, width: int) -> None:
    """Draw a stroke; nothing without points."""
    cv2.polylines(canvas, [line], False, colour, width)


# --- the curve: a parabola fitted exactly, the same on every machine ------------------------------

SAMPLES = 100  # Points on a curve


Numbers = npt.NDArray[np.int32]


def skeleton_curve(skeleton: Points) -> Points:
    """Sample the parabola that fits a skeleton's pixels (n x 2) best along its longer side.

    It is empty for one pixel.
    """
    if len(skeleton) < 2:
        return np.empty((0, 2), dtype=np.int32)
    x, y = skeleton.T
    if np.ptp(y) > np.ptp(x):
        ys, xs = _parabola(y, x)
    else:
        xs, ys = _parabola(x, y)
    return np.column_stack((xs, ys))


def _parabola(along: Numbers, across: Numbers) -> tuple[Numbers, Numbers]:
    """Sample the parabola through pixels, from their first place along an axis to their last."""
    places = np.linspace(along.min(), along.max(), SAMPLES).astype(np.int32)
    parabola = fitted(along.tolist(), across.tolist())
    values = [int(parabola(place)) for place in places.tolist()]
    return places, np.array(values, dtype=np.int32)


def fitted(xs: Sequence[int], ys: Sequence[int]) -> Callable[[int], Fraction]:
    """Fit a parabola by exact least squares; with two distinct x a line, with one the mean.

    >>> [str(fitted([0, 1, 2, 2], [0, 1, 3, 5])(x)) for x in (0, 1, 2)]
    ['0', '1', '4']
    """
    terms = min(3, len(set(xs)))
    origin = min(xs)  # Keeps the numbers small
    near = [x - origin for x in xs]
    powers = [sum(x**n for x in near) for n in range(2 * terms - 1)]
    equations: list[list[Fraction]] = []
    for row in range(terms):
        right_side = sum(y * x**row for x, y in zip(near, ys, strict=True))
        equations.append([Fraction(n) for n in (*powers[row : row + terms], right_side)])
    coefficients = _solved(equations)

    def parabola(x: int) -> Fraction:
        return sum((c * (x - origin) ** n for n, c in enumerate(coefficients)), Fraction(0))

    return parabola


def _solved(rows: list[list[Fraction]]) -> list[Fraction]:
    """Solve linear equations, a row of coefficients and right side each; pivots are never 0."""
    for place, pivot in enumerate(rows):
        pivot[:] = [value / pivot[place] for value in pivot]
        for row in rows:
            if row is not pivot:
                row[:] = [a - row[place] * b for a, b in zip(row, pivot, strict=True)]
    return [row[-1] for row in rows]


# --- thinning -------------------------------------------------------------------------------------

Flags = npt.NDArray[np.bool_]


def skeleton_of(mask: MaskArray) -> MaskArray:
    """Thin a mask (height x width, 0 or 1) to its skeleton, after Zhang and Suen (1984).

    >>> skeleton_of(np.ones((3, 7), dtype=np.uint8))[1].tolist()
    [0, 1, 1, 1, 1, 0, 0]
    """
    padded = np.pad(mask, 1)
    edge = np.flatnonzero(padded - cv2.erode(padded, np.ones((3, 3), dtype=np.uint8)))
    inside = padded.astype(bool).ravel()
    width = padded.shape[1]
    # The paper's p2 to p9: from above the pixel, clockwise.
    around = np.array([-width, 1 - width, 1, 1 + width, width, width - 1, -1, -1 - width])
    step = 0
    idle_steps = 0
    while idle_steps < 2:
        near = np.packbits(inside[edge[:, None] + around], axis=1).ravel()
        gone = edge[_DELETED[step][near]]
        inside[gone] = False
        # Only edge pixels can be deleted, and the neighbours of deleted ones are at the edge now.
        edge = np.unique(np.concatenate([edge, (gone[:, None] + around).ravel()]))
        edge = edge[inside[edge]]
        idle_steps = 0 if len(gone) else idle_steps + 1
        step = 1 - step
    return inside.reshape(padded.shape)[1:-1, 1:-1].astype(np.uint8)


def _deleted(near: Flags, step: int) -> Flags:
    """Return which of n pixels a step deletes, by their neighbours (n x 8)."""
    neighbours = near.sum(axis=1)
    entries = (~near & np.roll(near, -1, axis=1)).sum(axis=1)
    above, right, below, left = near[:, ::2].T
    if step == 0:
        open_sides = ~(above & right & below) & ~(right & below & left)
    else:
        open_sides = ~(above & right & left) & ~(above & below & left)
    result: Flags = (neighbours >= 2) & (neighbours <= 6) & (entries == 1) & open_sides
    return result


_NEIGHBOURS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(bool)

# By step: whether a pixel is deleted, by its neighbours packed into a byte
_DELETED = [_deleted(_NEIGHBOURS, step) for step in (0, 1)]
