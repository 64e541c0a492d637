"""Marks on images: outlines that are missing or odd, scribbles, contrasting colours."""

from __future__ import annotations

import numpy as np
import pytest

cv2 = pytest.importorskip("cv2", reason="marks are drawn by opencv-python")

from vlmeval_findit.marks import (  # noqa: E402  # noqa: E402
    COLOURS,
    CONTRAST,
    MarkedImage,
    Region,
    Shape,
    Style,
    draw_marks,
)

GREY = np.full((160, 200, 3), 128, dtype=np.uint8)
BOX = (80.9, 60.2, 41.0, 30.7)  # truncated: from (80, 60) to (121, 90)

Extent = tuple[int, int, int, int]


def extent(drawn: MarkedImage) -> Extent:
    """First and last column and row that changed: x1, y1, x2, y2."""
    ys, xs = (drawn.pixels != GREY).any(axis=2).nonzero()
    return min(xs), min(ys), max(xs), max(ys)


def test_without_an_outline_the_box_is_used() -> None:
    drawn = draw_marks(GREY, [Region(BOX)], Style(Shape.CONTOUR, "tight", 2), "red")
    assert drawn.notes == ("mark 1: no outline is known, its box was used",)
    x1, _, x2, _ = extent(drawn)
    assert x1 <= 80 <= 121 <= x2


@pytest.mark.parametrize(
    ("polygon", "expected"),
    [
        ((50, 50, 70, 50, 60, 80), (48, 48, 72, 84)),
        ((50, 50, 70, 80), (48, 47, 72, 83)),
        ((50, 50), (50, 50, 50, 50)),
        # Neighbours that fall together: unsmoothed, without the last vertex.
        ((50, 50, 70, 50, 70, 50, 50, 90), (48, 48, 72, 48)),
    ],
)
def test_loose_contours_that_no_spline_fits(polygon: tuple[float, ...], expected: Extent) -> None:
    style = Style(Shape.CONTOUR, "loose", 1)
    result = extent(draw_marks(GREY, [Region(BOX, (polygon,))], style, "red"))
    assert np.abs(np.subtract(result, expected)).max() <= 2


def test_every_large_part_gets_a_scribble_and_none_is_noted() -> None:
    level = (10.0, 10.0, 70.0, 10.0, 70.0, 20.0, 10.0, 20.0)
    upright = (90.0, 20.0, 111.0, 20.0, 111.0, 140.0, 90.0, 140.0)
    speck = (180.0, 10.0, 185.0, 10.0, 185.0, 15.0, 180.0, 15.0)
    style = Style(Shape.SCRIBBLE, width=2)
    drawn = draw_marks(GREY, [Region(BOX, (level, upright, speck))], style, "blue")
    assert drawn.colours_used == ("blue", "blue")
    assert extent(drawn)[2] < 175
    drawn = draw_marks(GREY, [Region(BOX, (speck,))], style, CONTRAST)
    assert drawn.colours_used == ()
    assert drawn.notes[0].startswith("mark 1: nothing was drawn")


def test_contrast_leaves_out_what_was_used_and_then_repeats() -> None:
    regions = [Region((x, 20, 20, 20)) for x in (10, 50, 90, 130, 170)]
    drawn = draw_marks(GREY, regions, Style(Shape.BOX, "none", 2), CONTRAST)
    assert sorted(drawn.colours_used[:4]) == sorted(COLOURS)
    assert drawn.colours_used[4] == "black"
