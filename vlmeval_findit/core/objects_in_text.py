"""Lenient JSON: objects in JSON or Python's spelling, with usual mistakes of language models.

An unescaped quote ends a string only before a comma, colon, closing bracket or the end. Nothing is
evaluated.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Any

DEEPEST = 16  # Brackets within brackets; deeper nesting is not read

_TOKEN = re.compile(r"""\s*+([\[\]{}:,"']|[-+\w.]++)""")
_QUOTE = re.compile(r"""(?<!\\)(?:\\\\)*+(["'])(?=\s*+(?:[,:}\]]|\Z))""")
_WORDS = {"true": True, "false": False, "null": None, "None": None, "True": True, "False": False}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\n": ""}
_ITSELF = "\"'\\/"


def objects_in(text: str) -> list[dict[str, Any]]:
    """Return the outermost objects of a text in order; of equal keys the last counts.

    >>> objects_in("So: {'left': 'a dog isn't there', 'n': [1, None],} and {\\"right\\": \\"x\\"}")
    [{'left': "a dog isn't there", 'n': [1.0, None]}, {'right': 'x'}]
    """
    reader = _ObjectReader(text)
    objects = []
    at = text.find("{")
    while at >= 0:
        try:
            value, at = reader.value(at, DEEPEST)
            objects.append(value)
        except ValueError:
            at += 1
        at = text.find("{", at)
    return objects


class _ObjectReader:
    """Reads values at places of a text; a ValueError where there is no value."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends: dict[str, list[int]] = {'"': [], "'": []}
        for match in _QUOTE.finditer(text):
            self._ends[match[1]].append(match.start(1))

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        """Return the value at a place, and its end; ``depth`` brackets may be nested in it."""
        token, at = self._token(at)
        if token == "{" and depth:
            return self._object(at, depth - 1)
        if token == "[" and depth:
            return self._list(at, depth - 1)
        if token in self._ends:
            return self._string(token, at)
        return (_WORDS[token] if token in _WORDS else float(token)), at

    def _string(self, quote: str, at: int) -> tuple[str, int]:
        ends = self._ends[quote]
        place = bisect_left(ends, at)
        if place == len(ends):
            raise ValueError(quote)
        end = ends[place]
        return unescaped(self._text[at:end]), end + 1

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        goes_on, at = self._first(at, "]")
        while goes_on:
            value, at = self.value(at, depth)
            values.append(value)
            goes_on, at = self._next(at, "]")
        return values, at

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        goes_on, at = self._first(at, "}")
        while goes_on:
            key, at = self.value(at, 0)
            colon, at = self._token(at)
            if colon != ":":
                raise ValueError(colon)
            value, at = self.value(at, depth)
            members.pop(str(key), None)  # A repeated key moves to the end
            members[str(key)] = value
            goes_on, at = self._next(at, "}")
        return members, at

    def _first(self, at: int, closing: str) -> tuple[bool, int]:
        """Return whether there is a first member, and its place, or else the end."""
        token, end = self._token(at)
        return (False, end) if token == closing else (True, at)

    def _next(self, at: int, closing: str) -> tuple[bool, int]:
        """Return whether there is another member, and its place, or else the end."""
        token, end = self._token(at)
        if token == ",":
            return self._first(end, closing)  # A comma may be the last
        if token != closing:
            raise ValueError(token)
        return False, end

    def _token(self, at: int) -> tuple[str, int]:
        token = _TOKEN.match(self._text, at)
        if token is None:
            raise ValueError(at)
        return token[1], token.end()


def unescaped(text: str) -> str:
    """Unescape the text of a string; lone surrogates are replaced.

    >>> unescaped(r"a \\"b\\" \\u00e9 \\_")
    'a "b" é \\\\_'
    """
    if "\\" in text:
        text = _ESCAPE.sub(_escaped, text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    # Unknown escapes stay, as in Python.
    return escape if escape in _ITSELF else _ESCAPES.get(escape, f"\\{escape}")
