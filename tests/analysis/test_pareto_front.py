"""Which points of score and cost no other point beats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scored_runs import World, failing, speaking

from vlmeval_findit.analysis import counted_score, pareto_front
from vlmeval_findit.protocol import Better

JSON = "FindIt_Pascal_xyxy_json"

Point = tuple[float | None, float | None]

# Few values, so that many are equal.
VALUE = st.one_of(st.none(), st.integers(0, 6).map(float))
POINTS = st.lists(st.tuples(VALUE, VALUE), max_size=12)
BETTER = st.sampled_from(Better)


def front_of(points: list[Point], better: Better = Better.HIGHER) -> list[int]:
    return pareto_front([point[0] for point in points], [point[1] for point in points], better)


def beats(one: Point, other: Point, better: Better) -> bool:
    """Compare two points by the words of the definition."""
    (score, cost), (other_score, other_cost) = one, other
    if score is None or cost is None or other_score is None or other_cost is None:
        return False
    if better is Better.LOWER:
        score, other_score = -score, -other_score
    return score >= other_score and cost <= other_cost and one != other


@pytest.mark.parametrize(
    ("points", "front"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([(50.0, 1.0)], [0], id="one point"),
        pytest.param([(90.0, 5.0), (70.0, 1.0)], [1, 0], id="better and dearer: both"),
        pytest.param([(90.0, 1.0), (70.0, 5.0)], [0], id="better and cheaper: alone"),
        pytest.param([(90.0, 5.0), (90.0, 3.0)], [1], id="equal score: the cheaper"),
        pytest.param([(90.0, 3.0), (91.0, 3.0)], [1], id="equal cost: the better"),
        pytest.param([(90.0, 3.0), (90.0, 3.0), (80.0, 3.0)], [0, 1], id="equal in both: both"),
        pytest.param([(90.0, None), (70.0, 5.0)], [1], id="cost not known"),
        pytest.param([(None, 1.0), (70.0, 5.0)], [1], id="without a score"),
        pytest.param([(70.0, 0.0), (0.0, 0.0)], [0], id="free, and scores of zero"),
        # 0.1 + 0.2 is not 0.3, but no model is dearer by that.
        pytest.param([(90.0, 0.1 + 0.2), (90.0, 0.3)], [0, 1], id="equal but for the last bits"),
        pytest.param([(90.0, 1e9 * (0.1 + 0.2)), (90.0, 3e8)], [0, 1], id="large and equal"),
        pytest.param([(90.0, 2e-10), (90.0, 1e-10)], [1], id="tiny and not equal"),
    ],
)
def test_front(points: list[Point], front: list[int]) -> None:
    assert front_of(points) == front


def test_lower_scores_may_be_better() -> None:
    assert front_of([(0.5, 1.0), (0.9, 2.0), (0.4, 3.0)], Better.LOWER) == [0, 2]


def test_every_point_has_a_score_and_a_cost() -> None:
    with pytest.raises(ValueError, match="zip"):
        pareto_front([90.0, 80.0], [1.0])


@given(POINTS, BETTER)
def test_front_is_what_brute_force_finds(points: list[Point], better: Better) -> None:
    unbeaten = set()
    for at, point in enumerate(points):
        rivals = [other for other in points if beats(other, point, better)]
        if None not in point and not rivals:
            unbeaten.add(at)
    assert set(front_of(points, better)) == unbeaten


@given(POINTS, BETTER)
def test_front_is_dearer_and_better_point_by_point(points: list[Point], better: Better) -> None:
    front = [points[at] for at in front_of(points, better)]
    costs = [cost for _, cost in front]
    scores = [score for score, _ in front]
    assert costs == sorted(costs, key=float)  # type: ignore[arg-type]
    assert scores == sorted(scores, key=float, reverse=better is Better.LOWER)  # type: ignore[arg-type]
    # Only equal points share a cost, or a score.
    assert len(set(costs)) == len(set(scores)) == len(set(front))


@given(POINTS, st.randoms(use_true_random=False))
def test_front_does_not_depend_on_the_order(points: list[Point], random: object) -> None:
    order = list(range(len(points)))
    random.shuffle(order)  # type: ignore[attr-defined]
    turned = front_of([points[at] for at in order])
    assert {order[at] for at in turned} == set(front_of(points))


@given(POINTS)
def test_a_point_that_is_beaten_changes_nothing(points: list[Point]) -> None:
    front = set(front_of(points))
    for at in range(len(points)):
        if at not in front:
            others = [point for place, point in enumerate(points) if place != at]
            assert [others[i] for i in front_of(others)] == [points[i] for i in front_of(points)]


def test_failed_calls_are_misses(world: World) -> None:
    """A model that fails on every third query is not as good as its answers."""
    hitting = speaking(JSON, 1.0)

    def answering_some(query: Any, generator: np.random.Generator) -> str:
        return failing(query, generator) if query.index % 3 == 0 else hitting(query, generator)

    run = world.run("Fails", JSON, answering_some)
    assert run.failed == 4
    assert run.metric_values["F1@0.5"] == 100.0
    # Two objects a query: 16 of 24 are hit, and no box is wrong.
    assert counted_score(run) == pytest.approx(100 * 2 * 16 / (16 + 24))
