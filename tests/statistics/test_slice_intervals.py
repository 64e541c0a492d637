"""Intervals of all slices at once are those of each slice's rows alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple

import numpy as np
import pytest
from few_fast import few_fast

from vlmeval_findit.protocol import Metric, Ratio, ScoredRow
from vlmeval_findit.statistics import (
    Interval,
    clustered_sums,
    estimate_metrics,
    metric_intervals,
    slice_intervals,
)

SHARE = Metric("accuracy", {"hits": 1}, {"asked": 1}, empty=None)
PRECISION = Metric("precision", {"hits": 1}, {"boxes": 1}, empty=None)
F1 = Metric("F1", {"hits": 2}, {"asked": 1, "boxes": 1}, empty=0.0)
ERROR = Metric("error", {"error": 1}, {"boxes": 1}, unit="px", empty=None)
MIOU = Metric("mIoU", {"ious": 1}, {"asked": 1}, hits=Ratio({"hits": 1}, {"asked": 1}))
RATING = Metric("rating", {"rated": 1}, {"asked": 1})
METRICS = (SHARE, PRECISION, F1, ERROR, MIOU, RATING)

SliceRates = Mapping[str, tuple[int, float]]
"""Images and rate of hits by the value of a slice."""

TABLES: Mapping[str, SliceRates] = {
    "one slice": {"a": (30, 0.6)},
    "slices of all sizes": {"a": (40, 0.8), "b": (4, 0.5), "c": (3, 0.5), "d": (1, 1.0)},
    "all right, all wrong": {"a": (12, 1.0), "b": (12, 0.0)},
    "none with enough images": {"a": (3, 0.5), "b": (2, 0.5)},
    "a hundred": {f"{at:03}": (at % 17 + 1, at / 100) for at in range(100)},
}


def some_rows(rates: SliceRates, seed: int) -> list[ScoredRow]:
    """Make rows of images with 1 to 3 queries; a third find no box, some are in no slice."""
    random = np.random.default_rng(seed)
    rows: list[ScoredRow] = []
    for value, (images, rate) in rates.items():
        for image in range(images):
            for _ in range(random.integers(1, 4)):
                boxes = int(random.integers(0, 3))
                hits = min(boxes, int(random.random() < rate))
                sums = {"hits": hits, "boxes": boxes, "error": 7 * float(random.random())}
                sums["ious"] = hits * float(random.uniform(0.8, 0.9))
                # Graded in some slices, 0 or 1 in the others
                sums["rated"] = hits * float(0.9 if value in "ac" else 1.0)
                # Images of slices overlap.
                source = f"{image}.jpg"
                rows.append(
                    ScoredRow(len(rows), source, {**sums, "asked": 1}, slices={"of": value})
                )
    rows.append(ScoredRow(len(rows), "elsewhere.jpg", {"hits": 1, "boxes": 1, "asked": 1}))
    return [rows[at] for at in random.permutation(len(rows))]


def alone(rows: Sequence[ScoredRow], value: str) -> dict[tuple[str, str], Interval]:
    inside = [row for row in rows if row.slices.get("of") == value]
    intervals = metric_intervals(estimate_metrics(METRICS, clustered_sums(inside, "x")))
    return {(value, name): each for name, each in intervals.items() if each is not None}


@pytest.mark.parametrize("rates", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("seed", few_fast(range(3), 1))
def test_they_are_those_of_each_slice_alone(rates: SliceRates, seed: int) -> None:
    rows = some_rows(rates, seed)
    at_once = slice_intervals(METRICS, clustered_sums(rows, "x"), "of")
    expected: dict[tuple[str, str], Interval] = {}
    for value in rates:
        expected |= alone(rows, value)
    assert at_once.keys() == expected.keys()
    for key, interval in expected.items():
        assert astuple(at_once[key]) == pytest.approx(astuple(interval), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("rates", TABLES.values(), ids=TABLES)
def test_other_metrics_change_no_bit(rates: SliceRates) -> None:
    clustered = clustered_sums(some_rows(rates, seed=0), "x")
    together = slice_intervals(METRICS, clustered, "of")
    one_by_one: dict[tuple[str, str], Interval] = {}
    for metric in METRICS:
        one_by_one |= slice_intervals([metric], clustered, "of")
    assert together == one_by_one


def test_what_is_no_share_is_refused() -> None:
    wrong = Metric("accuracy", {"hits": 300}, {"asked": 1}, empty=None)
    rows = some_rows({"a": (12, 1.0)}, seed=0)
    with pytest.raises(ValueError, match=r"accuracy is .* %, but a share is at most 100 %"):
        slice_intervals([wrong], clustered_sums(rows, "x"), "of")
