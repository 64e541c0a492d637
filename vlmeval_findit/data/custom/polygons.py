"""Fill COCO's polygons: as run lengths at once, without the pixels of a whole image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.image_files import Size
from ...marks.region import PackedMask, packed_runs

_Places = NDArray[np.int64]


def filled(polygons: Sequence[Sequence[float]], size: Size) -> PackedMask | None:
    """Return the mask of polygons [x1, y1, x2, y2, …] in pixels; None where no pixel is inside.

    A pixel is inside if an odd number of edges lies above its centre. ``size`` is (width, height).

    >>> mask = filled([[1, 0, 3, 0, 3, 2, 1, 2]], (4, 3))
    >>> mask.mask().tolist()
    [[0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    """
    width, height = size
    several = [_borders(np.array(polygon, float).reshape(-1, 2), size) for polygon in polygons]
    places = several[0] if len(several) == 1 else _joined(several)
    if not len(places):
        return None
    if places[-1] == width * height:
        places = places[:-1]  # There is no run behind the last pixel
    runs = np.diff(places, prepend=0, append=width * height)
    return PackedMask(height, width, packed_runs(runs))


def _borders(corners: NDArray[np.float64], size: Size) -> _Places:
    """Return where a polygon begins and ends, in turn, by columns from the upper left pixel."""
    width, height = size
    x1, y1 = corners.T
    x2, y2 = np.roll(x1, -1), np.roll(y1, -1)
    first, last = max(0, int(np.floor(x1.min()))), min(width, int(np.ceil(x1.max())))
    middles = np.arange(first, last) + 0.5
    crosses = (x1[:, None] <= middles) != (x2[:, None] <= middles)
    edge, column = np.nonzero(crosses)
    slope = (y2 - y1)[edge] / (x2 - x1)[edge]
    at = y1[edge] + (middles[column] - x1[edge]) * slope
    row = np.ceil(at - 0.5).clip(0, height).astype(np.int64)
    places, counts = np.unique((column + first) * height + row, return_counts=True)
    # Two edges that cross at one place change nothing.
    is_odd = counts % 2 == 1
    odd: _Places = places[is_odd]
    return odd


def _joined(several: Sequence[_Places]) -> _Places:
    """Return the borders of what lies inside at least one of several masks."""
    places = np.concatenate(several)
    steps = np.concatenate([np.resize([1, -1], len(each)) for each in several])
    # Where one ends and the next begins there is no border: beginnings first.
    order = np.lexsort((-steps, places))
    places, inside = places[order], np.cumsum(steps[order])
    begins = (inside == 1) & (steps[order] == 1)
    borders: _Places = places[begins | (inside == 0)]
    return borders
