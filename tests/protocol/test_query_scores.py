"""Query scores of columns are those of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import toy_benchmark

from vlmeval_findit.benchmarks import benchmarks, parse
from vlmeval_findit.protocol import Benchmark, ScoredRow, SumName, table_of

POINTS = parse("FindIt_RefCOCO_point_json")

BENCHMARKS: tuple[Benchmark, ...] = (
    *benchmarks(),
    next(each for each in benchmarks() if each.name == "FindIt").for_variant(POINTS),
    toy_benchmark.LETTERS,
)


def names_of_sums(benchmark: Benchmark) -> list[str]:
    names: dict[SumName, None] = {}
    for metric in (*benchmark.all_metrics, *benchmark.query_metrics):
        names |= dict.fromkeys([*metric.part, *metric.whole])
    # Not those of slices, which no row has
    return [name for name in names if isinstance(name, str)]


def random_row(index: int, names: Sequence[str], random: np.random.Generator) -> ScoredRow:
    """Return a row that lacks some sums; others are 0, whole numbers, or fractions."""
    sums: dict[str, float] = {}
    for name in names:
        kind = random.integers(4)
        if kind == 1:
            sums[name] = int(random.integers(9))
        if kind == 2:
            sums[name] = int(random.integers(9)) / 8
        if kind == 3:
            sums[name] = 0
    return ScoredRow(index, f"{index}.jpg", sums)


@pytest.mark.parametrize("rows", [0, 1, 200])
@pytest.mark.parametrize("of", BENCHMARKS, ids=lambda each: each.name)
def test_scores_of_columns_are_those_of_rows(of: Benchmark, rows: int) -> None:
    random = np.random.default_rng(rows)
    names = names_of_sums(of)
    asked = [random_row(at, names, random) for at in range(rows)]
    expected = [of.query_score(each) for each in asked]
    # Ref-L4's authors have an order of operations of their own, which decides the last bit.
    of_columns = of.query_scores(table_of(asked)).tolist()
    assert [round(score, 9) for score in of_columns] == [round(score, 9) for score in expected]
    assert of.query_scores(asked).tolist() == expected


def test_rows_without_sums_have_the_score_of_nothing() -> None:
    rows = [ScoredRow(0, "0.jpg", {}), ScoredRow(1, "1.jpg", {})]
    for of in BENCHMARKS:
        assert of.query_scores(table_of(rows)).tolist() == [of.query_score(row) for row in rows]
