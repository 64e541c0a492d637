"""Leaderboards for tests: three models over two tables, and five over sixty pictures."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from scored_runs import World, query, small_world, speaking

from vlmeval_findit.benchmarks.findit import box_metrics as metrics
from vlmeval_findit.leaderboard import Board, make_board
from vlmeval_findit.scoring import Run, load_runs

__all__ = ["board", "many", "runs"]

METRICS = tuple(metric.name for metric in metrics.METRICS if metric.empty is not None)
"""Metrics that these tables have: every query has an object."""
FAILED_MISSED = metrics.F1_FAILED_MISSED.name
JSON = "FindIt_Pascal_xyxy_json"
TEXT = "FindIt_Pascal_xyxy_text"
LABELS_JSON = "FindIt_Pascal_multilabel_xyxy_json"
LABELS_TEXT = "FindIt_Pascal_multilabel_xyxy_text"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def runs(world: World) -> list[Run]:
    """Three models; Good is better in text, on average over both datasets."""
    for model, in_json, in_text in (("Good", 0.7, 1.0), ("Poor", 0.2, 0.1), ("Poor2", 0.2, 0.1)):
        for name, chance in (
            (JSON, in_json),
            (TEXT, in_text),
            (LABELS_JSON, in_json),
            (LABELS_TEXT, in_text),
        ):
            world.predict(model, name, speaking(name, chance, 10))
    return load_runs([world.runs])


@pytest.fixture
def board(runs: list[Run]) -> Board:
    return make_board(runs)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """Five models over 60 pictures, each a little worse than the previous; no test changes it."""
    with pytest.MonkeyPatch.context() as patch:
        world = small_world(tmp_path_factory.mktemp("many"), patch)
        world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(60)])
        for model, chance in (("A", 0.98), ("B", 0.88), ("C", 0.75), ("D", 0.72), ("E", 0.3)):
            for name in (JSON, TEXT, "FindIt_Pascal_yxyx_text"):
                world.predict(model, name, speaking(name, chance - 0.3 * (name == TEXT), 4))
        yield make_board(load_runs([world.runs]))


def csv_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))
