"""The leaderboard as JSON in the schema of the OpenVLM leaderboard.

``time`` is ``yymmddHHMMSS``; ``results[model]`` has ``META`` and one object a dataset, in which
``Overall`` is the value that is shown.  What is known of a model comes from a file of the user; the
rest stays empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from ..benchmarks import prefix_of
from ..core.formatting import nearest
from .board import TIED, Board, BoardCell
from .board_tables import excluded_table
from .notes import NOTE, remarks

META_FIELDS = (
    "Method",
    "Parameters",
    "Language Model",
    "Vision Model",
    "Org",
    "Time",
    "Verified",
    "OpenSource",
)

Meta = Mapping[str, Mapping[str, Any]]
"""What is known of models: name -> field of :data:`META_FIELDS` -> value."""

NO_META: Meta = {}


class MetaError(ValueError):
    """A file about models that cannot be used; the message names model and field."""


def read_meta(path: Path) -> Meta:
    """Read what is known of models from a YAML or JSON file: model -> field -> value.

    ``Method`` is a name, or a list of a name and an address.

    Raises:
        OSError: the file cannot be opened.
        MetaError: not such a file, or a field that the schema does not have.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise MetaError(f"{path}: {error}") from None
    if not isinstance(values, dict) or not all(isinstance(v, dict) for v in values.values()):
        raise MetaError(f"{path}: should be an object, model -> field -> value")
    for model, known in values.items():
        for name in known:
            if name not in META_FIELDS:
                raise MetaError(f"{path}, {model}: no field {name!r}{nearest(name, META_FIELDS)}")
    return values


def to_openvlm(board: Board, time: datetime, meta: Meta = NO_META) -> str:
    """Write the leaderboard in OpenVLM's schema; the rest stands under the benchmark's name."""
    content = {
        "time": time.strftime("%y%m%d%H%M%S"),
        "results": {
            model: {"META": _meta(model, meta.get(model, {})), **_datasets(board, model)}
            for model in board.models
        },
        board.benchmark.name.lower(): {
            "metrics": [metric.name for metric in board.metrics],
            "note": NOTE,
            "remarks": dict(remarks(board)),
            "not_compared": excluded_table(board).records(),
        },
    }
    return json.dumps(content, indent=1, ensure_ascii=False)


def _meta(model: str, known: Mapping[str, Any]) -> dict[str, Any]:
    method = known.get("Method", model)
    return {
        **dict.fromkeys(META_FIELDS, ""),
        "Verified": "No",
        **{name: str(value) for name, value in known.items()},
        "Method": list(method) if isinstance(method, (list, tuple)) else [method, ""],
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
        # Neither yes nor no where too few images count to test it.
        untested = entry.to_above is not None and not entry.tested
        row[f"{metric} tied with rank above"] = None if untested else entry.mark == TIED
    return {
        **row,
        "Format": cell.format,
        "Queries": cell.queries,
        "Failed calls": cell.failures,
        "Formats tried": cell.tried,
    }
