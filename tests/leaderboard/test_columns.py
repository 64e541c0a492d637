"""A column has its name and its value: no two lists are kept in step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vlmeval_findit.leaderboard import (
    Column,
    FieldType,
    TableCell,
    count_column,
    plain_value_column,
    table_of,
    value_column,
)
from vlmeval_findit.statistics import Interval

COLUMNS: list[Column[tuple[str, int]]] = [
    Column("name", lambda item: item[0], published=lambda row: row["who"]),
    count_column("letters", lambda item: item[1]),
    value_column("value", lambda item: TableCell(item[1], Interval(0.0, 9.0))),
    plain_value_column("half", lambda item: item[1] / 2, note="of letters"),
]
ITEMS = [("Ann", 3), ("Eve", 4)]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 0, 2, 1), (2,), (1, 1, 0)])
def test_a_value_stands_below_its_name_in_any_order(order: tuple[int, ...]) -> None:
    table = table_of("", [COLUMNS[at] for at in order], ITEMS)
    whole = table_of("", COLUMNS, ITEMS)
    for at, place in enumerate(order):
        assert table.fields[at] == whole.fields[place]
        assert [row[at] for row in table.rows] == [row[place] for row in whole.rows]


def test_published_rows_have_what_columns_say_of_them() -> None:
    table = table_of("", COLUMNS, ITEMS, published=[{"who": "Authors"}])
    assert table.quoted == 1
    assert list(table.rows[-1]) == ["Authors", None, None, None]


def test_a_column_of_a_part_keeps_its_looks() -> None:
    column = replace(COLUMNS[2], note="n", is_mean=True, folded=True)
    of_part = column.by(lambda pair: pair[1])
    assert of_part.field == column.field
    assert of_part.of((0, ("Ann", 3))) == column.of(("Ann", 3))
    assert of_part.of((0, None)) is None


def test_a_column_without_a_type_is_text() -> None:
    assert Column("name", str).field.kind is FieldType.TEXT
