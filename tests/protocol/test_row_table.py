"""Rows in columns: nothing but the details is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlmeval_findit.protocol import (
    AnswerErrors,
    Metric,
    ScoredRow,
    SumKey,
    count_images,
    failed_calls,
    failures,
    reasons,
    rows_with_sum,
    sum_rows,
    table_of,
    with_events,
)
from vlmeval_findit.scoring import details_line, read_details_line
from vlmeval_findit.statistics import ClusteredSums, clustered_sums, estimate_metrics

numbers = st.one_of(
    st.integers(-3, 300),
    st.sampled_from([0, -1, 2**53, 2**53 + 1, 0.0, -0.0, 1e300]),
    st.floats(-1, 1),
)
words = st.text("ab ", min_size=1, max_size=2)
rows_of_a_run = st.lists(
    st.builds(
        ScoredRow,
        index=st.integers(0, 2**60),
        source=words,
        sums=st.dictionaries(words, numbers, max_size=3),
        failed=st.booleans(),
        reason=st.none() | words,
        slices=st.dictionaries(words, words, max_size=2),
        details=st.just({"boxes": [[1, 2, 3, 4]]}),
        parts=st.dictionaries(
            st.tuples(st.just("part"), words),
            st.dictionaries(words, numbers, min_size=1, max_size=2),
            max_size=2,
        ),
    ),
    max_size=8,
)


def same(result: Any, expected: Any) -> bool:
    """Equal, and of equal types: 1 is not 1.0 here, nor is -0.0 what 0.0 is."""
    return repr(result) == repr(expected)


def in_order(row: ScoredRow) -> ScoredRow:
    """Of what is by name, the order says nothing."""
    sums, slices = (dict(sorted(each.items())) for each in (row.sums, row.slices))
    parts = {part: dict(sorted(each.items())) for part, each in sorted(row.parts.items())}
    return replace(row, sums=sums, slices=slices, parts=parts)


def sorted_totals(rows: Sequence[ScoredRow]) -> list[tuple[str, float]]:
    return sorted((repr(key), total) for key, total in sum_rows(rows).items())


def as_lists(given: ClusteredSums) -> Any:
    sums = {name: values.tolist() for name, values in sorted(given.sums.items())}
    slices = {
        kind: (each.values, each.place.tolist()) for kind, each in sorted(given.slices.items())
    }
    return given.images, given.image.tolist(), sums, slices


@settings(max_examples=100)
@given(rows_of_a_run)
def test_rows_are_what_was_put_in_but_for_the_details(rows: list[ScoredRow]) -> None:
    table = table_of(rows, rows)
    bare = [in_order(replace(row, details={})) for row in rows]
    assert same([in_order(row) for row in table], bare)
    assert len(table) == len(rows)
    assert same([in_order(row) for row in table[1:]], bare[1:])
    assert same(sorted_totals(table), sorted_totals(rows))
    assert same(as_lists(clustered_sums(table, "x")), as_lists(clustered_sums(rows, "x")))
    assert (failures(table), count_images(table)) == (failures(rows), count_images(rows))
    assert (failed_calls(table), reasons(table)) == (failed_calls(rows), reasons(rows))
    for name in ("a", "b", "ab"):
        has_sum = [bool(row.sums.get(name)) for row in rows]
        assert rows_with_sum(table, name).tolist() == has_sum
        assert rows_with_sum(rows, name).tolist() == has_sum


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"slices": {"floor": 3}}, "the slice 'floor' is 3, not a text: write '3'"),
        ({"sums": {"error": float("nan")}}, "the sum 'error' is nan, not a finite number"),
        ({"sums": {"right": True}}, "the sum 'right' is True"),
        ({"sums": {"iou": np.float64(0.5)}}, "the sum 'iou' is np.float64(0.5)"),
        ({"parts": {("class", "a"): {"iou": None}}}, "the sum 'iou' is None"),
        ({"parts": {("class", "a"): {}, ("size", "b"): {}}}, "parts need one kind"),
        (
            {"parts": {("class", "a"): {}}, "slices": {"class": "a"}},
            "other than those of its slices: class",
        ),
    ],
)
def test_a_row_that_could_not_be_added_up_is_refused(more: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match="row 7: ") as refused:
        ScoredRow(7, "a.png", **{"sums": {"tp": 1}, **more})
    assert says in str(refused.value)


def test_the_classes_of_one_image_have_a_mean() -> None:
    """Mean IoU over classes, with several of them in an image."""
    mean_iou = Metric("mIoU", {"iou": 1}, {"there": 1}, over="class")

    def image(index: int, **ious: float) -> ScoredRow:
        parts = {("class", name): {"iou": iou, "there": 1} for name, iou in ious.items()}
        return ScoredRow(index, f"{index}.jpg", {"answered": 1}, parts=parts)

    reply: list[dict[str, float]] = [{"dog": 1.0, "cat": 0.5}, {"dog": 0.5}, {"cat": 0.0}]
    rows = [image(at, **each) for at, each in enumerate([*reply, {"dog": 0.0}] * 3)]
    assert sum_rows(rows)["iou"] == 6
    assert sum_rows(rows)["answered"] == 12
    assert mean_iou.value(sum_rows(rows)) == pytest.approx((50 + 25) / 2)
    read_back = [read_details_line(details_line(row)) for row in rows]
    for held in (rows, table_of(rows, rows), read_back):
        result = estimate_metrics((mean_iou,), clustered_sums(held, "x"))
        assert result.value("mIoU") == pytest.approx(37.5)
        assert result.influence.any()


def test_any_text_may_name_a_slice() -> None:
    """Neither brackets nor "=" mean anything in a name, a kind or a value."""
    rows = [
        ScoredRow(0, "a", {"tp[x]": 1}, slices={"a=[b": "c]=d"}),
        ScoredRow(1, "b", {"tp[x]": 2}),
    ]
    expected = {"tp[x]": 3, SumKey("tp[x]", "a=[b", "c]=d"): 1}
    assert sum_rows(rows) == sum_rows(table_of(rows)) == expected
    metric = Metric("tp", {"tp[x]": 1}, {"tp[x]": 1}, over="a=[b")
    assert metric.value(expected) == 100
    assert estimate_metrics((metric,), clustered_sums(rows, "x")).value("tp") == 100


def test_events_that_need_details_are_counted_before_those_go() -> None:
    class FromDetails(AnswerErrors):
        def events(self, row: ScoredRow) -> dict[str, float]:
            return {"lost: far": row.details["metres"], "asked": 7}

    analysis = FromDetails(Metric("Accuracy", {"right": 1}, {"asked": 1}))
    rows = [ScoredRow(i, "a", {"asked": 1}, details={"metres": i}) for i in range(3)]
    table = table_of(rows, with_events(analysis, rows))
    assert sum_rows(table) == {"asked": 3}
    counted = with_events(analysis, table)
    assert sum_rows(counted) == {"asked": 21, "lost: far": 3}
    assert sum_rows(counted) == sum_rows(with_events(analysis, rows))
    assert same(list(with_events(analysis, counted)), list(counted))
