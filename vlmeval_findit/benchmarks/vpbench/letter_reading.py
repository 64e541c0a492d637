"""Read the letter of a reply, as a person would and as the authors do (published metrics).

Every step takes linear time: patterns have no unbounded repetition. They begin with plain letters
and look behind afterwards, which is faster to search.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

from ...protocol import ParseFailure
from .letter_claims import (
    ENDS,
    NAMED,
    NOUN_FOLLOWS,
    concluded_letters,
    denied_letters,
    find_claims,
)
from .vp_query import AMBIGUOUS, LETTERS, NO_CHOICE

Options = Mapping[str, str]  # the texts of the options by their letters, in order


def published_letter(reply: str | None) -> str | None:
    """Return the first of A to D in the upper-cased reply; None where there is none.

    Without a letter the authors compare the whole text with the right letter, so it is wrong. A
    failed call, which VLMEvalKit stores as "Failed to obtain answer via API.", is A.

    >>> published_letter("Answer: D"), published_letter("person"), published_letter(None)
    ('A', None, 'A')
    """
    # The authors read replies from a table, where a missing one is "nan".
    text = "nan" if reply is None else reply
    return next((sign for sign in text.upper() if sign in LETTERS), None)


_QUOTES = str.maketrans(  # quotes, CJK brackets, braces; emphasis is removed
    "\u2018\u2019\u201a\u201b`\u00b4\u3010\u3014\u3016\u3011\u3015\u3017{}",
    "''''''[[[]]]  ",
    '"\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f*#$',
)
_FENCE = re.compile(r"\n(?:```|~~~)(?:[A-Za-z][\w+-]+)?(?=\n)")

# A tag of HTML or a special token; ``<B>`` is a letter in brackets.
_TAG = re.compile(r"</?(?:[A-Za-z][A-Za-z][^<>\n]{0,200}|[a-z])>|<\|[^<>|\n]{1,40}\|>")
_LATEX = re.compile(r"\\(?:(?:boxed|text|math)(?:bf|it|rm|sf|tt)?(?![a-z])|(?=[()\[\]]))")
_QUOTING = re.compile(r"'(?:(?<!\w')|(?!\w))")  # not an apostrophe
_BULLET = re.compile(r"\n(?:[-+>\u2022\u2023\u25e6\u25aa\u25cf\u00b7\u2013\u2014] )+")
_WITHIN_WORD = re.compile(r"_(?<=[^\W_]_)(?=[^\W_])")
_BEFORE_MARK = re.compile(r" (?=[.,:;!?)\]])")


def clean(text: str) -> str:
    r"""Make full-width characters plain (NFKC); remove markup, empty lines and repeated blanks.

    >>> clean("```json\n{'answer':  \"B\"}\n```")
    'answer: B'
    >>> clean(r"$\boxed{\text{D}}$."), clean("- __it's__ <b>C</b>")
    ('D.', "it's C")
    """
    text = unicodedata.normalize("NFKC", text)
    text = _FENCE.sub("\n", f"\n{_lines(text)}\n")
    text = _LATEX.sub(" ", _TAG.sub(" ", text.replace("`", ""))).translate(_QUOTES)
    # Underscores within words are blanks, others emphasis.
    text = _QUOTING.sub("", _WITHIN_WORD.sub(" ", text).replace("_", ""))
    return _BULLET.sub("\n", f"\n{_BEFORE_MARK.sub('', _lines(text))}").strip("\n")


def _lines(text: str) -> str:
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))


def without_option_list(text: str, options: Options) -> str:
    r"""Remove copies of the whole list of options from a cleaned text.

    >>> without_option_list("A. cat\nB) dog\nAnswer: B", {"A": "cat", "B": "dog"})
    '\nAnswer: B'
    """
    if not options:
        return text
    items = []
    for letter, option in options.items():
        words = r"\s".join(map(re.escape, option.split()))
        items.append(rf"[(\[]?{letter} ?(?:[.):\]]|[-\u2013\u2014] )\s?{words}(?!\w)[.,;]?")
    whole_list = r"\s?".join(items)
    return re.sub(rf"(?<!\w){whole_list}\s?", "\n", text, flags=re.IGNORECASE)


def bracket_letters(text: str, options: Options) -> str:
    r"""Put the letters of options whose text follows in brackets, without that text.

    >>> bracket_letters("B) dog is wrong; A, the cat, isn't", {"A": "cat", "B": "dog"})
    "(B) is wrong; (A), isn't"
    """
    lowered = text.lower()
    for letter, option in options.items():
        first, *_ = option.lower().split() or [""]
        # Options are different in every question: most patterns would be compiled for nothing.
        if not first or first not in lowered:
            continue
        words = r"\s".join(map(re.escape, option.split()))
        mark = r"(?:[)\].:,]| ?[-\u2013\u2014:(]){1,2}"
        with_text = rf"(?<![A-Za-z0-9])[(\[]?{letter}{mark} ?(?:an? |the )?{words}(?!\w)\)?"
        text = re.sub(with_text, f"({letter})", text, flags=re.IGNORECASE)
    return text


def _standing_letter(letter: str) -> re.Pattern[str]:
    # "A" may be an article.
    is_letter = rf"(?:(?i:{NAMED})|(?!{NOUN_FOLLOWS}))" if letter == "A" else ""
    return re.compile(rf"{letter}(?<![A-Za-z0-9]{letter}){ENDS}{is_letter}", re.ASCII)


_UPPER = {letter: _standing_letter(letter) for letter in LETTERS}

_LOWER = re.compile(rf"(?:[(\[] ?|\b(?:option|choice) )([a-d]){ENDS}", re.ASCII)

_BEGINS = re.compile(
    r"[(\[] ?([A-D]) ?[)\]]|([A-D])(?:[.):\n\u3001\u3002]| [-\u2013\u2014] |\W*\Z)",
    re.IGNORECASE | re.ASCII,
)


def leading_letter(text: str) -> list[str]:
    r"""Find the letter that begins a text: alone, bracketed, or before punctuation or a new line.

    >>> leading_letter("b) dog"), leading_letter("A - cat"), leading_letter("A cat")
    (['B'], ['A'], [])
    """
    result = _BEGINS.match(text.lstrip())
    return [(result[1] or result[2]).upper()] if result else []


def standing_letters(text: str) -> set[str]:
    """Find letters that stand alone; small ones in brackets or after "option".

    >>> sorted(standing_letters("A dog (c) or option d"))
    ['C', 'D']
    """
    result = {letter for letter, pattern in _UPPER.items() if pattern.search(text)}
    result.update(letter.upper() for letter in _LOWER.findall(text.lower()))
    return result


# A word; in scripts without blanks every character is a word.
_WORD = re.compile(r"\d+\.\d+|[^\W_\u3040-\u30ff\u3400-\u9fff]+|[\u3040-\u30ff\u3400-\u9fff]")
_ARTICLES = frozenset(("a", "an", "the"))
_NUMBERS = "zero one two three four five six seven eight nine ten"
_DIGITS = {word: str(number) for number, word in enumerate(_NUMBERS.split())}


# What denies the text of an option behind it, as words with blanks on both sides
_NOT_WORDS = (
    " not ",
    " isn  t ",
    " t  be ",
    " cannot  be ",
    " neither ",
    " nor ",
    " than ",
    " of ",
)


def named_options(text: str, options: Options) -> Iterator[str]:
    """Yield the letters of options whose text a reply contains as whole words.

    Case, punctuation and articles do not count, and "two" is 2. Where a longer option contains a
    shorter option, its words only name the longer.

    >>> list(named_options("It's a teddy-bear!", {"A": "bear", "B": "the teddy bear", "C": "book"}))
    ['B']
    >>> list(named_options("It is not a dog but a cow.", {"A": "dog", "B": "cow"}))
    ['B']
    """
    phrases = {letter: _folded_words(option) for letter, option in options.items()}
    value = _folded_words(text)
    for letter, phrase in phrases.items():
        rest = value
        longer = {other for other in phrases.values() if phrase in other and phrase != other}
        for other in sorted(longer, key=len, reverse=True):
            rest = rest.replace(other, "\n")
        for before in _NOT_WORDS:
            rest = rest.replace(f"{before}{phrase}", "\n")
        if phrase and phrase in rest:
            yield letter


def _folded_words(text: str) -> str:
    # Every word has blanks on both sides, so that substrings are whole words.
    words = (_DIGITS.get(word, word) for word in _WORD.findall(text.casefold()))
    return "".join(f" {word} " for word in words if word not in _ARTICLES)


def read_letter(answer: str, options: Options) -> str | ParseFailure:
    """Read the letter that an answer (a reply without its thoughts) chose.

    >>> animals = {"A": "cat", "B": "dog", "C": "cow"}
    >>> read_letter("Between A and C, I'd say the answer is **C**.", animals)
    'C'
    >>> read_letter("A dog", animals), read_letter("A or B", animals)
    ('B', ParseFailure(reason='ambiguous'))
    """
    there = {letter: clean(text) for letter, text in options.items() if text.strip()}
    text = bracket_letters(without_option_list(clean(answer), there), there)
    claims = find_claims(text.lower())
    wrong = denied_letters(claims)
    for step in (concluded_letters(claims), leading_letter(text), standing_letters(text)):
        result = _single(letter for letter in step if letter in there and letter not in wrong)
        if result is not None:
            return result
    left = [letter for letter in there if letter not in wrong]
    return _single(named_options(text, there)) or (
        left[0] if wrong and len(left) == 1 else NO_CHOICE
    )


def _single(letters: Iterable[str]) -> str | ParseFailure | None:
    distinct = set(letters)
    return AMBIGUOUS if len(distinct) > 1 else next(iter(distinct), None)
