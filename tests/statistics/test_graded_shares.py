"""Graded shares, as mIoU: hits that lie near one value must not hide that a miss costs it all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from graded_runs import GradedModel
from scipy import stats

from vlmeval_findit.benchmarks.findit import MIOU, POINTS_INSIDE
from vlmeval_findit.benchmarks.refl4 import accuracy_metrics as refl4
from vlmeval_findit.protocol import Metric, Ratio, ScoredRow
from vlmeval_findit.reproduction import FIGURE_METRICS
from vlmeval_findit.statistics import (
    Estimate,
    clustered_sums,
    estimate_metrics,
    mean_of_estimates,
    metric_intervals,
)

Sums = Mapping[str, float]


@dataclass(frozen=True)
class Graded:
    """A metric, and the sums of a row that is found, with its value, and of one that is missed."""

    metric: Metric
    found: Sums
    value: float
    missed: Sums


_PASSED = {name: float(at < 7) for at, name in enumerate(refl4.HIT_SUMS)}
_NONE_PASSED = dict.fromkeys(refl4.HIT_SUMS, 0.0)
_BY_CLASS = next(each for each in refl4.METRICS if each.name == "class_macc")
_SMALL = next(each for each in refl4.METRICS if each.name == "small_macc")
_ACCURACY = FIGURE_METRICS["mean of acc@0.5 to acc@0.95"].metric

GRADED = {
    "mIoU": Graded(MIOU, {"iou_sum": 0.85, "n_gt": 1, "tp": 1}, 0.85, {"n_gt": 1}),
    "mIoU of three objects": Graded(
        MIOU, {"iou_sum": 2.4, "n_gt": 3, "tp": 3}, 0.8, {"iou_sum": 0, "n_gt": 3}
    ),
    "macc": Graded(refl4.MACC, {"asked": 1, **_PASSED}, 0.7, {"asked": 1, **_NONE_PASSED}),
    "small_macc": Graded(_SMALL, {"asked": 1, **_PASSED}, 0.7, {"asked": 1, **_NONE_PASSED}),
    "class_macc": Graded(_BY_CLASS, {"asked": 1, **_PASSED}, 0.7, {"asked": 1, **_NONE_PASSED}),
    "points inside": Graded(
        POINTS_INSIDE, {"inside": 0.75, "targets": 1}, 0.75, {"inside": 0, "targets": 1}
    ),
    "accuracy of a figure": Graded(
        _ACCURACY, {"hits": 0.6, "asked": 1}, 0.6, {"hits": 0, "asked": 1}
    ),
    "a rating of a plug-in": Graded(
        Metric("rating", {"rated": 1}, {"asked": 1}), {"rated": 0.9, "asked": 1}, 0.9, {"asked": 1}
    ),
}


def estimate_of(metric: Metric, rows: Sequence[Sums], name: str = "") -> Estimate:
    """Estimate a metric of one row an image."""
    slices = {"size": "small", refl4.CLASS: "a"}
    scored = [
        ScoredRow(at, f"{name}{at:04}.png", dict(sums), slices=slices)
        for at, sums in enumerate(rows)
    ]
    return estimate_metrics([metric], clustered_sums(scored, "x"))


def ends(estimate: Estimate) -> tuple[float, float]:
    interval = metric_intervals(estimate)[estimate.metrics[0].name]
    assert interval is not None
    return interval.low / 100, interval.high / 100


@pytest.mark.parametrize("graded", GRADED.values(), ids=GRADED)
def test_images_without_a_miss_allow_for_misses(graded: Graded) -> None:
    """As many as Wilson's interval of as many hits, each of which costs the value of a hit."""
    for images in (7, 40, 200):
        low, high = ends(estimate_of(graded.metric, [graded.found] * images))
        t2 = stats.t.ppf(0.975, images - 1) ** 2
        assert low == pytest.approx(graded.value * images / (images + t2)), images
        assert high == pytest.approx(graded.value)


