"""The best of many was chosen by the tested values: 5 % hold for all that is said of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from equal_formats import Formats
from few_fast import few_fast
from paths import ROOT
from scipy import stats
from syntax_trees import nodes_of

from vlmeval_findit.benchmarks.findit import F1
from vlmeval_findit.statistics import BestOf, corrected_for_pairs, paired_difference

PACKAGE = ROOT / "vlmeval_findit"
COUNTS = (2, 3, 8, 19, 40, 97)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("p_value", [0.5, 0.04, 3e-4, 1e-7])
def test_the_correction_is_tukeys(count: int, p_value: float) -> None:
    errors = stats.norm.isf(p_value / 2)
    expected = stats.studentized_range.sf(np.sqrt(2) * errors, count, np.inf)
    assert corrected_for_pairs(p_value, count) == pytest.approx(expected, rel=1e-4, abs=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", COUNTS)
def test_it_is_between_one_test_and_all_pairs(count: int) -> None:
    for p_value in (1.0, 1 - 1e-16, 1 - 1e-9, 0.3, 0.01, 1e-6, 1e-30, 1e-300, 0.0):
        pairs = count * (count - 1) / 2
        corrected = corrected_for_pairs(p_value, count)
        assert p_value <= corrected <= min(1.0, pairs * p_value * (1 + 1e-9) + 1e-300)


@pytest.mark.parametrize("alpha_share", [1.0, 0.3, 0.01])
@pytest.mark.parametrize("count", COUNTS)
def test_the_interval_excludes_0_where_the_test_is_significant(
    count: int, alpha_share: float
) -> None:
    choice = BestOf(count, alpha_share)
    random = np.random.default_rng(count)
    seen = set()
    for gap in (0.0, 0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5):
        left, right = Formats((0.9 - gap, 0.9), images=60).estimates(random)
        test = choice.difference(left, right, F1.name)
        plain = paired_difference(left, right, F1.name)
        assert (test.value, test.p_value) == (plain.value, plain.p_value)
        assert test.interval is not None
        assert plain.interval is not None
        assert test.interval.low <= plain.interval.low
        assert test.interval.high >= plain.interval.high
        assert test.significant == (test.interval.low > 0 or test.interval.high < 0)
        seen.add(test.significant)
    assert seen == {True, False}


def test_two_named_beforehand_are_a_pair_of_two() -> None:
    left, right = Formats((0.6, 0.8), images=50).estimates(np.random.default_rng(1))
    test, plain = (
        BestOf(2).difference(left, right, F1.name),
        paired_difference(left, right, F1.name),
    )
    assert test.interval == plain.interval
    assert test.corrected == pytest.approx(plain.p_value)


# --- how often a claim is false, in the tables themselves: benchmarks/test_best_of_many.py --------


@pytest.mark.parametrize(("count", "images", "alike"), few_fast([(19, 50, 0.8), (19, 200, 0.5)], 1))
def test_of_equal_formats_few_are_called_worse(count: int, images: int, alike: float) -> None:
    """Measured: 0.5 to 4 %; each against the best with Holm's method for the others: 13 to 21 %."""
    random = np.random.default_rng(images)
    formats = Formats((0.6,) * count, images, alike)
    boards = [formats.claims(random) for _ in range(60)]
    assert np.mean([claims.any_false for claims in boards]) <= 0.1


# --- every place that tests ----------------------------------------------------------------------

NAMED: Mapping[str, str] = {
    "analysis/cost_differences.py": "two runs that the user names",
    "analysis/run_errors.py": "the error types of two runs that the user names",
    "analysis/run_statistics.py": "two runs that the user names",
    "leaderboard/ablation.py": "the values of an axis with its first, by Holm over the axis",
    "report/pair_comparison.py": "two runs named with --compare that are no pair of the board",
    "reproduction/asked_causes.py": "a setup with and without one fault",
    "reproduction/two_reproductions.py": "two reproductions that the user names",
    "statistics/multiple_tests.py": "the home of tests against the best",
}
"""Who may subtract estimates, or correct for a number of tests: what it compares was not chosen."""


def test_only_what_was_not_chosen_is_tested_alone() -> None:
    assert set(_callers({"paired_difference", "correct_by_holm"})) == set(NAMED)


def test_only_the_verdict_says_what_is_significant() -> None:
    """A module that compares p-values by itself may say otherwise than another."""
    judging = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.is_relative_to(PACKAGE / "statistics"):
            continue
        if any(map(_judges, nodes_of(path))):
            judging.add(path.relative_to(PACKAGE).as_posix())
    assert judging == set()


def _judges(node: ast.AST) -> bool:
    """Return whether a node compares p-values; that one is missing is no judgement."""
    if not isinstance(node, ast.Compare):
        return False
    asks_for_none = any(isinstance(each, ast.Is | ast.IsNot) for each in node.ops)
    return not asks_for_none and bool(_names_in(node) & {"p_value", "corrected", "ALPHA"})


def _names_in(node: ast.AST) -> set[str]:
    parts = list(ast.walk(node))
    names = {part.attr for part in parts if isinstance(part, ast.Attribute)}
    return names | {part.id for part in parts if isinstance(part, ast.Name)}


def _callers(names: set[str]) -> Iterator[str]:
    """Yield the modules that import one of the names, from its module or from the door."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in nodes_of(path):
            if not isinstance(node, ast.ImportFrom):
                continue
            imported = {alias.name for alias in node.names}
            of_statistics = (node.module or "").endswith(("statistics", "intervals"))
            if of_statistics and names & imported:
                yield path.relative_to(PACKAGE).as_posix()
