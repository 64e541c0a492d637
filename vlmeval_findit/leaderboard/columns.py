"""Columns of tables: a name, a type, and the value of an item, in one record.

A table is a list of columns and a list of items: runs, models, labels. Whoever adds a column says
once what it is called, how it is written and where its value is, so no list of names has to be kept
in step with a list of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from .result_table import Field, FieldType, FieldValue, Note, Table

T = TypeVar("T")


def _nothing(_: Any) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column, and its value of an item.

    ``published`` is its value of a published row, which stands below the items: none, usually.
    ``note``, ``interval``, ``is_mean`` and ``folded`` are those of :class:`.Field`.
    """

    name: str
    of: Callable[[T], FieldValue]
    kind: FieldType = FieldType.TEXT
    note: str = ""
    interval: bool = False
    is_mean: bool = False
    folded: bool = False
    published: Callable[[Any], FieldValue] = _nothing

    @property
    def field(self) -> Field:
        return Field(self.name, self.kind, self.note, self.interval, self.is_mean, self.folded)

    def by(self, part: Callable[[Any], T | None]) -> Column[Any]:
        """Return the column of items that have its own as a part; empty where one has none.

        >>> name = Column("name", str.title)
        >>> of_pair = name.by(lambda pair: pair[1])
        >>> of_pair.of((3, "ann")), of_pair.of((4, None))
        ('Ann', None)
        """

        def value(item: Any) -> FieldValue:
            its = part(item)
            return None if its is None else self.of(its)

        return Column(
            self.name, value, self.kind, self.note, self.interval, self.is_mean, self.folded
        )


count_column = partial(Column, kind=FieldType.COUNT)  # Of whole numbers
value_column = partial(Column, kind=FieldType.VALUE, interval=True)  # With 95 % intervals
plain_value_column = partial(Column, kind=FieldType.VALUE)  # Without intervals
amount_column = partial(Column, kind=FieldType.AMOUNT)  # Of costs
difference_column = partial(Column, kind=FieldType.DIFFERENCE, interval=True)
p_column = partial(Column, kind=FieldType.P)


def table_of(
    title: str,
    columns: Sequence[Column[T]],
    items: Iterable[T],
    notes: Sequence[Note] = (),
    signs: Mapping[str, str] | None = None,
    published: Sequence[object] = (),
) -> Table:
    """Make a row for each item, then one for each published row.

    >>> squares = [count_column("n", int), count_column("n²", lambda n: n * n)]
    >>> table_of("Squares", squares, [2, 3]).records()
    [{'n': 2, 'n²': 4}, {'n': 3, 'n²': 9}]
    """
    rows = [[column.of(item) for column in columns] for item in items]
    rows += [[column.published(each) for column in columns] for each in published]
    fields = [column.field for column in columns]
    return Table(title, fields, rows, notes, len(published), {} if signs is None else signs)
