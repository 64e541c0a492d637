"""Which difference images can show, and how many images a difference needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated import F1, Pictures, differences

from vlmeval_findit.protocol import Metric, ScoredRow
from vlmeval_findit.statistics import (
    FEWEST_IMAGES,
    BestOf,
    Pilot,
    assumed_pilot,
    clustered_sums,
    estimate_metrics,
    images_needed,
    mean_of_estimates,
    pilot_of,
    smallest_difference,
)

SHARE = Metric("share", part={"hits": 1}, whole={"objects": 1})


def pilot(left: list[int], right: list[int], objects: int = 1) -> Pilot | None:
    """Return what two runs tell that find so many objects of each image."""
    sides = []
    for hits in (left, right):
        rows = [
            ScoredRow(at, f"{at}.jpg", {"hits": number, "objects": objects})
            for at, number in enumerate(hits)
        ]
        sides.append(estimate_metrics((SHARE,), clustered_sums(rows, "images")))
    return pilot_of(*sides, "share")


@pytest.mark.parametrize(("images", "points"), [(50, 18.1), (200, 8.9), (1000, 4.0)])
def test_the_usual_formula_where_images_are_many(images: int, points: float) -> None:
    """2.8 times the root of the variance of an image's difference, over the images."""
    size = smallest_difference(assumed_pilot(0.2, 50), images)
    assert size is not None
    assert size.value == pytest.approx(points, abs=0.1)
    assert size.value == pytest.approx(280 * np.sqrt(0.2 / images), rel=0.04)


def test_the_two_questions_answer_each_other() -> None:
    told = pilot([1, 1, 0, 1, 0, 1, 1, 0, 1, 1], [0, 1, 1, 1, 0, 1, 0, 0, 1, 1])
    assert told is not None
    for points in (1.0, 2.0, 5.0, 20.0):
        needed = images_needed(told, points)
        assert needed is not None
        shown = smallest_difference(told, needed.value)
        one_less = smallest_difference(told, needed.value - 1)
        assert shown is not None
        assert one_less is not None
        assert shown.value <= points < one_less.value
        assert needed.range.low <= needed.value <= needed.range.high


def test_objects_of_an_image_are_no_images() -> None:
    """Ten alike objects an image tell as much as one."""
    hits = [1, 1, 0, 1, 0, 1, 1, 0, 1, 1] * 4
    others = [0, 1, 1, 1, 0, 1, 0, 0, 1, 1] * 4
    one = pilot(hits, others)
    ten = pilot([10 * each for each in hits], [10 * each for each in others], objects=10)
    assert one is not None
    assert ten is not None
    assert images_needed(ten, 5) == images_needed(one, 5)


def test_more_tests_need_more_images() -> None:
    told = assumed_pilot(0.2, 100)
    sizes = [images_needed(told, 5, BestOf(count).p_value) for count in (2, 5, 19)]
    values = [size.value for size in sizes if size is not None]
    assert len(values) == 3
    assert values == sorted(values)


@pytest.mark.parametrize("images", [1, 3, 5])
def test_so_few_images_show_no_difference(images: int) -> None:
    """Five coins that fall alike are no evidence at 5 %."""
    assert smallest_difference(assumed_pilot(0.2, 50), images) is None
    if images < FEWEST_IMAGES:
        assert pilot([1] * images, [0] * images) is None


@pytest.mark.parametrize("points", [2, 5, 20])
def test_equal_runs_need_what_the_difference_itself_varies(points: float) -> None:
    """At least so many objects are found by one of the two only."""
    told = pilot([1] * 30, [1] * 30)
    assert told is not None
    size = images_needed(told, points)
    assert size is not None
    share = points / 100
    assert size.value >= 2.8**2 * share * (1 - share) / share**2 * 0.95
    assert size.range.high > 2 * size.value or points == 20


def test_the_mean_over_datasets_has_its_own_pilot() -> None:
    """Ten datasets of 30 images show what one of 300 shows."""
    random = np.random.default_rng(1)
    pictures = Pictures(30, 0.6, objects=(1,))
    drawn = [pictures.drawn(random) for _ in range(10)]
    sides = []
    for _ in range(2):
        parts = [pictures.answered(random, images, f"{at} ") for at, images in enumerate(drawn)]
        sides.append(mean_of_estimates(parts))
    told = pilot_of(*sides, F1.name)
    assert told is not None
    shown = smallest_difference(told, told.images)
    of_one = smallest_difference(assumed_pilot(told.variance * 300, 300), 300)
    assert shown is not None
    assert of_one is not None
    assert shown.value == pytest.approx(of_one.value, rel=0.1)


def test_simulated_models_are_told_apart_as_promised() -> None:
    """Coarse; benchmarks/test_sample_size.py measures it."""
    pictures = Pictures(200, 0.6, objects=(1,))
    other = replace(pictures, rate=0.45)
    random = np.random.default_rng(5)
    many = replace(pictures, count=4000)
    drawn = many.drawn(random)
    sides = [each.answered(random, drawn, "") for each in (many, replace(other, count=4000))]
    told = pilot_of(*sides, F1.name)
    assert told is not None
    points = 100 * (pictures.truth - other.truth)
    size = images_needed(told, points)
    assert size is not None
    chances = []
    for share in (0.5, 1.0, 2.0):
        asked = replace(pictures, count=round(share * size.value))
        tests = differences(3, 150, [asked], [other.rate])
        chances.append(100 * float(np.mean([test.significant for test in tests])))
    assert chances[0] < 68
    assert 70 < chances[1] < 90
    assert chances[2] > 93
