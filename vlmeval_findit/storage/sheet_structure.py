"""Check what a workbook consists of: openpyxl believes all that it says, and reads one sheet of it.

openpyxl keeps every element in memory, makes all cells that a sheet leaves out, and drops in
silence a row or a cell whose place is not behind the last one's.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from typing import IO, Any, BinaryIO
from xml.parsers import expat

from ..core import StandsTwiceError, UnpackedSizeError, most_unpacked, open_zip, quoted_value

# Elements of a sheet or of its texts: more than a byte of the packed file each, or so many.
_ALWAYS = 1_000_000
_AROUND_SHEETS = 100_000  # of styles, relations and the like
_LEFT_OUT = 20_000_000  # empty cells that a sheet does not have, and openpyxl makes
_TEXT = 256 << 20  # characters of all cells, each time that a shared text stands there

_SAVE_AGAIN = "open it in a spreadsheet program and save it again"


def check_structure(f: BinaryIO) -> Mapping[str, str]:
    """Return what is wrong with the places of each sheet, by the name of its part of the archive.

    Raises:
        UnpackedSizeError: a part has more elements than a table.
        StandsTwiceError: a part, or what leads to one, is there twice.
        zipfile.BadZipFile: it is no archive, or damaged.
    """
    packed = f.seek(0, io.SEEK_END)
    problems = {}
    with open_zip(f) as archive:
        for name in archive.namelist():
            if not name.endswith((".xml", ".rels")):
                continue
            part = _Part(name, most_table=max(_ALWAYS, packed))
            with archive.open(name) as content:
                part.read(content)
            if part.problem:
                problems[name] = part.problem
    f.seek(0)
    return problems


def check_sheets_of_table(book: Any, columns: Collection[str]) -> str:
    """Say why it is not the first sheet of an open workbook that is meant; "" if it is.

    ``columns`` are those that a sheet of the table has.  Charts are no sheets.
    """
    first = book.worksheets[0]
    if first.sheet_state != "visible":
        return (
            f"its first sheet {quoted_value(first.title)} is hidden, and only the first is read: "
            "show it, or delete it, and save the workbook again"
        )
    tables = [sheet.title for sheet in book.worksheets if _has_columns(sheet, columns)]
    others = [title for title in tables if title != first.title]
    if not others:
        return ""
    if len(others) == len(tables):
        return (
            f"only its first sheet {quoted_value(first.title)} is read, and the columns "
            f"{' and '.join(columns)} are in {quoted_value(others[0])}: move that to the front"
        )
    return (
        f"its sheets {quoted_value(first.title)} and {quoted_value(others[0])} both have the "
        f"columns {' and '.join(columns)}, and only the first is read: save each as a file of its "
        "own"
    )


_BEFORE_HEADER = 10  # Rows in which a sheet may have the names of its columns


def _has_columns(sheet: Any, columns: Collection[str]) -> bool:
    sheet.reset_dimensions()
    for cells in sheet.iter_rows(max_row=_BEFORE_HEADER, values_only=True):
        if {*columns} <= {str(cell).strip().lower() for cell in cells}:
            return True
    return False


def most_text(packed: int) -> int:
    """Return how many characters all cells of a sheet may have, in a file of so many bytes."""
    return max(_TEXT, most_unpacked(packed))


class _Part:
    """One part of a workbook; ``problem`` is what is wrong with the places of its cells."""

    def __init__(self, name: str, most_table: int) -> None:
        self._name = name
        self._most_table = most_table
        self._most = _AROUND_SHEETS
        self._elements = 0
        self._cells = 0
        self._row = 0
        self._column = 0
        self._last_column = 0
        self._values = 0  # Of the last cell
        self._relations: set[str] = set()
        self._problem = ""

    @property
    def problem(self) -> str:
        if self._problem:
            return self._problem
        if self._row * self._last_column - self._cells <= _LEFT_OUT:
            return ""
        return (
            f"its {self._cells:,} cells are spread over {self._row:,} rows and "
            f"{self._last_column:,} columns: delete the empty rows and columns, and save it again"
        )

    def read(self, content: IO[bytes]) -> None:
        """Read it all; what is no XML is left to openpyxl."""
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._begin
        parser.StartDoctypeDeclHandler = self._refuse_document_type
        try:
            parser.ParseFile(content)
        except expat.ExpatError:
            return

    def _begin(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._elements += 1
        kind = tag.rpartition(":")[2]
        if self._elements == 1 and kind in ("worksheet", "sst"):
            self._most = self._most_table
        if self._elements > self._most:
            raise UnpackedSizeError(
                f"{self._name} unpacks to more than {self._most:,} elements: no sheet of a table"
            )
        if kind == "row":
            self._begin_row(attributes.get("r"))
        elif kind == "c":
            self._begin_cell(attributes.get("r"))
        elif kind in ("v", "is"):
            self._begin_value()
        elif kind == "Relationship":
            self._note_relation(attributes.get("Id", ""))

    def _begin_row(self, stated: str | None) -> None:
        number = self._row + 1
        if stated is not None:
            try:
                number = int(float(stated))
            except (ValueError, OverflowError):
                return  # openpyxl refuses it
        if number <= self._row:
            self._note(f"row {number} comes after row {self._row}")
        self._row = number
        self._column = 0

    def _begin_cell(self, stated: str | None) -> None:
        self._cells += 1
        column = self._column + 1
        if stated is not None:
            letters = stated.rstrip("0123456789")
            column = _number_of(letters)
            if stated[len(letters) :] != str(self._row):
                self._note(f"cell {stated} stands in row {self._row}")
        if column <= self._column:
            self._note(f"in row {self._row}, cell {stated} does not come after the cell before it")
        self._column = column
        self._values = 0
        self._last_column = max(self._last_column, column)

    def _begin_value(self) -> None:
        self._values += 1
        if self._values == 2:
            self._note(f"cell {self._column} of row {self._row} has two values")

    def _note_relation(self, name: str) -> None:
        if name and name in self._relations:
            raise StandsTwiceError(f"{self._name} has the part {name} twice: {_SAVE_AGAIN}")
        self._relations.add(name)

    def _note(self, what: str) -> None:
        self._problem = self._problem or f"{what}: {_SAVE_AGAIN}"

    def _refuse_document_type(self, *anything: object) -> None:
        raise UnpackedSizeError(f"{self._name} has a document type, which unpacks to anything")


def _number_of(letters: str) -> int:
    """Return the number of a column.

    >>> _number_of("A"), _number_of("AB"), _number_of("XFD")
    (1, 28, 16384)
    """
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number
