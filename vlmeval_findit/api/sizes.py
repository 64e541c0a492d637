"""Sizes of pictures, and what is given one a reply."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

Size = tuple[int, int]
"""(width, height) in pixels of the original picture."""

Sizes = Size | Sequence[Size]
"""The size of all pictures, or one a reply."""


def sizes_of(sizes: Sizes, count: int) -> list[Size]:
    """One size a reply.

    >>> sizes_of((640, 480), 2), sizes_of([(640, 480), (32, 32)], 2)
    ([(640, 480), (640, 480)], [(640, 480), (32, 32)])

    Raises:
        ValueError: there is not one a reply, or one is none.
    """
    if len(sizes) == 2 and all(isinstance(edge, Integral) for edge in sizes):
        made = [tuple(sizes)] * count
    else:
        one_each(sizes, count, "sizes")
        made = [tuple(size) for size in sizes]  # type: ignore[arg-type]
    for size in {*made}:
        if len(size) != 2 or not all(isinstance(edge, Integral) and edge >= 1 for edge in size):  # type: ignore[operator]
            raise ValueError(f"size {size}: should be (width, height) in whole pixels")
    return made  # type: ignore[return-value]


def one_each(given: Sequence[object], count: int, what: str) -> None:
    """Refuse what is not one a reply.

    Raises:
        ValueError: it is not.
    """
    if len(given) != count:
        raise ValueError(f"{len(given)} {what} of {count} replies: one a reply")
