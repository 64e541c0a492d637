"""The curve of a scribble: a parabola fitted without rounding, the same on every machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum
from fractions import Fraction

import numpy as np

from .geometry import Points

SAMPLES = 100
"""Points on a curve."""


class Fit(Enum):
    """Which coordinate of a scribble is a parabola of the other.

    The released code always takes y of x: upright parts get a speck.  Where its parabola runs along
    whole numbers, as on a level skeleton, the last bits of its solver decide between a row and the
    one above, and they differ from processor to processor.  Ours is exact, the same everywhere.
    """

    ALONG_LONGER_SIDE = "along the longer side"
    AS_PUBLISHED = "as published"
    AS_PUBLISHED_ABOVE = "as published, whole numbers a row higher"


def curve(skeleton: Points, fit: Fit) -> Points:
    """Points on the parabola that fits the pixels of a skeleton (n x 2) best; none on one pixel."""
    if len(skeleton) < 2:
        return np.empty((0, 2), dtype=np.int32)
    spread = np.ptp(skeleton, axis=0)
    upright = fit is Fit.ALONG_LONGER_SIDE and spread[1] > spread[0]
    along, across = skeleton.T[::-1] if upright else skeleton.T
    steps = np.linspace(along.min(), along.max(), SAMPLES).astype(np.int32)
    parabola = fitted(along.tolist(), across.tolist())
    heights = [_truncated(parabola(step), fit) for step in steps.tolist()]
    line = steps, np.array(heights, dtype=np.int32)
    return np.column_stack(line[::-1] if upright else line)


def _truncated(value: Fraction, fit: Fit) -> int:
    if fit is Fit.AS_PUBLISHED_ABOVE and value > 0:
        return math.ceil(value) - 1
    return int(value)


def fitted(xs: Sequence[int], ys: Sequence[int]) -> Callable[[int], Fraction]:
    """The parabola through whole numbers with the least squared distances in y, as a function.

    Through fewer than three different x it is the line, through one the mean.

    >>> [str(fitted([0, 1, 2, 2], [0, 1, 3, 5])(x)) for x in (0, 1, 2)]
    ['0', '1', '4']
    """
    terms = min(3, len(set(xs)))
    # From the first x on: smaller numbers.
    origin = min(xs)
    near = [x - origin for x in xs]
    powers = [sum(x**n for x in near) for n in range(2 * terms - 1)]
    rows = [
        [Fraction(powers[row + column]) for column in range(terms)]
        + [Fraction(sum(y * x**row for x, y in zip(near, ys, strict=True)))]
        for row in range(terms)
    ]
    parts = _solved(rows)
    return lambda x: sum((part * (x - origin) ** n for n, part in enumerate(parts)), Fraction(0))


def _solved(rows: list[list[Fraction]]) -> list[Fraction]:
    """The unknowns of linear equations: coefficients and right side a row, diagonal never 0."""
    for place, pivot in enumerate(rows):
        pivot[:] = [value / pivot[place] for value in pivot]
        for row in rows:
            if row is not pivot:
                row[:] = [a - row[place] * b for a, b in zip(row, pivot, strict=True)]
    return [row[-1] for row in rows]
