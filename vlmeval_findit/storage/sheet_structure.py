"""Check what a workbook consists of before openpyxl reads it, which believes all that it says.

openpyxl keeps every element in memory, makes all cells that a sheet leaves out, and drops in
silence a row or a cell whose place is not behind the last one's.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import IO, BinaryIO
from xml.parsers import expat

from ..core import UnpackedSizeError, most_unpacked

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
        zipfile.BadZipFile: it is no archive, or damaged.
    """
    packed = f.seek(0, io.SEEK_END)
    problems = {}
    with zipfile.ZipFile(f) as archive:
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
        self._last_column = max(self._last_column, column)

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
