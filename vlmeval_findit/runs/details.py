"""The details file: one line a query, with its sums and all that is known of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..core.run_files import Shape, checked, read_json
from ..core.scored_row import ScoredRow

_SHAPE: Shape = {
    "index": int,
    "source": str,
    "failed": bool,
    "reason": str | None,
    "sums": dict,
    "slices": dict,
    "parts": list,
    "confidences": dict,
}


def line_of(row: ScoredRow) -> str:
    """A row as one line; :func:`row_of` reads it back."""
    found = {
        "index": row.index,
        "source": row.source,
        "failed": row.failed,
        "reason": row.reason,
        **row.details,
        "sums": row.sums,
    }
    if row.slices:
        found["slices"] = row.slices
    if row.parts:
        found["parts"] = [[*part, sums] for part, sums in row.parts.items()]
    return json.dumps(found, ensure_ascii=False) + "\n"


def lines_of(rows: Iterable[ScoredRow]) -> Iterator[str]:
    """The lines of the file."""
    return map(line_of, rows)


def row_of(line: str) -> ScoredRow:
    """The row that a line holds.

    Raises:
        KeyError: a key is missing, as in files before 0.2.
        TypeError, ValueError: it is no such line.
    """
    return _row(checked(read_json(line), _SHAPE))


def _row(values: Mapping[str, Any]) -> ScoredRow:
    known = {name: values[name] for name in ("index", "source", "failed", "reason", "sums")}
    rest = {name: value for name, value in values.items() if name not in _OF_THE_ROW}
    parts = {(kind, value): sums for kind, value, sums in values.get("parts", ())}
    return ScoredRow(**known, slices=values.get("slices", {}), details=rest, parts=parts)


_OF_THE_ROW = {"index", "source", "failed", "reason", "sums", "slices", "parts"}
