"""Tables of results: typed columns, values with their intervals, and notes that stay with them.

Every table of an output is a :class:`Table`, written by ``table_output`` and ``board_files``. The
formats of values, intervals and p-values are defined here only.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core import printable

if TYPE_CHECKING:
    from ..statistics import Interval, RankRange


NONE = "–"  # Sign of a missing value
RANKS_SIGN = "#"  # Before the ranks that the tests of a column allow a value


class FieldType(Enum):
    """Type of a column."""

    TEXT = "text"
    COUNT = "count"
    RANK = "rank"
    VALUE = "value"  # With one decimal
    PROBABILITY = "probability"  # With two digits: a product of many may be tiny
    RATIO = "ratio"  # With at most four digits, three below 0.1
    AMOUNT = "amount"  # With three digits, or as a whole number
    AMOUNT_DIFFERENCE = "amount difference"
    DIFFERENCE = "difference"
    P = "p"


class Note(NamedTuple):
    """A note on a table: a title, and sentences."""

    title: str
    lines: Sequence[str]

    @property
    def text(self) -> str:
        lines = "; ".join(self.lines)
        if not self.title:
            return lines
        end = "" if lines.endswith(".") else "."
        return f"{self.title}: {lines}{end}"


@dataclass(frozen=True, slots=True)
class Field:
    """A column; ``note`` is printed below its name.

    ``interval``: its values may have intervals. ``is_mean``: its values are means over datasets.
    ``folded``: a terminal has a word of its name a line.
    """

    name: str
    kind: FieldType = FieldType.TEXT
    note: str = ""
    interval: bool = False
    is_mean: bool = False
    folded: bool = False

    @property
    def is_key(self) -> bool:
        """Whether it identifies a row."""
        return self.kind in (FieldType.TEXT, FieldType.RANK)

    @property
    def is_difference(self) -> bool:
        return self.kind in (FieldType.DIFFERENCE, FieldType.AMOUNT_DIFFERENCE)


@dataclass(frozen=True, slots=True)
class TableCell:
    """A value, as a number in the unit of its metric.

    ``sign`` follows it: the result of its test (``≈``, ``?``, ``*``). ``ranks``: those that the
    tests of its column allow it. ``best``: no value of its column is printed as a better one, and
    it is not nothing.
    """

    value: str | float | None = None
    interval: Interval | None = None
    sign: str = ""
    best: bool = False
    ranks: RankRange | None = None

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The ends of the interval; None without one."""
        return (self.interval.low, self.interval.high) if self.interval else (None, None)


