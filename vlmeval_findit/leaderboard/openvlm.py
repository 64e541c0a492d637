"""The leaderboard as JSON in the schema of the OpenVLM leaderboard.

``time`` is ``yymmddHHMMSS``; ``results[model]`` has ``META`` and an object for each dataset, in
which ``Overall`` is the shown value. Facts that this package does not know stay empty.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from ..benchmarks import prefix_of
from .board import TIED, Board, BoardCell
from .board_tables import excluded_table
from .notes import NOTE, remarks

_META = ("Parameters", "Language Model", "Vision Model", "Org", "Time", "OpenSource")
"""Facts of the schema about a model that this package does not know."""


def to_openvlm(board: Board, time: datetime) -> str:
    """Write the leaderboard in OpenVLM's schema; the rest is under the benchmark's name."""
    content = {
        "time": time.strftime("%y%m%d%H%M%S"),
        "results": {
            model: {"META": _meta(model), **_datasets(board, model)} for model in board.models
        },
        board.benchmark.name.lower(): {
            "metrics": [metric.name for metric in board.metrics],
            "note": NOTE,
            "remarks": dict(remarks(board)),
            "not_compared": excluded_table(board).records(),
        },
    }
    return json.dumps(content, indent=1, ensure_ascii=False)


def _meta(model: str) -> dict[str, Any]:
    return {
        "Method": [model, ""],
        **dict.fromkeys(_META, ""),
        "Verified": "No",
        "dir_name": model,
    }


def _datasets(board: Board, model: str) -> dict[str, Any]:
    means = {mean.name for mean in board.means}
    prefix = prefix_of(board.datasets[0].runs[0].question.name)
    return {
        f"{prefix}{f'average_{name}' if name in means else name}": _dataset(
            board, board.cells[model, name]
        )
        for name in board.names()
        if (model, name) in board.cells
    }


def _dataset(board: Board, cell: BoardCell) -> dict[str, Any]:
    headline = cell.entries.get(board.headline.name)
    row: dict[str, Any] = {"Overall": round(headline.value, 2) if headline else None}
    for metric, entry in cell.entries.items():
        bounds = entry.interval
        row[metric] = round(entry.value, 2)
        row[f"{metric} interval"] = (
            [round(bounds.low, 2), round(bounds.high, 2)] if bounds else None
        )
        row[f"{metric} rank"] = entry.rank
        # Neither yes nor no if there are too few images to test it.
        untested = entry.to_above is not None and not entry.tested
        row[f"{metric} tied with rank above"] = None if untested else entry.mark == TIED
    return {
        **row,
        "Format": cell.format,
        "Queries": cell.queries,
        "Failed calls": cell.failures,
        "Formats tried": cell.tried,
    }
