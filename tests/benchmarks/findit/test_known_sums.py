"""Rows have the sums that the metrics of their benchmark say, and no others."""

from __future__ import annotations

from itertools import product

import pytest
from toy_benchmark import Letters

from vlmeval_findit.benchmarks import benchmark_of
from vlmeval_findit.benchmarks.findit import BENCHMARK, NegativeOutcome, event_sums
from vlmeval_findit.boxes import BoxError, ErrorEvent
from vlmeval_findit.protocol import ScoredRow

PLAIN = {"asked": 1, "answered": 1, "readable": 1}
UNKNOWN = "row 7: no metric of Letters has a sum 'rigth': did you mean right?"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (ScoredRow(7, "a.png", {**PLAIN, "rigth": 1}), UNKNOWN),
        (ScoredRow(7, "a.png", PLAIN, parts={("animal", "cat"): {"rigth": 1}}), UNKNOWN),
        (
            ScoredRow(7, "a.png", PLAIN),
            "row 7: the sum 'right' is missing; a metric of Letters needs it",
        ),
    ],
)
def test_a_row_with_other_sums_is_refused(row: ScoredRow, says: str) -> None:
    with pytest.raises(ValueError, match="row 7: ") as refused:
        Letters().check_sums([row])
    assert str(refused.value).startswith(says)


def test_all_outcomes_and_error_types_of_boxes_have_known_sums() -> None:
    for outcome in NegativeOutcome:
        row = ScoredRow(0, "a.png", {outcome.sum: 1}, failed=outcome is NegativeOutcome.FAILED)
        for benchmark in (BENCHMARK, benchmark_of("FindIt_Demo_refexp_point_json")):
            benchmark.check_sums([row])
    for kind, box, thing in product(BoxError, (None, 0), (None, 0)):
        assert event_sums([ErrorEvent(kind, box, thing)]).keys() <= set(BENCHMARK.errors.keys)
