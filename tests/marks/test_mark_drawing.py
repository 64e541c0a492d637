"""Marks on images: where every shape lies, and what no mark ever does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

cv2 = pytest.importorskip("cv2", reason="marks are drawn by opencv-python")

from vlmeval_findit.marks.mark_drawing import draw_marks  # noqa: E402
from vlmeval_findit.marks.region import (  # noqa: E402
    RLE,
    Region,
    RegionError,
)
from vlmeval_findit.marks.style import (  # noqa: E402
    COLOURS,
    CONTRAST,
    ONLY,
    STYLES,
    Shape,
    Style,
    StyleError,
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


def rle_of_square() -> RLE:
    mask = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
    mask[60:101, 80:121] = 1
    flat = mask.T.ravel()
    ends = np.flatnonzero(np.diff(flat)) + 1
    return RLE(HEIGHT, WIDTH, tuple(np.diff([0, *ends, flat.size]).tolist()))


def test_run_lengths_are_filled_opaquely_and_outlined_as_polygons_are() -> None:
    region, polygon = Region(BOX, rle_of_square()), Region(BOX, (SQUARE,))
    plain = draw(Shape.MASK, "plain", 4, region)
    assert plain[80, 100].tolist() == [255, 0, 0]
    assert extent(plain) == (80, 60, 120, 100)
    for shape, variant in ((Shape.CONTOUR, "tight"), (Shape.MASK, "outlined")):
        assert (draw(shape, variant, 2, region) == draw(shape, variant, 2, polygon)).all()
    assert (draw(Shape.SCRIBBLE, ONLY, 2, region) == draw(Shape.SCRIBBLE, ONLY, 2, polygon)).all()


def test_run_lengths_of_another_image_are_refused() -> None:
    with pytest.raises(RegionError, match="mark 1: a mask of 2 x 2 pixels on an image of 200 x"):
        draw(Shape.MASK, "plain", 4, Region(BOX, RLE(2, 2, (4,))))


@pytest.mark.parametrize(
    ("shape", "variant"), [w for w in ALL if w[0].value in ("mask", "contour")]
)
def test_without_an_outline_the_box_is_used(shape: Shape, variant: str) -> None:
    drawn = draw_marks(GREY, [Region(BOX)], Style(shape, variant, 2), "red")
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


@pytest.mark.parametrize("colours", [["red"], ["red", "blue", "red"], "pink", ["red", "pink"]])
def test_colours_are_a_name_or_a_name_per_region(colours: Any) -> None:
    with pytest.raises(StyleError, match=r"colours for 2 regions|no colour 'pink'"):
        draw_marks(GREY, [Region(BOX)] * 2, Style(Shape.OVAL), colours)


@pytest.mark.parametrize(
    "pixels",
    [GREY[..., 0], GREY.astype(np.float32), np.zeros((4, 4, 4), np.uint8), GREY[:0]],
    ids=["one channel", "floats", "four channels", "empty"],
)
def test_what_is_no_image_is_refused(pixels: Any) -> None:
    with pytest.raises(ValueError, match="an image is height x width x 3"):
        draw_marks(pixels, [], Style(Shape.OVAL), "red")


# --- what no mark does ----------------------------------------------------------------------------

numbers = st.floats(-60, 260, width=32)
polygons = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=9).map(
    lambda points: tuple(value for point in points for value in point)
)
regions = st.builds(
    Region,
    st.tuples(numbers, numbers, st.floats(0, 120), st.floats(0, 120)),
    st.lists(polygons, max_size=2).map(tuple),
)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(ALL),
    st.integers(1, 8),
    st.lists(regions, max_size=3),
    st.sampled_from([*COLOURS, CONTRAST]),
)
def test_any_region_is_drawn_the_same_twice_and_the_image_is_left_alone(
    what: tuple[Shape, str], width: int, some: list[Region], colour: str
) -> None:
    image = GREY.copy()
    image.flags.writeable = False
    style = Style(*what, width)
    first, second = (draw_marks(image, some, style, colour) for _ in range(2))
    assert (image == GREY).all()
    assert first.pixels.tobytes() == second.pixels.tobytes()
    assert first.colours_used == second.colours_used
    assert first.pixels.flags.writeable
    # A mark stays near what it marks.
    reach = 70 + 12 * width
    allowed = np.zeros(GREY.shape[:2], dtype=bool)
    for region in some:
        x, y, w, h = region.box
        spots = [(x, y), (x + w, y + h)]
        for polygon in region.outlines if isinstance(region.outlines, tuple) else ():
            spots += list(zip(polygon[::2], polygon[1::2], strict=True))
        xs, ys = zip(*spots, strict=True)
        slack = reach + 0.2 * max(max(xs) - min(xs), max(ys) - min(ys))
        left, top = max(0, int(min(xs) - slack)), max(0, int(min(ys) - slack))
        allowed[top : max(0, int(max(ys) + slack)), left : max(0, int(max(xs) + slack))] = True
    assert (first.pixels == GREY)[~allowed].all()