@pytest.mark.parametrize("graded", GRADED.values(), ids=GRADED)
def test_misses_alone_have_the_interval_of_the_share_of_hits(graded: Graded) -> None:
    """Where all hits are alike, the interval is that of the share of hits, times a hit's value."""
    rows = [graded.found] * 37 + [graded.missed] * 3
    plain = Metric("share", {"hit": 1}, {"asked": 1})
    hits = [{"hit": 1.0, "asked": 1.0}] * 37 + [{"hit": 0.0, "asked": 1.0}] * 3
    expected = [graded.value * end for end in ends(estimate_of(plain, hits))]
    assert ends(estimate_of(graded.metric, rows)) == pytest.approx(expected, abs=1e-6)


def test_what_hits_do_not_explain_is_joined() -> None:
    """Hits of several IoUs, none missed: upwards Student's interval, downwards both reaches."""
    ious = np.linspace(0.8, 0.9, 30).tolist()
    low, high = ends(estimate_of(MIOU, [{"iou_sum": iou, "n_gt": 1, "tp": 1} for iou in ious]))
    t = stats.t.ppf(0.975, 29)
    student = t * np.std(ious, ddof=1) / np.sqrt(30)
    missed = 0.85 * t**2 / (30 + t**2)
    assert high == pytest.approx(0.85 + student)
    assert low == pytest.approx(0.85 - np.hypot(student, missed))


def test_declared_hits_that_are_the_part_change_nothing() -> None:
    plain = Metric("share", {"hit": 1}, {"asked": 1})
    declared = replace(plain, hits=Ratio(plain.part, plain.whole))
    random = np.random.default_rng(3)
    for rate in (0.0, 0.4, 0.95, 1.0):
        rows = [{"hit": float(hit), "asked": 2.0} for hit in random.binomial(2, rate, 25)]
        assert ends(estimate_of(declared, rows)) == ends(estimate_of(plain, rows))


def test_a_miss_costs_no_more_than_the_variance_shows() -> None:
    """Missed objects have half the value of a hit: the interval is no wider than Wilson's of it."""
    rows = [{"iou_sum": 0.8, "n_gt": 1, "tp": 1}] * 30 + [{"iou_sum": 0.4, "n_gt": 1}] * 10
    worthless = [*rows[:30], *[{"iou_sum": 0.0, "n_gt": 1}] * 10]
    widths = [np.ptp(ends(estimate_of(MIOU, each))) for each in (rows, worthless)]
    assert widths[0] == pytest.approx(widths[1] / 2, rel=0.06)


# --- means over datasets --------------------------------------------------------------------------


def test_a_mean_of_graded_datasets_without_a_miss_is_pooled() -> None:
    """Five datasets of 20 images that are all hit are as sure as 100 images."""
    found = [GRADED["mIoU"].found] * 20
    low, high = ends(mean_of_estimates([estimate_of(MIOU, found, f"{at} ") for at in range(5)]))
    t2 = stats.t.ppf(0.975, 5 * 19) ** 2
    assert low == pytest.approx(0.85 * 100 / (100 + t2))
    assert high == pytest.approx(0.85)


def test_a_mean_counts_each_dataset_by_its_own_worth() -> None:
    """Of hits of 0.9 and of 0.3, a miss of the first costs the mean three times as much."""
    rows = {
        (worth, missed): [{"iou_sum": worth, "n_gt": 1, "tp": 1}] * (30 - missed)
        + [{"n_gt": 1}] * missed
        for worth in (0.9, 0.3)
        for missed in (0, 6)
    }
    reaches = []
    for misses in ((0, 6), (6, 0)):
        parts = [
            estimate_of(MIOU, rows[worth, missed], f"{worth}")
            for worth, missed in zip((0.9, 0.3), misses, strict=True)
        ]
        low, high = ends(mean_of_estimates(parts))
        reaches.append(high - low)
    assert reaches[1] > 1.4 * reaches[0]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_graded_datasets_does_not_matter(seed: int) -> None:
    random = np.random.default_rng(seed)
    models = [GradedModel(rate, objects="some") for rate in (0.9, 0.6, 0.99)]
    parts = [model.estimate(random, 15, f"{at} ") for at, model in enumerate(models)]
    first = metric_intervals(mean_of_estimates(parts))
    turned = metric_intervals(mean_of_estimates(parts[::-1]))
    for name, interval in first.items():
        other = turned[name]
        assert interval is not None
        assert other is not None
        assert (other.low, other.high) == pytest.approx((interval.low, interval.high), abs=1e-5)
