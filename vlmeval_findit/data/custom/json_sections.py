"""Read large JSON files an element at a time: COCO's lists have millions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

from ...core import open_regular, parse_plain_json
from ..annotated_samples import AnnotationError
from .text_encodings import Decoder

# Bytes that are read at once; an element that is longer is read in larger ones
_CHUNK = 1 << 18


_BLANKS = " \t\r\n"
# What stands before the next object of a list: up to the name of its first key
_NEXT_OBJECT = re.compile(r'[ \t\r\n]*,[ \t\r\n]*\{[ \t\r\n]*"[^"\\]*"')

# What may stand behind a number that is not read to its end: nothing yet, or more of it
_OF_NUMBERS = ("", *"0123456789.eE+-")


class Element(NamedTuple):
    """A value of the object that a file holds, or an element of a list that it holds."""

    key: str
    place: int | None  # In the list, from 0; None: the value is no list
    value: Any


def sections(path: Path, encoding: str | None, *, is_first_look: bool = False) -> Iterator[Element]:
    """Yield the values of the object in a file; of lists their elements, one after the other.

    Memory holds the elements of one part of the file. An empty list is a value. A file that holds
    a list has no keys: that of its elements is "".

    Args:
        path: the file.
        encoding: what the user states; see :mod:`text_encodings`.
        is_first_look: only keys matter: what is in another encoding is passed over.

    Raises:
        AnnotationError: it is neither, no JSON, or in another encoding; the message names the line.
        OSError: it cannot be opened.
    """
    with open_regular(path) as file:
        errors = "replace" if is_first_look else "strict"
        text = _Text(path, file, Decoder(path, file, encoding, errors))
        if text.takes("["):
            yield from _list_elements("", text)
            text.take("")
            return
        text.take("{")
        while not text.takes("}"):
            key = text.value()
            if not isinstance(key, str):
                raise text.error("a key should be a text")
            text.take(":")
            if text.takes("["):
                yield from _list_elements(key, text)
            else:
                yield Element(key, None, text.value())
            if not text.takes(","):
                text.take("}")
                break
        text.take("")


def _list_elements(key: str, text: _Text) -> Iterator[Element]:
    empty = True
    for place, value in enumerate(_elements(text)):
        empty = False
        yield Element(key, place, value)
    if empty:
        yield Element(key, None, [])


def _elements(text: _Text) -> Iterator[Any]:
    while not text.takes("]"):
        yield text.value()
        yield from text.next_objects()
        if not text.takes(","):
            text.take("]")
            break


class _Text:
    """The part of a file that is read but not yet used, and how far it is."""

    def __init__(self, path: Path, file: BufferedReader, decoder: Decoder) -> None:
        self._path = path
        self._file = file
        self._decoder = decoder
        self._json = json.JSONDecoder()
        self._text = ""
        self._at = 0
        self._line = 1  # Of the beginning of the text
        self._is_read = False
        self._is_mixed = False  # Whether elements of this part can only be told one by one

    def takes(self, sign: str) -> bool:
        """Pass over white space and, if it follows, a sign; return whether it did."""
        self._skip_blanks()
        if not self._text.startswith(sign, self._at) or self._at == len(self._text):
            return False
        self._at += len(sign)
        return True

    def take(self, sign: str) -> None:
        """Pass over a sign, or "" for the end of the file, or raise an AnnotationError."""
        self._skip_blanks()
        if sign == "":
            if self._at < len(self._text):
                raise self.error("text after the end")
        elif not self.takes(sign):
            raise self.error(f"expected {sign}")

    def value(self) -> Any:
        """Return the value that follows."""
        self._skip_blanks()
        size = _CHUNK
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
                # The rest of a number may not be read yet: of 1.5 only "1" or "1.".
                if self._is_read or self._text[end : end + 1] not in _OF_NUMBERS:
                    self._at = end
                    return value
            except RecursionError:
                raise self.error("nested too deeply") from None
            except json.JSONDecodeError as error:
                if self._is_read:
                    raise self.error(error.msg, error.pos) from None
            except ValueError:
                # Python refuses to convert an integer of thousands of digits.
                raise self.error("a number of thousands of digits") from None
            self._read(size)
            size *= 2

    def next_objects(self) -> list[Any]:
        """Pass over further objects of a list, as far as they are read, and return them.

        Those that begin with the same key, as in large files, are decoded at once. What cannot be
        is left to :meth:`value`, which says why.
        """
        start = _NEXT_OBJECT.match(self._text, self._at)
        if start is None or self._is_mixed:
            return []
        # If all before the last such place is JSON, then it is no part of a text or an object.
        end = self._text.rfind(start[0], start.end())
        if end < 0:
            return []
        objects = self._text[self._at : end].lstrip(_BLANKS).removeprefix(",")
        try:
            values: list[Any] = parse_plain_json(f"[{objects}]")
        except (ValueError, RecursionError):
            self._is_mixed = True
            return []
        self._at = end
        return values

    def error(self, why: str, at: int | None = None) -> AnnotationError:
        end = self._at if at is None else at
        line = self._line + self._text.count("\n", 0, end)
        return AnnotationError(f"{self._path}, line {line}: not JSON: {why}")

    def _skip_blanks(self) -> None:
        while True:
            rest = len(self._text)
            while self._at < rest and self._text[self._at] in _BLANKS:
                self._at += 1
            if self._at < rest or self._is_read:
                return
            self._read(_CHUNK)

    def _read(self, size: int) -> None:
        """Read more, and forget what was used."""
        data = self._file.read(size)
        self._line += self._text.count("\n", 0, self._at)
        rest = self._text[self._at :]
        more = self._decoder.decode(data, self._line + rest.count("\n"))
        self._text = rest + more
        self._at = 0
        self._is_read = not data
        self._is_mixed = False
