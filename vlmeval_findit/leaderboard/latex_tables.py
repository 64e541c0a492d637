"""Tables for a paper: in which format, with which prompts and when every value was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from functools import partial

from ..scoring import Run
from .board import Board, RankedValue
from .board_tables import metric_table, reported_cell, reported_formats, tested_cell
from .columns import Column, table_of, value_column
from .comparable import asked_at
from .cost_tables import cost_table
from .legends import elsewhere_column
from .notes import notes_of, signs_of
from .result_table import Table, TableCell
from .table_output import to_booktabs, to_latex


class PaperStyle(Enum):
    """How ``leaderboard.tex`` is written."""

    BOOKTABS = "booktabs"  # Needs the package booktabs alone: means, then datasets as rows
    FULL = "full"  # Every metric on every dataset, with intervals; scaled to the width of the page


def paper_tables(board: Board) -> list[Table]:
    """Return a table for each metric, with the format of each model, and without notes."""
    tables = [metric_table(board, metric.name, formats=True) for metric in board.shown]
    return [replace(table, notes=()) for table in tables]


def asked_with(board: Board) -> str:
    """Say with which prompts, and when, the reported runs were asked.

    Empty if no run is reported. The date is that of a run's beginning, or of its score where
    nothing recorded the run.
    """
    runs = [row.run for row in board.runs if row.reported]
    if not runs:
        return ""
    prompts = dict.fromkeys(run.provenance.prompts for run in runs)
    days = sorted({_day(run) for run in runs})
    span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    return f"Prompts: {', '.join(prompts)}. Asked: {span}."


def _day(run: Run) -> str:
    return (asked_at(run) or run.provenance.scored_at)[:10]


def as_latex(board: Board, style: PaperStyle = PaperStyle.BOOKTABS) -> str:
    """Write tables for a paper; the last has the notes of all."""
    tables = paper_tables(board)
    write = to_latex
    packages = "booktabs,graphicx"
    if style is PaperStyle.BOOKTABS:
        tables = [table for table in (_means(board), _datasets(board)) if table.rows]
        write = to_booktabs
        packages = "booktabs"
    costs = cost_table(board)
    if costs.rows:
        tables.append(costs)
    if tables:  # None: no run can be compared
        notes = [*notes_of(board, only_reported=True), *costs.notes]
        tables[-1] = replace(tables[-1], notes=notes)
    source = asked_with(board)
    return "\n".join(
        [rf"% needs \usepackage{{{packages}}}", *(write(each, source) for each in tables)]
    )


def _means(board: Board) -> Table:
    """Return models x means of the headline."""
    names = [mean.name for mean in board.means]
    table = metric_table(board, board.headline.name, names, formats=True)
    return replace(table.without(["formats tried"]), notes=())


def _datasets(board: Board) -> Table:
    """Return datasets x models of the headline, each model with its format."""
    formats = reported_formats(board)
    chosen = {model for model, _ in board.elsewhere}
    columns: list[Column[str]] = [Column("dataset", str)]
    for model in board.models:
        entry = partial(board.entry, model, metric=board.headline.name)
        columns.append(_value_of_entry(model, entry, formats.get(model, "")))
        if model in chosen:
            columns.append(_tested_of_entry(elsewhere_column(model), entry))
    names = [dataset.name for dataset in board.datasets]
    title = f"{board.headline.title} by dataset"
    return table_of(title, columns, names, signs=signs_of(board))


_EntryOf = Callable[[str], RankedValue | None]  # Of a dataset


def _value_of_entry(name: str, entry: _EntryOf, note: str) -> Column[str]:
    value: Column[RankedValue] = value_column(name, reported_cell, note=note)
    return value.by(entry)


def _tested_of_entry(name: str, entry: _EntryOf) -> Column[str]:
    value: Column[RankedValue] = value_column(name, _value_and_sign)
    return value.by(entry)


def _value_and_sign(entry: RankedValue) -> TableCell:
    """Make the cell of what is tested, without its interval and ranks, which the means have."""
    cell = tested_cell(entry)
    return TableCell(cell.value, sign=cell.sign)
