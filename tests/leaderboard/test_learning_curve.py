"""Learning curves: values with intervals, and how certain the best checkpoint is."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scored_runs import World, failing, query, speaking, world
from simulated_trainings import claims_of, simulated_runs

from vlmeval_findit.analysis.run_statistics import StatisticsError, compare, intervals
from vlmeval_findit.leaderboard.learning_curve import curve_table, learning_curves
from vlmeval_findit.scoring.scored_run import Run
from vlmeval_findit.statistics.intervals import correct
from vlmeval_findit.statistics.sequential_tests import alpha_share

__all__ = ["simulated_runs", "world"]

JSON = "FindIt_Pascal_xyxy_json_bbox_2d"
TEXT = "FindIt_Pascal_xyxy_text"
METRIC = "F1@0.5 (failed calls as misses)"


def checkpoints(world: World, chances: dict[int, float], name: str = JSON) -> list[Run]:
    return [
        world.run(f"ft-step-{step}", name, speaking(name, chance))
        for step, chance in chances.items()
    ]


def test_the_best_is_compared_with_every_other_checkpoint(world: World) -> None:
    world.table("Pascal", [query(index, f"{index}.jpg") for index in range(40)])
    runs = checkpoints(world, {20: 0.5, 3: 0.1, 100: 0.95})
    (curve,) = learning_curves([*runs, world.run("Other", JSON, speaking(JSON, 1.0))])
    assert [point.step for point in curve.points] == [3, 20, 100]
    assert (curve.name, curve.dataset, curve.best.step) == ("ft", JSON, 100)
    pairs = [*combinations((runs[1], runs[0], runs[2]), 2)]
    tests = correct(compare(*pair)[METRIC] for pair in pairs)
    for point in curve.points[:2]:
        assert point.to_best is not None
        assert point.value == curve.metric.value(point.run.sums)
        bounds = intervals(point.run)[METRIC]
        assert bounds is not None
        assert point.interval is not None
        assert (point.interval.low, point.interval.high) == pytest.approx((bounds.low, bounds.high))
        of_pair = tests[pairs.index((point.run, runs[2]))]
        assert point.to_best.value == pytest.approx(of_pair.value)
        assert of_pair.corrected is not None
        expected = min(1.0, of_pair.corrected / alpha_share(3))
        assert point.to_best.corrected == pytest.approx(expected)
    assert curve.verdict.endswith("significantly better than all others")


def test_of_equal_checkpoints_the_first_is_best(world: World) -> None:
    (curve,) = learning_curves(checkpoints(world, {2: 0.6, 1: 0.6, 4: 0.6, 3: 0.6}))
    assert curve.best.step == 1
    assert curve.verdict.endswith("not significantly better than step 2, 3, 4")
    rows = [{field.name: cell for field, cell in row} for row in curve_table(curve).cells()]
    assert [row["minus best"].sign for row in rows] == ["", "≈", "≈", "≈"]
    assert [row["F1@0.5"].best for row in rows] == [True, False, False, False]


def test_a_curve_a_training_dataset_and_format(world: World) -> None:
    """Failed calls count as misses."""
    runs = [*checkpoints(world, {1: 0.5}), world.run("ft-step-2", JSON, failing)]
    runs += [*checkpoints(world, {1: 0.5}, TEXT), world.run("ft-2-step-1", JSON, speaking(JSON, 1))]
    curves = learning_curves(runs)
    names = [(curve.name, curve.dataset) for curve in curves]
    assert names == [("ft", JSON), ("ft", TEXT), ("ft-2", JSON)]
    assert curves[0].best.step == 1
    assert curves[0].points[1].value == 0
    assert curves[1].verdict.endswith("the only checkpoint")
    short = world.run("ft-step-3", JSON, speaking(JSON, 0.4), rows=3)
    with pytest.raises(StatisticsError, match="only runs over the same rows"):
        learning_curves([*runs, short])


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
    """The first false claim comes from a pair that is new: at most its share of the equal pairs.

    All groupings of 24 checkpoints into groups of equals are tried, in every order. An earlier pair
    is tested at its first table's level or below.
    """
    levels = [alpha_share(count) for count in range(2, 25)]
    assert levels == sorted(levels, reverse=True)
    most: dict[tuple[int, ...], float] = {(1,): 0.0}
    for level in levels:
        after: dict[tuple[int, ...], float] = {}
        for groups, spent in most.items():
            for larger in _with_one_more(groups):
                before = _equal_pairs(groups)
                pairs = _equal_pairs(larger)
                chance = level * (pairs - before) / pairs if pairs else 0.0
                after[larger] = max(after.get(larger, 0.0), spent + chance)
        most = after
    assert max(most.values()) == pytest.approx(1 - 24**-0.5) == most[(24,)]


def _with_one_more(groups: tuple[int, ...]) -> set[tuple[int, ...]]:
    """Return the sizes of groups after one checkpoint more, in any of them or alone."""
    sizes = [(*groups[:at], size + 1, *groups[at + 1 :]) for at, size in enumerate(groups)]
    return {tuple(sorted(each, reverse=True)) for each in [*sizes, (*groups, 1)]}


def _equal_pairs(groups: tuple[int, ...]) -> int:
    return sum(size * (size - 1) // 2 for size in groups)


def test_the_datasets_of_a_training_share_the_5_percent(world: World) -> None:
    world.table("Pascal", [query(index, f"{index}.jpg") for index in range(40)])
    chances = {1: 0.5, 2: 0.8}
    (alone,) = learning_curves(checkpoints(world, chances))
    both = checkpoints(world, chances) + checkpoints(world, chances, TEXT)
    other = world.run("other-step-1", TEXT, speaking(TEXT, 0.4))
    first, *_ = learning_curves([*both, other])
    one, half = (curve.points[0].to_best for curve in (alone, first))
    assert one is not None
    assert half is not None
    assert one.corrected is not None
    assert half.corrected == pytest.approx(min(1.0, 2 * one.corrected))
