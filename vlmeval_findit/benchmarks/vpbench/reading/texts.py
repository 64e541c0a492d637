"""Step 6: the words of an option, where a reply names no letter."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..choice import Options

_WORD = re.compile(r"\d+\.\d+|[^\W_\u3040-\u30ff\u3400-\u9fff]+|[\u3040-\u30ff\u3400-\u9fff]")
"""A word; where writing has no blanks, every character is one."""

_ARTICLES = frozenset(("a", "an", "the"))
_NUMBERS = "zero one two three four five six seven eight nine ten"
_DIGITS = {word: str(number) for number, word in enumerate(_NUMBERS.split())}

_WORD_OF = {number: word for word, number in _DIGITS.items()}


def named(text: str, options: Options) -> Iterator[str]:
    """The letters of the options whose words stand in a text, as whole words and in their order.

    Case, punctuation and articles do not count, and "two" is 2.  Words that stand there only within
    those of a longer option do not name the shorter one.

    >>> list(named("It's a teddy-bear!", {"A": "bear", "B": "the teddy bear", "C": "book"}))
    ['B']
    """
    phrases = {letter: _words(own) for letter, own in options.items()}
    folded = text.casefold()
    if not any(_may_hold(folded, phrase) for phrase in phrases.values()):
        return
    said = _words(text)
    for letter, phrase in phrases.items():
        rest = said
        longer = {other for other in phrases.values() if phrase in other and phrase != other}
        for other in sorted(longer, key=len, reverse=True):
            rest = rest.replace(other, "\n")
        if phrase and phrase in rest:
            yield letter


def _may_hold(folded: str, phrase: str) -> bool:
    """Whether all words of a phrase stand in a text in some way: quickly told of a long one."""
    return all(word in folded or _WORD_OF.get(word, word) in folded for word in phrase.split())


def _words(text: str) -> str:
    """Every word between blanks of its own, so that a part of such a text is whole words."""
    words = (_DIGITS.get(word, word) for word in _WORD.findall(text.casefold()))
    return "".join(f" {word} " for word in words if word not in _ARTICLES)
