"""Calibration and F1 over thresholds of confidences, by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from vlmeval_findit.runs.coco_boxes import RowBoxes
from vlmeval_findit.runs.run_calibration import (
    best_threshold,
    calibration_error,
    f1_curve,
    reliability,
)


def boxes(*rows: tuple[float, bool, int], objects: Sequence[float]) -> RowBoxes:
    confidence, hit, image = zip(*rows, strict=True)
    return RowBoxes(
        np.array(confidence, dtype=float),
        np.array(hit),
        np.array(image, dtype=np.intp),
        np.array(objects, dtype=float),
    )


HAND = boxes(
    (0.95, True, 0), (0.91, True, 0), (0.9, False, 1), (0.55, True, 1), (0.1, False, 1),
    (math.nan, True, 0), (1.0, True, 0), (0.0, False, 1),
    objects=(4, 2),
)  # fmt: skip


def test_calibration_worked_by_hand() -> None:
    bins = reliability(HAND)
    assert [(item.low, item.high, item.boxes) for item in bins] == [
        (0.0, 0.1, 1), (0.1, 0.2, 1), (0.5, 0.6, 1), (0.9, 1.0, 4),
    ]  # fmt: skip
    assert [item.hits for item in bins] == [0, 0, 1, 0.75]
    assert bins[-1].confidence == pytest.approx((0.95 + 0.91 + 0.9 + 1) / 4)
    off = (0 + 0.1 + 0.45 + 4 * abs(0.94 - 0.75)) / 7
    assert calibration_error(bins) == pytest.approx(off)
    assert calibration_error([]) is None


def test_f1_by_threshold_is_that_of_the_remaining_boxes() -> None:
    actual = f1_curve(HAND)
    assert all(a < b for a, b in pairwise(actual.thresholds))
    for at, threshold in enumerate(actual.thresholds):
        stored = np.nan_to_num(HAND.confidence) >= threshold
        hits, count = HAND.hit[stored].sum(), stored.sum()
        assert actual.precision[at] == pytest.approx(100 * hits / count, abs=1e-4)
        assert actual.recall[at] == pytest.approx(100 * hits / 6, abs=1e-4)
        assert actual.f1[at] == pytest.approx(100 * 2 * hits / (count + 6), abs=1e-4)
    best = best_threshold(HAND, np.zeros((0, 2)))
    assert best is not None
    assert best.interval is None
    # 3 of 3 and 4 of 5 remain at 0.91 and 0.55: 6/9 and 8/11.
    assert (best.value, best.f1) == (0.55, pytest.approx(800 / 11))
    assert best.without == pytest.approx(100 * 10 / 14)
    assert f1_curve(boxes((0.5, True, 0), objects=(0,))).recall == (0.0,)


def test_of_equally_good_thresholds_the_lowest_is_best() -> None:
    """One hit of three objects, or two among five boxes: 2/4 and 4/8."""
    actual = boxes(
        (0.9, True, 0), (0.8, False, 0), (0.7, False, 0), (0.6, False, 0), (0.5, True, 0),
        (0.4, False, 0),
        objects=(3,),
    )  # fmt: skip
    best = best_threshold(actual, np.zeros((0, 1)))
    assert best is not None
    assert (best.value, best.f1) == (0.5, pytest.approx(50))


def test_the_best_threshold_is_best_where_it_was_chosen() -> None:
    """Without information the best threshold here is not best elsewhere; with it, it is."""
    generator = np.random.default_rng(5)
    image = np.arange(400) // 4
    drawn = generator.multinomial(100, [0.01] * 100, 300).astype(float)
    hit = generator.random(400) < 0.3
    ignorant = RowBoxes(generator.random(400), hit, image, np.full(100, 2.0))
    knowing = RowBoxes(
        np.where(hit, 0.7, 0.3) + generator.uniform(-0.19, 0.19, 400),
        hit, image, np.full(100, 2.0),
    )  # fmt: skip
    chance, good = (best_threshold(item, drawn) for item in (ignorant, knowing))
    assert chance is not None
    assert good is not None
    for item in (chance, good):
        assert item.interval is not None
        assert item.interval.low <= item.value <= item.interval.high
        assert item.elsewhere is not None
        assert item.f1 >= max(item.without, item.elsewhere)
    assert good.elsewhere == pytest.approx(good.f1, abs=4)
    assert 0.5 < good.value < 0.6
    none = boxes((0.5, True, 0), objects=(1, 1, 1))
    none = RowBoxes(none.confidence[:0], none.hit[:0], none.image[:0], none.objects)
    assert best_threshold(none, drawn[:, :3]) is None
    assert reliability(none) == []
    assert f1_curve(none).f1 == ()
