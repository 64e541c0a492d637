"""Runs by slices: the sizes, classes or splits that their queries belong to."""

from __future__ import annotations

from collections import Counter

from ..core.metric import sliced
from ..core.scored_row import ScoredRow
from .board import Board
from .formats import FormatRow
from .rows import TableRow


def slice_rows(board: Board) -> list[TableRow]:
    """One row a comparable run and slice, with the figures that are plain ratios.

    Failed calls are among the rows of a slice, as they are among the queries of a run.
    """
    return [row for one in board.sweep for row in _rows_of(board, one)]


def _rows_of(board: Board, one: FormatRow) -> list[TableRow]:
    run = one.run
    counts = Counter(key for row in run.rows for key in row.slices.items())
    metrics = [metric for metric in board.metrics if not metric.over]
    names = _names(run.rows)
    made = []
    for (kind, value), count in sorted(counts.items()):
        sums = {name: run.sums.get(sliced(name, kind, value), 0) for name in names}
        made.append(
            {
                "dataset": one.column,
                "model": run.model,
                "format": run.question.format,
                "reported": "yes" if one.reported else "",
                "slice": kind,
                "value": value,
                "rows": count,
                **{metric.name: metric.value(sums) for metric in metrics},
            }
        )
    return made


def _names(rows: tuple[ScoredRow, ...]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.sums))
