"""Matching of very many boxes: as good as by the whole table, without the table."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from vlmeval_findit.boxes import (
    NO_BOX,
    MatchResult,
    MatchRule,
    ParsedReply,
    Truth,
    assign_sparse,
    hungarian,
    match,
    matching,
)

Query = tuple[ParsedReply, Truth]
SIDE = 100
LABELS = ["cat", "Dog.", "dog", "a  b"]

OVERLAP = MatchRule.BOX_OVERLAP
INSIDE = MatchRule.POINT_IN_OBJECT


def matched(query: Query, match_rule: MatchRule = OVERLAP) -> MatchResult:
    return match([query[0]], [query[1]], None, match_rule)[0]


def sparsely(query: Query, match_rule: MatchRule = OVERLAP, cells: int = 7) -> MatchResult:
    """The same with no pair too few for the way of very many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_PAIRS", 0)
        patch.setattr(hungarian, "CELLS_AT_ONCE", cells)
        return matched(query, match_rule)


def pair_runs(result: MatchResult, frames: Sequence[int]) -> list[tuple[int, int]]:
    """How many objects of every frame have a box."""
    assigned = [f for f, box in zip(frames, result.assigned, strict=True) if box != NO_BOX]
    return [(frame, assigned.count(frame)) for frame in sorted({*frames})]


def total(result: MatchResult) -> float:
    """What an assignment maximises (protocol section 5)."""
    return sum(result.ious) + sum(result.labels_agree)


# --- the assignment itself ------------------------------------------------------------------------

costs = st.sampled_from([0.0, 0.25, 0.5, 1.0, -1.0]) | st.floats(-1, 1, width=32)


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    """Cost tables with many ties."""
    rows = draw(st.integers(1, 12))
    columns = draw(st.integers(1, 12))
    row = st.lists(costs, min_size=columns, max_size=columns)
    return np.array(draw(st.lists(row, min_size=rows, max_size=rows)), dtype=np.float32)


# The dearest cell is another in every row.
@example(np.array([[0, 0], [0.5, 1]], np.float32), 50)
@given(tables(), st.integers(1, 50))
def test_it_costs_what_that_of_the_whole_table_costs(cost: np.ndarray, cells: int) -> None:
    rows, columns = cost.shape
    left = np.arange(100, 100 + rows)
    right = np.arange(columns)[::-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hungarian, "CELLS_AT_ONCE", cells)
        ones, others = assign_sparse(left, right, lambda some, of: cost[some - 100, of])
    assert len({*ones.tolist()}) == len({*others.tolist()}) == len(ones) == min(cost.shape)
    cheapest = cost[linear_sum_assignment(cost)].astype(float).sum()
    assert cost[ones - 100, others].astype(float).sum() == pytest.approx(cheapest, abs=1e-6)


# --- of queries -----------------------------------------------------------------------------------


@st.composite
def ugly(draw: st.DrawFn) -> Query:
    """Boxes on a coarse grid, many of them the same, with labels and frames or without."""
    corner = st.integers(0, 4).map(lambda n: 10.0 * n) | st.sampled_from([1e300, float("nan"), -1])
    box = st.tuples(corner, corner, corner, corner)
    labelled = draw(st.booleans())
    frames = draw(st.integers(1, 3))

    def side() -> tuple[list, list[str], list[int]]:
        result = draw(st.lists(box, max_size=8))
        labels = [draw(st.sampled_from(LABELS)) for _ in result] if labelled else []
        return result, labels, sorted(draw(st.integers(0, frames - 1)) for _ in result)

    predicted, labels, frame_numbers = side()
    true, true_labels, true_frames = side()
    return (
        ParsedReply(predicted, labels, frame_numbers if frames > 1 else [], None),
        Truth(tuple(true), tuple(true_frames), tuple(true_labels)),
    )


@pytest.mark.parametrize("match_rule", [OVERLAP, INSIDE])
@given(ugly(), st.integers(1, 50))
def test_totals_are_over_the_whole_table(match_rule: MatchRule, query: Query, cells: int) -> None:
    whole = matched(query, match_rule)
    result = sparsely(query, match_rule, cells)
    assert total(result) == pytest.approx(total(whole), abs=1e-5)
    frames = query[1].frames
    assert pair_runs(result, frames) == pair_runs(whole, frames)
    assigned = [box for box in result.assigned if box != NO_BOX]
    assert len(assigned) == len({*assigned})
    frame_numbers = query[0].frames or [0] * len(query[0].boxes)
    for frame, box in zip(frames, result.assigned, strict=True):
        assert box == NO_BOX or frame_numbers[box] == frame


def apart(n: int) -> list[tuple[float, ...]]:
    return [(20.0 * i, 0.0, 20.0 * i + 10, 10.0) for i in range(n)]


# --- what is ordinary, and what is not ------------------------------------------------------------


def test_a_query_is_assigned_by_its_whole_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []

    def counted(left, right, cost):
        calls.append(len(left) * len(right))
        return assign_sparse(left, right, cost)

    monkeypatch.setattr(matching, "assign_sparse", counted)
    monkeypatch.setattr(matching, "_PAIRS", 12)

    def query(boxes: int, objects: int) -> Query:
        return ParsedReply(apart(boxes), [], [], None), Truth(tuple(apart(objects)), (0,) * objects)

    queries = [query(3, 4), query(4, 3), query(13, 1), query(12, 1), query(0, 20)]
    together = match(*map(list, zip(*queries, strict=True)))
    assert calls == [13]
    assert together == [matched(each) for each in queries]


def test_a_thousand_objects_and_four_thousand_boxes_need_little_memory() -> None:
    """Their table has four million cells; a list of its pairs would take half a gigabyte."""
    query = ParsedReply(apart(4000), [], [], None), Truth(tuple(apart(1000)), (0,) * 1000)
    matched(query)  # scipy is imported once
    tracemalloc.start()
    try:
        assert matched(query).tp == 1000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50e6
