"""How models depend on the words: objects that have several expressions, by dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ..analysis import WORDED_METRICS, WordedObjects, find_by_all_words, objects_named
from ..statistics import INTERVALS_LEGEND
from .board import Board
from .columns import Column, count_column, table_of, value_column
from .result_table import Note, Table, TableCell

_EXPLAINED = (
    "objects with several expressions alone: found, the share of their expressions that find them; "
    "worst of k, of objects that each of their expressions finds; agreement, of pairs of "
    "expressions of one object of which both find it, or neither"
)


class _Row(NamedTuple):
    dataset: str
    model: str
    worded: WordedObjects


def words_table(board: Board) -> Table:
    """Make a row for each reported run over objects that have several expressions."""
    if board not in _ROWS:  # A board is written as text, page and sheet: tables are read once
        _ROWS[board] = list(_rows(board))
    rows = _ROWS[board]
    columns: list[Column[_Row]] = [
        Column("dataset", lambda row: row.dataset),
        Column("model", lambda row: row.model),
        count_column("objects", lambda row: row.worded.objects),
        count_column("expressions", lambda row: row.worded.expressions),
        *(value_column(metric.name, _cell(metric.name)) for metric in WORDED_METRICS),
    ]
    notes = [Note("Words", [_EXPLAINED]), Note("Intervals", [INTERVALS_LEGEND])]
    return table_of("Several expressions of one object", columns, rows, notes if rows else ())


_ROWS: WeakKeyDictionary[Board, list[_Row]] = WeakKeyDictionary()


def _rows(board: Board) -> Iterator[_Row]:
    for dataset in board.datasets:
        names = objects_named(dataset.runs[0])
        reported = (row for row in board.runs if row.reported and row.dataset == dataset.name)
        for row in reported if names else ():
            worded = find_by_all_words(row.run, names)
            if worded is not None:
                yield _Row(dataset.name, row.run.model, worded)


def _cell(name: str) -> Callable[[_Row], TableCell]:
    return lambda row: TableCell(row.worded.values[name], row.worded.intervals[name])
