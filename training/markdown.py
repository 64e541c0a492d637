"""Markdown tables of a model card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a Markdown table of rows that have the same keys."""
    rows = list(rows)
    names = list(rows[0])
    cells = [[_text(row[name]) for name in names] for row in rows]
    lines = [names, ["---"] * len(names), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
