"""Resizes whose rule or number is in no list: each size of images has one scale of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from every_pair import every_pair
from few_fast import few_fast
from numpy.typing import NDArray
from simulated_deployments import PROFILES, Habit, convention, run

from vlmeval_findit.boxes import smart_resize
from vlmeval_findit.coords import (
    ORDERS,
    AnsweredQuery,
    Convention,
    CoordinateMap,
    CoordinateVerdict,
    SpaceRow,
    diagnose,
    run_arrays,
    score_check,
)

Floats = NDArray[np.float64]
GRID = convention("grid1000/xyxy")
PIXELS = convention("pixels/xyxy")
GOOD = Habit(miou=0.9, wrong=0.05, extra=0.0, missed=0.0)


def resized(size: Callable[[Floats], Floats], order: str = "xyxy") -> Convention:
    """Return the convention of numbers that refer to other sizes."""
    row = SpaceRow("resized", "", 0.0, lambda s: CoordinateMap(size(s), np.zeros_like(s)))
    return Convention(row, ORDERS[order])


def smart(factor: int, least: int, most: int = 10**9) -> Callable[[Floats], Floats]:
    def size(sizes: Floats) -> Floats:
        each = [smart_resize((int(w), int(h)), least, most, factor) for w, h in sizes.T]
        return np.array(each, float).T

    return size


def answers(says: Convention, seed: int = 1, habit: Habit = GOOD) -> list[AnsweredQuery]:
    return run(np.random.default_rng(seed), PROFILES["referring"], says, habit, 250)


RESIZES: Sequence[tuple[Callable[[Floats], Floats], str]] = [
    (smart(32, 786432), "smart_resize (factor 32, at least about 786,432 pixels)"),
    (smart(28, 610000), "smart_resize (factor 28, at least about"),
    (smart(28, 784, 90000), "smart_resize (factor 28, at most about"),
    (lambda sizes: sizes * 713 / sizes.min(0), "scaling the shorter side to 71"),
    (lambda sizes: sizes * 933 / sizes[0], "scaling the width to 9"),
    (lambda sizes: sizes * np.where(sizes.prod(0) > 250_000, 1.9, 0.6), "rule is not known"),
]


@every_pair("order, size, words", ["xyxy", "xywh"], RESIZES, fast=3)
def test_a_resize_of_no_list_is_one_fault(
    size: Callable[[Floats], Floats], words: str, order: str
) -> None:
    declared = Convention(GRID.space, ORDERS[order])
    result = diagnose(run_arrays(answers(resized(size, order))), declared)
    assert result.verdict is CoordinateVerdict.UNLISTED
    assert result.resize is not None
    assert words in result.resize.words
    # The sizes that fit are named, to a few per cent.
    for (width, height), sides in result.resize.sizes.items():
        true = size(np.array([[width], [height]], float)).ravel()
        assert np.abs(np.log(np.array(sides) / true)).max() < 0.05


def test_the_check_after_scoring_names_the_resize() -> None:
    queries = answers(resized(smart(32, 786432)))
    in_pixels = [
        each._replace(
            numbers=[
                [
                    n * side / 1000
                    for n, side in zip(box, (each.width, each.height) * 2, strict=True)
                ]
                for box in each.numbers
            ]
        )
        for each in queries
    ]
    warning = score_check.warning_of_boxes(in_pixels, GRID)
    assert warning is not None
    assert "the answers follow pixels after smart_resize (factor 32" in warning


@pytest.mark.parametrize(
    "name", few_fast(["pixels/xyxy", "longer1024/xyxy", "smart_401408_1605632/xyxy"], 1)
)
def test_a_listed_convention_keeps_its_name(name: str) -> None:
    result = diagnose(run_arrays(answers(convention(name))), GRID)
    assert result.resize is None
    assert result.verdict is CoordinateVerdict.OTHER


def test_two_deployments_are_no_resize() -> None:
    rng = np.random.default_rng(3)
    mixed = run(
        rng,
        PROFILES["referring"],
        lambda chance: PIXELS if chance.random() < 0.4 else GRID,
        GOOD,
        250,
    )
    result = diagnose(run_arrays(mixed), GRID)
    assert result.resize is None
    assert result.verdict is CoordinateVerdict.MIXED


@pytest.mark.parametrize("seed", few_fast(range(4), 1))
def test_a_right_model_with_habits_has_no_resize(seed: int) -> None:
    habit = Habit(miou=0.7, size=1.06, pull=0.05)
    assert diagnose(run_arrays(answers(GRID, seed, habit)), GRID).resize is None
