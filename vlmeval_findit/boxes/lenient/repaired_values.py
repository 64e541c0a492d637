"""Read lists and objects in a text, however they are spelt, and note the repairs needed.

Unlike :mod:`...core.objects_in_text`, this keeps and marks what is not closed. One pass: linear
time.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...core import late_pattern, unescaped
from .punctuation import DOUBLE_QUOTES, FULL_WIDTH, INVISIBLE, SINGLE_QUOTES
from .records import NO_REPAIRS, Repair, Repairs

DEEPEST = 16  # Brackets within brackets; deeper nesting is a loop and no answer

Scalar = str | int | float | bool | None


class List(NamedTuple):
    """A list."""

    items: list[Value]
    whole: bool  # Its end was there


class Object(NamedTuple):
    """An object; a repeated key has several pairs."""

    pairs: list[tuple[str, Value]]
    whole: bool  # Its end was there


Value = Scalar | List | Object


class ParsedValue(NamedTuple):
    """One outermost list or object, its place in the text and the repairs it needed."""

    value: List | Object
    start: int
    end: int
    repairs: Repairs


def values_in(text: str) -> Iterator[ParsedValue]:
    """Yield the outermost lists and objects of a text, up to one that is nested too deep.

    >>> [value] = values_in("So: [{'box': [1, 2], 'other': [3,")
    >>> value.value.items[0].pairs
    [('box', List(items=[1, 2], whole=True)), ('other', List(items=[3], whole=False))]
    >>> sorted(repair.name for repair in value.repairs)
    ['CUT_OFF', 'QUOTES']
    """
    reader = _ValueReader(text)
    opening = _OPENING.search(text)
    while opening is not None:
        value = reader.value(opening.start())
        if value is None:
            return
        yield value
        opening = _OPENING.search(text, value.end)


_OPENING = late_pattern(r"[\[{［【｛]")
_SIGNS = "[](){},:;" + "".join(FULL_WIDTH)
_QUOTES = "\"'" + DOUBLE_QUOTES + SINGLE_QUOTES
_NO_WORD = re.escape(_SIGNS + _QUOTES + INVISIBLE)
_TOKEN = late_pattern(
    r"[ \t\r\n]*+(?:"
    rf"(?P<sign>[{re.escape(_SIGNS)}])"
    r"|(?P<comment>//[^\n]*+|\#[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)"
    rf"|(?P<quote>[{_QUOTES}])"
    rf"|(?P<word>[^\s{_NO_WORD}]++)"
    rf"|(?P<other_blank>[\s{INVISIBLE}]++)"
    r"|\Z)"
)
# A quote ends a string only before something that can follow a string.
_QUOTE = late_pattern(
    rf"(?<!\\)(?:\\\\)*+([{_QUOTES}])"
    rf"(?=\s*+(?:[{re.escape(''.join(sorted(set(_SIGNS) - set('[({［（【｛'))))}]|\Z|//|/\*)"
    rf"|\s++[{_QUOTES}])"
)
# What the quote at the beginning of a string may be closed by
_CLOSED_BY = {
    '"': '"',
    "'": "'",
    **dict.fromkeys(DOUBLE_QUOTES, DOUBLE_QUOTES + '"'),
    **dict.fromkeys(SINGLE_QUOTES, SINGLE_QUOTES + "'"),
}
_JSON_NUMBER = late_pattern(
    r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|NaN|-?Infinity"
)
_JSON_STRING = late_pattern(r"""(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+""")
_JSON_WORDS = {"true": True, "false": False, "null": None}
_PYTHON_WORDS = {"True": True, "False": False, "None": None}
_CLOSES = {"]": "[", ")": "(", "}": "{"}


@dataclass(slots=True)
class _OpenBracket:
    sign: str
    is_call: bool = False  # Of a function's arguments, as array(…)
    key: str | None = None
    colon: bool = False
    comma: bool = True  # A value may come next
    items: list[Value] = field(default_factory=list)
    pairs: list[tuple[str, Value]] = field(default_factory=list)

    def expect_value(self, comma: bool) -> None:
        """Begin the next entry; ``comma`` says whether a comma came before it."""
        self.key = None
        self.colon = False
        self.comma = comma

    def closed(self, whole: bool) -> List | Object:
        first = self.items[0] if self.items else None
        if self.is_call and isinstance(first, List):
            return first if whole else first._replace(whole=False)
        return Object(self.pairs, whole) if self.sign == "{" else List(self.items, whole)


class _ValueReader:
    def __init__(self, text: str) -> None:
        self._text = text
        # By the quote that opens a string: where one may end
        self._ends: dict[str, list[int]] = {}
        self._stack: list[_OpenBracket] = []
        self._repairs: set[Repair] = set()
        self._call = False  # A bracket opens a function's arguments

    def value(self, start: int) -> ParsedValue | None:
        """Read the value whose bracket is at ``start``; None if it is nested too deep."""
        return _json_value(self._text, start) or self._repaired(start)

    def _repaired(self, start: int) -> ParsedValue | None:
        text = self._text
        end = len(text)
        self._repairs = set()
        self._stack = []
        self._sign(text[start])
        at = start + 1
        word_before = -1  # The end of the last word
        while at < end:
            token = _TOKEN.match(text, at)
            if token is None:  # pragma: no cover - every character begins a token
                break
            kind = token.lastgroup
            if kind is None:
                break
            begin, at = token.span(kind)
            if kind == "sign":
                built = self._sign(text[begin])
                if built is not None:
                    return ParsedValue(built, start, at, frozenset(self._repairs))
                if len(self._stack) > DEEPEST:
                    return None
            elif kind == "word":
                word_before = at
                # A word at the end of the text may be cut off: 12 of 128.
                if at < end and text[at] == "(" and token[kind].isidentifier():
                    self._repairs.add(Repair.QUOTES)
                    self._call = True
                elif at < end:
                    self._word(token[kind])
            elif kind == "quote" and word_before == begin:
                self._repairs.add(Repair.QUOTES)
            elif kind == "quote":
                at = self._string(at, text[begin])
            elif kind == "comment":
                self._repairs.add(Repair.COMMENTS)
            elif kind == "other_blank":
                self._repairs.add(Repair.SPELLING)
        self._repairs.add(Repair.CUT_OFF)
        return ParsedValue(self._close(0, whole=False), start, end, frozenset(self._repairs))

    def _sign(self, sign: str) -> List | Object | None:
        if sign in FULL_WIDTH:
            self._repairs.add(Repair.PUNCTUATION)
            sign = FULL_WIDTH[sign]
        if sign in "[({":
            if sign == "(":
                self._repairs.add(Repair.QUOTES)
            self._stack.append(_OpenBracket(sign, is_call=self._call))
            self._call = False
            return None
        if sign in _CLOSES:
            return self._closing(_CLOSES[sign])
        top = self._stack[-1]
        if sign == ":":
            if top.sign != "{" or top.key is None or top.colon:
                self._repairs.add(Repair.PUNCTUATION)
            top.colon = top.key is not None
        else:
            if sign == ";" or top.comma or top.key is not None:
                self._repairs.add(Repair.PUNCTUATION)
            top.expect_value(comma=True)
        return None

    def _closing(self, opener: str) -> List | Object | None:
        for place in range(len(self._stack) - 1, -1, -1):
            if self._stack[place].sign == opener:
                break
        else:
            self._repairs.add(Repair.PUNCTUATION)
            return None
        top = self._stack[-1]
        after_comma = top.comma and (top.items or top.pairs)
        if after_comma or top.key is not None:
            self._repairs.add(Repair.PUNCTUATION)
        built = self._close(place, whole=True)
        return None if self._stack else built

    def _close(self, place: int, whole: bool) -> List | Object:
        while True:
            built = self._stack.pop().closed(whole)
            if self._stack:
                self._take(built)
            if len(self._stack) <= place:
                return built
            if whole:
                self._repairs.add(Repair.PUNCTUATION)

    def _take(self, value: Value, quoted: bool = False) -> None:
        top = self._stack[-1]
        if top.sign != "{":
            if not top.comma:
                self._repairs.add(Repair.PUNCTUATION)
            top.items.append(value)
            top.comma = False
        elif top.key is None and not isinstance(value, (List, Object)):
            if not quoted:
                self._repairs.add(Repair.QUOTES)
            if not top.comma:
                self._repairs.add(Repair.PUNCTUATION)
            top.key = str(value)
            top.comma = False
        elif not top.colon and _is_pair(value) and top.pairs and _is_pair(top.pairs[-1][1]):
            # "box": (1, 2), (3, 4)
            self._repairs.add(Repair.PUNCTUATION)
            key, first = top.pairs[-1]
            top.pairs[-1] = (key, List([first, value], whole=True))
            top.expect_value(comma=False)
        elif top.colon or isinstance(value, (List, Object)):
            if not top.colon:
                self._repairs.add(Repair.PUNCTUATION)
            top.pairs.append((top.key or "", value))
            top.expect_value(comma=False)
        else:
            self._repairs.add(Repair.PUNCTUATION)
            top.key = f"{top.key} {value}"

    def _string(self, at: int, quote: str) -> int:
        """Take the string at ``at`` and return its end; an open string is skipped to the end."""
        ends = self._ends_of(quote)
        place = bisect_left(ends, at)
        if place == len(ends):
            return len(self._text)
        content = self._text[at : ends[place]]
        if quote != '"' or _has_bare_quote(content):
            self._repairs.add(Repair.QUOTES)
        elif _JSON_STRING.fullmatch(content) is None:
            self._repairs.add(Repair.SPELLING)
        self._take(unescaped(content), quoted=True)
        return ends[place] + 1

    def _ends_of(self, quote: str) -> list[int]:
        """Return where the strings that a quote opens may end."""
        if quote not in self._ends:
            closing = _CLOSED_BY[quote]
            found = _QUOTE.finditer(self._text)
            self._ends[quote] = [match.start(1) for match in found if match[1] in closing]
        return self._ends[quote]

    def _word(self, word: str) -> None:
        if word.startswith("```"):
            self._repairs.add(Repair.AROUND)
            return
        if word in _JSON_WORDS:
            self._take(_JSON_WORDS[word])
            return
        number = _number(word)
        if number is None or word in _PYTHON_WORDS:
            self._repairs.add(Repair.QUOTES)
            self._take(_PYTHON_WORDS.get(word, word))
            return
        if _JSON_NUMBER.fullmatch(word) is None:
            self._repairs.add(Repair.NUMBERS)
        self._take(number)


# --- JSON that needs no repair, for speed ---------------------------------------------------------


def _json_value(text: str, start: int) -> ParsedValue | None:
    """Read a value that is JSON; None if it is not, or is nested too deep."""
    if text[start] not in "[{":
        return None
    try:
        value, end = _DECODER.raw_decode(text, start)
        return ParsedValue(_with_lists(value, DEEPEST), start, end, NO_REPAIRS)
    except (ValueError, RecursionError):
        return None


def _with_lists(value: Any, depth: int) -> Any:
    """Return a decoded value with :class:`List` for lists; ValueError if it is nested too deep."""
    if isinstance(value, list):
        if not depth:
            raise ValueError("nested too deep")
        return List([_with_lists(item, depth - 1) for item in value], whole=True)
    if isinstance(value, Object):
        if not depth:
            raise ValueError("nested too deep")
        pairs = [(key, _with_lists(item, depth - 1)) for key, item in value.pairs]
        return Object(pairs, whole=True)
    return value


def _is_pair(value: Value) -> bool:
    """Return whether a value is a list of two numbers."""
    if not isinstance(value, List) or len(value.items) != 2 or not value.whole:
        return False
    return all(isinstance(item, (int, float)) for item in value.items)


_BARE_QUOTE = late_pattern(r'(?<!\\)(?:\\\\)*+"')
_LONGEST_INT = 400  # Digits; a longer number is infinite as a float


def _has_bare_quote(content: str) -> bool:
    return _BARE_QUOTE.search(content) is not None


def _number(word: str) -> int | float | None:
    try:
        return int(word) if word.isdecimal() and len(word) < _LONGEST_INT else float(word)
    except ValueError:
        return None


_DECODER = json.JSONDecoder(
    parse_int=_number, object_pairs_hook=lambda pairs: Object(pairs, whole=True)
)
