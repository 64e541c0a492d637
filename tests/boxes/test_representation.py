"""Box representations: the order of the numbers, and back."""

from __future__ import annotations

import pytest

from vlmeval_findit.boxes import NO_RECTANGLE, REPRESENTATIONS, Corners

BOX: Corners = (10.0, 20.0, 50.0, 80.0)


@pytest.mark.parametrize(
    ("name", "numbers", "keys"),
    [
        ("xyxy", (10, 20, 50, 80), "xmin ymin xmax ymax"),
        ("xywh", (10, 20, 40, 60), "x y width height"),
        ("yxyx", (20, 10, 80, 50), "ymin xmin ymax xmax"),
        ("yxhw", (20, 10, 60, 40), "y x height width"),
        ("cxcywh", (30, 50, 40, 60), "cx cy width height"),
        ("all", (10, 20, 50, 20, 50, 80, 10, 80), ""),
        ("all-labelled", (10, 20, 50, 20, 50, 80, 10, 80), ""),
        ("unconstrained", (10, 20, 50, 80), ""),
        ("point", (30, 50), "x y"),
    ],
)
def test_numbers_and_keys(name: str, numbers: tuple[float, ...], keys: str) -> None:
    row = REPRESENTATIONS[name]
    assert tuple(row.from_corners(BOX)) == numbers
    assert row.to_corners(numbers) == (BOX if name != "point" else (30, 50, 30, 50))
    assert len(numbers) == row.width
    assert row.keys == tuple(keys.split())


@pytest.mark.parametrize(
    ("numbers", "box"),
    [
        pytest.param((1, 2, 3, 2, 3, 4, 1, 4), (1, 2, 3, 4), id="clockwise"),
        pytest.param((1, 4, 3, 4, 3, 2, 1, 2), (1, 2, 3, 4), id="counter-clockwise"),
        pytest.param((3, 4, 1, 2, 1, 4, 3, 2), (1, 2, 3, 4), id="any order"),
        pytest.param((0, 0, 0, 0, 0, 0, 0, 0), NO_RECTANGLE, id="a point"),
        pytest.param((1, 2, 3, 2, 1, 2, 3, 2), NO_RECTANGLE, id="a line"),
        pytest.param((1, 2, 3, 2, 3, 4, 3, 4), NO_RECTANGLE, id="three corners"),
        pytest.param((1, 2, 3, 4, 1, 2, 3, 4), NO_RECTANGLE, id="two corners, twice"),
        pytest.param((1, 2, 3, 2, 3, 4, 1, 5), NO_RECTANGLE, id="three y values"),
        pytest.param((1, 2, 3, 2, 3.5, 4, 1, 4), NO_RECTANGLE, id="tilted"),
    ],
)
def test_eight_numbers_are_a_rectangle_or_match_nothing(
    numbers: tuple[float, ...], box: Corners
) -> None:
    assert REPRESENTATIONS["all"].to_corners(numbers) == box
