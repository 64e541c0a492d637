"""Metrics as ratios of sums: on one query, on a run, on arrays; and those of FindIt."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.benchmarks.findit import METRICS
from vlmeval_findit.protocol import Better, Metric, ScoredRow, SumKey, Sums, metric_values, sum_rows


def test_empty_denominators_give_0_but_where_nothing_could_be_rejected() -> None:
    result = metric_values(METRICS, {})
    assert result.pop("Rejection accuracy") is result.pop("False-alarm rate") is None
    assert set(result.values()) == {0.0}


counts = st.integers(0, 9)
RATE = Metric("rate", {"right": 1}, {"asked": 1}, empty=None)
BY_CLASS = Metric("by class", {"right": 1}, {"asked": 1}, over="class", empty=None)


@pytest.mark.parametrize(
    ("better", "unit", "worst"),
    [
        (Better.HIGHER, "%", 0.0),
        (Better.HIGHER, "px", 0.0),
        (Better.LOWER, "%", 100.0),
        (Better.LOWER, "px", math.inf),
    ],
)
def test_what_has_no_value_is_ranked_last(better: Better, unit: str, worst: float) -> None:
    metric = Metric("x", {"part": 1}, {"whole": 1}, better=better, unit=unit)
    nothing: Sums = {}
    nought: Sums = {"whole": 2}
    some: Sums = {"part": 1, "whole": 2}
    assert metric.rank_value(nothing) == metric.worst == worst
    for sums in (nought, some):
        assert metric.rank_value(sums) == metric.value(sums)
        order = better.order(metric.rank_value(sums))
        assert order <= better.order(metric.rank_value(nothing))


def test_a_mean_over_slices_weighs_every_slice_alike() -> None:
    def row(name: str, right: int) -> ScoredRow:
        slices = {"class": name, "size": "small"}
        return ScoredRow(0, "a", {"right": right, "asked": 1}, slices=slices)

    result = sum_rows([row("cat", 1), *[row("dog", 0)] * 3])
    assert RATE.value(result) == 25.0
    assert BY_CLASS.value(result) == 50.0
    assert result[SumKey("asked", "size", "small")] == 4
    assert [key for key in result if isinstance(key, str)] == ["right", "asked"]


@given(st.lists(st.tuples(counts, counts, counts, counts), min_size=1, max_size=8))
def test_arrays_give_what_dicts_give(draws: list[tuple[int, ...]]) -> None:
    """One entry a bootstrap draw: the same values as draw by draw."""
    names = [SumKey(of, "class", name) for name in ("cat", "dog") for of in ("right", "asked")]
    arrays = dict(zip(names, np.array(draws, dtype=float).T, strict=True))
    each_draw = [BY_CLASS.value(dict(zip(names, draw, strict=True))) for draw in draws]
    expected = [np.nan if value is None else value for value in each_draw]
    np.testing.assert_allclose(BY_CLASS.values(arrays), expected)