FieldValue = TableCell | str | float | None  # What a field of a table's row may hold


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with a value for each column; the last ``quoted`` rows are published values.

    ``signs``: what a sign means where it occurs; :func:`.legend_of` says which do.
    """

    title: str
    fields: Sequence[Field]
    rows: Sequence[Sequence[FieldValue]]
    notes: Sequence[Note] = ()
    quoted: int = 0
    signs: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def cells(self) -> Iterator[list[tuple[Field, TableCell]]]:
        """Yield every row as its columns with their cells."""
        for row in self.rows:
            cells = (item if isinstance(item, TableCell) else TableCell(item) for item in row)
            yield list(zip(self.fields, cells, strict=True))

    def only(self, *names: str) -> Table:
        """Keep these columns."""
        return self.at([at for at, field in enumerate(self.fields) if field.name in names])

    def at(self, places: Sequence[int]) -> Table:
        """Keep the columns at these places."""
        rows = [[row[at] for at in places] for row in self.rows]
        return replace(self, fields=[self.fields[at] for at in places], rows=rows)

    def without(self, names: Container[str]) -> Table:
        """Leave out these columns."""
        return self.only(*(field.name for field in self.fields if field.name not in names))

    def first(self, most: int) -> Table:
        """Keep at most ``most`` rows."""
        return self.rows_from(0, most)

    def rows_from(self, start: int, most: int) -> Table:
        """Keep at most ``most`` rows from a place on."""
        rows = self.rows[start : start + most]
        own = len(self.rows) - self.quoted
        quoted = max(0, start + len(rows) - max(start, own))
        return replace(self, rows=rows, quoted=quoted)

    @property
    def keys(self) -> int:
        """Number of leading columns that identify a row."""
        return len(list(takewhile(lambda field: field.is_key, self.fields)))

    @property
    def header(self) -> list[str]:
        """The columns of :meth:`records`; of two with one name the second is ``name (2)``."""
        names: list[str] = []
        for field in self.fields:
            names.append(field.name)
            if field.interval:
                names += [f"{field.name} low", f"{field.name} high"]
        times = Counter[str]()
        unique = []
        for name in names:
            times[name] += 1
            unique.append(name if times[name] == 1 else f"{name} ({times[name]})")
        return unique

    def records(self) -> list[dict[str, Any]]:
        """Return the rows for programs: an interval adds two columns, ``low`` and ``high``."""
        records = []
        header = self.header
        for row in self.cells():
            values: list[Any] = []
            for field, cell in row:
                values.append(cell.value)
                if field.interval:
                    values += cell.ends
            records.append(dict(zip(header, values, strict=True)))
        return records

    def frame(self) -> Any:
        """Return the records as a data frame of pandas."""
        import pandas as pd

        return pd.DataFrame(self.records(), columns=self.header)


def text_of(field: Field, cell: TableCell) -> str:
    """Format a value as people read it, without its interval.

    >>> text_of(Field("p", FieldType.P), TableCell(0.0004))
    '<0.001'
    >>> text_of(Field("mIoU", FieldType.VALUE), TableCell(61.25))
    '61.2'
    >>> ratio = Field("x", FieldType.RATIO)
    >>> [text_of(ratio, TableCell(n)) for n in (1000 / 224, 1 / 12)]
    ['4.464', '0.0833']
    >>> amount = Field("tokens", FieldType.AMOUNT)
    >>> [text_of(amount, TableCell(n)) for n in (1234.5, 45.25, 0.00123)]
    ['1,234', '45.2', '0.00123']
    """
    number = cell.value
    if number is None:
        return NONE
    if isinstance(number, str):
        return printable(number)
    if field.kind is FieldType.RANK and cell.ranks is not None:
        return range_of(cell.ranks)
    return printed_number(field.kind, number)


def range_of(ranks: RankRange) -> str:
    """Format a range of ranks: ``2``, ``1–3``."""
    if ranks.best == ranks.worst:
        return f"{ranks.best}"
    return f"{ranks.best}–{ranks.worst}"


def printed_number(kind: FieldType, number: float) -> str:
    """Format the number of a column as people read it."""
    if kind is FieldType.RATIO:
        return f"{number:.4g}" if abs(number) >= 0.1 else f"{number:.3g}"
    if kind is FieldType.P and number < 0.001:
        return "<0.001"
    if kind in _AMOUNTS:
        return _amount(kind, number)
    if kind is FieldType.COUNT and number != round(number):
        return f"{number:,.1f}"  # Where random rows stand for others
    usual = ",g" if isinstance(number, float) else ","
    return format(number, _DIGITS.get(kind, usual))


_AMOUNTS = (FieldType.AMOUNT, FieldType.AMOUNT_DIFFERENCE)


def _amount(kind: FieldType, number: float) -> str:
    sign = "+" if kind is FieldType.AMOUNT_DIFFERENCE else ""
    digits = ",.0f" if abs(number) >= 99.95 else ".3g"
    return format(number, f"{sign}{digits}")


_DIGITS = {
    FieldType.VALUE: ".1f",
    FieldType.PROBABILITY: ".2g",
    FieldType.DIFFERENCE: "+.1f",
    FieldType.P: ".3f",
}


def bounds_of(field: Field, cell: TableCell) -> str:
    """Format the interval of a value: ``61.2–70.5``, ``-1.5 to +3.2``; empty without one."""
    separator = " to " if field.is_difference else "–"
    ends = [end for end in cell.ends if end is not None]
    if field.kind in _AMOUNTS:
        return separator.join(_amount(field.kind, end) for end in ends)
    return separator.join(format(end, _DIGITS.get(field.kind, ".1f")) for end in ends)


def sign_of(field: Field, cell: TableCell) -> str:
    """Format what follows a value: its ranks, if it is none itself, and its sign: `` #1–3 ?``."""
    ranks = ""
    if cell.ranks is not None and field.kind is not FieldType.RANK:
        ranks = f"{RANKS_SIGN}{range_of(cell.ranks)}"
    return "".join(f" {part}" for part in (ranks, cell.sign) if part)
