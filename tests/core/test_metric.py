"""Metrics as ratios of sums: on one query, on a run, on arrays; and those of FindIt."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.benchmarks.findit.box_metrics import F1_FAILED_MISSED, METRICS, sums
from vlmeval_findit.boxes.records import FormatFailure, Matched, ParsedReply
from vlmeval_findit.core.metric import Metric, is_sliced, metric_values, sliced
from vlmeval_findit.core.scored_row import ScoredRow, add_up, totals

BOX = (0.0, 0.0, 10.0, 10.0)


def reading(*boxes: tuple[float, ...], reason: FormatFailure | None = None) -> ParsedReply:
    return ParsedReply(list(boxes), [], [], reason)  # type: ignore[arg-type]


HIT = Matched((BOX,), (1.0,), (True,), (0,), ())
NO_HIT = Matched((), (0.0, 0.0), (False, False), (-1, -1), ())


# --- FindIt's -------------------------------------------------------------------------------------


def test_values_by_hand() -> None:
    result = {"responses": 8, "adherent": 6, "tp": 3, "n_pred": 5, "n_gt": 10, "iou_sum": 4.0}
    assert metric_values(METRICS, result) == {
        "F1@0.5": pytest.approx(40.0),  # 2 * 0.6 * 0.3 / (0.6 + 0.3)
        "mIoU": 40.0,
        "Adherence": 75.0,
        "Precision": 60.0,
        "Recall": 30.0,
        "F1@0.5 (lenient)": pytest.approx(40.0),
        "Rejection accuracy": None,
        "False-alarm rate": None,
    }
    assert F1_FAILED_MISSED.value(result) == pytest.approx(40.0)


def test_empty_denominators_give_0_but_where_nothing_could_be_rejected() -> None:
    result = metric_values(METRICS, {})
    assert result.pop("Rejection accuracy") is result.pop("False-alarm rate") is None
    assert set(result.values()) == {0.0}


def test_a_failed_call_is_no_answer() -> None:
    failed = sums(reading(reason=FormatFailure.FAILED_CALL), NO_HIT)
    assert {name for name, value in failed.items() if value} == {"failed", "n_gt_failed"}
    assert failed["n_gt_failed"] == 2
    both = add_up([sums(reading(BOX), HIT), failed])
    result = metric_values(METRICS, both)
    assert result["F1@0.5"] == result["Recall"] == result["Adherence"] == 100.0
    # As an answer without boxes: precision 1, recall 1/3.
    assert F1_FAILED_MISSED.value(both) == pytest.approx(50.0)


counts = st.integers(0, 9)


@given(counts, counts, counts)
def test_f1_is_the_harmonic_mean(tp: int, wrong: int, missed: int) -> None:
    f1, _, _, precision, recall = metric_values(
        METRICS[:5], {"tp": tp, "n_pred": tp + wrong, "n_gt": tp + missed}
    ).values()
    mean = 2 * precision * recall / (precision + recall) if precision + recall else 0
    assert f1 == pytest.approx(mean)


# --- any ------------------------------------------------------------------------------------------

RATE = Metric("rate", {"right": 1}, {"asked": 1}, empty=None)
BY_CLASS = Metric("by class", {"right": 1}, {"asked": 1}, over="class", empty=None)


def test_a_mean_over_slices_weighs_every_slice_alike() -> None:
    built = [
        ScoredRow(0, "a", {"right": 1, "asked": 1}, slices={"class": "cat", "size": "small"}),
        *(
            ScoredRow(i, "b", {"right": 0, "asked": 1}, slices={"class": "dog", "size": "small"})
            for i in range(1, 4)
        ),
    ]
    result = totals(built)
    assert RATE.value(result) == 25.0
    assert BY_CLASS.value(result) == 50.0
    assert result[sliced("asked", "size", "small")] == 4
    assert [name for name in result if not is_sliced(name)] == ["right", "asked"]


@given(st.lists(st.tuples(counts, counts, counts, counts), min_size=1, max_size=8))
def test_arrays_give_what_dicts_give(draws: list[tuple[int, ...]]) -> None:
    """One entry a bootstrap draw: the same values as draw by draw."""
    names = [
        sliced("right", "class", "cat"), sliced("asked", "class", "cat"),
        sliced("right", "class", "dog"), sliced("asked", "class", "dog"),
    ]  # fmt: skip
    arrays = dict(zip(names, np.array(draws, dtype=float).T, strict=True))
    each_draw = [BY_CLASS.value(dict(zip(names, draw, strict=True))) for draw in draws]
    expected = [np.nan if value is None else value for value in each_draw]
    np.testing.assert_allclose(BY_CLASS.values(arrays), expected)
