"""Letters: what one looks like in a cleaned text, and steps 4 and 5."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LETTER_FOLLOWS = r"(?!\w|'(?!s\b))"
"""A letter ends here.  "D'accord" begins with none, "B's" does."""

_NO_NOUN = (
    *("and", "or", "is", "because"),
    *("y", "o", "es", "porque", "et", "ou", "est", "parce", "und", "oder", "ist", "weil"),
)
"""What follows a letter and no article."""

_ARTICLE = rf"[Aa](?= (?!(?:{'|'.join(_NO_NOUN)})\b)[A-Za-z\u00c0-\u024f]{{2}})"
"""``a`` before a word of two letters or more."""

_NAMED = r"(?<=option )|(?<=choice )|(?<=letter )"
"""Directly after one of these nothing is an article."""

LETTER = rf"(?:(?:{_NAMED}|(?!{_ARTICLE}))[A-Da-d]{_LETTER_FOLLOWS})"
"""A letter, upper or lower case, whatever stands before it; for patterns that ignore case."""

BRACKETED = rf"(?:[(\[] ?{LETTER} ?[)\]]|{LETTER})"

_BEGINS = re.compile(
    r"(?:[(\[] ?([A-D]) ?[)\]]"
    r"|([A-D])(?:[.):\n\u3001\u3002]| [-\u2013\u2014] |\W*\Z))",
    re.IGNORECASE | re.ASCII,
)

_UPPER = re.compile(
    rf"(?<![A-Za-z0-9])(?=[A-D])(?:(?i:{_NAMED})|(?!{_ARTICLE}))([A-D]){_LETTER_FOLLOWS}", re.ASCII
)
_LOWER = re.compile(rf"(?:[(\[] ?|\b(?i:option|choice) )([a-d]){_LETTER_FOLLOWS}", re.ASCII)
_NEGATED = re.compile(
    r"\b(?:not|nor|neither|can't be|cannot be|isn't)(?: the)?(?: (?:option|choice|letter|answer))? "
    rf"({BRACKETED}(?: n?or {BRACKETED}){{0,3}})",
    re.IGNORECASE | re.ASCII,
)


def letters_in(matched: str) -> Iterator[str]:
    """The letters of a piece of text that one of these patterns matched, in capitals."""
    return (letter.upper() for letter in _SINGLE.findall(matched))


_SINGLE = re.compile(r"(?<!\w)[A-Da-d](?!\w)", re.ASCII)


def leading(text: str) -> Iterator[str]:
    r"""The letter that a text begins with: alone, in brackets, or before a mark or line break.

    >>> list(leading("b) dog")), list(leading("A - cat")), list(leading("A cat"))
    (['B'], ['A'], [])
    """
    found = _BEGINS.match(text.lstrip())
    if found:
        yield (found[1] or found[2]).upper()


def standing(text: str) -> set[str]:
    """Letters that stand alone in a text, without those that it rules out.

    >>> sorted(standing("It can't be B, so C.")), sorted(standing("A dog (c) or option d"))
    (['C'], ['C', 'D'])
    """
    found = {match[1].upper() for one in (_UPPER, _LOWER) for match in one.finditer(text)}
    for match in _NEGATED.finditer(text):
        found.difference_update(letters_in(match[1]))
    return found
