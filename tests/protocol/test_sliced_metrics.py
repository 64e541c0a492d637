"""Metrics that are means over slices: influence, intervals, and missing values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from vlmeval_findit.protocol import Metric, ScoredRow, SumKey, sum_rows
from vlmeval_findit.statistics import (
    Estimate,
    clustered_sums,
    estimate_metrics,
    mean_of_estimates,
    metric_intervals,
    paired_difference,
)

BY_CLASS = Metric("by class", {"hits": 1}, {"asked": 1}, over="class", empty=None)
PLAIN = Metric("plain", {"hits": 1}, {"asked": 1}, empty=None)
TRUE = (0.9, 0.5, 0.7, 0.3)  # chance of a hit, by class


def of_class(index: int, image: int, name: str, hit: bool) -> ScoredRow:
    sums = {"hits": int(hit), "asked": 1}
    return ScoredRow(index, f"{image:05d}.jpg", sums, slices={"class": name})


def some_rows(seed: int, images: int, classes: int) -> list[ScoredRow]:
    """Rows of images with 1 to 4 queries; classes differ in frequency and difficulty."""
    generator = np.random.default_rng(seed)
    weights = 1 / np.arange(1, classes + 1)
    rows = []
    for image in range(images):
        easy = generator.random() < 0.6
        for _ in range(generator.integers(1, 5)):
            name = int(generator.choice(classes, p=weights / weights.sum()))
            right = generator.random() < TRUE[name % len(TRUE)]
            hit = easy and right if generator.random() < 0.3 else right
            rows.append(of_class(len(rows), image, f"c{name}", hit))
    return rows


def estimate(rows: Sequence[ScoredRow]) -> Estimate:
    return estimate_metrics((PLAIN, BY_CLASS), clustered_sums(rows, "x"))


def test_the_value_is_the_score() -> None:
    rows = some_rows(1, 80, 12)
    result, sums = estimate(rows), sum_rows(rows)
    for metric in (PLAIN, BY_CLASS):
        assert result.value(metric.name) == pytest.approx(metric.value(sums))
    assert result.value("by class") != pytest.approx(result.value("plain"), abs=0.5)
    of_one = estimate([replace(row, slices={"class": "all"}) for row in rows])
    assert of_one.influence[:, 1] == pytest.approx(of_one.influence[:, 0])
    assert of_one.values[1] == of_one.values[0]


def test_influence_is_what_leaving_an_image_out_does() -> None:
    """Against a jackknife, also where an image is the only one that has a class."""
    rows = some_rows(2, 400, 5)
    rows.append(of_class(len(rows), 1000, "alone", False))
    result = estimate(rows)
    for at in (0, 11, 255, len(result.images) - 1):
        image = result.images[at].removeprefix("x/")
        rest = estimate([row for row in rows if row.source != image])
        moved = result.values - rest.values
        assert result.influence[at] == pytest.approx(moved, rel=0.03, abs=2e-5)
    # Without the last image a class is gone, and the mean is over the five others.
    assert abs(result.influence[-1, 1]) > 0.05


def test_intervals_hold_the_truth() -> None:
    """Twelve classes, the rarest in three images of 150 or so."""
    # With a share of 0.3 a hit also needs the image to be easy, which it is in 0.6 of cases.
    expected = 100 * (0.7 + 0.3 * 0.6) * np.mean(TRUE)
    held = 0
    for seed in range(50):
        result = metric_intervals(estimate(some_rows(seed, 150, 12)))["by class"]
        assert result is not None
        held += result.low <= expected <= result.high
    assert 46 <= held <= 49


def test_a_slice_and_its_metric_count_the_same_rows() -> None:
    rows = some_rows(5, 60, 4)

    def metric_of(name: str, value: str) -> Metric:
        hits, asked = (SumKey(of, "class", value) for of in ("hits", "asked"))
        return Metric(name, {hits: 1}, {asked: 1}, empty=None)

    of_slice, absent = metric_of("slice", "c1"), metric_of("absent", "none")
    everything = clustered_sums(rows, "x")
    whole = estimate_metrics((of_slice, absent), everything)
    inside = [row for row in rows if row.slices["class"] == "c1"]
    empty = [replace(row, sums={}) for row in rows if row.slices["class"] != "c1"]
    alone = estimate_metrics((PLAIN,), clustered_sums([*inside, *empty], "x"))
    assert whole.value("slice") == alone.value("plain")
    assert whole.value("slice") == pytest.approx(PLAIN.value(sum_rows(inside)))
    assert whole.influence[:, 0] == pytest.approx(alone.influence[:, 0])
    assert whole.counted[0] == alone.counted[0]
    of_image = Counter(row.source for row in inside).values()
    kish = sum(of_image) ** 2 / sum(count**2 for count in of_image)
    assert alone.counted[0] == pytest.approx(kish)
    assert kish < len(of_image)
    assert np.isnan(whole.values[1])


def test_rare_classes_make_few_images_of_many() -> None:
    """A hundred images of one class and three of another weigh as much as twelve or so."""
    rows = [of_class(i, i, "common", i % 2 == 0) for i in range(100)]
    rows += [of_class(100 + i, 100 + i, "rare", i == 0) for i in range(3)]
    plain, by_class = estimate(rows).counted
    assert plain == pytest.approx(103)
    assert by_class == pytest.approx(1 / (100 * 0.005**2 + 3 / 36))


def test_what_has_no_whole_has_no_value() -> None:
    """No entry, no interval, and no mean over datasets."""
    rows = [replace(row, slices={}) for row in some_rows(6, 30, 3)]
    result = estimate(rows)
    assert result.value("by class") is None
    assert set(metric_intervals(result)) == {"plain"}
    both = mean_of_estimates([result, estimate(some_rows(6, 30, 3))])
    assert both.value("by class") is None
    assert both.value("plain") == pytest.approx(result.value("plain"))
    silent = [replace(row, sums={"hits": 0, "asked": 0}) for row in rows]
    assert metric_intervals(estimate(silent)) == {}
    zero = replace(PLAIN, empty=0.0)
    nothing = estimate_metrics([zero], clustered_sums(silent, "x"))
    assert metric_intervals(nothing) == {"plain": None}


def test_the_difference_of_a_run_and_itself_is_nothing() -> None:
    rows = some_rows(8, 60, 4)
    assert paired_difference(estimate(rows), estimate(rows), "by class").p_value == 1
    worse = [replace(row, sums={"hits": 0, "asked": 1}) for row in rows]
    result = paired_difference(estimate(rows), estimate(worse), "by class")
    assert result.significant
    assert result.value == pytest.approx(estimate(rows).value("by class"))
