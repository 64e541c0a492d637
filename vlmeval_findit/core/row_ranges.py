"""Rows of a table as ranges: how files and messages say which."""

from __future__ import annotations

from collections.abc import Iterable


def rows_text(rows: Iterable[int]) -> str:
    """Rows as ranges.

    >>> rows_text([3, 0, 1, 2, 7])
    '0-3, 7'
    """
    ranges: list[list[int]] = []
    for row in sorted(rows):
        if ranges and row == ranges[-1][1] + 1:
            ranges[-1][1] = row
        else:
            ranges.append([row, row])
    return ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in ranges)


def rows_from(text: str) -> tuple[int, ...]:
    """The rows that a text of ranges says.

    >>> rows_from("0-3, 7")
    (0, 1, 2, 3, 7)

    Raises:
        ValueError: it says none.
    """
    rows: list[int] = []
    for part in filter(None, text.split(", ")):
        first, _, last = part.partition("-")
        rows += range(int(first), int(last or first) + 1)
    return tuple(rows)
