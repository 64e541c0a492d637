"""The leaderboard as JSON in the schema of the OpenVLM leaderboard."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from ..benchmarks import prefix_of
from .board import Board, BoardCell

UNKNOWN = ("Parameters", "Language Model", "Vision Model", "Org", "Time", "OpenSource")
"""Facts of the schema about a model that this package does not know: they stay empty."""


def to_openvlm(board: Board, time: datetime) -> str:
    """Write the leaderboard in OpenVLM's schema.

    ``time`` is ``yymmddHHMMSS``; ``results[model]`` has ``META`` and an object for each dataset, in
    which ``Overall`` is the headline metric.
    """
    results = {model: {"META": _meta(model), **_datasets(board, model)} for model in board.models}
    content = {"time": time.strftime("%y%m%d%H%M%S"), "results": results}
    return json.dumps(content, indent=1, ensure_ascii=False)


def _meta(model: str) -> dict[str, Any]:
    unknown = dict.fromkeys(UNKNOWN, "")
    return {"Method": [model, ""], **unknown, "Verified": "No", "dir_name": model}


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
    values = {metric: round(entry.value, 2) for metric, entry in cell.entries.items()}
    overall = values.get(board.headline.name)
    return {"Overall": overall, **values, "Format": cell.format, "Queries": cell.queries}
