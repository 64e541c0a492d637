"""The leaderboard as JSON in the schema of the OpenVLM leaderboard."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from ..benchmarks import prefix_of
from .board import Board, BoardCell
from .board_tables import elsewhere, tested_cell

# Facts of the schema about a model that this package does not know: they stay empty
UNKNOWN = ("Parameters", "Language Model", "Vision Model", "Org", "Time", "OpenSource")


def to_openvlm(board: Board, time: datetime) -> str:
    """Write the leaderboard in OpenVLM's schema.

    Values have two decimals, rounded as the authors of the benchmark round theirs
    (:meth:`.Metric.printed`); means over datasets are ours. Where formats were chosen, each value
    has another beside it, ``… elsewhere``, by which models are ranked. ``time`` is
    ``yymmddHHMMSS``;
    ``results[model]`` has ``META`` and an object for each dataset, in which ``Overall`` is the
    headline metric.
    """
    results: dict[str, dict[str, Any]] = {}
    for model in board.models:
        known = {"Method": [model, ""], **dict.fromkeys(UNKNOWN, "")}
        results[model] = {"META": {**known, "Verified": "No", "dir_name": model}}
    means = {mean.name for mean in board.means}
    for cell in board.ordered_cells():
        prefix = prefix_of(board.datasets[0].runs[0].variant.name)
        name = f"average_{cell.dataset}" if cell.dataset in means else cell.dataset
        results[cell.model][f"{prefix}{name}"] = _dataset(board, cell)
    content = {"time": time.strftime("%y%m%d%H%M%S"), "results": results}
    return json.dumps(content, indent=1, ensure_ascii=False)


def _dataset(board: Board, cell: BoardCell) -> dict[str, Any]:
    values: dict[str, float | None] = {
        name: round(entry.value, 2) for name, entry in cell.entries.items()
    }
    if cell.run is not None:
        known = [metric for metric in board.metrics if metric.name in values]
        if cell.run.random is None:
            values |= {metric.name: metric.printed(cell.run.sums) for metric in known}
    overall = values.get(board.headline.name)
    for name, entry in cell.entries.items():
        if board.elsewhere:
            tested = tested_cell(entry).value
            values[elsewhere(name)] = round(tested, 2) if isinstance(tested, float) else None
    return {"Overall": overall, **values, "Format": cell.format, "Queries": cell.queries}
