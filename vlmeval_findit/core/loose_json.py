"""Lenient JSON: objects in JSON or Python's spelling, with usual mistakes of language models.

An unescaped quote ends a string only before a comma, colon, closing bracket or the end. Nothing is
evaluated; time is linear.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

DEEPEST = 16  # Brackets within brackets; deeper nesting is not read

_BLANK = re.compile(r"\s*+")
_QUOTE = re.compile(r"""(?<!\\)(?:\\\\)*+(["'])(?=\s*+(?:[,:}\]]|\Z))""")
_WORD = re.compile(r"[-+\w.]++")
_WORDS = {"true": True, "false": False, "null": None, "None": None, "True": True, "False": False}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\n": ""}
_ITSELF = "\"'\\/"


def objects_in(text: str) -> list[dict[str, Any]]:
    """Return the outermost objects of a text in order; of equal keys the last counts.

    >>> objects_in("So: {'left': 'a dog isn't there', 'n': [1, None],} and {\\"right\\": \\"x\\"}")
    [{'left': "a dog isn't there", 'n': [1.0, None]}, {'right': 'x'}]
    """
    return list(_Scanner(text).objects())


class _String(NamedTuple):
    begin: int
    end: int


class _Members(NamedTuple):
    """A linked list of members."""

    key: Any  # None in a list
    value: Any  # A scalar, a :class:`_String` or a :class:`_Nested`
    more: _Members | None


class _Nested(NamedTuple):
    is_list: bool
    members: _Members | None


# Members up to the closing bracket, and the place after it
_Ending = tuple[_Members | None, int]

_Value = tuple[Any, int]


class _Scanner:
    """Reads each place once in each role and remembers failures: linear time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends: dict[str, list[int]] = {'"': [], "'": []}
        for found in _QUOTE.finditer(text):
            self._ends[found[1]].append(found.start(1))
        self._known: dict[tuple[int, int, str], _Ending | None] = {}

    def objects(self) -> Iterator[dict[str, Any]]:
        at = self._text.find("{")
        while at >= 0:
            found = self._nested(at, DEEPEST)
            if found is not None:
                yield self._made(found[0])
            at = self._text.find("{", at + 1 if found is None else found[1])

    def _nested(self, at: int, depth: int) -> tuple[_Nested, int] | None:
        is_list = self._is(at, "[")
        found = self._members(self._blank(at + 1), depth, "]" if is_list else "}")
        return None if found is None else (_Nested(is_list, found[0]), found[1])

    def _members(self, at: int, depth: int, closing: str) -> _Ending | None:
        passed: list[tuple[int, Any, Any]] = []
        while (at, depth, closing) not in self._known:
            if self._is(at, closing):
                self._known[at, depth, closing] = None, at + 1
                break
            member = self._member(at, depth, closing)
            if member is None:
                self._known[at, depth, closing] = None
                break
            key, value, end = member
            passed.append((at, key, value))
            at = end
        found = self._known[at, depth, closing]
        for at, key, value in reversed(passed):
            if found is not None:
                found = _Members(key, value, found[0]), found[1]
            self._known[at, depth, closing] = found
        return found

    def _member(self, at: int, depth: int, closing: str) -> tuple[Any, Any, int] | None:
        key = None
        found = self._value(at, depth - 1)
        if found is not None and closing == "}":
            key, at = found
            at = self._blank(at)
            if isinstance(key, _Nested) or not self._is(at, ":"):
                return None
            found = self._value(self._blank(at + 1), depth - 1)
        if found is None:
            return None
        value, at = found
        at = self._blank(at)
        if self._is(at, ","):
            return key, value, self._blank(at + 1)
        return (key, value, at) if self._is(at, closing) else None

    def _value(self, at: int, depth: int) -> _Value | None:
        sign = self._text[at : at + 1]
        if sign in ("{", "["):
            return self._nested(at, depth) if depth else None
        if sign in ('"', "'"):
            return self._string(at, sign)
        word = _WORD.match(self._text, at)
        if word is None:
            return None
        try:
            return _meaning(word[0]), word.end()
        except ValueError:
            return None

    def _string(self, at: int, quote: str) -> _Value | None:
        ends = self._ends[quote]
        place = bisect_left(ends, at + 1)
        if place == len(ends):
            return None
        return _String(at + 1, ends[place]), ends[place] + 1

    def _made(self, value: Any) -> Any:
        if isinstance(value, _String):
            return unescaped(self._text[value.begin : value.end])
        if not isinstance(value, _Nested):
            return value
        made = [(self._made(one.key), self._made(one.value)) for one in _each(value.members)]
        if value.is_list:
            return [one for _, one in made]
        found: dict[str, Any] = {}
        for key, one in made:
            found.pop(str(key), None)  # a repeated key moves to the end
            found[str(key)] = one
        return found

    def _blank(self, at: int) -> int:
        found = _BLANK.match(self._text, at)
        return at if found is None else found.end()

    def _is(self, at: int, sign: str) -> bool:
        return self._text.startswith(sign, at)


def _each(members: _Members | None) -> Iterator[_Members]:
    while members is not None:
        yield members
        members = members.more


def _meaning(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    return float(word)


def unescaped(text: str) -> str:
    """Unescape the text of a string; lone surrogates are replaced.

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
    # Unknown escapes stay, as in Python.
    return said if said in _ITSELF else _ESCAPES.get(said, f"\\{said}")
