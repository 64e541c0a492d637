"""Objects that a text holds, in JSON or as Python writes it, with what language models do to them.

Beside JSON itself: single quotes, ``True`` and ``None``, a comma before a closing bracket, line
breaks inside a string, and quotes inside a string that nobody escaped.  A quote ends a string only
where a comma, a colon, a closing bracket or nothing comes after it.  Nothing is evaluated, and the
time is linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

DEEPEST = 16
"""Brackets within brackets; what is nested deeper is none of ours."""

_BLANK = re.compile(r"\s*+")
_QUOTE = re.compile(r"""(?<!\\)(?:\\\\)*+(["'])(?=\s*+(?:[,:}\]]|\Z))""")
_WORD = re.compile(r"[-+\w.]++")
_WORDS = {"true": True, "false": False, "null": None, "None": None, "True": True, "False": False}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\n": ""}
_ITSELF = "\"'\\/"


def objects_in(text: str) -> list[dict[str, Any]]:
    """Every object of a text in its order, those inside other objects left to these.

    Keys are texts, whatever stood there; of two that are the same, the later one counts.

    >>> objects_in("So: {'left': 'a dog isn't there', 'n': [1, None],} and {\\"right\\": \\"x\\"}")
    [{'left': "a dog isn't there", 'n': [1.0, None]}, {'right': 'x'}]
    """
    return list(_Scanner(text).objects())


class _UnreadableError(Exception):
    """What begins here is no value."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._ends: dict[str, list[int]] = {'"': [], "'": []}
        for found in _QUOTE.finditer(text):
            self._ends[found[1]].append(found.start(1))

    def objects(self) -> Iterator[dict[str, Any]]:
        at = self._text.find("{")
        while at >= 0:
            try:
                value, end = self._object(at, DEEPEST)
            except _UnreadableError:
                end = at + 1
            else:
                yield value
            at = self._text.find("{", end)

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self._blank(at + 1)
        while not self._is(at, "}"):
            key, at = self._value(at, depth - 1)
            at = self._blank(at)
            if isinstance(key, (dict, list)) or not self._is(at, ":"):
                raise _UnreadableError
            value, at = self._value(self._blank(at + 1), depth - 1)
            found.pop(str(key), None)  # a later key stands behind those before it
            found[str(key)] = value
            at = self._separator(at, "}")
        return found, at + 1

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self._blank(at + 1)
        while not self._is(at, "]"):
            value, at = self._value(at, depth - 1)
            found.append(value)
            at = self._separator(at, "]")
        return found, at + 1

    def _separator(self, at: int, closing: str) -> int:
        at = self._blank(at)
        if self._is(at, ","):
            return self._blank(at + 1)
        if not self._is(at, closing):
            raise _UnreadableError
        return at

    def _value(self, at: int, depth: int) -> tuple[Any, int]:
        sign = self._text[at : at + 1]
        if sign in ("{", "[") and not depth:
            raise _UnreadableError
        if sign == "{":
            return self._object(at, depth)
        if sign == "[":
            return self._list(at, depth)
        if sign in ('"', "'"):
            return self._string(at, sign)
        word = _WORD.match(self._text, at)
        if word is None:
            raise _UnreadableError
        return _meaning(word[0]), word.end()

    def _string(self, at: int, quote: str) -> tuple[str, int]:
        ends = self._ends[quote]
        place = bisect_left(ends, at + 1)
        if place == len(ends):
            raise _UnreadableError
        return unescaped(self._text[at + 1 : ends[place]]), ends[place] + 1

    def _blank(self, at: int) -> int:
        found = _BLANK.match(self._text, at)
        return at if found is None else found.end()

    def _is(self, at: int, sign: str) -> bool:
        return self._text.startswith(sign, at)


def _meaning(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    try:
        return float(word)
    except ValueError:
        raise _UnreadableError from None


def unescaped(text: str) -> str:
    """The text of a string between its quotes; halves of surrogate pairs that stand alone are lost.

    >>> unescaped(r"a \\"b\\" \\u00e9 \\_")
    'a "b" é \\\\_'
    """
    if "\\" in text:
        text = _ESCAPE.sub(_escaped, text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped(found: re.Match[str]) -> str:
    said = found[1]
    if len(said) > 1:
        return chr(int(said[1:], 16))
    # What is no escape is left as it is, as Python does.
    return said if said in _ITSELF else _ESCAPES.get(said, f"\\{said}")
