"""Tables as the sheets of an xlsx workbook."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import pairwise
from math import ceil, floor, log10
from pathlib import Path
from typing import Any, NamedTuple

from openpyxl import Workbook
from openpyxl.styles import Alignment, Border, Font, PatternFill, Side
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.pagebreak import Break
from openpyxl.worksheet.properties import PageSetupProperties

from ..core import printable, replacing, save_workbook
from .legends import IN_A_SHEET, signs_note
from .result_table import Field, FieldType, Table, TableCell, bounds_of, sign_of, text_of
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
_FOLDED = Alignment(wrap_text=True, vertical="top")
_NUMBER = Alignment(horizontal="right")
_WIDEST = 60
_LONGEST_NAME = 31
_NOTES_WIDTH = 90  # A column that is wider than a page is cut off in print
_INTERVAL_WIDTH = 12
_LETTER = 1.2  # Width of a bold letter, in those of a sheet: programs break longer words
_PAGE_WIDTH = 180  # Characters across a page, A4 or letter, that can still be read
_PAGE_SCALE = 54  # Percent, at which these fit on letter, between margins of half an inch


class _Look(NamedTuple):
    """How cells look: of the constants above."""

    font: Font
    alignment: Alignment | None = None
    number_format: str = "General"
    fill: PatternFill | None = None
    border: Border | None = None


_TITLE = _Look(_BOLD)
_NAME = _Look(_BOLD, _CENTRE, fill=_HEAD, border=_RULE)
_NOTE_ABOVE = _Look(_FAINT, _CENTRE)
_NOTE = _Look(_PLAIN, _FOLDED)


class _Styles:
    """Styles the cells of a workbook; each look is made once, as openpyxl hashes all its parts."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], Any] = {}

    def apply(self, look: _Look, cell: Any) -> None:
        parts = (*map(id, (look.font, look.alignment, look.fill, look.border)), look.number_format)
        if parts in self._made:
            cell._style = copy(self._made[parts])  # As openpyxl copies a sheet
            return
        cell.font = look.font
        cell.number_format = look.number_format
        if look.alignment is not None:
            cell.alignment = look.alignment
        if look.fill is not None:
            cell.fill = look.fill
        if look.border is not None:
            cell.border = look.border
        self._made[parts] = cell._style


