"""The long tables of a leaderboard, made once for all files that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .anatomy import anatomy_rows
from .board import Board
from .rows import TableRow, apart_rows, board_rows, sweep_rows
from .slices import slice_rows


class Tables(NamedTuple):
    """Rows of figures, formats, losses by cause, slices, and runs that were not compared."""

    figures: Sequence[TableRow]
    formats: Sequence[TableRow]
    anatomy: Sequence[TableRow]
    slices: Sequence[TableRow]
    apart: Sequence[TableRow]


def tables_of(board: Board) -> Tables:
    """The tables of a leaderboard; there are slices where its queries have such."""
    return Tables(
        board_rows(board),
        sweep_rows(board),
        anatomy_rows(board),
        slice_rows(board),
        apart_rows(board),
    )
