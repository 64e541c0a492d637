"""Read the lines of CSV; where a quote is missing, a cell takes in the lines that follow."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...core import quoted_value
from ..annotated_samples import AnnotationError

_LINE_END = re.compile(r"\r\n|\r|\n")


def lines_in(text: str) -> int:
    """Count the lines of a text, without blanks around it.

    >>> lines_in("cat"), lines_in("\\ncat\\n"), lines_in("big\\r\\ncat")
    (1, 1, 2)
    """
    return 1 + len(_LINE_END.findall(text.strip()))


class CsvLine(NamedTuple):
    """The cells of a line, and of those that a cell in quotes takes in."""

    first: int  # The line of the file in which it begins, from 1
    last: int
    cells: list[str]


def csv_lines(path: Path, text: str, separator: str, skipped: int = 0) -> Iterator[CsvLine]:
    """Yield the lines of a text, which begins behind so many lines of its file.

    Raises an AnnotationError for quotes that are not closed, or closed within a cell.
    """
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    last = skipped
    try:
        for cells in lines:
            first = last + 1
            last = lines.line_num + skipped
            yield CsvLine(first, last, cells)
    except csv.Error as error:
        opened = ""
        if lines.line_num + skipped > last + 1:
            opened = f", in a row that begins in line {last + 1}"
        raise AnnotationError(f"{path}, line {lines.line_num + skipped}: {error}{opened}") from None


def cell_of_several_lines(path: Path, line: CsvLine, at: int) -> AnnotationError:
    """Return the refusal of a cell that takes in the lines after the one in which it begins."""
    cell = line.cells[at]
    return AnnotationError(
        f"{path}, line {line.first}: a quote opens a cell that ends in line {line.last}, "
        f"{quoted_value(cell)}: is a quote missing? Write the cell on one line"
    )


def takes_in_rows(line: CsvLine, at: int, separator: str) -> bool:
    """Return whether a cell looks as if it began in one row and ended in another.

    >>> takes_in_rows(CsvLine(1, 2, ["a", "x,cat,1\\nb,", "cat", "2"]), 1, ",")
    True
    >>> takes_in_rows(CsvLine(1, 2, ["a", "large,\\nand red", "cat", "2"]), 1, ",")
    False
    """
    first, *rest = _LINE_END.split(line.cells[at])
    if not rest:
        return False
    before, behind = at, len(line.cells) - 1 - at
    return first.count(separator) >= behind and rest[-1].count(separator) >= before