def write_sheets(tables: Mapping[str, Table], path: Path) -> None:
    """Write a workbook of tables by the names of their sheets; the last has all notes."""
    book = Workbook()
    book.remove(book.active)
    styles = _Styles()
    for name, table in tables.items():
        _fill(_sheet(book, name), table, styles)
    notes = _sheet(book, "Notes")
    notes.column_dimensions["A"].width = _NOTES_WIDTH
    # Ranks of rows are in columns of numbers, without a sign.
    of_values = [table.without(_ranks(table)) for table in tables.values()]
    shown = [*all_notes(tables.values()), *signs_note(of_values, IN_A_SHEET)]
    all_lines = ((title, line) for title, lines in shown for line in lines)
    lines = [f"{title}: {line}" if title else line for title, line in all_lines]
    for row, line in enumerate(lines, 1):
        styles.apply(_NOTE, _put(notes, row, 1, line))
        # Not every program computes the height of folded text.
        notes.row_dimensions[row].height = 14 * (1 + len(line) // _NOTES_WIDTH)
    with replacing(path) as temporary:
        save_workbook(book, temporary)


def _ranks(table: Table) -> set[str]:
    return {field.name for field in table.fields if field.kind is FieldType.RANK}


def _sheet(book: Workbook, name: str) -> Any:
    """Add a sheet, which is printed across.

    A long name ends before its remark in brackets: ``False-alarm rate (lower is better)``.
    """
    plain = re.sub(r"[][*?:/\\]", "", name)
    if len(plain) > _LONGEST_NAME:
        plain = plain.partition(" (")[0]
    sheet = book.create_sheet(plain[:_LONGEST_NAME])
    sheet.page_setup.orientation = "landscape"
    sheet.page_margins.left = sheet.page_margins.right = 0.5
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    sheet.page_setup.fitToHeight = 0
    return sheet


def _put(sheet: Any, row: int, column: int, value: Any) -> Any:
    """Set a cell; text stays text, even if it begins like a formula."""
    cell = sheet.cell(row, column)
    cell.value = printable(value) if isinstance(value, str) else value
    if isinstance(value, str):
        cell.data_type = "s"
    return cell


# Rows below title and notes
_NAMES = 3  # The names of the columns
_FIRST = 4  # The first values


def _fill(sheet: Any, table: Table, styles: _Styles) -> None:
    """Fill a sheet: a column for every field, followed by a column of its intervals and signs.

    Ranks have two columns, the best and the worst: programs sort and filter numbers, not ranges.
    """
    styles.apply(_TITLE, _put(sheet, 1, 1, table.title))
    rows = [[cell for _, cell in row] for row in table.cells()]
    left = 1
    values = 1  # The first column that is none of a name
    starts = []  # Of what a page keeps together
    for at, field in enumerate(table.fields):
        for column, cells in _columns_of(field, [row[at] for row in rows]):
            _fill_column(sheet, left, column, cells, table.quoted, styles)
            starts.append(left)
            left += 1 + column.interval
        if at < table.keys:
            values = left
    sheet.freeze_panes = sheet.cell(_FIRST, values)
    sheet.row_dimensions[2].height = 36
    # Not every program computes it: a name has at most a line for each word.
    lines = max((len(field.name.split()) for field in table.fields), default=1)
    sheet.row_dimensions[_NAMES].height = 13 * min(max(lines, 2), 5)
    end = sheet.cell(max(_NAMES, sheet.max_row), left - 1).coordinate
    sheet.auto_filter.ref = f"A{_NAMES}:{end}"
    _fit_pages(sheet, values - 1, [*starts, left])


def _fit_pages(sheet: Any, names: int, starts: Sequence[int]) -> None:
    """Print a sheet on as many pages side by side as can be read, each with heads and names.

    ``starts``: the columns before which a page may end, so that an interval stays beside its value.
    """
    kept = _width_of(sheet, 1, names + 1)
    if kept > _PAGE_WIDTH / 2:
        names = 0  # Names that fill a page leave no room for values
        kept = 0
    sheet.print_title_rows = f"1:{_NAMES}"
    if names:
        sheet.print_title_cols = f"A:{get_column_letter(names)}"
    first = names + 1
    for start, end in pairwise(starts):
        if start > first and kept + _width_of(sheet, first, end) > _PAGE_WIDTH:
            sheet.col_breaks.append(Break(id=start - 1))
            first = start
    if sheet.col_breaks.brk:
        # Programs pass over breaks where they choose the scale.
        sheet.sheet_properties.pageSetUpPr.fitToPage = False
        sheet.page_setup.scale = _PAGE_SCALE


def _width_of(sheet: Any, start: int, end: int) -> float:
    """Return the width of the columns from ``start`` on, before ``end``."""
    columns = sheet.column_dimensions
    return float(sum(columns[get_column_letter(at)].width for at in range(start, end)))


def _columns_of(field: Field, cells: Sequence[TableCell]) -> list[tuple[Field, list[TableCell]]]:
    """Return the columns of a field with their cells: of ranges of ranks two, else one."""
    if field.kind is not FieldType.RANK or all(cell.ranks is None for cell in cells):
        return [(field, list(cells))]
    best: list[TableCell] = []
    worst: list[TableCell] = []
    for cell in cells:
        if cell.ranks is None:
            best.append(cell)  # Of a published value: a word
            worst.append(TableCell(None if isinstance(cell.value, str) else cell.value))
        else:
            best.append(TableCell(cell.ranks.best))
            worst.append(replace(cell, value=cell.ranks.worst, ranks=None))
    return [
        (replace(field, name=f"best {field.name}"), best),
        (replace(field, name=f"worst {field.name}"), worst),
    ]


def _fill_column(
    sheet: Any, at: int, field: Field, cells: Sequence[TableCell], quoted: int, styles: _Styles
) -> None:
    """Fill the column of a field, whose last ``quoted`` values are published."""
    _put_head(sheet, at, styles, field.name, field.note)
    texts = [printable(cell.value) for cell in cells if isinstance(cell.value, str)]
    longest = 6
    if field.kind is FieldType.TEXT:
        longest = max(map(len, [*texts, field.name]))
    elif field.kind is FieldType.AMOUNT:
        longest = max([longest, *(len(text_of(field, cell)) for cell in cells)])
    word = max(map(len, field.name.split()), default=0)
    width = max(longest + 3, ceil(_LETTER * word) + 1)
    sheet.column_dimensions[get_column_letter(at)].width = min(_WIDEST, width)
    if field.interval:
        _put_head(sheet, at + 1, styles, "95 % interval")
        sheet.column_dimensions[get_column_letter(at + 1)].width = _INTERVAL_WIDTH
    fill = _AVERAGE if field.is_mean else None
    for place, cell in enumerate(cells):
        row = _FIRST + place
        font = _QUOTED if place >= len(cells) - quoted else _BOLD if cell.best else _PLAIN
        alignment = _TEXT if field.kind is FieldType.TEXT else _NUMBER
        look = _Look(font, alignment, _number_format(field, cell), fill)
        _put_styled(sheet, row, at, cell.value, look, styles)
        if field.interval:
            interval = (bounds_of(field, cell) + sign_of(field, cell)).strip()
            _put_styled(sheet, row, at + 1, interval, _Look(_FAINT, fill=fill), styles)


def _put_styled(
    sheet: Any, row: int, column: int, value: Any, look: _Look, styles: _Styles
) -> None:
    """Set a cell; what is empty and has no fill is left out, as many values are not known."""
    if value in (None, "") and look.fill is None:
        return
    styles.apply(look, _put(sheet, row, column, None if value == "" else value))


def _number_format(field: Field, cell: TableCell) -> str:
    """Return the number format of a value, so that it looks as in other tables.

    Where no column of intervals follows that would have the sign, it is in the format.
    """
    sign = "" if field.interval else sign_of(field, cell)
    return f'{_plain_format(field, cell)}"{sign}"' if sign else _plain_format(field, cell)


def _plain_format(field: Field, cell: TableCell) -> str:
    if field.kind is FieldType.AMOUNT and isinstance(cell.value, int | float):
        return _three_digits(cell.value)
    return _FORMATS.get(field.kind, "General")


def _three_digits(number: float) -> str:
    """Return the number format of an amount.

    >>> [_three_digits(number) for number in (1234.5, 45.25, 0.00123, 1.4e-7, 0)]
    ['#,##0', '0.0', '0.00000', '0.00E+00', '0']
    """
    if not number:
        return "0"
    place = floor(log10(abs(number)))
    if place < -4:  # As Python writes it
        return "0.00E+00"
    decimals = 2 - place
    return f"0.{'0' * decimals}" if decimals > 0 else "#,##0"


def _put_head(sheet: Any, at: int, styles: _Styles, name: str, note: str = "") -> None:
    styles.apply(_NOTE_ABOVE, _put(sheet, _NAMES - 1, at, note))
    styles.apply(_NAME, _put(sheet, _NAMES, at, name))
