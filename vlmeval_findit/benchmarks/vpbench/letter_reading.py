"""Read the letter of a reply, as a person would and as the authors do (published metrics).

Every step takes linear time: patterns have no unbounded repetition. They begin with plain letters
and look behind afterwards, which is faster to search.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

from ...core.replies import ParseFailure
from .vp_query import LETTERS

Options = Mapping[str, str]  # the texts of the options by their letters, in order

AMBIGUOUS = ParseFailure("ambiguous")  # several options
NO_CHOICE = ParseFailure("no_choice")  # none


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


def cleaned(text: str) -> str:
    r"""Make full-width characters plain (NFKC); remove markup, empty lines and repeated blanks.

    >>> cleaned("```json\n{'answer':  \"B\"}\n```")
    'answer: B'
    >>> cleaned(r"$\boxed{\text{D}}$."), cleaned("- __it's__ <b>C</b>")
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


def without_list(text: str, options: Options) -> str:
    r"""Remove copies of the whole list of options from a cleaned text.

    >>> without_list("A. cat\nB) dog\nAnswer: B", {"A": "cat", "B": "dog"})
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


def whole(*words: str) -> str:
    """Make a pattern of alternative words that start at a word boundary."""
    return "|".join(rf"{word}(?<!\w{word})" for word in words)


_NO_NOUN = (  # words that never follow an article
    *("and", "or", "is", "because"),
    *("y", "o", "es", "porque", "et", "ou", "est", "parce", "und", "oder", "ist", "weil"),
)

_NOUN_FOLLOWS = rf" (?!(?:{'|'.join(_NO_NOUN)})\b)[A-Za-z\u00c0-\u024f]{{2}}"
_NAMED = r"(?<=(?:option|choice|letter) [aA])"  # after these words "a" is no article
_ENDS = r"(?!\w|'(?!s\b))"  # the end of a letter: "B's", but not "D'accord"

# A letter in a lower-case text, whatever stands before it
_LETTER = rf"(?:[b-d]|a(?:{_NAMED}|(?!{_NOUN_FOLLOWS}))){_ENDS}"
_BRACKETED = rf"(?:[(\[] ?{_LETTER} ?[)\]]|{_LETTER})"

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
    r"[(\[] ?([A-D]) ?[)\]]|([A-D])(?:[.):\n\u3001\u3002]| [-\u2013\u2014] |\W*\Z)",
    re.IGNORECASE | re.ASCII,
)

_DENIALS = whole("not", "nor", "neither", "can't be", "cannot be", "isn't")

_NEGATED = re.compile(
    rf"(?:{_DENIALS})"
    rf"(?: the)?(?: (?:option|choice|letter|answer))? ({_BRACKETED}(?: n?or {_BRACKETED}){{0,3}})",
    re.ASCII,
)

_SINGLE = re.compile(r"[a-d](?<!\w[a-d])(?!\w)", re.ASCII)


def letters_in(matched: str) -> Iterator[str]:
    """Yield the letters in the match of one of these patterns, in capitals."""
    return (letter.upper() for letter in _SINGLE.findall(matched))


def leading(text: str) -> list[str]:
    r"""Find the letter that begins a text: alone, bracketed, or before punctuation or a new line.

    >>> leading("b) dog"), leading("A - cat"), leading("A cat")
    (['B'], ['A'], [])
    """
    result = _BEGINS.match(text.lstrip())
    return [(result[1] or result[2]).upper()] if result else []


def standing(text: str) -> set[str]:
    """Find letters that stand alone and are not negated; small ones in brackets or after "option".

    >>> sorted(standing("It can't be B, so C.")), sorted(standing("A dog (c) or option d"))
    (['C'], ['C', 'D'])
    """
    result = {letter for letter, pattern in _UPPER.items() if pattern.search(text)}
    lowered = text.lower()
    result.update(letter.upper() for letter in _LOWER.findall(lowered))
    for negated in _NEGATED.findall(lowered):
        result.difference_update(letters_in(negated))
    return result


# One letter, or several in a reply that does not decide
_JOINED = rf"{_BRACKETED}(?:(?: ?[,/] ?(?:and |or )?| and | or ){_BRACKETED}){{0,3}}"
_DENIED_BY = ("not ", "n't ", "nor ")
_SUBJECTS = whole("answer", "ans", "choice", "option")
_LINK = r"\.?(?: is| should be| would be| ?[:=]|\n){1,4}"

_VERBS = "|".join(
    rf"{verb}(?<!\w{verb})" + "".join(rf"(?<!{denial}{verb})" for denial in _DENIED_BY)
    for verb in ("choose", "pick", "select", "go with")
)

_CALLED = r"(?:\s?(?:the )?(?:option|choice|letter)(?: is| ?[:=])?)?"

# "The answer is …", "I choose …"
_CONCLUSION = re.compile(rf"(?:(?:{_SUBJECTS}){_LINK}|{_VERBS}){_CALLED}\s?({_JOINED})", re.ASCII)
_PRAISE = re.compile(r" is (?:the )?(?:correct|right|best)\b", re.ASCII)
_NOT_DENIED = "".join(f"(?<!{denial})" for denial in _DENIED_BY)
_PRAISED = re.compile(rf"(?<!\w){_NOT_DENIED}({_JOINED})\Z", re.ASCII)  # before " is correct"
_FARTHEST = 40  # characters: the longest match of _PRAISED and its negation


def concluded(text: str) -> set[str]:
    """Find the letters of the last conclusion; several where it does not decide.

    >>> concluded("I thought the answer is B, but the right choice would be option D.")
    {'D'}
    >>> concluded("The answer is a dog."), sorted(concluded("Answer: A or B"))
    (set(), ['A', 'B'])
    """
    text = text.lower()
    last, at = "", 0
    for match in _CONCLUSION.finditer(text):
        last, at = match[1], match.end()
    for praise in _PRAISE.finditer(text, at):
        before = _PRAISED.search(text[max(0, praise.start() - _FARTHEST) : praise.start()])
        if before:
            last = before[1]
    return set(letters_in(last))


# A word; in scripts without blanks every character is a word.
_WORD = re.compile(r"\d+\.\d+|[^\W_\u3040-\u30ff\u3400-\u9fff]+|[\u3040-\u30ff\u3400-\u9fff]")
_ARTICLES = frozenset(("a", "an", "the"))
_NUMBERS = "zero one two three four five six seven eight nine ten"
_DIGITS = {word: str(number) for number, word in enumerate(_NUMBERS.split())}


def named(text: str, options: Options) -> Iterator[str]:
    """Yield the letters of options whose text a reply contains as whole words.

    Case, punctuation and articles do not count, and "two" is 2. Where a longer option contains a
    shorter option, its words only name the longer.

    >>> list(named("It's a teddy-bear!", {"A": "bear", "B": "the teddy bear", "C": "book"}))
    ['B']
    """
    phrases = {letter: _folded_words(option) for letter, option in options.items()}
    value = _folded_words(text)
    for letter, phrase in phrases.items():
        rest = value
        longer = {other for other in phrases.values() if phrase in other and phrase != other}
        for other in sorted(longer, key=len, reverse=True):
            rest = rest.replace(other, "\n")
        if phrase and phrase in rest:
            yield letter


def _folded_words(text: str) -> str:
    # Every word has blanks on both sides, so that substrings are whole words.
    words = (_DIGITS.get(word, word) for word in _WORD.findall(text.casefold()))
    return "".join(f" {word} " for word in words if word not in _ARTICLES)


def read(answer: str, options: Options) -> str | ParseFailure:
    """Read the letter that an answer (a reply without its thoughts) chose.

    >>> read("Between A and C, I'd say the answer is **C**.", {"A": "cat", "B": "dog", "C": "cow"})
    'C'
    >>> read("A dog", {"A": "cat", "B": "dog"}), read("A or B", {"A": "cat", "B": "dog"})
    ('B', ParseFailure(reason='ambiguous'))
    """
    there = {letter: cleaned(text) for letter, text in options.items() if text.strip()}
    text = without_list(cleaned(answer), there)
    for step in (concluded, leading, standing):
        result = _single(letter for letter in step(text) if letter in there)
        if result is not None:
            return result
    return _single(named(text, there)) or NO_CHOICE


def _single(letters: Iterable[str]) -> str | ParseFailure | None:
    distinct = set(letters)
    return AMBIGUOUS if len(distinct) > 1 else next(iter(distinct), None)
