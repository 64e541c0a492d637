"""Write the leaderboard to a folder, in every file format; a workbook by openpyxl."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

from openpyxl import Workbook
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.utils import get_column_letter

from ..core.files import atomic_write, replacing
from ..core.formatting import printable
from .board import HOME, Board
from .board_tables import (
    EXCLUDED,
    excluded_table,
    formats_table,
    metric_table,
    overall_table,
    slices_table,
    slices_tables,
    sweep_table,
    values_table,
)
from .error_tables import errors_table, lost_table
from .openvlm import to_openvlm
from .result_table import Field, FieldType, Table, TableCell, bounds_of, sign_of
from .table_output import all_notes, markdown_page, to_csv, to_json, to_latex


def board_folder(board: Board, out: Path) -> Path:
    """Return the folder of a leaderboard's files: ``out`` for FindIt's, else a folder in it."""
    return out if board.benchmark.name == HOME else out / board.benchmark.name


def write_board(board: Board, out: Path, time: datetime | None = None) -> list[Path]:
    """Write the leaderboard of a time (None: now) into a folder; return the files.

    Slices have a file if there are any.
    """
    out.mkdir(parents=True, exist_ok=True)
    lists = {
        "leaderboard.csv": values_table(board),
        "formats.csv": sweep_table(board),
        "errors.csv": errors_table(board),
        "slices.csv": slices_table(board),
        "not_compared.csv": excluded_table(board),
    }
    if not lists["slices.csv"].rows:
        del lists["slices.csv"]
    texts = {name: to_csv(table) for name, table in lists.items()}
    content = to_json(lists["leaderboard.csv"])
    texts["leaderboard.json"] = json.dumps(content, indent=1, ensure_ascii=False)
    texts["openvlm.json"] = to_openvlm(board, time or datetime.now())
    texts["leaderboard.md"] = as_markdown(board)
    texts["leaderboard.tex"] = as_latex(board)
    for name, text in texts.items():
        with atomic_write(out / name) as f:
            f.write(text)
    scores, *metrics = _metric_tables(board)
    values, formats, *others = lists.values()
    sheets = {
        "Scores": scores,
        "Formats": formats,
        "What was lost": lost_table(board),
        **{table.title: table for table in metrics},
        **{table.title.partition(":")[0]: table for table in (*others, values)},
    }
    workbook = out / "leaderboard.xlsx"
    write_sheets(sheets, workbook)
    return [workbook, *(out / name for name in texts)]


def _metric_tables(board: Board) -> list[Table]:
    return [metric_table(board, metric.name) for metric in board.shown]


def as_markdown(board: Board) -> str:
    """Write the whole leaderboard as a Markdown page."""
    scores, *metrics = _metric_tables(board)
    tables = [overall_table(board), scores, formats_table(board), lost_table(board)]
    tables += [*metrics, *slices_tables(board), excluded_table(board).only(*EXCLUDED)]
    shown = [table for table in tables if table.rows or table.notes]
    return markdown_page(f"{board.benchmark.name} leaderboard", shown)


def as_latex(board: Board) -> str:
    """Write a ``table*`` for each metric, with all notes: it may be copied alone."""
    tables = map(to_latex, _metric_tables(board))
    return "\n".join([r"% needs \usepackage{booktabs,graphicx}", *tables])


# --- the workbook ---------------------------------------------------------------------------------

_FORMATS = {FieldType.VALUE: "0.0", FieldType.DIFFERENCE: "+0.0;-0.0;0.0", FieldType.P: "0.0000"}
_BOLD, _QUOTED, _FAINT = Font(bold=True), Font(italic=True), Font(color="666666")
_HEAD = PatternFill("solid", start_color="E8ECF1")
_FOLDED = Alignment(horizontal="center", vertical="center", wrap_text=True)
_WIDEST, _LONGEST_NAME = 60, 31
_NOTES_WIDTH = 110
_NAMES, _FIRST = 3, 4
"""The rows of the columns' names and of the first values, below title and notes."""


