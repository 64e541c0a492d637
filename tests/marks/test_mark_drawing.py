"""Marks on images: where every shape lies, and what no mark ever does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

cv2 = pytest.importorskip("cv2", reason="marks are drawn by opencv-python")

from vlmeval_findit.marks.mark_drawing import draw_marks  # noqa: E402
from vlmeval_findit.marks.region import (  # noqa: E402
    Region,
)
from vlmeval_findit.marks.style import (  # noqa: E402
    COLOURS,
    CONTRAST,
    ONLY,
    STYLES,
    Shape,
    Style,
)

WIDTH, HEIGHT = 200, 160
GREY = np.full((HEIGHT, WIDTH, 3), 128, dtype=np.uint8)
BOX = (80.9, 60.2, 41.0, 30.7)
"""Truncated: from (80, 60) to (121, 90), its centre (100, 75)."""
SQUARE = (80.0, 60.0, 120.0, 60.0, 120.0, 100.0, 80.0, 100.0)
ALL = [(shape, variant) for shape, variants in STYLES.items() for variant in variants]

Extent = tuple[int, int, int, int]


def extent(pixels: np.ndarray, before: np.ndarray = GREY) -> Extent | None:
    """First and last column and row that changed: x1, y1, x2, y2."""
    ys, xs = (pixels != before).any(axis=2).nonzero()
    return (min(xs), min(ys), max(xs), max(ys)) if len(xs) else None


def draw(shape: Shape, variant: str, width: int, region: Region, colour: str = "red") -> np.ndarray:
    return draw_marks(GREY, [region], Style(shape, variant, width), colour).pixels


# --- masks, contours, scribbles -------------------------------------------------------------------


def test_without_an_outline_the_box_is_used() -> None:
    drawn = draw_marks(GREY, [Region(BOX)], Style(Shape.CONTOUR, "tight", 2), "red")
    assert drawn.notes == ("mark 1: no outline is known, its box was used",)
    result = extent(drawn.pixels)
    assert result is not None
    assert result[0] <= 80 <= 121 <= result[2]


@pytest.mark.parametrize(
    ("polygon", "expected"),
    [
        pytest.param((50, 50, 70, 50, 60, 80), (48, 48, 72, 84), id="a triangle"),
        pytest.param((50, 50, 70, 80), (48, 47, 72, 83), id="two points"),
        pytest.param((50, 50), (50, 50, 50, 50), id="one point"),
        # Neighbours that fall together: unsmoothed, without the last vertex.
        pytest.param((50, 50, 70, 50, 70, 50, 50, 90), (48, 48, 72, 48), id="repeated neighbours"),
    ],
)
def test_loose_contours_that_no_spline_fits(polygon: Any, expected: Extent) -> None:
    result = extent(draw(Shape.CONTOUR, "loose", 1, Region(BOX, (polygon,))))
    assert result is not None
    assert np.abs(np.subtract(result, expected)).max() <= 2


UPRIGHT = (90.0, 20.0, 111.0, 20.0, 111.0, 140.0, 90.0, 140.0)


def test_every_large_part_gets_a_scribble() -> None:
    level = (10.0, 10.0, 70.0, 10.0, 70.0, 20.0, 10.0, 20.0)
    speck = (180.0, 10.0, 185.0, 10.0, 185.0, 15.0, 180.0, 15.0)
    drawn = draw_marks(
        GREY, [Region(BOX, (level, UPRIGHT, speck))], Style(Shape.SCRIBBLE, ONLY, 2), "blue"
    )
    assert drawn.colours_used == ("blue", "blue")
    assert (drawn.pixels[:, 175:] == GREY[:, 175:]).all()


def test_a_part_too_small_for_a_scribble_is_noted() -> None:
    drawn = draw_marks(
        GREY, [Region((5, 5, 3, 3), ((5, 5, 8, 5, 8, 8),))], Style(Shape.SCRIBBLE), CONTRAST
    )
    assert drawn.colours_used == ()
    assert drawn.notes[0].startswith("mark 1: nothing was drawn")


# --- colours --------------------------------------------------------------------------------------


def test_contrast_leaves_out_what_was_used_and_then_repeats() -> None:
    regions = [Region((x, 20, 20, 20)) for x in (10, 50, 90, 130, 170)]
    drawn = draw_marks(GREY, regions, Style(Shape.BOX, "none", 2), CONTRAST)
    assert sorted(drawn.colours_used[:4]) == sorted(COLOURS)
    assert drawn.colours_used[4] == "black"
