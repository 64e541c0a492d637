"""How fast: the intervals of a 1,000-query run, and a column of twelve with its tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.core.estimate import clustered_sums, estimate_metrics
from vlmeval_findit.core.metric import Metric
from vlmeval_findit.core.scored_row import ScoredRow
from vlmeval_findit.core.statistics import metric_intervals
from vlmeval_findit.leaderboard.board import make_board
from vlmeval_findit.runs.provenance import Provenance
from vlmeval_findit.runs.run_statistics import intervals
from vlmeval_findit.runs.scored_run import Run

QUERIES = 1000
SUMS = {"responses": 1, "adherent": 1, "failed": 0, "n_pred": 2, "n_gt": 2, "n_gt_failed": 0}


def made_run(seed: int) -> Run:
    generator = np.random.default_rng(seed)
    answers = tuple(
        ScoredRow(i, f"{i}.jpg", {**SUMS, "tp": int(hit), "iou_sum": float(hit)})
        for i, hit in enumerate(generator.random(QUERIES) < 0.6)
    )
    rows = frozenset(range(QUERIES))
    basis = Provenance(
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
        scorer=None,
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


def test_a_mean_over_366_classes(benchmark) -> None:
    """45,000 expressions over 9,700 pictures: what Ref-L4 has."""
    generator = np.random.default_rng(1)
    rows = [
        ScoredRow(i, f"{i % 9_700}.jpg", {"hit": int(hit), "asked": 1}, slices={"class": str(one)})
        for i, (hit, one) in enumerate(
            zip(generator.random(45_000) < 0.6, generator.zipf(1.3, 45_000) % 366, strict=True)
        )
    ]
    metrics = [
        Metric("class", {"hit": 1}, {"asked": 1}, over="class"),
        Metric("all", {"hit": 1}, {"asked": 1}),
    ]
    found = benchmark(
        lambda: metric_intervals(estimate_metrics(metrics, clustered_sums(rows, "x")))
    )
    assert all(found.values())
    if benchmark.stats is not None:
        assert benchmark.stats.stats.median < 2
