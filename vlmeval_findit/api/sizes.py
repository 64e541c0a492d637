"""Sizes of pictures, and what is given one a reply."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

Size = tuple[int, int]
"""(width, height) in pixels of the original picture."""

Sizes = Size | Sequence[Size]
"""The size of all pictures, or one a reply; arrays and tensors are taken, too."""


def sizes_of(sizes: Sizes, count: int) -> list[Size]:
    """One size a reply.

    >>> sizes_of((640, 480), 2), sizes_of([(640, 480), (32, 32)], 2)
    ([(640, 480), (640, 480)], [(640, 480), (32, 32)])

    Raises:
        ValueError: there is not one a reply, or one is none.
    """
    given = [plain(one) for one in plain(sizes)]
    if len(given) == 2 and all(isinstance(edge, Real) for edge in given):
        return [_size(tuple(given))] * count
    one_each(given, count, "sizes")
    keys = [tuple(map(plain, one)) if isinstance(one, Sequence) else (one,) for one in given]
    known = {key: _size(key) for key in {*keys}}
    return [known[key] for key in keys]


def _size(edges: tuple[Any, ...]) -> Size:
    """One size; what is whole may be a number of any kind."""
    if len(edges) != 2 or not all(
        isinstance(edge, Real) and float(edge) >= 1 and float(edge).is_integer() for edge in edges
    ):
        raise ValueError(f"size {edges}: should be (width, height) in whole pixels")
    return int(edges[0]), int(edges[1])


def plain(value: Any) -> Any:
    """An array, a tensor or a number of one as lists and numbers of Python; else the value."""
    return value.tolist() if hasattr(value, "tolist") else value


def one_each(given: Sequence[object], count: int, what: str) -> None:
    """Refuse what is not one a reply.

    Raises:
        ValueError: it is not.
    """
    if len(given) != count:
        raise ValueError(f"{len(given)} {what} of {count} replies: one a reply")
