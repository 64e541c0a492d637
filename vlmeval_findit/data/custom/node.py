"""A value of JSON that knows where it stands; keys that nobody reads go into the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from ...storage import Size
from ..annotated_samples import AnnotationError
from ..ledger import Ledger
from .annotation_values import (
    ListOfJson,
    ObjectOfJson,
    PixelsOfJson,
    json_of,
    plain_name,
    validated,
)
from .json_sections import sections
from .splits import names_a_split
from .text_encodings import text_of
from .uncounted_objects import meaning_of_flag

# What files call the width and the height of an image, without letter case and punctuation
_PREFIXES = ("image", "img", "original", "orig")
SIDES_OF_IMAGES: Mapping[str, frozenset[str]] = {
    side: frozenset(
        (side, *(f"{prefix}{name}" for prefix in _PREFIXES for name in (side, side[0])))
    )
    for side in ("width", "height")
}


class Node:
    """A value and its place, which is only written out when a message needs it."""

    __slots__ = ("_above", "_step", "ledger", "value")

    def __init__(self, value: Any, step: str, ledger: Ledger, above: Node | None = None) -> None:
        self.value = value
        self.ledger = ledger
        self._step = step
        self._above = above

    def __str__(self) -> str:
        """Return the file and the way to the value in it."""
        return f"{self._above or ''}{self._step}"

    def of(self, value: Any) -> Node:
        """Return another form of the value, at the same place."""
        return Node(value, self._step, self.ledger, self._above)

    def error(self, why: str) -> AnnotationError:
        """Make an error of this place."""
        return AnnotationError(f"{self}: {why}")

    def read(self, kind: Any) -> Any:
        """Return the value as a type, or raise an AnnotationError."""
        return validated(kind, self.value, self)

    @property
    def keys(self) -> dict[str, Any]:
        """The value as an object, or an AnnotationError."""
        keys: dict[str, Any] = self.value if type(self.value) is dict else self.read(ObjectOfJson)
        return keys

    def at(self, key: str) -> Node:
        """Return what an object has at a key; its value is None where it has not."""
        return Node(self.keys.get(key), f", {key}", self.ledger, self)

    def get(self, key: str, kind: Any) -> Any:
        """Return what an object has at a key as a type, or raise an AnnotationError."""
        if key not in self.keys:
            raise self.error(f"{key} is missing")
        return self.at(key).read(kind)

    def find(self, key: str, kind: Any) -> Any:
        """Return what an object has at a key as a type; None where it has not."""
        return None if self.keys.get(key) is None else self.at(key).read(kind)

    def each(self, key: str) -> Iterator[Node]:
        """Yield the elements of a list at a key; none where there is no list."""
        yield from self.at(key).elements()

    def elements(self) -> Iterator[Node]:
        """Yield the elements of a list; none of null."""
        for place, value in enumerate(() if self.value is None else self.read(ListOfJson)):
            yield Node(value, f"[{place}]", self.ledger, self)

    @property
    def size(self) -> Size | None:
        """The (width, height) that an object states of its image, whatever it calls them.

        An object that is not there states none.
        """
        if self.value is None:
            return None
        sides = []
        for names in SIDES_OF_IMAGES.values():
            there = [key for key in self.keys if plain_name(key) in names]
            stated = {key: self.keys[key] for key in there if self.keys[key] not in (None, 0, "")}
            sides.append({self.at(key).read(PixelsOfJson) for key in stated})
        if any(len(side) > 1 for side in sides):
            raise self.error("states two sizes of its image")
        width, height = sides
        return (width.pop(), height.pop()) if width and height else None

    def rest(
        self, called: str, read: Set[str], not_needed: Set[str] = frozenset()
    ) -> dict[str, str]:
        """Note the keys that are not read, but for those that name a split: return these."""
        unread = [key for key in self.keys if key not in read]
        splits = {}
        for key in unread:
            value = self.keys[key]
            if isinstance(value, str) and key not in not_needed and names_a_split(value):
                splits[key] = value
        others = [key for key in unread if key not in splits]
        if others:
            self.ledger.keys(called, others, frozenset(not_needed), str(self))
        return splits

    def flags(
        self,
        called: str,
        read: Set[str],
        not_needed: Set[str] = frozenset(),
        inside: Mapping[str, tuple[str, Set[str]]] | None = None,
    ) -> dict[str, Any]:
        """Return the flags of an object, its own and its attributes'; note keys that are not read.

        Args:
            called: what it is, in the plural.
            read: the keys that are read.
            not_needed: the keys that are known, and change no query.
            inside: keys of objects with attributes, each with what these are called and with those
                that are not needed.
        """
        inside = inside or {}
        flags = {key: value for key, value in self.keys.items() if meaning_of_flag(key)}
        splits = self.rest(called, {*read, *flags, *inside}, not_needed)
        for key in splits:
            self.ledger.not_read(f"{called}: {key}", str(self))
        for key, (attributes, known) in inside.items():
            there = self.at(key)
            if isinstance(there.value, dict):
                flags |= there.flags(attributes, frozenset(), known)
        return flags


def read_json(path: Path, ledger: Ledger, encoding: str | None) -> Node:
    """Return what a file of JSON holds; ``encoding`` is what the user states."""
    return Node(json_of(text_of(path, encoding), str(path)), str(path), ledger)


def read_elements(path: Path, ledger: Ledger, encoding: str | None) -> Iterator[tuple[str, Node]]:
    """Yield the elements of the lists in a large file, after the keys of the lists.

    An object's other values are elements, too; the key of a file that is a list is "".
    """
    for element in sections(path, encoding):
        place = f", {element.key}"
        if element.place is not None:
            place = f", {element.key}[{element.place}]"
        yield element.key, Node(element.value, f"{path}{place}", ledger)


def read_lines(path: Path, ledger: Ledger, encoding: str | None) -> Iterator[Node]:
    """Yield the JSON of every line that is not empty."""
    for number, text in enumerate(text_of(path, encoding).split("\n"), 1):
        if text.strip():
            where = f"{path}, line {number}"
            yield Node(json_of(text, where), where, ledger)
