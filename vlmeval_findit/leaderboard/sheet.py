"""The leaderboard as an xlsx workbook: one sheet a metric, then formats, runs and reasons."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from openpyxl import Workbook
from openpyxl.styles import Alignment, Border, Font, PatternFill, Side
from openpyxl.utils import get_column_letter

from ..core.files import replacing
from ..core.spelling import visible
from .board import TIED, UNTOLD, Board
from .published import PUBLISHED, PublishedLine, published_lines, published_notes
from .rows import (
    NOTE,
    GridCell,
    TableRow,
    format_note,
    formats_tried,
    formats_used,
    grid,
    header_of,
    remarks,
)
from .tables import Tables

_PERCENT = "0.0"
_P_VALUE = "0.0000"
_FACE = "Arial"
_PLAIN = Font(name=_FACE, size=10)
_BOLD = Font(name=_FACE, size=10, bold=True)
_FAINT = Font(name=_FACE, size=8, color="666666")
_QUOTED = Font(name=_FACE, size=10, italic=True)
_HEAD = PatternFill("solid", start_color="E8ECF1")
_AVERAGE = PatternFill("solid", start_color="F5F7FA")
_RULE = Border(bottom=Side(style="thin", color="8A94A0"))
_CENTRE = Alignment(horizontal="center", vertical="center", wrap_text=True)
_WIDEST = 60
_LONGEST_TITLE = 31
_ABOUT_WIDTH = 110


def write_sheet(board: Board, tables: Tables, path: Path) -> None:
    """Write the workbook."""
    book = Workbook()
    book.remove(book.active)
    for metric in board.shown:
        _metric_sheet(book.create_sheet(_title(metric.name)), board, metric.name)
    _table_sheet(book.create_sheet("All figures"), tables.figures)
    _table_sheet(book.create_sheet("Formats"), tables.formats)
    _table_sheet(book.create_sheet("Anatomy"), tables.anatomy)
    if tables.slices:
        _table_sheet(book.create_sheet("Slices"), tables.slices)
    _table_sheet(book.create_sheet("Not compared"), tables.apart or [{"reason": "none"}])
    _about_sheet(book.create_sheet("About"), board)
    with replacing(path) as temporary:
        book.save(temporary)


def _title(name: str) -> str:
    """The name of a sheet: what a workbook does not allow in one is left out."""
    return re.sub(r"[][*?:/\\]", "", name)[:_LONGEST_TITLE]


def _put(sheet: Any, row: int, column: int, value: Any) -> Any:
    """Set a cell; text stays text, also where it begins like a formula."""
    cell = sheet.cell(row, column)
    cell.value = visible(value) if isinstance(value, str) else value
    cell.font = _PLAIN
    if isinstance(value, str):
        cell.data_type = "s"
    return cell


# --- a metric -------------------------------------------------------------------------------------

_HEADER_ROWS = 2
_LEADING = ("Rank", f"{TIED} {UNTOLD}", "Model", "Formats tried")
_BOUNDS_WIDTH = 13


def _metric_sheet(sheet: Any, board: Board, metric: str) -> None:
    _metric_header(sheet, board)
    averages, tried = len(board.averages), formats_tried(board)
    for row, (model, cells) in enumerate(grid(board, metric), _HEADER_ROWS + 1):
        overall = cells[0]
        _put(sheet, row, 1, overall.rank if overall else None)
        _put(sheet, row, 2, overall.sign or None if overall else None)
        _put(sheet, row, 3, model)
        _put(sheet, row, 4, tried.get(model, 1))
        for at, cell in enumerate(cells):
            _figure(sheet, row, 1 + len(_LEADING) + 2 * at, cell, at < averages)
    below = _HEADER_ROWS + 1 + len(board.models)
    for row, line in enumerate(published_lines(board, metric), below):
        _published(sheet, row, line)
    sheet.freeze_panes = sheet.cell(_HEADER_ROWS + 1, len(_LEADING) + 1)
    widths = [6, 4, min(_WIDEST, max([12, *(len(visible(m)) + 2 for m in board.models)])), 9]
    for name in board.names():
        widths += [max(7, len(name) + 3 - _BOUNDS_WIDTH), _BOUNDS_WIDTH]
    for at, width in enumerate(widths, 1):
        sheet.column_dimensions[get_column_letter(at)].width = width
    sheet.row_dimensions[1].height = sheet.row_dimensions[2].height = 24
    _landscape(sheet)


def _metric_header(sheet: Any, board: Board) -> None:
    """Two rows: the name over value and interval; then family and queries, or the average's."""
    for at, text in enumerate(_LEADING, 1):
        _put(sheet, 1, at, text)
    below = [f"mean of {len(average.columns)}" for average in board.averages]
    below += [f"{column.family}, {column.queries} queries" for column in board.columns]
    for at, (name, what) in enumerate(zip(board.names(), below, strict=True)):
        left = len(_LEADING) + 1 + 2 * at
        for row, text in enumerate((name, what), 1):
            _put(sheet, row, left, text)
            sheet.merge_cells(start_row=row, end_row=row, start_column=left, end_column=left + 1)
    for row in (1, 2):
        for at in range(1, len(_LEADING) + 2 * len(below) + 1):
            cell = sheet.cell(row, at)
            cell.fill, cell.alignment = _HEAD, _CENTRE
            cell.font = _BOLD if row == 1 else _FAINT
            if row == _HEADER_ROWS:
                cell.border = _RULE


