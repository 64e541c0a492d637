"""Tables for a paper: in which format, with which prompts and when every value was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from math import ceil

from ..scoring import SCORE_AGAIN, Run
from .board import Board, RankedValue
from .board_tables import metric_table, reported_cell, reported_formats, tested_cell
from .columns import Column, table_of, value_column
from .comparable import asked_at
from .cost_tables import cost_table
from .legends import elsewhere_column
from .notes import notes_of, signs_of
from .result_table import Field, FieldType, Note, Table, TableCell, sign_of, text_of
from .table_output import head_lines, note_lines, notes_float, to_booktabs, to_latex


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
        tables = [part for table in _for_paper(board) if table.rows for part in _parts(table)]
        write = to_booktabs
        packages = "booktabs"
    costs = cost_table(board)
    if costs.rows:
        tables += _parts(costs) if style is PaperStyle.BOOKTABS else [costs]
    apart = []
    if tables:  # None: no run can be compared
        notes = [*map(_without_commands, notes_of(board, only_reported=True)), *costs.notes]
        if style is PaperStyle.FULL or len(tables[-1].rows) + _lines_of(notes) <= _MOST_ROWS:
            tables[-1] = replace(tables[-1], notes=notes)
        else:
            apart = [notes_float(notes)]
    source = asked_with(board)
    parts = [write(each, source) for each in tables]
    return "\n".join([rf"% needs \usepackage{{{packages}}}", *parts, *apart])


def _without_commands(note: Note) -> Note:
    """Return a note for a paper: without what to type, and the folders of this machine in it."""
    return Note(note.title, [line.partition(SCORE_AGAIN)[0] for line in note.lines])


def _lines_of(notes: Sequence[Note]) -> int:
    """Return about how many lines notes have, each a little lower than a row of a table."""
    return ceil(sum(len(note.text) + 1 for note in notes) / _LINE_OF_NOTES)


def _for_paper(board: Board) -> list[Table]:
    """Return models x means of the headline, and its values by dataset, whichever way is narrower.

    The mean over one dataset is that dataset.
    """
    if len(board.datasets) == 1:
        table = metric_table(board, board.headline.name, formats=True)
        return [replace(table.without(["formats tried"]), notes=())]
    by_dataset = _datasets(board)
    if len(board.models) > len(board.datasets):
        by_dataset = _models(board)
    return [_means(board), by_dataset]


def _means(board: Board) -> Table:
    """Return models x means of the headline; no publication is of these means."""
    table = metric_table(board, board.headline.name, board.mean_names(), formats=True)
    own = table.first(len(board.models)).without(["formats tried"])
    return replace(own, notes=(), quoted=0)


def _models(board: Board) -> Table:
    """Return models x datasets of the headline, without ranks, which the means have."""
    columns: list[Column[str]] = [Column("model", str)]
    formats = reported_formats(board)
    if formats:
        columns.append(Column("format", lambda model: formats.get(model, "")))
    for dataset in board.datasets:
        entry = partial(board.entry, name=dataset.name, metric=board.headline.name)
        columns.append(_value_of_entry(dataset.name, entry, ""))
        if board.elsewhere:
            columns.append(_tested_of_entry(elsewhere_column(dataset.name), entry))
    title = f"{board.headline.title} by dataset"
    return table_of(title, columns, board.models, signs=signs_of(board))


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


_MOST_ROWS = 40  # On a page of 9 inches, below a caption of six lines and a head of four
_LINE_OF_NOTES = 100
_PAGE = 91  # Letters of a small font across 14 cm, a page of NeurIPS; two columns are wider
_BETWEEN = 2  # Letters between columns


def _parts(table: Table) -> list[Table]:
    """Split a table that is wider or longer than a page; each part has the names of its rows.

    No part has notes.
    """
    names = [field.name for field in table.fields]
    keys = names[: table.keys]
    of_row = next(name for name in keys if name != "rank")
    widths = {field.name: _width(table, field) for field in table.fields}
    parts = [keys]
    for group in _groups(names[table.keys :]):
        width = sum(widths[name] + _BETWEEN for name in [*parts[-1], *group]) - _BETWEEN
        if width > _PAGE and parts[-1][-1] not in keys:
            parts.append([of_row])
        parts[-1] = [*parts[-1], *group]
    split: list[Table] = []
    for start in range(0, max(1, len(table.rows)), _MOST_ROWS):
        some = table.rows_from(start, _MOST_ROWS)
        split += [replace(some.only(*part), notes=()) for part in parts]
    later = [replace(part, title=f"{part.title}, continued") for part in split[1:]]
    return [*split[:1], *later]


def _groups(names: Sequence[str]) -> list[list[str]]:
    """Return columns with those of their values elsewhere."""
    groups: list[list[str]] = []
    for name in names:
        if groups and name == elsewhere_column(groups[-1][0]):
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def _width(table: Table, field: Field) -> int:
    """Return the letters of the widest text of a column, whose name has a line for each word."""
    notes = (note[: int(0.8 * len(note))] for note in note_lines(field))  # In smaller type
    texts = [*head_lines(field), *notes]
    if field.kind is FieldType.TEXT:
        texts.append(field.name)
    for row in table.cells():
        for its, cell in row:
            if its.name == field.name:
                texts.append(f"{text_of(its, cell)} {sign_of(its, cell)}".strip())
    return max(map(len, texts))


_EntryOf = Callable[[str], RankedValue | None]  # Of a row


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
