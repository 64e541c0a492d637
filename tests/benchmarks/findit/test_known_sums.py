"""Rows have the sums that the metrics of their benchmark say, and no others."""

from __future__ import annotations

import pytest
from toy_benchmark import Letters

from vlmeval_findit.benchmarks import benchmark_of
from vlmeval_findit.benchmarks.findit.benchmark import BENCHMARK, FindIt
from vlmeval_findit.benchmarks.findit.box_metrics import NegativeOutcome
from vlmeval_findit.benchmarks.findit.error_costs import event_sums
from vlmeval_findit.boxes.error_types import BoxError, ErrorEvent
from vlmeval_findit.core.scored_row import ScoredRow

PLAIN = {"asked": 1, "answered": 1, "readable": 1}


@pytest.mark.parametrize(
    ("sums", "says"),
    [
        (
            {**PLAIN, "rigth": 1},
            "row 7: no metric of Letters has a sum 'rigth': did you mean right?",
        ),
        (PLAIN, "row 7: lacks the sum 'right', which a metric of Letters needs"),
    ],
)
def test_a_row_with_other_sums_is_refused(sums: dict[str, float], says: str) -> None:
    with pytest.raises(ValueError, match="row 7: ") as refused:
        Letters().check_sums([ScoredRow(7, "a.png", sums)])
    assert str(refused.value).startswith(says)


def test_parts_are_checked_too() -> None:
    row = ScoredRow(7, "a.png", PLAIN, parts={("animal", "cat"): {"rigth": 1}})
    with pytest.raises(ValueError, match="no metric of Letters has a sum 'rigth'"):
        Letters().check_sums([row])


@pytest.mark.parametrize("of", [BENCHMARK, benchmark_of("FindIt_Demo_refexp_point_json")])
@pytest.mark.parametrize("outcome", NegativeOutcome)
def test_all_outcomes_of_a_query_without_objects_are_known(
    of: FindIt, outcome: NegativeOutcome
) -> None:
    of.check_sums([ScoredRow(0, "a.png", {outcome.sum: 1}, failed=outcome.name == "FAILED")])


@pytest.mark.parametrize("kind", BoxError)
@pytest.mark.parametrize(("box", "thing"), [(None, None), (0, None), (None, 0), (0, 0)])
def test_events_of_boxes_have_known_sums_whatever_they_lack(
    kind: BoxError, box: int | None, thing: int | None
) -> None:
    assert event_sums([ErrorEvent(kind, box, thing)]).keys() <= set(BENCHMARK.errors.keys)
