"""Learning curves: values with intervals, and how certain the best checkpoint is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import numpy as np
import pytest
from review_files import Reviewer
from scored_runs import World, failing, query, speaking
from simulated_trainings import claims_of, simulated_runs

from vlmeval_findit.analysis import compare_runs, run_intervals
from vlmeval_findit.leaderboard import (
    OTHER_FAMILY,
    LearningCurve,
    curve_table,
    group_comparable,
    learning_curves,
    make_board,
)
from vlmeval_findit.protocol import Answer, Identity, Reviews, ReviewVerdict
from vlmeval_findit.report import make_page
from vlmeval_findit.scoring import Run, load_runs, reviewed_runs
from vlmeval_findit.statistics import ALPHA, BestOf, alpha_share, corrected_for_pairs

__all__ = ["simulated_runs"]

JSON = "FindIt_Pascal_xyxy_json_bbox_2d"
TEXT = "FindIt_Pascal_xyxy_text"
METRIC = "F1@0.5 (failed calls as misses)"
NOON = datetime(2026, 1, 1, 12)


def curves_of(runs: Sequence[Run]) -> list[LearningCurve]:
    return learning_curves(group_comparable(runs)[0])


def checkpoints(world: World, chances: dict[int, float], name: str = JSON) -> list[Run]:
    return [
        world.run(f"ft-step-{step}", name, speaking(name, chance))
        for step, chance in chances.items()
    ]


def test_the_best_is_compared_with_every_other_checkpoint(world: World) -> None:
    world.table("Pascal", [query(index, f"{index}.jpg") for index in range(40)])
    runs = checkpoints(world, {20: 0.5, 3: 0.1, 100: 0.95})
    (curve,) = curves_of([*runs, world.run("Other", JSON, speaking(JSON, 1.0))])
    assert [point.step for point in curve.points] == [3, 20, 100]
    assert (curve.name, curve.dataset, curve.best.step) == ("ft", JSON, 100)
    for point in curve.points[:2]:
        assert point.to_best is not None
        assert point.value == curve.metric.value(point.run.sums)
        bounds = run_intervals(point.run)[METRIC]
        assert bounds is not None
        assert point.interval is not None
        assert (point.interval.low, point.interval.high) == pytest.approx((bounds.low, bounds.high))
        of_pair = compare_runs(point.run, runs[2])[METRIC]
        assert point.to_best.value == pytest.approx(of_pair.value)
        assert of_pair.p_value is not None
        expected = min(1.0, corrected_for_pairs(of_pair.p_value, 3) / alpha_share(3))
        assert point.to_best.corrected == pytest.approx(expected)
    assert curve.verdict.endswith("significantly better than all others")
    assert [OTHER_FAMILY] in [note.lines for note in curve_table(curve).notes]
    assert make_page(make_board(runs), NOON).count(OTHER_FAMILY) == 1


def test_of_equal_checkpoints_the_first_is_best(world: World) -> None:
    (curve,) = curves_of(checkpoints(world, {2: 0.6, 1: 0.6, 4: 0.6, 3: 0.6}))
    assert curve.best.step == 1
    assert curve.verdict.endswith("not significantly better than step 2, 3, 4")
    rows = [{field.name: cell for field, cell in row} for row in curve_table(curve).cells()]
    assert [row["minus best"].sign for row in rows] == ["", "≈", "≈", "≈"]
    assert [row["F1@0.5"].best for row in rows] == [True, False, False, False]


def test_a_curve_a_training_dataset_and_format(world: World) -> None:
    """Failed calls count as misses."""
    runs = [*checkpoints(world, {1: 0.5}), world.run("ft-step-2", JSON, failing)]
    runs += [*checkpoints(world, {1: 0.5}, TEXT), world.run("ft-2-step-1", JSON, speaking(JSON, 1))]
    curves = curves_of(runs)
    names = [(curve.name, curve.dataset) for curve in curves]
    assert names == [("ft", JSON), ("ft", TEXT), ("ft-2", JSON)]
    assert curves[0].best.step == 1
    assert curves[0].points[1].value == 0
    assert curves[1].verdict.endswith("the only checkpoint")
    short = world.run("ft-step-3", JSON, speaking(JSON, 0.4), rows=3)
    assert [curve.name for curve in curves_of([*runs, short])] == names_of(curves)
    assert all(point.step != 3 for curve in curves_of([*runs, short]) for point in curve.points)


def names_of(curves: Sequence[LearningCurve]) -> list[str]:
    return [curve.name for curve in curves]


@pytest.mark.parametrize("first", ["a", "z"])
def test_of_two_runs_of_a_checkpoint_the_boards_is_drawn(world: World, first: str) -> None:
    """Whatever their folders are called: the newer, or neither if they contradict each other."""

    second = "z" if first == "a" else "a"
    for step, chance in ((1, 0.2), (2, 0.9)):
        world.predict(f"ft-step-{step}", JSON, speaking(JSON, chance), folder="m")
    older, newer = "2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00"
    for folder, when, chance in ((first, older, 0.1), (second, newer, 0.5)):
        change = partial(_asked_at, when)
        world.predict("ft-step-3", JSON, speaking(JSON, chance), folder=folder, change=change)
    runs = load_runs([world.runs])
    (curve,) = curves_of(runs)
    board = make_board(runs)
    drawn = {point.run.model: point.run.path for point in curve.points}
    assert drawn == {row.run.model: row.run.path for row in board.runs}
    assert drawn["ft-step-3"].parent.name == second


def _asked_at(when: str, run: Identity) -> Identity:
    return replace(run, asked_at=when)


def test_a_curve_with_reviews_is_beside_that_as_labelled(world: World) -> None:
    runs = checkpoints(world, {1: 0.3, 2: 0.6})
    before = {curve.dataset: curve for curve in curves_of(runs)}
    reviewer = Reviewer(JSON)
    reviews = [
        reviewer.review(index, ReviewVerdict.EDITED, Answer(((5.0, 65.0, 45.0, 95.0),)))
        for index in range(4)
    ]
    runs += reviewed_runs(runs, Reviews(tuple(reviews))).runs
    curves = {curve.dataset: curve for curve in curves_of(runs)}
    assert len(curves) == 2
    for dataset, curve in before.items():
        assert curves[dataset].points == curve.points, "no review changes what is as labelled"
    names = {run.dataset_name for run in runs}
    assert {*curves} == names
    for name, curve in curves.items():
        values = {run.path: run.value(curve.metric) for run in runs if run.dataset_name == name}
        assert {point.run.path: point.value for point in curve.points} == values


# --- how often a claim is false -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "rates",
    [[0.6] * 10, [0.3] * 5 + [0.7] * 5, [0.2, 0.4, 0.6, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8]],
    ids=["all equal", "two plateaus", "rising to a plateau"],
)
@pytest.mark.usefixtures("simulated_runs")
def test_a_look_after_every_checkpoint_is_false_in_few_trainings(rates: list[float]) -> None:
    """Measured: 3, 4 and 1 of 100; without the correction for the looks 10, 15 and 9."""
    trainings = (claims_of(np.random.default_rng([seed, 40]), rates, 40) for seed in range(100))
    false = sum(training.false > 0 for training in trainings)
    assert false <= 6


def test_no_grouping_of_equal_checkpoints_spends_more_than_5_percent() -> None:
    """The first false claim of a table is about the best and the worst of a group of equals.

    One of the two is new, with a chance of 2 in the size of its group: earlier tables had the other
    pairs, and asked for no more. All groupings of 24 checkpoints, in every order, are tried.
    """
    tables = range(2, 25)
    p_values = [BestOf(count, alpha_share(count)).p_value for count in tables]
    assert p_values == sorted(p_values, reverse=True)
    most: dict[tuple[int, ...], float] = {(1,): 0.0}
    for p_value in p_values:
        chance_of = {size: _chance_of_new(size, p_value) for size in range(1, 25)}
        after: dict[tuple[int, ...], float] = {}
        for groups, spent in most.items():
            for size, larger in _with_one_more(groups):
                after[larger] = max(after.get(larger, 0.0), spent + chance_of[size])
        most = after
    assert max(most.values()) == pytest.approx(ALPHA * (1 - 24**-0.5)) == most[(24,)]


def _chance_of_new(size: int, p_value: float) -> float:
    """Return the chance that the newest of a group is one of the two that are called different."""
    return 2 / size * corrected_for_pairs(p_value, size) if size > 1 else 0.0


def _with_one_more(groups: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the size of the group that a checkpoint more is in, and the sizes of all groups."""
    for at, size in enumerate(groups):
        yield size + 1, tuple(sorted((*groups[:at], size + 1, *groups[at + 1 :]), reverse=True))
    yield 1, (*groups, 1)


def test_the_datasets_of_a_training_share_the_5_percent(world: World) -> None:
    world.table("Pascal", [query(index, f"{index}.jpg") for index in range(40)])
    chances = {1: 0.5, 2: 0.8}
    (alone,) = curves_of(checkpoints(world, chances))
    both = checkpoints(world, chances) + checkpoints(world, chances, TEXT)
    other = world.run("other-step-1", TEXT, speaking(TEXT, 0.4))
    first, *_ = curves_of([*both, other])
    one, half = (curve.points[0].to_best for curve in (alone, first))
    assert one is not None
    assert half is not None
    assert one.corrected is not None
    assert half.corrected == pytest.approx(min(1.0, 2 * one.corrected))
