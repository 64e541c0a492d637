"""The details file: one line a query, with its sums and all that is known of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..core.scored_row import ScoredRow
from ..core.shapes import Shape, checked, read_json

_SHAPE: Shape = {
    "index": int,
    "source": str,
    "failed": bool,
    "reason": str | None,
    "sums": dict,
    "slices": dict,
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
    for of in ("sums", "slices"):
        wanted = (int, float) if of == "sums" else str
        for name, value in values.get(of, {}).items():
            if isinstance(value, bool) or not isinstance(value, wanted):
                raise TypeError(f"{of}.{name} should not be {value!r:.40}")
    known = {name: values[name] for name in ("index", "source", "failed", "reason", "sums")}
    slices = values.get("slices", {})
    rest = {name: value for name, value in values.items() if name not in (*known, "slices")}
    return ScoredRow(**known, slices=slices, details=rest)
