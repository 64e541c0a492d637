"""What reviews of random rows say of all rows: counts, values, intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from vlmeval_findit.protocol import Metric, Ratio, ScoredRow, SumKey, SumName, sum_rows
from vlmeval_findit.statistics import (
    Estimate,
    RandomRows,
    clustered_sums,
    count_wrong,
    estimate_all_rows,
    estimate_metrics,
    mean_of_estimates,
    metric_intervals,
    paired_difference,
    sums_of_all_rows,
)

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

F1 = Metric("F1", {"tp": 2}, {"predicted": 1, "expected": 1})
FOUND = 0.85  # Chance that a model finds the object
ROWS = 400
RANDOM = 80


@dataclass(frozen=True)
class Simulated:
    """A model in a simulated audit: two voters and a held-out model, all equally good."""

    true: float  # Its F1 if every label were right, in percent
    as_reviewed: Estimate
    all_rows: Estimate
    unlisted: float  # Its F1 as labelled, were listed rows dropped: what nothing here does


def simulate(seed: int, wrong: float = 0.14, correlation: float = 0.3) -> list[Simulated]:
    """Simulate the study's setting: a list of rows, a perfect reviewer, random rows.

    A row is listed if both voters answer the same, and not the label. A wrong label is the object
    that models mistake for the right one, too.
    """
    random = np.random.default_rng(seed)
    is_wrong = random.random(ROWS) < wrong
    alike = random.random((3, ROWS)) < correlation
    luck = np.where(alike, random.random(ROWS), random.random((3, ROWS)))
    mistake = np.where(random.random((3, ROWS)) < 0.35, 0, random.integers(1, 4, (3, ROWS)))
    mistake = np.where(alike, random.integers(0, 3, ROWS), mistake)
    found = luck < FOUND
    answer = np.where(found, -1, mistake)
    label = np.where(is_wrong, 0, -1)
    listed = (answer[0] == answer[1]) & (answer[0] != label)
    unlisted = np.flatnonzero(~listed)
    drawn = random.choice(unlisted, RANDOM, replace=False)
    reviewed = listed.copy()
    reviewed[drawn] = True
    images = random.integers(0, ROWS * 2 // 3, ROWS)
    models = []
    for model in range(3):
        before = answer[model] == label
        after = found[model]
        as_reviewed = hits_as_rows(np.where(reviewed, after, before), images)
        changes = [{"tp": int(after[row]) - int(before[row])} for row in drawn]
        models.append(
            Simulated(
                true=100 * float(after.mean()),
                as_reviewed=estimate_metrics([F1], clustered_sums(as_reviewed, "images")),
                all_rows=estimated(as_reviewed, changes, len(unlisted)),
                unlisted=100 * float(before[unlisted].mean()),
            )
        )
    return models


def hits_as_rows(hits: NDArray[np.bool_], images: NDArray[np.int64]) -> list[ScoredRow]:
    return [
        ScoredRow(at, f"{image:04d}", {"tp": int(hit), "predicted": 1, "expected": 1})
        for at, (hit, image) in enumerate(zip(hits, images, strict=True))
    ]


def estimated(
    rows: list[ScoredRow],
    changes: list[dict[str, int]],
    unlisted: int,
    metric: Metric = F1,
) -> Estimate:
    random = RandomRows(tuple(changes), unlisted, len(rows))
    sums = sums_of_all_rows(sum_rows(rows), random)
    as_reviewed = estimate_metrics([metric], clustered_sums(rows, "images"))
    return estimate_all_rows(as_reviewed, sums, random)


@pytest.fixture(scope="module")
def audits() -> list[list[Simulated]]:
    return [simulate(seed) for seed in range(150)]


def lead(models: list[Simulated], weighted: bool) -> tuple[float, bool]:
    """Return by how much a voter leads the held-out model, and whether the interval has 0."""
    voter, _, other = [each.all_rows if weighted else each.as_reviewed for each in models]
    test = paired_difference(voter, other, "F1")
    assert test.interval is not None
    assert test.p_value is not None
    covers = test.interval.low <= 0 <= test.interval.high
    assert covers == (test.p_value >= 0.05)
    return test.value, covers


def test_random_rows_take_the_voters_lead_away(audits: list[list[Simulated]]) -> None:
    weighted = [lead(models, weighted=True) for models in audits]
    plain = [lead(models, weighted=False) for models in audits]
    assert abs(np.mean([value for value, _ in weighted])) < 0.4
    assert np.mean([covers for _, covers in weighted]) >= 0.95
    # The same models, each row as it was reviewed: voters seem to be better.
    assert np.mean([value for value, _ in plain]) > 0.9
    assert np.mean([covers for _, covers in plain]) < 0.95


@pytest.mark.parametrize("wrong", [0, 0.14])
def test_dropping_doubted_rows_would_favour_the_voters(wrong: float) -> None:
    """The study's figure: equal models differ by 0.4 to 4.2 points, on right labels too."""
    audits = [simulate(seed, wrong) for seed in range(40)]
    leads = [models[0].unlisted - models[2].unlisted for models in audits]
    assert 0.4 < np.mean(leads) < 4.2


@pytest.mark.parametrize("model", [0, 2], ids=["voter", "held-out"])
def test_values_of_all_rows_are_unbiased_and_covered(
    audits: list[list[Simulated]], model: int
) -> None:
    errors = []
    covered = []
    for models in audits:
        interval = metric_intervals(models[model].all_rows)["F1"]
        assert interval is not None
        covered.append(interval.low <= 100 * FOUND <= interval.high)
        errors.append((models[model].all_rows.value("F1") or 0) - models[model].true)
    # Three standard errors of the mean of 150 audits
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(len(errors))
    assert np.mean(covered) >= 0.95


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
    graded = metric_intervals(estimated(rows, changes, 60, miou))["mIoU"]
    assert graded == metric_intervals(estimated(rows, changes, 60, recall))["recall"]


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
