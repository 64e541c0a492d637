"""What reviews of random rows say of all rows: counts, values, intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from simulated_audits import F1, estimated, hits_as_rows, simulate

from vlmeval_findit.protocol import Metric, Ratio, ScoredRow, SumKey, SumName, sum_rows
from vlmeval_findit.statistics import (
    RandomRows,
    SampledChanges,
    clustered_sums,
    count_wrong,
    estimate_all_rows,
    estimate_metrics,
    mean_of_estimates,
    metric_intervals,
    paired_difference,
    reaches_of_changes,
    sums_of_all_rows,
)

# --- by hand ---


@pytest.mark.parametrize("changed", [0, 1, 4])
def test_intervals_of_opposite_changes_are_mirrored(changed: int) -> None:
    """The long side is the one away from 0, where more rows may change."""
    change = np.zeros((20, 1))
    change[:changed] = 100.0 / 100
    better = SampledChanges(change, drawn_from=100, rows=100)
    worse = SampledChanges(-change, drawn_from=100, rows=100)
    down, up = reaches_of_changes(better, 0)
    assert reaches_of_changes(worse, 0) == pytest.approx((up, down))
    assert (up > down) is (changed > 0)


# --- counts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0, 1, 5, 30, 60])
def test_the_interval_of_wrong_labels_covers_them(wrong: int) -> None:
    """Over all draws of 20 of 60 unlisted rows; the count of listed rows is known."""
    chances = stats.hypergeom(60, wrong, 20)
    covered = 0.0
    for found in range(max(0, wrong - 40), min(20, wrong) + 1):
        count = count_wrong(listed_wrong=7, random_wrong=found, random=20, unlisted=60)
        assert count.low <= count.value <= count.high
        if count.low <= 7 + wrong <= count.high:
            covered += float(chances.pmf(found))
    assert covered >= 0.95


def test_wrong_labels_are_known_where_all_rows_are_reviewed() -> None:
    count = count_wrong(listed_wrong=3, random_wrong=2, random=50, unlisted=50)
    assert (count.value, count.low, count.high) == (5, 5, 5)


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_random_rows_correct_the_count_of_right_answers(seed: int) -> None:
    """Every label that a reviewer saw is right then; benchmarks/test_reviewed_rows.py has 150."""
    for model in simulate(seed):
        interval = metric_intervals(model.all_rows)["F1"]
        assert interval is not None
        assert interval.low <= model.true <= interval.high
        reviewed = model.all_rows.value("F1")
        assert reviewed is not None
        assert abs(reviewed - model.true) < 5


def plain_rows(hits: int, misses: int) -> list[ScoredRow]:
    return hits_as_rows(np.arange(hits + misses) < hits, np.arange(hits + misses))


def test_nothing_is_sampled_where_all_rows_are_reviewed() -> None:
    rows = plain_rows(60, 20)
    changes = [{"tp": 1}] * 5 + [{}] * 75
    whole = estimate_metrics([F1], clustered_sums(rows, "images"))
    assert metric_intervals(estimated(rows, changes, 80)) == metric_intervals(whole)


def test_reviews_correct_the_hits_of_a_graded_share() -> None:
    """IoUs of 1: corrected mIoU has the interval of the corrected share of hits."""
    miou = Metric("mIoU", {"iou": 1}, {"expected": 1}, hits=Ratio({"tp": 1}, {"expected": 1}))
    recall = Metric("recall", {"tp": 1}, {"expected": 1})
    rows = [replace(row, sums={**row.sums, "iou": row.sums["tp"]}) for row in plain_rows(60, 20)]
    changes = [{"tp": 1, "iou": 1}] * 2 + [{}] * 28
    graded = estimated(rows, changes, 60, miou)
    of_hits = estimated(rows, changes, 60, recall)
    assert metric_intervals(graded)["mIoU"] == metric_intervals(of_hits)["recall"]
    assert graded.hits is not None
    assert 100 * graded.hits.share[0] == pytest.approx(of_hits.value("recall"))


def test_unchanged_random_rows_do_not_prove_the_rest_right() -> None:
    """None of 50 random rows changed: up to one in fourteen of the others may."""
    rows = plain_rows(800, 200)
    few = metric_intervals(estimated(rows, [{}] * 50, 950))["F1"]
    many = metric_intervals(estimated(rows, [{}] * 900, 950))["F1"]
    assert few is not None
    assert many is not None
    assert few.high - 80 == pytest.approx(np.hypot(many.high - 80, 95 / 14), abs=0.5)


def test_a_share_is_at_most_all_rows() -> None:
    """One of ten random rows is a hit now: four more of fifty would be, and one is left."""
    estimate = estimated(plain_rows(99, 1), [{"tp": 1}] + [{}] * 9, 50)
    interval = metric_intervals(estimate)["F1"]
    assert estimate.value("F1") == 100
    assert interval is not None
    assert interval.high == 100
    assert 80 < interval.low < 99


def test_random_rows_change_a_mean_over_classes() -> None:
    """A label of class b was a's: the row leaves one mean and enters the other."""
    metric = Metric("by class", {"hits": 1}, {"asked": 1}, over="class")
    rows = [
        ScoredRow(at, str(at), {"hits": at % 2, "asked": 1}, slices={"class": "ab"[at // 10]})
        for at in range(20)
    ]
    moved: dict[SumName, float] = {
        SumKey("asked", "class", "a"): 1,
        SumKey("asked", "class", "b"): -1,
        SumKey("hits", "class", "b"): -1,
    }
    random = RandomRows((moved, {}, {}, {}), unlisted=8, rows=20)
    sums = sums_of_all_rows(sum_rows(rows), random)
    as_reviewed = estimate_metrics([metric], clustered_sums(rows, "images"))
    whole = estimate_all_rows(as_reviewed, sums, random)
    assert whole.value("by class") == pytest.approx(100 * (5 / 11 + 4 / 9) / 2)
    # Were all eight like the first: by the slope at these sums
    assert whole.changes is not None
    slope = (-5 / 11 / 11 + (-1 + 4 / 9) / 9) / 2
    assert whole.changes.change[0, 0] == pytest.approx(8 * slope)
    assert not whole.changes.change[1:].any()


def test_random_rows_of_several_datasets_are_drawn_apart() -> None:
    """The reach of a mean over two datasets is that of one over the root of two."""
    one = estimated(plain_rows(800, 200), [{}] * 50, 950)
    twin = hits_as_rows(np.arange(1000) < 800, np.arange(1000, 2000))
    other = estimated(twin, [{}] * 50, 950)
    widths = []
    for estimate in (one, mean_of_estimates([one, other])):
        interval = metric_intervals(estimate)["F1"]
        assert interval is not None
        widths.append(interval.high - interval.low)
    assert widths[1] == pytest.approx(widths[0] / np.sqrt(2), rel=0.02)
    assert paired_difference(
        mean_of_estimates([one, other]), mean_of_estimates([other, one]), "F1"
    ).value == pytest.approx(0)
