"""The ranks that tests allow are those of the tests of all pairs, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from equal_formats import Formats
from few_fast import every_nth_fast

from vlmeval_findit.benchmarks.findit import F1
from vlmeval_findit.protocol import Better
from vlmeval_findit.statistics import (
    BestOf,
    Estimate,
    RankRange,
    mean_of_estimates,
    rank_ranges,
)

# A column: its models, its images, and how alike their answers are
COLUMNS = [
    (2, 3, 0.0),
    (2, 60, 0.9),
    (6, 5, 0.5),
    (6, 8, 0.95),
    (12, 60, 0.0),
    (12, 60, 0.99),
    (30, 200, 0.8),
]


def one_by_one(estimates: Sequence[Estimate | None], choice: BestOf) -> list[RankRange]:
    better, worse, tests = ([0] * len(estimates) for _ in range(3))
    for left, right in combinations(range(len(estimates)), 2):
        one, other = estimates[left], estimates[right]
        if one is None or other is None:
            continue
        test = choice.difference(one, other, F1.name)
        if test.p_value is None:
            continue
        for at in (left, right):
            tests[at] += 1
        if test.significant:
            is_better = (test.value > 0) == (one.metrics[0].better is Better.HIGHER)
            above, below = (left, right) if is_better else (right, left)
            worse[above] += 1
            better[below] += 1
    return [
        RankRange(1 + better[at], len(estimates) - worse[at], untested=not tests[at])
        for at in range(len(estimates))
    ]


def drawn(models: int, images: int, alike: float, seed: int) -> list[Estimate]:
    rates = tuple(np.linspace(0.1, 0.9, models))
    return Formats(rates, images, alike).estimates(np.random.default_rng(seed))


@pytest.mark.parametrize(("models", "images", "alike"), every_nth_fast(COLUMNS, 3))
def test_ranges_count_the_tests_of_pairs(models: int, images: int, alike: float) -> None:
    for seed in range(4):
        estimates = drawn(models, images, alike, seed)
        for share in (1.0, 0.1):
            choice = BestOf(models, share)
            expected = one_by_one(estimates, choice)
            assert rank_ranges(estimates, F1.name, choice) == expected


@pytest.mark.parametrize("sizes", [(60, 60), (200, 5), (3, 200)])
def test_ranges_of_means_do(sizes: tuple[int, int]) -> None:
    """Of which a dataset may be too small for a test."""
    columns = [drawn(12, images, 0.5, images) for images in sizes]
    means = [mean_of_estimates(of_model) for of_model in zip(*columns, strict=True)]
    choice = BestOf(12)
    assert rank_ranges(means, F1.name, choice) == one_by_one(means, choice)


def test_a_lower_value_may_be_better() -> None:
    lower = replace(F1, better=Better.LOWER)
    estimates = [replace(each, metrics=(lower,)) for each in drawn(12, 60, 0.5, 1)]
    ranges = rank_ranges(estimates, F1.name, BestOf(12))
    assert ranges == one_by_one(estimates, BestOf(12))
    assert ranges[0].best == 1 < ranges[-1].best


def test_what_is_not_known_may_have_any_rank() -> None:
    estimates = [*drawn(5, 200, 0.5, 1), None]
    ranges = rank_ranges(estimates, F1.name, BestOf(6))
    assert ranges == one_by_one(estimates, BestOf(6))
    assert ranges[-1] == RankRange(1, 6, untested=True)
    assert not any(each.untested for each in ranges[:-1])
    assert rank_ranges([None], F1.name, BestOf(2)) == [RankRange(1, 1)]
    assert rank_ranges([], F1.name, BestOf(2)) == []


def test_equal_answers_share_their_ranks() -> None:
    (one,) = drawn(1, 200, 0.5, 1)
    estimates = [one, *drawn(3, 200, 0.5, 1), one]
    first, *_, last = rank_ranges(estimates, F1.name, BestOf(5))
    assert first == last


def test_the_order_of_models_changes_nothing() -> None:
    estimates = drawn(12, 60, 0.5, 3)
    forward = rank_ranges(estimates, F1.name, BestOf(12))
    assert rank_ranges(estimates[::-1], F1.name, BestOf(12)) == forward[::-1]


def test_of_equal_models_all_may_have_any_rank() -> None:
    """Measured: in 94 to 99 % of columns (benchmarks/test_rank_ranges.py)."""
    random = np.random.default_rng(5)
    formats = Formats((0.6,) * 12, 100)
    held = []
    for _ in range(60):
        ranges = rank_ranges(formats.estimates(random), F1.name, BestOf(12))
        held.append(all(each == RankRange(1, 12) for each in ranges))
    assert np.mean(held) >= 0.85