def _figure(sheet: Any, row: int, column: int, cell: GridCell | None, average: bool) -> None:
    value = _put(sheet, row, column, cell.value if cell else None)
    bounds = _put(sheet, row, column + 1, cell.bounds + cell.mark if cell else None)
    value.number_format = _PERCENT
    bounds.font, bounds.alignment = _FAINT, Alignment(horizontal="left")
    if cell and cell.best:
        value.font = _BOLD
    if average:
        value.fill = bounds.fill = _AVERAGE


def _published(sheet: Any, row: int, line: PublishedLine) -> None:
    """A row of somebody else's figures, with where they stand behind it."""
    _put(sheet, row, 1, PUBLISHED).font = _FAINT
    _put(sheet, row, 3, line.model).font = _QUOTED
    for at, value in enumerate(line.values):
        cell = _put(sheet, row, 1 + len(_LEADING) + 2 * at, value)
        cell.number_format, cell.font = _PERCENT, _QUOTED
    _put(sheet, row, 1 + len(_LEADING) + 2 * len(line.values), line.where).font = _FAINT


# --- long tables ----------------------------------------------------------------------------------


def _table_sheet(sheet: Any, rows: Sequence[TableRow]) -> None:
    header = header_of(rows)
    for at, name in enumerate(header, 1):
        cell = _put(sheet, 1, at, name)
        cell.font, cell.fill, cell.alignment, cell.border = _BOLD, _HEAD, _CENTRE, _RULE
    for number, row in enumerate(rows, 2):
        for at, (name, value) in enumerate(row.items(), 1):
            cell = _put(sheet, number, at, value)
            if isinstance(value, float):
                cell.number_format = _P_VALUE if " p " in f" {name} " else _PERCENT
    for at, name in enumerate(header, 1):
        texts = [str(row[name]) for row in rows if isinstance(row[name], str)]
        width = max([11, *(len(text) + 2 for text in texts)])
        sheet.column_dimensions[get_column_letter(at)].width = min(_WIDEST, width)
    sheet.row_dimensions[1].height = 32
    sheet.freeze_panes = "D2"
    sheet.auto_filter.ref = sheet.dimensions
    _landscape(sheet)


def _about_sheet(sheet: Any, board: Board) -> None:
    sheet.column_dimensions["A"].width = _ABOUT_WIDTH
    lines = [
        NOTE,
        *([format_note(board)] if formats_used(board) else []),
        *(f"{title}: {line}" for title, lines in remarks(board) for line in lines),
        *(f"Published, not ranked: {line}" for line in published_notes(board)),
    ]
    for row, line in enumerate(lines, 1):
        _put(sheet, row, 1, line).alignment = Alignment(wrap_text=True, vertical="top")
        # Not every program finds the height of folded text by itself.
        sheet.row_dimensions[row].height = 14 * (1 + len(line) // _ABOUT_WIDTH)


def _landscape(sheet: Any) -> None:
    """On paper: one page wide, header rows on every page."""
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.fitToHeight = 0
    sheet.page_margins.left = sheet.page_margins.right = 0.3
    sheet.sheet_properties.pageSetUpPr.fitToPage = True
