"""Tables as the sheets of an xlsx workbook."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openpyxl import Workbook
from openpyxl.styles import Alignment, Border, Font, PatternFill, Side
from openpyxl.utils import get_column_letter

from ..core.files import replacing
from ..core.spelling import visible
from .render import all_notes
from .table import Cell, Field, Kind, Table, bounds_of, sign_of

_FORMATS = {Kind.VALUE: "0.0", Kind.DIFFERENCE: "+0.0;-0.0;0.0", Kind.P: "0.0000"}
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
_LONGEST_NAME = 31
_ABOUT_WIDTH = 110
_BOUNDS_WIDTH = 13


def write_sheets(tables: Mapping[str, Table], lists: Sequence[Table], path: Path) -> None:
    """Write a workbook, and the notes of its tables as its last sheet.

    Args:
        tables: by the name of their sheet; each interval stands as text beside its value.
        lists: long tables for filters and formulas; the ends of each interval are numbers.
        path: the file.
    """
    book = Workbook()
    book.remove(book.active)
    for name, table in tables.items():
        _shown_sheet(_sheet(book, name, table.title), table)
    for table in lists:
        _list_sheet(_sheet(book, table.title.partition(":")[0], table.title), table)
    _about_sheet(_sheet(book, "About", "About"), [*tables.values(), *lists])
    with replacing(path) as temporary:
        book.save(temporary)


def _sheet(book: Workbook, name: str, title: str) -> Any:
    """Add a sheet; on paper one page wide with its title above."""
    sheet: Any = book.create_sheet(re.sub(r"[][*?:/\\]", "", name)[:_LONGEST_NAME])
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.fitToHeight = 0
    sheet.page_margins.left = sheet.page_margins.right = 0.3
    sheet.sheet_properties.pageSetUpPr.fitToPage = True
    sheet.oddHeader.center.text = visible(title).replace("&", "&&")
    return sheet


def _put(sheet: Any, row: int, column: int, value: Any, font: Font = _PLAIN) -> Any:
    """Set a cell; text stays text, also where it begins like a formula."""
    cell = sheet.cell(row, column)
    cell.value = visible(value) if isinstance(value, str) else value
    cell.font = font
    if isinstance(value, str):
        cell.data_type = "s"
    return cell


def _put_header(sheet: Any, row: int, column: int, text: str, font: Font = _BOLD) -> None:
    cell = _put(sheet, row, column, text, font)
    cell.fill, cell.alignment, cell.border = _HEAD, _CENTRE, _RULE


def _set_widths(sheet: Any, widths: Sequence[int]) -> None:
    for at, width in enumerate(widths, 1):
        sheet.column_dimensions[get_column_letter(at)].width = min(_WIDEST, width)


def _shown_sheet(sheet: Any, table: Table) -> None:
    """Fill a sheet whose values have their intervals, and ranks their signs, in a second column."""
    left, widths = 1, []
    columns = list(zip(*table.cells(), strict=True))
    for place, field in enumerate(table.fields):
        span = 1 + (field.interval or field.kind is Kind.RANK)
        for row, text in ((1, field.name), (2, field.note)):
            for at in range(span):
                _put_header(
                    sheet, row, left + at, "" if at else text, _BOLD if row == 1 else _FAINT
                )
            sheet.merge_cells(None, row, left, row, left + span - 1)
        texts = [cell.value for _, cell in columns[place]] if columns else []
        longest = max([7, *(len(visible(text)) + 2 for text in texts if isinstance(text, str))])
        widths += [longest if span == 1 else max(7, len(field.name) + 3 - _BOUNDS_WIDTH)]
        widths += [4 if field.kind is Kind.RANK else _BOUNDS_WIDTH] * (span - 1)
        left += span
    first_quoted = len(table.rows) - table.quoted
    for at, cells in enumerate(table.cells()):
        left = 1
        for field, cell in cells:
            left += _put_value(sheet, at + 3, left, field, cell, at >= first_quoted)
    keys = [1 + (field.kind is Kind.RANK) for field in table.fields if not field.interval]
    sheet.freeze_panes = sheet.cell(3, sum(keys) + 1)
    sheet.print_title_rows = "1:2"
    sheet.row_dimensions[1].height = sheet.row_dimensions[2].height = 24
    _set_widths(sheet, widths)


def _put_value(sheet: Any, row: int, at: int, field: Field, cell: Cell, quoted: bool) -> int:
    """Set a value and what stands beside it; returns how many columns that takes."""
    font = _QUOTED if quoted else _BOLD if cell.best else _PLAIN
    cells = [_put(sheet, row, at, cell.value, font)]
    if field.kind in _FORMATS:
        cells[0].number_format = _FORMATS[field.kind]
    if field.interval or field.kind is Kind.RANK:
        beside = (bounds_of(field, cell) + sign_of(cell)).strip()
        cells.append(_put(sheet, row, at + 1, beside or None, _FAINT))
        cells[1].alignment = Alignment(horizontal="left")
    for one in cells if field.is_mean else ():
        one.fill = _AVERAGE
    return len(cells)


def _list_sheet(sheet: Any, table: Table) -> None:
    kinds = [field.kind for field in table.fields for _ in range(3 if field.interval else 1)]
    for at, name in enumerate(table.header, 1):
        _put_header(sheet, 1, at, name)
    widths = [11] * len(kinds)
    for number, row in enumerate(table.records(), 2):
        for at, (kind, value) in enumerate(zip(kinds, row.values(), strict=True)):
            cell = _put(sheet, number, at + 1, value)
            if kind in _FORMATS:
                cell.number_format = _FORMATS[kind]
            if isinstance(value, str):
                widths[at] = max(widths[at], len(value) + 2)
    sheet.row_dimensions[1].height = 32
    sheet.freeze_panes = "D2"
    sheet.print_title_rows = "1:1"
    sheet.auto_filter.ref = sheet.dimensions
    _set_widths(sheet, widths)


def _about_sheet(sheet: Any, tables: Sequence[Table]) -> None:
    sheet.column_dimensions["A"].width = _ABOUT_WIDTH
    lines = [
        f"{title}: {line}" if title else line
        for title, lines in all_notes(tables)
        for line in lines
    ]
    for row, line in enumerate(lines, 1):
        _put(sheet, row, 1, line).alignment = Alignment(wrap_text=True, vertical="top")
        # Not every program finds the height of folded text by itself.
        sheet.row_dimensions[row].height = 14 * (1 + len(line) // _ABOUT_WIDTH)
