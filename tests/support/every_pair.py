"""Tests of all pairs of two lists, of which the fast ones are a few."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def every_pair(
    names: str, rows: Iterable[Any], columns: Iterable[Any], fast: int | None = None
) -> pytest.MarkDecorator:
    """Parametrize a test by all pairs: fast are as many that each row and column is in one.

    Args:
        names: of what a row and a column give, as of ``pytest.mark.parametrize``.
        rows: a value each.
        columns: a value each, or a tuple of values.
        fast: the most that are fast, as many as said above unless given.
    """
    rows, columns = list(rows), list(columns)
    pairs = []
    for row_at, row in enumerate(rows):
        for at, column in enumerate(columns):
            values = (row, *(column if isinstance(column, tuple) else (column,)))
            is_fast = row_at % len(columns) == at or at % len(rows) == row_at
            is_fast = is_fast and (fast is None or max(row_at, at) < fast)
            marks = [] if is_fast else [pytest.mark.slow]
            pairs.append(pytest.param(*values, marks=marks, id="-".join(map(_said, values))))
    return pytest.mark.parametrize(names, pairs)


def _said(value: Any) -> str:
    return str(getattr(value, "__name__", value))
