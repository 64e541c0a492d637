"""Tables as the sheets of an xlsx workbook."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openpyxl import Workbook
from openpyxl.styles import Alignment, Border, Font, PatternFill, Side
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.properties import PageSetupProperties

from ..core.files import replacing
from ..core.formatting import printable
from .result_table import Field, FieldType, Table, TableCell, bounds_of, sign_of
from .table_output import all_notes

_FORMATS = {FieldType.VALUE: "0.0", FieldType.DIFFERENCE: "+0.0;-0.0;0.0", FieldType.P: "0.0000"}
_FACE = "Arial"
_PLAIN = Font(name=_FACE, size=10)
_BOLD = Font(name=_FACE, size=10, bold=True)
_FAINT = Font(name=_FACE, size=9, color="666666")
_QUOTED = Font(name=_FACE, size=10, italic=True)
_HEAD = PatternFill("solid", start_color="E8ECF1")
_AVERAGE = PatternFill("solid", start_color="F5F7FA")
_RULE = Border(bottom=Side(style="thin", color="8A94A0"))
_CENTRE = Alignment(horizontal="center", vertical="center", wrap_text=True)
_TEXT = Alignment(horizontal="left", indent=1)
_NUMBER = Alignment(horizontal="right")
_WIDEST = 60
_LONGEST_NAME = 31
_NOTES_WIDTH = 110
_INTERVAL_WIDTH = 12


def write_sheets(tables: Mapping[str, Table], path: Path) -> None:
    """Write a workbook of tables by the names of their sheets; the last has all notes."""
    book = Workbook()
    book.remove(book.active)
    for name, table in tables.items():
        _fill(_sheet(book, name), table)
    notes = _sheet(book, "Notes")
    notes.column_dimensions["A"].width = _NOTES_WIDTH
    all_lines = ((title, line) for title, lines in all_notes(tables.values()) for line in lines)
    lines = [f"{title}: {line}" if title else line for title, line in all_lines]
    for row, line in enumerate(lines, 1):
        _put(notes, row, 1, line).alignment = Alignment(wrap_text=True, vertical="top")
        # Not every program computes the height of folded text.
        notes.row_dimensions[row].height = 14 * (1 + len(line) // _NOTES_WIDTH)
    with replacing(path) as temporary:
        book.save(temporary)


def _sheet(book: Workbook, name: str) -> Any:
    """Add a sheet, which is printed across, on pages that have all of its columns."""
    sheet = book.create_sheet(re.sub(r"[][*?:/\\]", "", name)[:_LONGEST_NAME])
    sheet.page_setup.orientation = "landscape"
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    sheet.page_setup.fitToHeight = 0
    return sheet


def _put(sheet: Any, row: int, column: int, value: Any, font: Font = _PLAIN) -> Any:
    """Set a cell; text stays text, even if it begins like a formula."""
    cell = sheet.cell(row, column)
    cell.value = printable(value) if isinstance(value, str) else value
    cell.font = font
    if isinstance(value, str):
        cell.data_type = "s"
    return cell


# The rows of the columns' names and of the first values, below title and notes
_NAMES, _FIRST = 3, 4


def _fill(sheet: Any, table: Table) -> None:
    """Fill a sheet: a column for every field, followed by a column of its intervals and signs."""
    _put(sheet, 1, 1, table.title, _BOLD)
    rows = [[cell for _, cell in row] for row in table.cells()]
    left = 1
    for at, field in enumerate(table.fields):
        _fill_column(sheet, left, field, [row[at] for row in rows], table.quoted)
        left += 1 + field.interval
    sheet.freeze_panes = sheet.cell(_FIRST, table.keys + 1)
    sheet.row_dimensions[2].height = 36
    sheet.row_dimensions[_NAMES].height = 38  # Three lines: a metric's name may be long.
    end = sheet.cell(max(_NAMES, sheet.max_row), left - 1).coordinate
    sheet.auto_filter.ref = f"A{_NAMES}:{end}"


def _fill_column(
    sheet: Any, at: int, field: Field, cells: Sequence[TableCell], quoted: int
) -> None:
    """Fill the column of a field, whose last ``quoted`` values are published."""
    _put_head(sheet, at, field.name, field.note)
    texts = [printable(cell.value) for cell in cells if isinstance(cell.value, str)]
    longest = max(map(len, [*texts, field.name])) if field.kind is FieldType.TEXT else 6
    sheet.column_dimensions[get_column_letter(at)].width = min(_WIDEST, longest + 3)
    if field.interval:
        _put_head(sheet, at + 1, "95 % interval")
        sheet.column_dimensions[get_column_letter(at + 1)].width = _INTERVAL_WIDTH
    for place, cell in enumerate(cells):
        font = _QUOTED if place >= len(cells) - quoted else _BOLD if cell.best else _PLAIN
        filled = [_put(sheet, _FIRST + place, at, cell.value, font)]
        filled[0].number_format = _FORMATS.get(field.kind, "General")
        filled[0].alignment = _TEXT if field.kind is FieldType.TEXT else _NUMBER
        if field.kind is FieldType.RANK and cell.sign:
            filled[0].number_format = f'0" {cell.sign}"'
        if field.interval:
            interval = (bounds_of(field, cell) + sign_of(cell)).strip()
            filled.append(_put(sheet, _FIRST + place, at + 1, interval or None, _FAINT))
        for filled_cell in filled if field.is_mean else ():
            filled_cell.fill = _AVERAGE


def _put_head(sheet: Any, at: int, name: str, note: str = "") -> None:
    _put(sheet, _NAMES - 1, at, note, _FAINT).alignment = _CENTRE
    head = _put(sheet, _NAMES, at, name, _BOLD)
    head.fill, head.alignment, head.border = _HEAD, _CENTRE, _RULE
