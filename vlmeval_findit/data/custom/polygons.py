"""Fill COCO's polygons: as run lengths at once, without the pixels of a whole image.

Calls of NumPy cost more than the arithmetic of one polygon, so many are filled together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ...marks import PackedMask, pack_several
from ...storage import Size

_Places = NDArray[np.int64]
_Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outlines:
    """The polygons [x1, y1, x2, y2, …] of an object, in an image of (width, height) pixels."""

    polygons: Sequence[Sequence[float]]
    size: Size


def fill_polygons(polygons: Sequence[Sequence[float]], size: Size) -> PackedMask | None:
    """Return the mask of polygons [x1, y1, x2, y2, …] in pixels; None where no pixel is inside.

    A pixel is inside if an odd number of edges lies above its centre. ``size`` is (width, height).

    >>> mask = fill_polygons([[1, 0, 3, 0, 3, 2, 1, 2]], (4, 3))
    >>> mask.mask().tolist()
    [[0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    """
    return fill_outlines([Outlines(polygons, size)])[0]


def fill_outlines(objects: Sequence[Outlines]) -> list[PackedMask | None]:
    """Return the masks of many objects, as :func:`fill_polygons` returns that of one."""
    polygons = list(chain.from_iterable(each.polygons for each in objects))
    if not polygons:
        return [None for _ in objects]
    counts = [len(each.polygons) for each in objects]
    object_of = np.repeat(np.arange(len(objects)), counts)
    sizes = np.array([each.size for each in objects], np.int64)
    polygon, place = _borders(polygons, sizes[object_of])
    owner = object_of[polygon]
    if max(counts) > 1:
        owner, place = _join_borders(polygon, owner, place)
    pixels = sizes[:, 0] * sizes[:, 1]
    # There is no run behind the last pixel.
    fits_image = place < pixels[owner]
    owner = owner[fits_image]
    place = place[fits_image]
    lengths = np.bincount(owner, minlength=len(objects)) + 1
    packed = pack_several(_runs(place, lengths, pixels), lengths)
    masks: list[PackedMask | None] = []
    for each, text, length in zip(objects, packed, lengths.tolist(), strict=True):
        width, height = each.size
        is_empty = length == 1  # one run, of pixels outside
        masks.append(None if is_empty else PackedMask(height, width, text))
    return masks


def _borders(polygons: Sequence[Sequence[float]], sizes: NDArray[np.int64]) -> tuple[_Places, ...]:
    """Return where polygons begin and end, in turn, by columns from the upper left pixel.

    ``sizes`` are (width, height), by polygon.  Two arrays: the polygon of each border, and its
    place; in this order.
    """
    x1, y1, x2, y2, polygon = _edges(polygons)
    width, height = sizes[polygon].T
    # Columns whose centres an edge lies above or below
    first = np.ceil(np.minimum(x1, x2) - 0.5).clip(0, width).astype(np.int64)
    last = np.ceil(np.maximum(x1, x2) - 0.5).clip(0, width).astype(np.int64)
    columns = last - first
    # Of every crossing of an edge with the middle of a column: the column, and where it is
    column = np.arange(int(columns.sum())) + np.repeat(
        first - np.cumsum(columns) + columns, columns
    )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Upright edges lie in no column.
        slopes = np.nan_to_num((y2 - y1) / (x2 - x1))
    at = column + 0.5
    at -= np.repeat(x1, columns)
    at *= np.repeat(slopes, columns)
    at += np.repeat(y1, columns)
    # Most objects lie in images of one height.
    is_equal = len(height) > 0 and (height == height[0]).all()
    rows = height[0] if is_equal else np.repeat(height, columns)
    at -= 0.5
    row = np.ceil(at, out=at).clip(0, rows, out=at).astype(np.int64)
    stride = int((sizes[:, 0] * sizes[:, 1]).max()) + 1
    row += column * rows
    row += np.repeat(polygon * stride, columns)
    fits = len(polygons) * stride <= np.iinfo(np.int32).max
    return _odd_keys(np.sort(row.astype(np.int32) if fits else row), stride)


def _edges(
    polygons: Sequence[Sequence[float]],
) -> tuple[_Numbers, _Numbers, _Numbers, _Numbers, _Places]:
    """Return x1, y1, x2, y2 of all edges, and the number of their polygon."""
    corners = np.concatenate([np.array(polygon, float) for polygon in polygons]).reshape(-1, 2)
    counts = np.array([len(polygon) // 2 for polygon in polygons])
    ends = np.cumsum(counts)
    following = np.arange(1, len(corners) + 1)
    following[ends[counts > 0] - 1] = (ends - counts)[counts > 0]
    x, y = corners.T
    polygon: _Places = np.repeat(np.arange(len(polygons)), counts)
    return x, y, x[following], y[following], polygon


def _odd_keys(keys: _Places, stride: int) -> tuple[_Places, ...]:
    """Return polygon and place of sorted keys that stand an odd number of times.

    Two edges that cross at one place change nothing.
    """
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(starts, append=len(keys))
    odd = keys[starts[counts % 2 == 1]].astype(np.int64)
    return odd // stride, odd % stride


def _join_borders(polygon: _Places, owner: _Places, place: _Places) -> tuple[_Places, ...]:
    """Return the borders, by object, of what lies inside at least one of its polygons."""
    # Each polygon has as many beginnings as ends, in turn.
    firsts = np.flatnonzero(np.diff(polygon, prepend=-1))
    within = np.arange(len(polygon)) - np.repeat(firsts, np.diff(firsts, append=len(polygon)))
    steps = 1 - 2 * (within % 2)
    # Where one ends and the next begins there is no border: beginnings first.
    order = np.lexsort((-steps, place, owner))
    owner = owner[order]
    place = place[order]
    steps = steps[order]
    inside = np.cumsum(steps)
    at_border = ((inside == 1) & (steps == 1)) | (inside == 0)
    return owner[at_border], place[at_border]


def _runs(places: _Places, lengths: NDArray[np.int64], pixels: NDArray[np.int64]) -> _Places:
    """Return the runs of all objects: from one border to the next, and to the last pixel."""
    last = np.cumsum(lengths) - 1
    ends = np.empty(int(lengths.sum()), np.int64)
    at_end = np.zeros(len(ends), bool)
    at_end[last] = True
    ends[at_end] = pixels
    ends[~at_end] = places
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = np.where(at_end[:-1], 0, ends[:-1])
    runs: _Places = ends - starts
    return runs
