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
    confidence, hit, image = (np.array(column) for column in zip(*rows, strict=True))
    return RowBoxes(confidence, hit, image, np.array(objects, dtype=float))


HAND = boxes(
    (0.95, True, 0), (0.91, True, 0), (0.9, False, 1), (0.55, True, 1), (0.1, False, 1),
    (math.nan, True, 0), (1.0, True, 0), (0.0, False, 1),
    objects=(4, 2),
)  # fmt: skip


def test_calibration_worked_by_hand() -> None:
    bins = reliability(HAND)
    assert [(item.low, item.high, item.boxes, item.hits) for item in bins] == [
        (0.0, 0.1, 1, 0), (0.1, 0.2, 1, 0), (0.5, 0.6, 1, 1), (0.9, 1.0, 4, 0.75),
    ]  # fmt: skip
    assert bins[-1].confidence == pytest.approx((0.95 + 0.91 + 0.9 + 1) / 4)
    off = (0 + 0.1 + 0.45 + 4 * abs(0.94 - 0.75)) / 7
    assert calibration_error(bins) == pytest.approx(off)


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
    assert best.interval is None
    # 3 of 3 and 4 of 5 remain at 0.91 and 0.55: 6/9 and 8/11.
    assert (best.value, best.f1) == (0.55, pytest.approx(800 / 11))
    assert best.without == pytest.approx(100 * 10 / 14)
    assert f1_curve(boxes((0.5, True, 0), objects=(0,))).recall == (0.0,)
    # Of equally good thresholds the lowest: a hit of three objects, or two among five boxes.
    hits = [True, False, False, False, True, False]
    equal = boxes(*((0.9 - at / 10, hit, 0) for at, hit in enumerate(hits)), objects=(3,))
    best = best_threshold(equal, np.zeros((0, 1)))
    assert (best.value, best.f1) == (pytest.approx(0.5), pytest.approx(50))


def test_the_best_threshold_is_best_where_it_was_chosen() -> None:
    """Without information the best threshold here is not best elsewhere; with it, it is."""
    generator = np.random.default_rng(5)
    image = np.arange(400) // 4
    drawn = generator.multinomial(100, [0.01] * 100, 300).astype(float)
    hit = generator.random(400) < 0.3
    chance = generator.random(400)
    knowing = np.where(hit, 0.7, 0.3) + generator.uniform(-0.19, 0.19, 400)
    for confidence in (chance, knowing):
        best = best_threshold(RowBoxes(confidence, hit, image, np.full(100, 2.0)), drawn)
        assert best.interval.low <= best.value <= best.interval.high
        assert best.f1 >= max(best.without, best.elsewhere)
    assert best.elsewhere == pytest.approx(best.f1, abs=4)
    assert 0.5 < best.value < 0.6


def test_a_run_without_boxes_has_nothing_of_it() -> None:
    none = HAND.where(np.zeros(8, dtype=bool))
    assert best_threshold(none, np.zeros((0, 2))) is None
    assert reliability(none) == []
    assert calibration_error([]) is None
    assert f1_curve(none).f1 == ()
