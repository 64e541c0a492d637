"""What numbers are is asked wherever all boxes together contradict what is stated."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from every_pair import every_pair
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vlmeval_findit.benchmarks.findit import Family
from vlmeval_findit.data import (
    AnnotatedBox,
    AnnotationError,
    BoxForm,
    ImportChoices,
    Sample,
    Samples,
    Units,
    check_units,
    import_samples,
)

pytestmark = pytest.mark.usefixtures("data_root")

SIZE = (640, 480)
Box = tuple[float, float, float, float]


def samples_of(
    boxes: Sequence[Box],
    units: Units = Units.PIXELS,
    stated: bool = False,
    form: BoxForm | None = None,
) -> Samples:
    queries = tuple(
        Sample(("a.png",), f"label {at}", (AnnotatedBox(box, f"f, line {at}"),), f"f, line {at}")
        for at, box in enumerate(boxes)
    )
    return Samples(Path("f"), Path(), Family.OBJDET, queries, units, units_stated=stated, form=form)


def refusal(boxes: Sequence[Box], size: tuple[int, int] = SIZE, form: BoxForm | None = None) -> str:
    with pytest.raises(AnnotationError) as error:
        check_units(samples_of(boxes, form=form), {"a.png": size})
    return str(error.value)


def test_very_many_boxes_in_a_corner_are_no_overflow() -> None:
    """Of images three times as large: three to the power of their number is no float."""
    boxes = [(10.0, 10.0, 500.0 + at / 4, 700.0) for at in range(1900)]
    why = refusal([*boxes, (0.0, 0.0, 1000.0, 1000.0)], size=(2000, 1500))
    assert "--units thousandths" in why


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


def boxes_within(least: float, most: float) -> st.SearchStrategy[Box]:
    """Return boxes with an area."""
    sides = st.tuples(st.floats(least, most), st.floats(least, most))
    spans = sides.map(sorted).filter(lambda span: span[0] < span[1])
    return st.tuples(spans, spans).map(lambda box: (box[0][0], box[1][0], box[0][1], box[1][1]))


@given(
    st.lists(boxes_within(0, 1), min_size=1, max_size=6),
    st.lists(boxes_within(2, 470), max_size=6),
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
    assert f"--units {units.value}" in refusal(boxes[:5], large)
    assert f"--units {units.value}" in refusal(boxes, (int(most) + 20, 3000))
    check_units(samples_of(boxes[:1]), {"a.png": (round(1.2 * most), round(1.2 * most))})
    check_units(samples_of([*boxes, (10.0, 10.0, 3000.0, 2000.0)]), {"a.png": large})


# --- all boxes together ---------------------------------------------------------------------------


def boxes_in(size: tuple[float, float], count: int, seed: int, most: float = 0.3) -> list[Box]:
    """Return boxes (x1, y1, x2, y2) anywhere in an image, with sides up to a part of it."""
    rng = random.Random(seed)
    boxes = []
    for _ in range(count):
        sides = [rng.uniform(0.02, most) * side for side in size]
        x, y = (rng.uniform(0, side - of_box) for side, of_box in zip(size, sides, strict=True))
        boxes.append((x, y, x + sides[0], y + sides[1]))
    return boxes


def sides_of(box: Box) -> Box:
    """Return corners as [x, y, width, height]."""
    return BoxForm.SIDES.numbers(box)


SCREENS = [(1920, 1080), (2560, 1440), (1366, 768), (1080, 2400), (3840, 2160), (800, 600)]


@pytest.mark.parametrize("size", SCREENS)
@pytest.mark.parametrize("seed", range(5))
def test_thousandths_are_asked_about_on_every_screen(size: tuple[int, int], seed: int) -> None:
    thousandths = boxes_in((1000, 1000), 60, seed)
    assert "--units thousandths or --units pixels" in refusal(thousandths, size)
    check_units(samples_of(thousandths, Units.THOUSANDTHS, True), {"a.png": size})
    check_units(samples_of(boxes_in(size, 60, seed)), {"a.png": size})


@pytest.mark.parametrize("count", [5, 8, 30])
@pytest.mark.parametrize("seed", range(5))
def test_few_boxes_in_percent_are_asked_about(count: int, seed: int) -> None:
    percent = [*boxes_in((100, 100), count - 1, seed), (60.0, 60.0, 98.0, 98.0)]
    assert "--units percent" in refusal(percent)


@pytest.mark.parametrize("size", [(640, 480), (1024, 768), (1920, 1080)])
@pytest.mark.parametrize("count", [1, 2, 5, 20, 200])
def test_boxes_in_pixels_are_not_asked_about(size: tuple[int, int], count: int) -> None:
    for seed in range(20):
        boxes = boxes_in(size, count, seed, most=0.7)
        for form in (None, *BoxForm):
            check_units(samples_of(boxes, form=form), {"a.png": size})


def test_a_few_boxes_past_the_border_are_no_other_units() -> None:
    boxes = [*boxes_in(SIZE, 20, 1), (600.0, 300.0, 655.0, 400.0), (-9.0, 10.0, 50.0, 60.0)]
    check_units(samples_of(boxes), {"a.png": SIZE})


@pytest.mark.parametrize("seed", range(5))
def test_corners_in_place_of_sides_are_asked_about(seed: int) -> None:
    """Whether they leave their images as sides, or all fit both readings."""
    anywhere = boxes_in(SIZE, 12, seed)
    wrong = [BoxForm.SIDES.corners(box) for box in anywhere]
    assert "--box corners or" in refusal(wrong, form=BoxForm.SIDES)
    upper_left = boxes_in((SIZE[0] / 2, SIZE[1] / 2), 40, seed)
    upper_left = [box for box in upper_left if box[2] > 2 * box[0] and box[3] > 2 * box[1]]
    both = [BoxForm.SIDES.corners(box) for box in [*upper_left * 3][:12]]
    if len({*both}) > 3:
        assert "--box corners" in refusal(both, form=BoxForm.SIDES)


@pytest.mark.parametrize("seed", range(5))
def test_sides_in_place_of_corners_are_asked_about(seed: int) -> None:
    wrong = [sides_of(box) for box in boxes_in(SIZE, 12, seed)]
    assert "--box sides or --box corners" in refusal(wrong, form=BoxForm.CORNERS)


@pytest.mark.parametrize("form", BoxForm)
def test_many_expressions_of_one_object_say_it_once(form: BoxForm) -> None:
    check_units(samples_of([(10.0, 12.0, 300.0, 280.0)] * 40, form=form), {"a.png": SIZE})


def test_form_and_units_are_asked_about_in_turn() -> None:
    thousandths = boxes_in((1000, 1000), 40, 3)
    wrong = [BoxForm.SIDES.corners(box) for box in thousandths]
    assert "--box corners or --box sides" in refusal(wrong, (1920, 1080), BoxForm.SIDES)
    assert "--units thousandths or --units pixels" in refusal(thousandths, (1920, 1080))


@pytest.mark.parametrize("flat", [(0.0, 0.0, 0.0, 0.0), (0.5, 0.5, 0.5, 0.9), (1.0, 0.0, 0.0, 1.0)])
def test_a_box_without_an_area_is_no_sign(flat: Box) -> None:
    check_units(samples_of([PIXELS, flat]), {"a.png": SIZE})


def test_a_box_far_outside_does_not_hide_percent() -> None:
    boxes = [*boxes_in((100, 100), 12, 1), (5000.0, 5000.0, 5100.0, 5100.0)]
    assert "--units percent" in refusal(boxes)


# --- one contradiction ----------------------------------------------------------------------------

UNITS = [units for units in Units if units is not Units.FRACTIONS]


def part_of(size: tuple[int, int], units: Units) -> tuple[float, float]:
    """Return what the right and the lower edge are in units."""
    return size if units is Units.PIXELS else (units.scale, units.scale)


@pytest.mark.parametrize("size", [(1600, 800), (800, 1300), (90, 700), (1900, 950)])
@pytest.mark.parametrize("meant", UNITS)
@pytest.mark.parametrize("declared", UNITS)
@pytest.mark.parametrize("form", [None, *BoxForm])
def test_one_box_that_other_units_explain_is_asked_about(
    size: tuple[int, int], meant: Units, declared: Units, form: BoxForm | None
) -> None:
    """One of few boxes leaves its image, in whatever units and form a reader declares."""
    whole, edge = part_of(size, meant), part_of(size, declared)
    outside = (whole[0] / 2, whole[1] / 4, 0.9 * whole[0], 0.9 * whole[1])
    x, y = (min(sides) for sides in zip(whole, edge, strict=True))
    parts = [(0.1, 0.2, 0.3, 0.5), (0.5, 0.3, 0.8, 0.6), (0.2, 0.1, 0.7, 0.7)]
    inside = [(a * x, b * y, c * x, d * y) for a, b, c, d in parts]
    if not any(side > 1.02 * most for side, most in zip(outside[2:], edge, strict=True)):
        return
    with pytest.raises(AnnotationError) as error:
        check_units(samples_of([*inside, outside], declared, form=form), {"a.png": size})
    typed = str(error.value).rpartition("Type ")[2]
    assert f"--units {meant.value}" in typed
    assert f"--units {declared.value}" in typed
    check_units(samples_of([*inside, outside], declared, stated=True), {"a.png": size})


@pytest.mark.parametrize(
    ("box", "why"),
    [
        ((60.0, 20.0, 30.0, 80.0), "whose x2 is not above its x1;"),
        ((60.0, 80.0, 70.0, 40.0), "whose y2 is not above its y1;"),
        ((60.0, 20.0, 900.0, 80.0), "which leaves its image of 640x480;"),
        ((60.0, 20.0, 90.0, 600.0), "which leaves its image of 640x480;"),
    ],
)
def test_a_question_says_what_is_wrong_with_a_box(box: Box, why: str) -> None:
    told = refusal([box], form=BoxForm.CORNERS)
    assert f"f, line 0, {box}, {why}" in told
    assert told.endswith(". If that box alone is wrong, correct it")


@pytest.mark.parametrize("size", [(640, 480), (200, 100)])
def test_fractions_declared_for_pixels_are_asked_about(size: tuple[int, int]) -> None:
    boxes = boxes_in(size, 4, 3)
    with pytest.raises(AnnotationError, match=r"Type .*--units pixels"):
        check_units(samples_of(boxes, Units.FRACTIONS), {"a.png": size})


@pytest.mark.parametrize(
    "outside", [(-30.0, 10.0, 50.0, 60.0), (900.0, 10.0, 1200.0, 60.0), (-9.0, 10.0, 50.0, 60.0)]
)
def test_a_box_that_no_units_explain_is_not_asked_about(outside: Box) -> None:
    check_units(samples_of([PIXELS, outside]), {"a.png": SIZE})
    check_units(samples_of([(5.0, 5.0, 5.0, 9.0)], form=BoxForm.CORNERS), {"a.png": SIZE})
    check_units(samples_of([FRACTIONS, (0.3, 0.3, 1.1, 0.4)], Units.FRACTIONS), {"a.png": SIZE})


# Sizes of images, and boxes in their pixels, of which one was drawn a little past the border
SLIPS: list[tuple[tuple[int, int], list[Box]]] = [
    ((200, 100), [(20, 10, 80, 60), (100, 20, 204, 90)]),
    ((300, 200), [(20, 10, 80, 60), (100, 20, 180, 90), (210, 50, 303, 120)]),
    ((500, 375), [(10, 10, 90, 90), (100, 50, 300, 200), (50, 300, 200, 379), (5, 5, 90, 200)]),
    ((640, 480), [*boxes_in((640, 480), 4, 4), (400, 200, 645, 470)]),
    ((640, 480), [*boxes_in((640, 480), 7, 5), (500, 100, 660, 400)]),
    ((480, 640), [*boxes_in((480, 640), 8, 6), (100, 500, 300, 650)]),
    ((800, 600), [*boxes_in((800, 600), 8, 7), (700, 100, 805, 400)]),
]


@pytest.mark.parametrize("at", range(len(SLIPS)))
@pytest.mark.parametrize("form", [None, *BoxForm])
def test_one_slip_of_a_handful_is_no_other_unit(at: int, form: BoxForm | None) -> None:
    size, boxes = SLIPS[at]
    asked = ""
    try:
        check_units(samples_of(boxes, form=form), {"a.png": size})
    except AnnotationError as error:
        asked = str(error)
    assert "--units" not in asked


@every_pair(
    "size, count",
    [(500, 375), (640, 480), (480, 640), (800, 600), (960, 720), (1600, 800)],
    [2, 3, 5, 7, 9],
)
def test_a_handful_of_thousandths_is_asked_about(size: tuple[int, int], count: int) -> None:
    """Wherever they lie, if some leaves its image: at most one in a hundred files is not asked."""
    asked = outside = 0
    for seed in range(100):
        boxes = boxes_in((1000, 1000), count, seed, most=0.7)
        if any(x > size[0] + 1 or y > size[1] + 1 for _, _, x, y in boxes):
            outside += 1
            with suppress(AnnotationError):
                check_units(samples_of(boxes), {"a.png": size})
                continue
            asked += 1
    assert asked >= 0.99 * outside


@pytest.mark.parametrize("count", [3, 8, 40])
@pytest.mark.parametrize("units", [Units.FRACTIONS, *UNITS[1:]])
def test_published_sets_are_asked_as_others_are(tmp_path, count: int, units: Units) -> None:
    """The same boxes of an image, as a set of a user's and as a published one."""
    Image.new("RGB", SIZE).save(tmp_path / "a.png")
    boxes = boxes_in((units.scale, units.scale), count, count)
    boxes.append((0.6 * units.scale, 0.6 * units.scale, 0.98 * units.scale, 0.98 * units.scale))
    samples = replace(samples_of(boxes), images=tmp_path)
    said = []
    for is_published in (False, True):
        with pytest.raises(AnnotationError) as error:
            import_samples("Mine", samples, ImportChoices(is_published=is_published))
        said.append(str(error.value))
    assert said[0] == said[1]
    assert f"--units {units.value}" in said[0]


def test_units_are_not_offered_beside_a_form_that_fits_better() -> None:
    """Corners in small images, which no thousandths would be."""
    boxes = [(20, 10, 80, 60), (100, 20, 180, 90), (110, 25, 190, 95), (90, 30, 150, 85)]
    wrong = [BoxForm.SIDES.corners(box) for box in boxes]
    assert "--units" not in refusal(wrong, (200, 100), BoxForm.SIDES)


def test_one_box_says_that_sides_are_corners() -> None:
    """The others fit both forms."""
    boxes = [(10.0, 10.0, 400.0, 300.0), (20.0, 30.0, 300.0, 200.0), (400.0, 200.0, 500.0, 400.0)]
    sides = [BoxForm.SIDES.corners(box) for box in boxes]
    assert "--box corners or" in refusal(sides, form=BoxForm.SIDES)
