"""Read large JSON files an element at a time: COCO's lists have millions."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ...core import (
    EqualKeysError,
    open_regular,
    parse_plain_json,
    quoted_value,
    refuse_equal_keys,
)
from ..annotated_samples import AnnotationError
from .text_encodings import Decoder

# Bytes that are read at once, of a whole file and for a first look; an element that is longer is
# read in larger ones
_CHUNK = 1 << 18
_FIRST_LOOK = 1 << 14


_BLANKS = " \t\r\n"
# What stands before the next object of a list: up to the name of its first key
_NEXT_OBJECT = re.compile(r'[ \t\r\n]*,[ \t\r\n]*\{[ \t\r\n]*"[^"\\]*"')

# What looks like the end of a list of objects; one inside of them looks so, too
_END_OF_LIST = re.compile(r"\}[ \t\r\n]*\][ \t\r\n]*[,}]")

# What may stand behind a number that is not read to its end: nothing yet, or more of it
_OF_NUMBERS = ("", *"0123456789.eE+-")


class Element(NamedTuple):
    """A value of the object that a file holds, or an element of a list that it holds."""

    key: str
    place: int | None  # In the list, from 0; None: the value is no list
    value: Any


class Part(NamedTuple):
    """Elements of a list that stand one behind the other, or a value that is no list."""

    key: str
    place: int | None  # Of the first element in the list, from 0; None: the value is no list
    values: list[Any]


def sections(path: Path, encoding: str | None, *, is_first_look: bool = False) -> Iterator[Element]:
    """Yield the values of the object in a file; of lists their elements, one after the other.

    See :func:`parts`. ``is_first_look``: only keys matter, and what is in another encoding is
    passed over.
    """
    for key, place, values in parts(path, encoding, is_first_look=is_first_look):
        if place is None:
            yield Element(key, None, values[0])
            continue
        for at, value in enumerate(values, place):
            yield Element(key, at, value)


def parts(
    path: Path,
    encoding: str | None,
    kinds: Mapping[str, Any] = MappingProxyType({}),
    *,
    is_first_look: bool = False,
) -> Iterator[Part]:
    """Yield the values of the object in a file; of lists their elements, many at once.

    Memory holds the elements of one part of the file. An empty list is a value. A file that holds
    a list has no keys: that of its elements is "".

    Args:
        path: the file.
        encoding: what the user states; see :mod:`text_encodings`.
        kinds: TypedDicts with the keys that are needed of the elements of lists, by the lists'
            keys. Elements may have others all the same.
        is_first_look: see :func:`sections`.

    Raises:
        AnnotationError: it is neither, no JSON, has a list twice, or is in another encoding; the
            message names the line.
        OSError: it cannot be opened.
    """
    with open_regular(path) as file:
        errors = "replace" if is_first_look else "strict"
        size = min(_CHUNK, _FIRST_LOOK) if is_first_look else _CHUNK
        text = _Text(path, file, Decoder(path, file, encoding, errors), size)
        if text.takes("["):
            yield from _parts_of_list("", text, Any)
            text.take("")
            return
        text.take("{")
        keys = set[str]()
        while not text.takes("}"):
            key = text.value()
            if not isinstance(key, str):
                raise text.error("a key should be a text")
            if key in keys:
                raise text.refusal(f"duplicate key {quoted_value(key)}: join both, or rename one")
            keys.add(key)
            text.take(":")
            if text.takes("["):
                yield from _parts_of_list(key, text, kinds.get(key, Any))
            else:
                yield Part(key, None, [text.value()])
            if not text.takes(","):
                text.take("}")
                break
        text.take("")


def _parts_of_list(key: str, text: _Text, kind: Any) -> Iterator[Part]:
    place = 0
    while not text.takes("]"):
        values = [text.value(), *text.next_objects(kind)]
        yield Part(key, place, values)
        place += len(values)
        if not text.takes(","):
            text.take("]")
            break
    if place == 0:
        yield Part(key, None, [[]])


class _Text:
    """The part of a file that is read but not yet used, and how far it is."""

    def __init__(self, path: Path, file: BufferedReader, decoder: Decoder, size: int) -> None:
        """Begin; ``size`` is how many bytes are read at once."""
        self._path = path
        self._size = size
        self._file = file
        self._decoder = decoder
        self._json = json.JSONDecoder(object_pairs_hook=refuse_equal_keys)
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
        size = self._size
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
                # The rest of a number may not be read yet: of 1.5 only "1" or "1.".
                if self._is_read or self._text[end : end + 1] not in _OF_NUMBERS:
                    self._at = end
                    return value
            except EqualKeysError as error:
                raise self.refusal(str(error)) from None
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

    def next_objects(self, kind: Any) -> list[Any]:
        """Pass over further objects of a list, as far as they are read, and return them.

        Those that begin with the same key, as in large files, are decoded at once, as ``kind`` if
        they can be. What cannot be is left to :meth:`value`, which says why.
        """
        start = _NEXT_OBJECT.match(self._text, self._at)
        if start is None or self._is_mixed:
            return []
        # If all before the last such place is JSON, then it is no part of a text or an object.
        end = self._text.rfind(start[0], start.end())
        if end < 0:
            return []
        begin = self._text.index(",", self._at) + 1
        end_of_list = _END_OF_LIST.search(self._text, begin, end)
        for at in (end_of_list.start() + 1 if end_of_list else end, end):
            with suppress(ValueError, RecursionError):
                values: list[Any] = parse_plain_json(f"[{self._text[begin:at]}]", list[kind])
                if _may_have_equal_keys(self._text, begin, at, values):
                    break
                self._at = at
                return values
        # A number is not plain, or the list ends elsewhere: Python reads up to its end.
        with suppress(ValueError, RecursionError):
            values, size = self._json.raw_decode(f"[{self._text[begin:end]}]")
            self._at = begin + size - 2  # Without both brackets
            return values
        self._is_mixed = True
        return []

    def error(self, why: str, at: int | None = None) -> AnnotationError:
        return self.refusal(f"not JSON: {why}", at)

    def refusal(self, why: str, at: int | None = None) -> AnnotationError:
        end = self._at if at is None else at
        line = self._line + self._text.count("\n", 0, end)
        return AnnotationError(f"{self._path}, line {line}: {why}")

    def _skip_blanks(self) -> None:
        while True:
            rest = len(self._text)
            while self._at < rest and self._text[self._at] in _BLANKS:
                self._at += 1
            if self._at < rest or self._is_read:
                return
            self._read(self._size)

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


# A key without signs that JSON escapes, or that writers do: its text is found as it is
_WRITTEN_AS_IT_IS = re.compile(r"[ !#-.0-\[\]-~]*")
# A sign of ASCII that is escaped: a key may be written so
_ESCAPED_ASCII = re.compile(r"\\u00[2-7]")


def _may_have_equal_keys(text: str, begin: int, end: int, values: list[Any]) -> bool:
    """Return whether a key of objects stands in their text more often than they have it.

    It may also be a key that is not needed, or a value: what decodes them one by one tells.
    """
    have = Counter[str]()
    objects = [value for value in values if isinstance(value, dict)]
    if text.count("{", begin, end) == len(objects):
        # As in most files: no object is inside of another one, and many have the same keys.
        for keys, times in Counter(map(tuple, objects)).items():
            for key in keys:
                have[key] += times
    else:
        _count_keys(values, have)
    for key, times in have.items():
        if _WRITTEN_AS_IT_IS.fullmatch(key) is None:
            return True
        if text.count(f'"{key}"', begin, end) > times:
            return True
    return _ESCAPED_ASCII.search(text, begin, end) is not None


def _count_keys(values: Iterable[Any], have: Counter[str]) -> None:
    for value in values:
        if isinstance(value, dict):
            have.update(value.keys())
            _count_keys(value.values(), have)
        elif isinstance(value, list) and value and isinstance(value[0], dict | list):
            _count_keys(value, have)
