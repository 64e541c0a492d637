"""Letters in a cleaned text: what is one and what is an article; steps 4 and 5.

Patterns begin with plain letters, and look behind them afterwards: so they are found fast in a long
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator


def whole(*words: str) -> str:
    """A pattern of words that nothing goes on into."""
    return "|".join(rf"{word}(?<!\w{word})" for word in words)


_NO_NOUN = (
    *("and", "or", "is", "because"),
    *("y", "o", "es", "porque", "et", "ou", "est", "parce", "und", "oder", "ist", "weil"),
)
"""What follows a letter and no article."""

_NOUN_FOLLOWS = rf" (?!(?:{'|'.join(_NO_NOUN)})\b)[A-Za-z\u00c0-\u024f]{{2}}"

_NAMED = r"(?<=(?:option|choice|letter) [aA])"
"""Directly after one of these nothing is an article."""

_ENDS = r"(?!\w|'(?!s\b))"
"""A letter ends here.  "D'accord" begins with none, "B's" does."""

LETTER = rf"(?:[b-d]|a(?:{_NAMED}|(?!{_NOUN_FOLLOWS}))){_ENDS}"
"""A letter in a text in lower case, whatever stands before it."""

BRACKETED = rf"(?:[(\[] ?{LETTER} ?[)\]]|{LETTER})"

_UPPER = {
    letter: re.compile(
        rf"{letter}(?<![A-Za-z0-9]{letter}){_ENDS}"
        + (rf"(?:(?i:{_NAMED})|(?!{_NOUN_FOLLOWS}))" if letter == "A" else ""),
        re.ASCII,
    )
    for letter in "ABCD"
}

_OPTION = whole("option", "choice")

_LOWER = re.compile(rf"(?:[(\[] ?|(?:{_OPTION}) )([a-d]){_ENDS}", re.ASCII)

_BEGINS = re.compile(
    r"(?:[(\[] ?([A-D]) ?[)\]]"
    r"|([A-D])(?:[.):\n\u3001\u3002]| [-\u2013\u2014] |\W*\Z))",
    re.IGNORECASE | re.ASCII,
)


_DENIALS = whole("not", "nor", "neither", "can't be", "cannot be", "isn't")

_NEGATED = re.compile(
    rf"(?:{_DENIALS})"
    rf"(?: the)?(?: (?:option|choice|letter|answer))? ({BRACKETED}(?: n?or {BRACKETED}){{0,3}})",
    re.ASCII,
)

_SINGLE = re.compile(r"[a-d](?<!\w[a-d])(?!\w)", re.ASCII)


def letters_in(matched: str) -> Iterator[str]:
    """The letters of what one of these patterns matched, in capitals."""
    return (letter.upper() for letter in _SINGLE.findall(matched))


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

    Lower case counts in brackets and after "option".

    >>> sorted(standing("It can't be B, so C.")), sorted(standing("A dog (c) or option d"))
    (['C'], ['C', 'D'])
    """
    found = {letter for letter, pattern in _UPPER.items() if pattern.search(text)}
    lowered = text.lower()
    found.update(letter.upper() for letter in _LOWER.findall(lowered))
    for negated in _NEGATED.findall(lowered):
        found.difference_update(letters_in(negated))
    return found
