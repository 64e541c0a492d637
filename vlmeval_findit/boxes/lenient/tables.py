"""Boxes in the rows of tables: Markdown, CSV and LaTeX, whose columns have names.

A row's numbers are read by the names of their columns, whatever these columns' order. A table
whose columns name no box has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...core import late_pattern
from ..representation import Representation
from .number_names import NAME, numbers_by_name
from .words import KeySays, rank_of_label, what_key_says, words_of

# What separates cells, the likeliest first
_CELLS = {sign: late_pattern(re.escape(sign)) for sign in "|&,\t;"} | {" ": late_pattern(r"\s+")}
_MARKS = " \t\r$*`\"'{}"
_OF_NUMBER = late_pattern(rf"(?:{NAME})", re.IGNORECASE)
_NUMBER = late_pattern(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)")
_RULE = late_pattern(r"[\s|:+=-]*+\Z|\\hline\s*\Z")
_IN_BRACKETS = late_pattern(r"[\[({]\s*+(.*?)[\])}]\s*+\Z")
_MOST_CELLS = 40


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table that has a box, and its place in the text."""

    start: int
    end: int
    numbers: tuple[object, ...]  # In the format's order
    label: str
    frame: int | None
    by_name: bool  # Each number has a column


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class _Column:
    """What a column holds."""

    name: str  # As written
    is_number: bool
    is_box: bool
    is_frame: bool
    rank_of_label: int | None


@dataclass(frozen=True, slots=True)
class Tables:
    """The rows of the tables in a text, and where tables stand."""

    rows: tuple[TableRow, ...]
    spans: tuple[tuple[int, int], ...]  # All tables
    named: tuple[tuple[int, int], ...]  # Headings that name numbers


def tables_in(text: str, representation: Representation) -> Tables:
    """Return the tables of a text.

    >>> from ..representation import REPRESENTATIONS
    >>> table = "name,y1,x1,y2,x2\\ndog,2,1,4,3"
    >>> [(row.numbers, row.label) for row in tables_in(table, REPRESENTATIONS["xyxy"]).rows]
    [(('1', '2', '3', '4'), 'dog')]
    """
    rows: list[TableRow] = []
    spans: list[tuple[int, int]] = []
    named: list[tuple[int, int]] = []
    if "<t" in text:
        text = _with_rows_of_html(text)
    lines = list(_lines(text))
    at = 0
    while at < len(lines):
        sign = _separator(lines[at].text)
        columns = _columns(lines[at].text, sign) if sign else []
        if not sign or not columns:
            at += 1
            continue
        start = at
        at += 1
        count = 0
        by_rows: list[tuple[_Line, list[str]]] = []
        while at < len(lines):
            cells = _cells(lines[at].text, sign)
            if not _RULE.match(lines[at].text):
                has_index = len(cells) == len(columns) + 1 and cells[0].isdecimal()
                if has_index and sign == " ":  # Rows that pandas prints have a number
                    cells = cells[1:]
                if len(cells) != len(columns):
                    break
                rows += _boxes_of_row(lines[at], cells, columns, representation)
                by_rows.append((lines[at], cells))
                count += 1
            at += 1
        rows += _boxes_of_columns(by_rows, columns, representation)
        if count:
            spans.append((lines[start].start, lines[at - 1].end))
            if sum(column.is_number for column in columns) >= 2:
                named.append((lines[start].start, lines[start].end))
    for names, values in _insertions(text):
        columns = _columns(names.text, ",")
        cells_of = [(line, _cells(line.text, ",")) for line in values]
        for line, cells in cells_of:
            if len(cells) == len(columns):
                rows += _boxes_of_row(line, cells, columns, representation)
        if columns:
            spans.append((names.start, values[-1].end))
            named.append((names.start, names.end))
    return Tables(tuple(rows), tuple(spans), tuple(named))


# INSERT INTO boxes (label, xmin, …) VALUES ('dog', 1, …), ('cat', 5, …)
_INSERTION = late_pattern(
    r"\(([^()]{1,300})\)\s?VALUES\s{0,4}(?=\()((?:\s{0,4}\([^()]{1,300}\)\s{0,4},?)++)",
    re.IGNORECASE,
)
_VALUES = late_pattern(r"\(([^()]{1,300})\)")


def _insertions(text: str) -> Iterator[tuple[_Line, list[_Line]]]:
    """Yield the names of columns and the rows of values that statements of SQL insert."""
    for match in _INSERTION.finditer(text):
        values = _VALUES.finditer(text, match.start(2), match.end(2))
        rows = [_Line(row.start(1), row[1]) for row in values]
        yield _Line(match.start(1), match[1]), rows


_TABLE = late_pattern(r"<table\b.*?(?:</table>|\Z)", re.IGNORECASE | re.DOTALL)
_PARTS_OF_TABLE = late_pattern(
    r"<(/?)(table|thead|tbody|tr|th|td)\b[^<>]{0,200}>|\n", re.IGNORECASE
)


