"""How fast: the intervals of a 1,000-query run, and a column of twelve with its tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vlmeval_findit.benchmarks.findit.metrics import Totals
from vlmeval_findit.benchmarks.findit.names import parse
from vlmeval_findit.core.scored_row import ScoredRow
from vlmeval_findit.leaderboard.board import make_board
from vlmeval_findit.runs.intervals import intervals
from vlmeval_findit.runs.provenance import Basis
from vlmeval_findit.runs.scored_run import Run

QUERIES = 1000


def made_run(seed: int) -> Run:
    generator = np.random.default_rng(seed)
    sums = [
        Totals(1, 1, 0, int(hit), 2, 2, 0, float(hit)) for hit in generator.random(QUERIES) < 0.6
    ]
    answers = tuple(
        ScoredRow(i, "cat", f"{i}.jpg", f"{i}.jpg", None, (), (), (), (), (), one)
        for i, one in enumerate(sums)
    )
    rows = frozenset(range(QUERIES))
    basis = Basis(
        identity=None,
        digest="",
        forced=(),
        prompts="findit-own-1",
        prompt_hash=None,
        table="Pascal.tsv",
        table_sha256="",
        rows=rows,
        missing=(),
        left_out=(),
        spaces=(),
        versions={},
        scored_with={},
        predictions_sha256="",
        scored_at="",
    )
    return Run(f"model {seed}", parse("FindIt_Pascal_xyxy_json"), Path("x.json"), answers, basis)


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return [made_run(seed) for seed in range(12)]


def test_intervals_of_a_run(benchmark, runs: list[Run]) -> None:
    found = benchmark(intervals, runs[0])
    assert all(found.values())
    if benchmark.stats is not None:
        assert benchmark.stats.stats.median < 0.25


def test_a_column_of_twelve_models(benchmark, runs: list[Run]) -> None:
    board = benchmark.pedantic(make_board, args=(runs,), rounds=3)
    assert len(board.models) == 12
    if benchmark.stats is not None:
        assert benchmark.stats.stats.median < 3
