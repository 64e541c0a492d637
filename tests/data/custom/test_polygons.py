"""Polygons are filled as pixels whose centres lie inside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.data import Outlines, fill_outlines, fill_polygons
from vlmeval_findit.marks import PackedMask, packed_mask

NUMBERS = (
    st.floats(-5, 25) | st.integers(-3, 20).map(float) | st.integers(-3, 20).map(lambda n: n + 0.5)
)
POLYGON = st.lists(NUMBERS, min_size=6, max_size=14).map(lambda flat: flat[: len(flat) // 2 * 2])


def inside(polygon: list[float], width: int, height: int) -> np.ndarray:
    """Count the edges above the centre of each pixel, one after the other."""
    mask = np.zeros((height, width), bool)
    points = list(zip(polygon[::2], polygon[1::2], strict=True))
    for row in range(height):
        for column in range(width):
            x, y = column + 0.5, row + 0.5
            for (x1, y1), (x2, y2) in zip(points, [*points[1:], points[0]], strict=True):
                crosses = (x1 <= x) != (x2 <= x)
                if crosses and y1 + (x - x1) * ((y2 - y1) / (x2 - x1)) <= y:
                    mask[row, column] ^= True
    return mask


@given(st.lists(POLYGON, min_size=1, max_size=3), st.integers(1, 20), st.integers(1, 20))
def test_a_pixel_is_inside_by_the_even_odd_rule(
    polygons: list[list[float]], width: int, height: int
) -> None:
    expected = np.zeros((height, width), bool)
    for polygon in polygons:
        expected |= inside(polygon, width, height)
    mask = fill_polygons(polygons, (width, height))
    if not expected.any():
        assert mask is None
    else:
        assert mask == packed_mask(expected)


OUTLINES = st.builds(
    Outlines,
    st.lists(POLYGON, min_size=1, max_size=3),
    st.tuples(st.integers(1, 20), st.integers(1, 20)),
)


@given(st.lists(OUTLINES, max_size=5))
def test_many_objects_at_once_have_the_masks_of_each_alone(objects: list[Outlines]) -> None:
    """In images of several sizes, with and without pixels inside."""
    assert fill_outlines(objects) == [fill_polygons(each.polygons, each.size) for each in objects]


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_masks_of_any_pixels_are_packed_as_pycocotools_does(
    width: int, height: int, seed: int
) -> None:
    tools = pytest.importorskip("pycocotools.mask")
    pixels = np.random.default_rng(seed).integers(0, 2, (height, width), dtype=np.uint8)
    mask = packed_mask(pixels)
    assert mask.packed == tools.encode(np.asfortranarray(pixels))["counts"].decode()
    again = PackedMask(height, width, mask.packed)
    assert np.array_equal(again.mask(), pixels)
    rows, columns = np.nonzero(pixels)
    if not len(rows):
        assert again.extent is None
    else:
        around = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
        assert again.extent == tuple(map(float, around))