def _with_rows_of_html(text: str) -> str:
    """Write the rows of HTML's tables as lines with ``|``, each sign at its place.

    >>> _with_rows_of_html("<table><tr><td>a</td><td>b</td></tr></table>").split()
    ['a|', 'b|']
    """
    return _TABLE.sub(lambda table: _PARTS_OF_TABLE.sub(_sign_of_part, table[0]), text)


def _sign_of_part(part: re.Match[str]) -> str:
    sign = " "
    if part[1] and part[2].lower() in ("td", "th"):
        sign = "|"
    elif part[2] and part[2].lower() in ("tr", "table"):
        sign = "\n"
    return sign.ljust(len(part[0]))


def _boxes_of_columns(
    rows: Sequence[tuple[_Line, Sequence[str]]],
    columns: Sequence[_Column],
    representation: Representation,
) -> Iterator[TableRow]:
    """Yield the boxes of a table whose first column names the numbers; a column is an object."""
    if len(rows) < representation.width or any(column.is_number for column in columns):
        return
    named = [(line, cells) for line, cells in rows if _OF_NUMBER.fullmatch(cells[0])]
    if len({cells[0] for _, cells in named}) != len(named):
        return
    for place, column in enumerate(columns[1:], 1):
        fields = {cells[0]: cells[place] for _, cells in named if _NUMBER.fullmatch(cells[place])}
        numbers = numbers_by_name(fields, representation)
        if numbers is not None:
            start, end = named[0][0].start, named[-1][0].end
            yield TableRow(start, end, tuple(numbers), column.name, None, by_name=True)


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.split("\n"):
        yield _Line(start, line)
        start += len(line) + 1


def _separator(line: str) -> str:
    """Return what separates the cells of a line; "" if it has none."""
    if "<|" in line:
        return ""
    return next((sign for sign in _CELLS if sign in line.strip()), "")


def _cells(line: str, sign: str) -> list[str]:
    text = line.strip().removesuffix("\\\\").strip()
    if sign == "|":
        text = text.removeprefix("|").removesuffix("|")
    return [cell.strip(_MARKS) for cell in _CELLS[sign].split(text, _MOST_CELLS)]


def _columns(line: str, sign: str) -> list[_Column]:
    """Return the columns that a heading names; none if the line is no heading."""
    cells = _cells(line, sign)
    if len(cells) < 2 or len(cells) > _MOST_CELLS or not all(map(_is_name, cells)):
        return []
    columns: list[_Column] = []
    for cell in cells:
        name = re.sub(r"[${}\\]", "", cell.split("(")[0]).strip(_MARKS)
        is_number = _OF_NUMBER.fullmatch(name) is not None
        is_frame = "frame" in words_of(name) or (words_of(name)[:1] == ["image"])
        is_box = what_key_says(name) is KeySays.BOX
        columns.append(_Column(name, is_number, is_box, is_frame, rank_of_label(name)))
    numbered = sum(column.is_number for column in columns)
    has_box = any(column.is_box for column in columns)
    # Prose has commas, too: a heading of a CSV file names numbers.
    if sign == " " and numbered < 4:
        return []
    if sign in ", " and ":" in line:  # "Format: x1, y1, x2, y2"
        return []
    is_heading = sign == "|" or (numbered >= 2 and "(" not in line) or (has_box and sign != ",")
    return columns if is_heading else []


def _is_name(cell: str) -> bool:
    name = cell.split("(")[0]
    return len(cell) < 60 and (cell == "" or not cell[0].isdigit()) and "[" not in name


def _boxes_of_row(
    line: _Line, cells: Sequence[str], columns: Sequence[_Column], representation: Representation
) -> Iterator[TableRow]:
    """Yield the box of a row: its numbers by the names of columns, or those of one cell."""
    named = {
        column.name: cell
        for column, cell in zip(columns, cells, strict=True)
        if column.is_number and _NUMBER.fullmatch(cell)
    }
    numbers = numbers_by_name(named, representation)
    by_name = numbers is not None
    if numbers is None:
        numbers = _numbers_of_cell(cells, columns, representation.width)
    if numbers is None:
        return
    label = ""
    best = 99
    frame: int | None = None
    for column, cell in zip(columns, cells, strict=True):
        if column.is_frame and cell.isdecimal() and len(cell) < 10:
            frame = int(cell)
        elif column.rank_of_label is not None and column.rank_of_label < best and cell:
            best = column.rank_of_label
            label = cell
    others = [
        cell
        for column, cell in zip(columns, cells, strict=True)
        if not (column.is_number or column.is_box or column.is_frame)
    ]
    if best == 99 and len(others) == 1 and any(map(str.isalpha, others[0])):
        label = others[0]  # The only other text
    yield TableRow(line.start, line.end, tuple(numbers), label, frame, by_name)


def _numbers_of_cell(
    cells: Sequence[str], columns: Sequence[_Column], width: int
) -> list[object] | None:
    for column, cell in zip(columns, cells, strict=True):
        if column.is_box:
            inner = _IN_BRACKETS.match(cell)
            numbers = re.split(r"\s*[,;]\s*|\s+", inner[1].strip() if inner else cell)
            if len(numbers) == width and all(map(_NUMBER.fullmatch, numbers)):
                return [*numbers]
    return None