def write_sheets(tables: Mapping[str, Table], path: Path) -> None:
    """Write a workbook of tables by the names of their sheets; the last has all notes."""
    book = Workbook()
    book.remove(book.active)
    for name, table in tables.items():
        _fill(_sheet(book, name), table)
    notes = _sheet(book, "Notes")
    lines = [
        f"{title}: {line}" if title else line
        for title, lines in all_notes(tables.values())
        for line in lines
    ]
    notes.column_dimensions["A"].width = _NOTES_WIDTH
    for row, line in enumerate(lines, 1):
        _put(notes, row, 1, line).alignment = Alignment(wrap_text=True, vertical="top")
        # Not every program computes the height of folded text.
        notes.row_dimensions[row].height = 15 * (1 + len(line) // _NOTES_WIDTH)
    with replacing(path) as temporary:
        book.save(temporary)


def _sheet(book: Workbook, name: str) -> Any:
    """Add a sheet, on paper one page wide."""
    sheet: Any = book.create_sheet(re.sub(r"[][*?:/\\]", "", name)[:_LONGEST_NAME])
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.paperSize = sheet.PAPERSIZE_A4
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr.fitToPage = True
    return sheet


def _put(sheet: Any, row: int, column: int, value: Any, font: Font | None = None) -> Any:
    """Set a cell; text stays text, even if it begins like a formula."""
    cell = sheet.cell(row, column)
    cell.value = printable(value) if isinstance(value, str) else value
    if isinstance(value, str):
        cell.data_type = "s"
    if font is not None:
        cell.font = font
    return cell


def _fill(sheet: Any, table: Table) -> None:
    """Fill a sheet: a column for every field, followed by a column of its intervals and signs."""
    _put(sheet, 1, 1, table.title, _BOLD)
    rows = [[cell for _, cell in row] for row in table.cells()]
    left = 1
    for at, field in enumerate(table.fields):
        _fill_column(sheet, left, field, [row[at] for row in rows], table.quoted)
        left += 1 + field.interval
    keys = len(list(takewhile(lambda field: field.is_key, table.fields)))
    sheet.freeze_panes = sheet.cell(_FIRST, keys + 1)
    end = sheet.cell(max(_NAMES, sheet.max_row), left - 1).coordinate
    sheet.print_title_rows = f"1:{_NAMES}"
    sheet.auto_filter.ref = f"A{_NAMES}:{end}"


def _fill_column(
    sheet: Any, at: int, field: Field, cells: Sequence[TableCell], quoted: int
) -> None:
    """Fill the column of a field, whose last ``quoted`` values are published."""
    heads = {at: (field.note, field.name)}
    if field.interval:
        heads[at + 1] = ("", "95 % interval")
    for column, (note, name) in heads.items():
        _put(sheet, _NAMES - 1, column, note, _FAINT).alignment = _FOLDED
        head = _put(sheet, _NAMES, column, name, _BOLD)
        head.alignment, head.fill = _FOLDED, _HEAD
        sheet.column_dimensions[get_column_letter(column)].width = 12
    texts = [printable(cell.value) for cell in cells if isinstance(cell.value, str)]
    if field.kind is FieldType.TEXT:
        widest = min(_WIDEST, max(map(len, [*texts, field.name])) + 3)
        sheet.column_dimensions[get_column_letter(at)].width = widest
    for place, cell in enumerate(cells):
        font = _QUOTED if place >= len(cells) - quoted else _BOLD if cell.best else None
        filled = _put(sheet, _FIRST + place, at, cell.value, font)
        filled.number_format = _FORMATS.get(field.kind, "General")
        if field.kind is FieldType.RANK and cell.sign:
            filled.number_format = f'0" {cell.sign}"'
        if field.interval:
            interval = (bounds_of(field, cell) + sign_of(cell)).strip()
            _put(sheet, _FIRST + place, at + 1, interval or None, _FAINT)
