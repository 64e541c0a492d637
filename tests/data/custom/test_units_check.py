"""Units are asked for wherever the numbers of boxes contradict pixels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.benchmarks.findit import Family
from vlmeval_findit.data import AnnotatedBox, AnnotationError, Sample, Samples, Units, check_units

SIZE = (640, 480)
Box = tuple[float, float, float, float]


def samples_of(boxes: Sequence[Box], units: Units = Units.PIXELS, stated: bool = False) -> Samples:
    queries = tuple(
        Sample(("a.png",), f"label {at}", (AnnotatedBox(box, f"f, line {at}"),), f"f, line {at}")
        for at, box in enumerate(boxes)
    )
    return Samples(Path("f"), Path(), Family.OBJDET, queries, units, units_stated=stated)


def refusal(boxes: Sequence[Box], size: tuple[int, int] = SIZE) -> str:
    with pytest.raises(AnnotationError) as error:
        check_units(samples_of(boxes), {"a.png": size})
    return str(error.value)


PIXELS = (50.0, 25.0, 100.0, 75.0)
FRACTIONS = (0.25, 0.25, 0.5, 0.75)


@pytest.mark.parametrize(
    "boxes",
    [
        [FRACTIONS],
        [FRACTIONS, (0.1, 0.2, 1.0000001, 0.7)],
        [FRACTIONS, (-0.003, 0.2, 1.003125, 1.002)],
        [FRACTIONS, PIXELS],
        [PIXELS, PIXELS, (0.0, 0.0, 1.0, 1.0)],
        [(1.2, 0.1, 1.4, 1.45)],
    ],
)
def test_a_box_within_the_first_pixel_is_asked_about(boxes: list[Box]) -> None:
    why = refusal(boxes)
    assert "--units fractions" in why
    assert "--units pixels" in why
    for stated in Units:
        check_units(samples_of(boxes, stated, stated=True), {"a.png": SIZE})


@given(
    st.lists(st.tuples(*[st.floats(0, 1)] * 4), min_size=1, max_size=6),
    st.lists(st.tuples(*[st.floats(2, 470)] * 4), max_size=6),
    st.integers(0, 5),
)
def test_one_number_never_decides_units(fractions: list[Box], pixels: list[Box], at: int) -> None:
    """However many boxes are in pixels, those in fractions are asked about."""
    boxes = [*pixels[:at], *fractions, *pixels[at:]]
    assert "--units" in refusal(boxes)


def test_small_images_may_have_boxes_of_a_pixel() -> None:
    check_units(samples_of([(0.0, 0.0, 1.0, 1.0), FRACTIONS]), {"a.png": (5, 400)})


@pytest.mark.parametrize(("units", "most"), [(Units.PERCENT, 100.0), (Units.THOUSANDTHS, 1000.0)])
def test_many_boxes_in_one_corner_are_asked_about(units: Units, most: float) -> None:
    large = (4000, 3000)
    boxes = [(0.1 * most + at, 0.2 * most, 0.9 * most + at, most) for at in range(10)]
    assert f"--units {units.value}" in refusal(boxes, large)
    check_units(samples_of(boxes[:9]), {"a.png": large})
    check_units(samples_of([*boxes, (10.0, 10.0, 3000.0, 2000.0)]), {"a.png": large})
    check_units(samples_of(boxes), {"a.png": (int(most) + 20, 3000)})
