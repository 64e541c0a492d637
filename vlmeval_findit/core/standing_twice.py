"""Refuse what a file states twice: of two values for one thing a reader would take one in silence.

Every reader of names asks here: columns of tables, keys of objects, members of archives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple
from zipfile import ZipFile

from .quoted_values import quoted_value


class StandsTwiceError(ValueError):
    """A file states something twice; the message goes on after the file and the place in it."""


class Twice(NamedTuple):
    """A name that stands twice, and its first two places, counted from 0."""

    name: str
    first: int
    second: int


def find_twice(names: Iterable[str]) -> Twice | None:
    """Return the first name that stands a second time; None if each stands once.

    >>> find_twice(["a", "b", "a"]), find_twice(["a", "b"])
    (Twice(name='a', first=0, second=2), None)
    """
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        first = places.setdefault(name, place)
        if first != place:
            return Twice(name, first, place)
    return None


def refuse_columns_twice(header: Iterable[str]) -> None:
    """Raise a :class:`StandsTwiceError` for two columns of one name; some may have no name.

    >>> refuse_columns_twice(["index", "", "prediction", "", "prediction"])
    Traceback (most recent call last):
    vlmeval_findit.core.standing_twice.StandsTwiceError: duplicate column 'prediction' (columns 3 \
and 5): remove one
    """
    names = list(header)
    places = [place for place, name in enumerate(names) if name.strip()]
    twice = find_twice(names[place] for place in places)
    if twice is not None:
        first, second = places[twice.first] + 1, places[twice.second] + 1
        raise StandsTwiceError(
            f"duplicate column {quoted_value(twice.name)} (columns {first} and {second}): "
            "remove one"
        )


@contextmanager
def open_zip(file: IO[bytes]) -> Iterator[ZipFile]:
    """Open a zip archive for reading, each of whose members has a name of its own.

    Raises:
        StandsTwiceError: two members have one name: programs differ in which of them they read.
        zipfile.BadZipFile: it is no archive, or damaged.
    """
    with ZipFile(file) as archive:
        twice = find_twice(archive.namelist())
        if twice is not None:
            raise StandsTwiceError(
                f"the archive holds {quoted_value(twice.name)} twice, and programs differ in "
                "which they read: write the file again"
            )
        yield archive
