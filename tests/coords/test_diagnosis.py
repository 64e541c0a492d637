"""Which convention a run follows: known deployments in, verdicts out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from few_fast import every_nth_fast, few_fast
from simulated_deployments import HABITS, PROFILES, Fault, Habit, convention, objects, run

from vlmeval_findit.boxes import Space, reply_extent
from vlmeval_findit.coords import (
    CORNERS_EXCHANGED,
    MOST_BOXES,
    NO_DISTORTION,
    ORDERS,
    SPACES,
    AnsweredQuery,
    Convention,
    CoordinateVerdict,
    RunArrays,
    RunFit,
    SecondConvention,
    UnlistedConvention,
    convention_distance,
    conventions,
    decide_verdict,
    diagnose,
    fit_distortion,
    run_arrays,
    scaling_of,
    space_row_of,
    to_boxes,
    to_numbers,
)

SIZES = np.array([[640, 480], [375, 500], [8192, 6144], [1000, 1000], [3000, 211]], float).T
GOOD = Habit(miou=0.7)


GRID = convention("grid1000/xyxy")
PIXELS = convention("pixels/xyxy")


def answered(
    profile: str,
    says: Any,
    seed: int,
    queries: int,
    habit: Habit = GOOD,
    fault: Fault | None = None,
) -> RunArrays:
    """Return the answers of a simulated run."""
    rng = np.random.default_rng(seed)
    return run_arrays(run(rng, PROFILES[profile], says, habit, queries, fault))


# --- conventions ----------------------------------------------------------------------------------


def test_numbers_are_converted_back() -> None:
    boxes = objects(np.random.default_rng(0), PROFILES["phrases"], SIZES.shape[1]).T
    for each in conventions():
        frame = each.space.map_of(SIZES)
        back = to_boxes(to_numbers(boxes, frame, each.order.numbers), frame, each.order.corners)
        assert np.allclose(back.corners, boxes), each.name


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        # A box (64, 48, 320, 240) in an image of 640 x 480 pixels.
        ("grid1000/xyxy", [100, 100, 500, 500]),
        ("percent/cxcywh", [30, 30, 40, 40]),
        ("pixels/yxhw", [48, 64, 192, 256]),
        ("pixels/xxyy", [64, 320, 48, 240]),
        ("pixels/yyxx", [48, 240, 64, 320]),
        ("pixels/cycxhw", [144, 192, 192, 256]),
        ("longer1000/xyxy", [100, 75, 500, 375]),
        ("letterbox1000/xyxy", [100, 200, 500, 500]),
        ("crop1000/xyxy", [-1000 / 30, 100, 500, 500]),
        ("grid1000_rot180/xyxy", [500, 500, 900, 900]),
        ("grid1000_flipy/xyxy", [100, 500, 500, 900]),
        ("grid1000_rot90cw/xyxy", [500, 100, 900, 500]),
        ("grid1000_rot90ccw/xyxy", [100, 500, 500, 900]),
        ("grid_sizes_swapped/xyxy", [100 * 4 / 3, 75, 500 * 4 / 3, 375]),
        ("pixels_times_size/xyxy", [40.96, 23.04, 204.8, 115.2]),
        ("twice_grid/xyxy", [100 / 0.64, 100 / 0.48, 500 / 0.64, 500 / 0.48]),
        ("smart_sizes_swapped/xyxy", [47.6, 64.4, 238, 322]),
    ],
)
def test_numbers_of_a_convention(name: str, numbers: list[float]) -> None:
    each = convention(name)
    box = np.array([[0.1], [0.1], [0.5], [0.5]])
    frame = each.space.map_of(np.array([[640.0], [480.0]]))
    assert to_numbers(box, frame, each.order.numbers)[:, 0] == pytest.approx(numbers)


@pytest.mark.parametrize("row", [row for row in SPACES.values() if row.space], ids=lambda r: r.name)
def test_spaces_equal_those_of_the_score(row: object) -> None:
    frame = row.map_of(SIZES)
    known = np.array([reply_extent(row.space, int(w), int(h)) for w, h in SIZES.T], float)
    assert np.array_equal(np.concatenate([frame.scale, frame.offset]).T, known)
    assert space_row_of(row.space) is row


def test_a_declared_letterbox_fits_but_not_without_its_padding() -> None:
    yolo = Convention(space_row_of(Space("letterbox", side=640)), ORDERS["xyxy"])
    frame = yolo.space.map_of(np.array([[640, 375], [480, 500]], float))
    assert frame.scale.T.tolist() == [[640, 480], [480, 640]]
    assert frame.offset.T.tolist() == [[0, 80], [80, 0]]
    arrays = answered("detection", yolo, 0, 120)
    assert diagnose(arrays, yolo).verdict is CoordinateVerdict.FITS
    assert diagnose(arrays, convention("longer640/xyxy")).verdict.alarms, "the same scale"


def test_a_declared_space_with_settings_is_a_hypothesis() -> None:
    space = Space("smart_resize", min_pixels=100352, max_pixels=802816)
    declared = Convention(space_row_of(space), ORDERS["xyxy"])
    names = [each.name for each in conventions(declared)]
    assert declared.name in names
    assert len(names) == len(set(names)) == 554 + 5


# --- corners, sides and squares -------------------------------------------------------------------

DECLARED = ("grid1000/xyxy", "pixels/xyxy", "unit/yxyx", "square640/xyxy")
"""Conventions that runs declare; all of them by all faults: benchmarks/test_coords_runs.py."""


def in_turn(*columns: Iterable[str]) -> list[tuple[str, ...]]:
    """Return rows as long as the first column; the others begin again when they end."""
    first, *others = columns
    return list(zip(first, *map(cycle, others), strict=False))


@pytest.mark.parametrize(
    ("order", "space", "declared"),
    few_fast(
        in_turn(
            [each.name for each in ORDERS.values() if each.remark],
            ("grid1000", "pixels", "unit"),
            ("grid1000/xyxy", "pixels/xywh", "grid1000/yxyx", "unit/xyxy"),
        ),
        2,
    ),
)
def test_exchanged_corners_are_named(order: str, space: str, declared: str) -> None:
    """Whatever order was asked for; no other format is blamed."""
    found = diagnose(
        answered("phrases", convention(f"{space}/{order}"), 0, 80), convention(declared)
    )
    assert found.verdict is CoordinateVerdict.OTHER
    assert found.fit.best.name == f"{space}/{order}"
    assert CORNERS_EXCHANGED in found.fit.best.description


@pytest.mark.parametrize(
    ("space", "order"),
    few_fast(
        in_turn([name for name in SPACES if name.startswith("x_")], ("xyxy", "yxyx", "xywh")), 2
    ),
)
def test_another_unit_on_each_side_is_named(space: str, order: str) -> None:
    found = diagnose(
        answered("phrases", convention(f"{space}/{order}"), 1, 80), convention("grid1000/xyxy")
    )
    assert found.verdict is CoordinateVerdict.OTHER
    assert found.fit.best.name == f"{space}/{order}"


@pytest.mark.parametrize(
    ("name", "declared"),
    few_fast(in_turn([name for name in SPACES if name.startswith("square")][::3], DECLARED[:2]), 1),
)
def test_inputs_of_encoders_are_named(name: str, declared: str) -> None:
    """Or one that cannot be told from it: 490 from 512 by weak models."""
    arrays = answered("phrases", convention(f"{name}/xyxy"), 2, 100)
    found = diagnose(arrays, convention(declared))
    assert found.verdict is CoordinateVerdict.OTHER
    assert f"{name}/xyxy" in (found.fit.best.name, *found.fit.lookalikes)


@pytest.mark.parametrize(
    ("habit", "declared", "profile"),
    few_fast(in_turn(HABITS, DECLARED, ("phrases", "detection, 1024", "phrases")), 3),
)
def test_a_right_run_does_not_alarm_whatever_its_model_does(
    habit: str, declared: str, profile: str
) -> None:
    arrays = answered(profile, convention(declared), 3, 100, HABITS[habit])
    assert diagnose(arrays, convention(declared)).verdict in (
        CoordinateVerdict.FITS,
        CoordinateVerdict.UNDECIDED,
    )


# --- arrays -------------------------------------------------------------------------------------


def test_numbers_that_are_none_are_left_out() -> None:
    bad = [(1, 2, 3, float("nan")), (1, 2, float("inf"), 4), (1e9, 0, 1, 1), (1, 2, 3, 4)]
    seen = run_arrays([AnsweredQuery(10, 10, "a", [(0, 0, 5, 5), (5, 5, 5, 9)], bad)])
    assert seen.numbers.T.tolist() == [[1, 2, 3, 4]]
    assert seen.truths.T.tolist() == [[0, 0, 0.5, 0.5]]


def test_boxes_are_held_against_objects_of_their_label() -> None:
    truths = [(0, 0, 5, 5), (5, 5, 9, 9)]
    labels = ("cat", "Traffic light")
    said = [(0, 0, 5, 5)] * 2, ("traffic light.", "bird")
    seen = run_arrays([AnsweredQuery(10, 10, "a", truths, said[0], labels, said[1])])
    assert (seen.pair_box.tolist(), seen.pair_truth.tolist()) == ([0], [1])
    assert seen.log_choices.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("numbers", "step"),
    [([1, 2, 3, 4], 1.0), ([0.5, 0.25, 0.75, 1], 0.01), ([0.1, 0.2, 0.3, 0.5], 0.1)],
)
def test_the_step_of_numbers(numbers: list[float], step: float) -> None:
    assert run_arrays([AnsweredQuery(10, 10, "a", [(0, 0, 5, 5)], [numbers])]).step == step


def test_of_a_long_run_a_fixed_sample_is_checked() -> None:
    queries = [
        AnsweredQuery(10, 10, str(i), [(0, 0, 5, 5)], [(i % 7, 1, 9, 9)] * 4) for i in range(900)
    ]
    first = run_arrays(queries)
    again = run_arrays(queries)
    assert MOST_BOXES - 4 < first.boxes <= MOST_BOXES
    assert np.array_equal(first.numbers, again.numbers)


def test_a_part_of_the_boxes_keeps_its_pairs() -> None:
    arrays = answered("dense", GRID, 0, 40)
    part = arrays.some(50)
    assert part.boxes == 50
    owners = part.box_query[part.pair_box]
    assert (owners == part.truth_query[part.pair_truth]).all()
    assert arrays.some(10**6) is arrays


# --- verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "says", "profile"),
    every_nth_fast(
        [
            ("grid1000/xyxy", "pixels/xyxy", "referring"),
            ("pixels/xyxy", "grid1000/xyxy", "phrases"),
            ("smart_3136_12845056/xyxy", "smart_3136_200704/xyxy", "referring, wide"),
            ("pixels/xyxy", "claude_standard/xyxy", "tiny, 8k"),
            ("grid1000/xyxy", "letterbox1000/xyxy", "detection, 1024"),
            ("smart_200704_1605632/xyxy", "smart_twice/xyxy", "phrases"),
            ("grid1000/xyxy", "pixels_times_size/xyxy", "phrases"),
            ("grid1000/xyxy", "grid1000_rot90cw/xyxy", "detection"),
            ("grid1000/xyxy", "grid1000/yxyx", "phrases"),
            ("grid1000/xyxy", "pixels/cxcywh", "detection"),
        ],
        3,
    ),
)
def test_another_convention_is_named(declared: str, says: str, profile: str) -> None:
    arrays = answered(profile, convention(says), 3, 120)
    result = diagnose(arrays, convention(declared))
    assert result.verdict is CoordinateVerdict.OTHER
    assert convention_distance(arrays, result.fit.best, convention(says)) < 0.02
    assert result.fit.best.name in result.fit.lookalikes
    assert result.fit.agree > 0.6 * result.answered


@pytest.mark.parametrize(
    "fault",
    every_nth_fast([Fault(scale=(0.62, 0.62)), Fault(scale=(1.22, 1.22)), Fault(scale=(1.0, 0.88)),
     Fault(offset=(0.045, -0.035))], 2),
)  # fmt: skip
def test_a_frame_that_no_row_has(fault: Fault) -> None:
    declared = convention("claude_standard/xyxy")
    arrays = answered("phrases", declared, 5, 150, fault=fault)
    assert diagnose(arrays, declared).verdict is CoordinateVerdict.UNLISTED
    options = fit_distortion(arrays, declared, scaling_of(fault.scale[0]))
    assert options.scale == pytest.approx(fault.scale, abs=0.03)
    assert options.at_origin == pytest.approx(fault.offset, abs=0.015)
    assert (np.abs(options.scale - fault.scale) < 4 * options.scale_error).all()
    assert (np.abs(options.at_origin - fault.offset) < 4 * options.at_origin_error).all()


def test_a_small_drift_is_noted_and_is_no_alarm() -> None:
    fault = Fault((1.03, 1.03), (-0.015, -0.015))
    arrays = answered("dense", GRID, 2, 60, Habit(miou=0.9), fault)
    assert not diagnose(arrays, GRID).verdict.alarms
    assert fit_distortion(arrays, GRID).scale == pytest.approx([1.03, 1.03], abs=0.01)


@pytest.mark.parametrize(
    ("other", "share", "seed", "pull"),
    [
        ("pixels/xyxy", 0.3, 4, 0.0),
        # Boxes that are bent to the middle explain none of those in the other convention.
        ("grid1000/cxcywh", 0.2, 1, 0.1),
    ],
)
def test_two_conventions_in_a_run(other: str, share: float, seed: int, pull: float) -> None:
    says = lambda rng: convention(other) if rng.random() < share else GRID  # noqa: E731
    result = diagnose(answered("detection", says, seed, 200, Habit(miou=0.7, pull=pull)), GRID)
    assert result.verdict is CoordinateVerdict.MIXED
    assert result.fit.second.share == pytest.approx(share, abs=0.1)


def test_sides_that_were_rounded_away_are_no_second_convention() -> None:
    """A run that was once diagnosed as mixed: tiny objects, coarse steps.

    Boxes without a side are somewhere in the image in many other conventions.
    """
    rng = np.random.default_rng([77, 879])
    for _ in range(3):  # what was simulated was drawn first
        rng.choice(3)
    declared = convention("claude_standard/xyxy")
    simulated = run(rng, PROFILES["tiny, 8k"], declared, HABITS["coarse numbers"], 200)
    assert not diagnose(run_arrays(simulated), declared).verdict.alarms


def test_boxes_that_follow_nothing() -> None:
    blind = answered("phrases", GRID, 0, 100, Habit(miou=0.7, garbage=1.0))
    assert diagnose(blind, GRID).verdict is CoordinateVerdict.NONE
    queries = run(np.random.default_rng(0), PROFILES["phrases"], GRID, GOOD, 60)
    full = [each._replace(numbers=[(0, 0, 1000, 1000)]) for each in queries]
    assert not diagnose(run_arrays(full), GRID).verdict.alarms, "the same box again and again"


@pytest.mark.parametrize("queries", [0, 4])
def test_too_few(queries: int) -> None:
    result = diagnose(answered("phrases", GRID, 0, queries), GRID)
    assert (result.verdict, result.fit) == (CoordinateVerdict.TOO_FEW, None)


def test_what_images_of_a_single_size_cannot_tell() -> None:
    square = replace(PROFILES["phrases"], sizes=((1000, 1000, 1.0),))
    simulated = run(np.random.default_rng(0), square, GRID, GOOD, 100)
    result = diagnose(run_arrays(simulated), PIXELS)
    assert result.verdict is CoordinateVerdict.FITS
    assert {"grid1000/xyxy", "pixels/xyxy", "letterbox1000/xyxy"} <= set(result.fit.lookalikes)


# --- the rules ------------------------------------------------------------------------------------


USUAL = RunFit(
    best=PIXELS,
    llr=50.0,
    z=5.0,
    z_iou=5.0,
    distance=0.5,
    signal=1000.0,
    agree=100,
    lookalikes=(PIXELS.name,),
    rivals=(),
    unlisted=UnlistedConvention(PIXELS, NO_DISTORTION, 0.0, 0.0, 0.0, 0.0),
    second=SecondConvention(GRID, 0.0, -1.0, 0.0),
)
"""A clear case of another convention."""


def result(**changes: Any) -> RunFit:
    return replace(USUAL, **changes)


def bent(scale: tuple[float, float], offset: tuple[float, float]) -> UnlistedConvention:
    options = replace(NO_DISTORTION, scale=np.array(scale), offset=np.array(offset))
    return UnlistedConvention(GRID, options, gain=59.0, distance=0.2, z_iou=4.0, signal=1000.0)


LARGER = bent((1.2, 1.2), (0.1, 0.1))
SMALLER = bent((0.85, 0.85), (0.0, 0.01))
FAR = bent((0.6, 0.6), (-0.2, -0.2))


@pytest.mark.parametrize(
    ("each", "verdict"),
    [
        (result(), CoordinateVerdict.OTHER),
        (result(llr=14.9), CoordinateVerdict.UNDECIDED),
        (result(z=1.9), CoordinateVerdict.UNDECIDED),
        (result(z_iou=1.9), CoordinateVerdict.UNDECIDED),
        (result(distance=0.01), CoordinateVerdict.FITS),
        (result(distance=0.01, rivals=("unit/xyxy",)), CoordinateVerdict.UNDECIDED),
        (result(signal=23.9), CoordinateVerdict.NONE),
        (
            result(signal=23.9, unlisted=bent((0.6, 0.6), (-0.2, -0.2))._replace(gain=101)),
            CoordinateVerdict.UNLISTED,
        ),
        (result(unlisted=LARGER), CoordinateVerdict.UNLISTED),
        (result(unlisted=LARGER._replace(gain=24.0)), CoordinateVerdict.OTHER),
        (result(unlisted=LARGER._replace(distance=0.04)), CoordinateVerdict.OTHER),
        (result(unlisted=LARGER._replace(gain=59, z_iou=2.9)), CoordinateVerdict.OTHER),
        # What fits badly is no "fits".
        (result(distance=0.0, unlisted=LARGER._replace(z_iou=2.9)), CoordinateVerdict.UNDECIDED),
        # A scale that changes within the run.
        (result(unlisted=LARGER._replace(gain=61, z_iou=1.1)), CoordinateVerdict.UNLISTED),
        (result(unlisted=bent((1.02, 1.02), (0.01, 0.01))), CoordinateVerdict.FITS),
        (result(unlisted=SMALLER), CoordinateVerdict.FITS),
        (result(unlisted=bent((0.85, 0.85), (-0.075, -0.075))), CoordinateVerdict.UNLISTED),
        (result(unlisted=bent((1.0, 1.0), (0.03, 0.0))), CoordinateVerdict.UNLISTED),
        (
            result(distance=0.0, second=SecondConvention(GRID, 0.2, 26.0, 0.9)),
            CoordinateVerdict.MIXED,
        ),
        (
            result(distance=0.0, second=SecondConvention(GRID, 0.04, 26.0, 0.9)),
            CoordinateVerdict.FITS,
        ),
        (
            result(distance=0.0, second=SecondConvention(GRID, 0.2, 24.0, 0.9)),
            CoordinateVerdict.FITS,
        ),
        (
            result(distance=0.0, second=SecondConvention(GRID, 0.2, 26.0, 0.3)),
            CoordinateVerdict.FITS,
        ),
        # A model that draws boxes to the middle, and a part in another convention.
        (
            result(unlisted=SMALLER, second=SecondConvention(PIXELS, 0.2, 26.0, 0.9)),
            CoordinateVerdict.MIXED,
        ),
    ],
)
def test_the_first_rule_that_holds(each: RunFit, verdict: CoordinateVerdict) -> None:
    assert decide_verdict(each, GRID, places=100)[0] is verdict
