"""What the scores of a leaderboard lost, by cause."""

from __future__ import annotations

from ..runs.anatomy import NoAnatomyError, anatomy_of
from .board import Board
from .formats import FormatRow
from .rows import TableRow, bounds_fields


def anatomy_rows(board: Board) -> list[TableRow]:
    """One row a comparable run: its score, and the points that every cause took from it.

    Causes that no run has are left out.  A run that was scored before events were counted has none.
    """
    rows = [_row(board, one) for one in board.sweep]
    names = [one.name for one in board.benchmark.anatomy.causes]
    empty = [name for name in names if not any(row[f"{name} events"] for row in rows)]
    left_out = {f"{name}{of}" for name in empty for of in ("", " low", " high", " events")}
    return [{name: value for name, value in row.items() if name not in left_out} for row in rows]


def _row(board: Board, one: FormatRow) -> TableRow:
    run, score = one.run, board.benchmark.anatomy.score
    row: TableRow = {
        "model": run.model,
        "dataset": one.column,
        "format": run.question.format,
        "reported": "yes" if one.reported else "",
        score.name: score.value(run.sums),
    }
    try:
        found = {loss.cause: loss for loss in anatomy_of(run)}
    except NoAnatomyError:
        found = {}
    for cause in board.benchmark.anatomy.causes:
        loss = found.get(cause)
        row |= {
            cause.name: loss.points if loss else None,
            **bounds_fields(cause.name, loss.interval if loss else None),
            f"{cause.name} events": loss.events if loss else None,
        }
    return row
