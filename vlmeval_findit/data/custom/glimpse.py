"""Look into the beginning of a file, to tell what format it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ...core import open_regular, suffix_of
from ..annotated_samples import AnnotationError
from .annotation_values import json_of
from .json_sections import sections
from .text_encodings import encoding_of

# Elements of JSON that are looked at: formats have their keys at the beginning
_ELEMENTS = 1000

_BYTES = 1 << 16
_LINES = 100
_JSON_LINES = (".jsonl", ".odgt", ".ndjson", ".manifest")


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What a file begins with; whatever cannot be read is empty."""

    path: Path
    # Of JSON the object, or the first one of a list or of JSON lines; of its lists the first two
    # elements
    json: dict[str, Any]
    is_list: bool  # Of JSON
    lines: tuple[str, ...]  # The first that are not empty, of other text

    @property
    def json_lines(self) -> Iterator[dict[str, Any]]:
        """The objects of the first JSON lines."""
        for line in self.lines if self.kind in (*_JSON_LINES, ".json") else ():
            try:
                value = json_of(line, str(self.path))
            except AnnotationError:
                continue  # Its reader will say what is wrong
            if isinstance(value, dict):
                yield value

    @property
    def kind(self) -> str:
        """The suffix, in small letters."""
        return suffix_of(self.path)

    def has(self, *keys: str) -> bool:
        """Return whether the object of JSON has all these keys."""
        return all(key in self.json for key in keys)


def glimpse(path: Path) -> Glimpse:
    """Look into a file.

    Raises an OSError if it cannot be opened, or is no regular file.
    """
    if suffix_of(path) == ".json":
        try:
            return _glimpse_of_json(path)
        except AnnotationError:
            pass  # Perhaps JSON lines; else its reader will say what is wrong
    with open_regular(path) as file:
        head = file.read(_BYTES)
    # Its reader asks about the encoding: here only what is ASCII matters.
    text = head.decode(encoding_of(head, None), "replace").removeprefix("\ufeff")
    lines = tuple(islice((line for line in text.splitlines() if line.strip()), _LINES))
    first: Any = None
    if suffix_of(path) in (*_JSON_LINES, ".json") and lines:
        try:
            first = json_of(lines[0], str(path))
        except AnnotationError:
            first = None  # Its reader will say what is wrong
    return Glimpse(path, first if isinstance(first, dict) else {}, False, lines)


def _glimpse_of_json(path: Path) -> Glimpse:
    values: dict[str, Any] = {}
    is_list = False
    for element in islice(sections(path, None, is_first_look=True), _ELEMENTS):
        if element.key == "" and element.place == 0:
            is_list = True
            values = element.value if isinstance(element.value, dict) else {}
            break
        if element.place is None:
            values[element.key] = element.value
        elif element.place == 0:
            values[element.key] = [element.value]  # The last of equal keys, as in JSON
        elif element.place == 1:
            values[element.key].append(element.value)
    return Glimpse(path, values, is_list, ())
