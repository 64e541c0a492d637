"""Axes that are bent are told from those that are scaled, moved, cut off or drawn too large."""

from __future__ import annotations

import numpy as np
import pytest
from few_fast import few_fast
from simulated_deployments import PROFILES, Habit, convention, run

from vlmeval_findit.coords import AnsweredQuery, Convention, bent_axes, run_arrays

GRID = convention("grid1000/xyxy")


def answers(habit: Habit, seed: int, says: Convention = GRID) -> list[AnsweredQuery]:
    return run(np.random.default_rng(seed), PROFILES["referring"], says, habit, 250)


def bent(query: AnsweredQuery, powers: tuple[float, float]) -> AnsweredQuery:
    """Raise shares of the image to a power, on each axis."""
    numbers = []
    for box in query.numbers:
        shares = np.clip(np.array(box) / 1000, 0, 1) ** np.tile(powers, 2)
        numbers.append(np.round(1000 * shares).tolist())
    return query._replace(numbers=numbers)


HABITS = [
    Habit(miou=0.9, wrong=0.05, extra=0.0, missed=0.0),
    Habit(miou=0.7, wrong=0.2, extra=0.0, missed=0.0, size=1.1, pull=0.03),
]


@pytest.mark.parametrize("habit", few_fast(HABITS, 1), ids=["good", "weak"])
@pytest.mark.parametrize(
    ("powers", "expected"),
    [
        ((1.0, 1.0), ()),
        ((1.6, 1.0), ("across",)),
        ((0.6, 1.0), ("across",)),
        ((1.0, 1.6), ("down",)),
    ],
)
def test_bent_axes_are_named(
    powers: tuple[float, float], expected: tuple[str, ...], habit: Habit
) -> None:
    queries = [bent(query, powers) for query in answers(habit, seed=3)]
    assert bent_axes(run_arrays(queries), GRID) == expected


def test_both_axes_may_be_bent() -> None:
    queries = [bent(query, (1.3, 0.8)) for query in answers(HABITS[0], seed=3)]
    assert bent_axes(run_arrays(queries), GRID) == ("across", "down")


@pytest.mark.parametrize("seed", few_fast(range(6), 1))
@pytest.mark.parametrize("habit", HABITS, ids=["good", "weak"])
@pytest.mark.parametrize("cut", [(0, 1000), (150, 900)], ids=["whole", "cut off"])
def test_straight_axes_are_not_bent(seed: int, habit: Habit, cut: tuple[float, float]) -> None:
    queries = []
    for query in answers(habit, seed):
        inside = np.clip(np.array(query.numbers, float).reshape(-1, 4), *cut)
        queries.append(query._replace(numbers=inside.tolist()))
    assert bent_axes(run_arrays(queries), GRID) == ()


def test_few_boxes_are_never_called_bent() -> None:
    queries = [bent(query, (1.5, 1.5)) for query in answers(HABITS[0], seed=3)[:20]]
    assert bent_axes(run_arrays(queries), GRID) == ()
