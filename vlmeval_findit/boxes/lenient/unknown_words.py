"""Words in the place of a unit or of an order that name none of ours.

What stands in such a place is stated, known or not, so nothing is read past it. The places are:
in brackets behind a word for boxes or numbers, between "coordinates" and a colon, and behind "in",
where a list of words is one of unknown units or names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ...core import late_pattern
from .languages import words_for
from .remembered import Remembered
from .words import BOXES, ends_with_one_of, says_box, words_of

# Words for the numbers of a box; in brackets behind one stands a unit, an order or a label
_NUMBERS = frozenset(
    "coordinate coordinates coord coords values numbers measurements units unit".split()
).union(words_for("coordinates"), words_for("unit"))
# Words that say neither: of sentences, of languages, and of how numbers are written
_ORDINARY = frozenset(
    """
    a an the of for in on at if is are was as and or to from by with within without per not no now
    it its this that these those be been can we i you they here there which where so thus only also
    approximately approximate approx approximated about around estimated estimate rough roughly
    exact final updated corrected revised refined predicted inclusive exclusive rounded relative
    absolute integer integers int ints float floats decimal decimals digits whole full total entire
    image images picture frame frames photo screen scene view space plane original same respectively
    format formats order form style notation json xml yaml csv markdown html python text list lists
    array arrays dict tuple tuples brackets parentheses braces quotes columns rows lines line words
    pairs pair detail details general turn sequence english full follows below above
    corner corners point points vertex vertices edge edges side sides box boxes bbox object objects
    instance instances result results target targets label labels class all each both
    x y w h min max start end top left right bottom upper lower first second third fourth
    s es ies question particular addition fact case cases brief summary focus front back
    sight motion
    """.split()
)
# Behind "in" they say how a thing, or its drawn box, looks
_COLOURS = frozenset(
    """
    black white red green blue yellow orange purple pink brown grey gray cyan magenta turquoise
    beige gold silver colour color bold italic
    """.split()
)
_UNITS = ("unit", "units", *words_for("unit"))
_MOST_WORDS = 2  # Of a unit, as "grid cells"


def states_unknown_unit(
    text: str, is_of_run: Callable[[str], bool], asked: Sequence[str] = ()
) -> bool:
    """Return whether a word stands in the place of a unit, but names none of the run's.

    Args:
        text: words around boxes.
        is_of_run: whether words name the unit of the run, or an order.
        asked: the labels asked for, which may stand there, too.

    >>> [states_unknown_unit(text, lambda words: words == "pixels") for text in (
    ...     "Coordinates (tiles): ", "Coordinates (pixels): ", "Coordinates of the cat: ")]
    [True, False, False]
    """
    names = _names_of(asked)
    for place in _places_of_units(text):
        tokens = words_of(place.words)
        if not tokens or len(tokens) > _MOST_WORDS or not _ORDINARY.isdisjoint(tokens):
            continue
        if not names.isdisjoint(map(_singular, tokens)) or is_of_run(place.line or place.words):
            continue
        if place.longest is None or _is_written_as_a_unit(tokens[-1], place.longest):
            return True
    return any(_is_unknown(words, is_of_run, names) for words in _lists_behind_in(text))


def _lists_behind_in(text: str) -> Iterator[list[str]]:
    if not any(word in text for word in (" in ", " en ", " em ")):  # For speed
        return
    for match in _LIST_BEHIND_IN.finditer(text):
        if match["head"].lower() in _MEASURED or _is_head(match["head"]):
            yield _BETWEEN_WORDS.split(match["words"])


def _is_unknown(
    words: Sequence[str], is_of_run: Callable[[str], bool], names: frozenset[str]
) -> bool:
    """Return whether words are what the numbers are, and one of them is none of ours."""
    lower = {word.lower() for word in words}
    is_ordinary = not (_ORDINARY | _COLOURS).isdisjoint(lower)
    if is_ordinary or not names.isdisjoint(map(_singular, lower)):
        return False
    return not all(map(is_of_run, words))


@Remembered
def names_unit(key: str) -> bool:
    """Return whether what stands under a key is a unit, as its last word says.

    >>> names_unit("box_units"), names_unit("yksikkö"), names_unit("united")
    (True, True, False)
    """
    return ends_with_one_of(key, _UNITS)


def states_unknown_order(
    text: str, is_known: Callable[[str], bool], asked: Sequence[str] = ()
) -> bool:
    """Return whether a list of words stands in the place of an order, but names none of ours.

    Args:
        text: words around boxes.
        is_known: whether words name an order of ours.
        asked: the labels asked for, which may stand there, too.

    >>> states_unknown_order("Boxes (south, north, west, east): ", lambda words: False)
    True
    >>> states_unknown_order("Boxes (cats and dogs): ", lambda words: False, ["cat"])
    False
    """
    names = _names_of(asked)
    for match in _IN_BRACKETS.finditer(text):
        if not _is_head(match["head"]):
            continue
        parts = [words_of(part) for part in _LISTED.split(match["words"])]
        tokens = [token for part in parts for token in part]
        is_list = len(parts) > 1 and all(parts) and max(map(len, parts)) <= _MOST_WORDS
        is_ordinary = _ORDINARY.issuperset(tokens) or not _OF_SENTENCES.isdisjoint(tokens)
        if not is_list or is_ordinary or not names.isdisjoint(map(_singular, tokens)):
            continue
        if not is_known(match["words"]):
            return True
    return False


_OF_SENTENCES = frozenset("a an the of for in if is are as per with without not no".split())
_IN_BRACKETS = late_pattern(
    r"(?<![^\W\d_])(?P<head>[^\W\d_]++)[\"'`*]{0,3}[ \t]?"
    r"[(\[]\s?(?P<words>[^()\[\]{}<>:\n\d\"]{1,60}?)\s?[)\]]"
)
_LISTED = late_pattern(r"\s*+(?:[,;/|&+、，；]|\b(?:and|then|by)\b|->|→)\s*+")
_WORDS = r"(?P<words>[^\W\d_]++(?:[ -][^\W\d_]++)?)"
_ENDS = r"(?=[\"'`*]{0,3}(?:[ \t]*+\n|\s*+(?:[.,;:)\]=|\"]|\Z|(?:of|from|as|is|are)\b)))"
_HEADS = "coordinates?|coords?|values|numbers|measurements|units?"
_BEHIND_IN = late_pattern(
    rf"(?:\b(?:{_HEADS}|measured|given|expressed|specified|reported|stated|bbox(?:es)?|box(?:es)?)\b"
    rf"(?: (?:are|is|here|all|both|given|measured|expressed|stated)\b){{0,3}}|\d[\])]|//|[#(])"
    rf"\s?\bin (?:units of |steps of )?{_WORDS}{_ENDS}",
    re.IGNORECASE,
)
# "boxes in azimuth and elevation": words without an article are what the numbers are
_AND = r"(?: ?[,;/&+] ?(?:and )?| (?:and|und|et|y|e|en|then) )"
_LIST_BEHIND_IN = late_pattern(
    r"(?<![^\W\d_])(?P<head>[^\W\d_]{2,30}+)(?: (?:are|is|here|all|both|given|stated)\b){0,3}"
    rf" (?:in|en|em) (?P<words>[^\W\d_]{{2,20}}+(?:{_AND}[^\W\d_]{{2,20}}+){{1,7}})"
    r"(?=[\"'`*]{0,3}(?:[ \t]*+\n|\s*+(?:[.:;()\[\]=|\"]|\Z|(?:is|are)\b)))",
    re.IGNORECASE,
)
_BETWEEN_WORDS = late_pattern(_AND, re.IGNORECASE)
_MEASURED = frozenset("measured given expressed specified reported stated".split())
_BEFORE_COLON = late_pattern(rf"\b(?:{_HEADS})\s{_WORDS}[\"'`*]{{0,3}}\s?[:=]", re.IGNORECASE)
_AS_UNIT = late_pattern(
    r"(?<![^\W_])(?P<head>[^\W\d][^\s:=\"'`*.,()\[\]{}]{1,30}+)[\"'`*]{0,3}\s?(?:[:=]|is\b|are\b|of\b)"
    rf"[\"'`*]{{0,3}}\s?{_WORDS}{_ENDS}",
    re.IGNORECASE,
)
# "[1, 2, 3, 4] (em)", "[1, 2, 3, 4] em."; behind a number alone a unit is that number's
_BEHIND_NUMBERS = late_pattern(
    r"(?:\d\s?[\])]|,\s?[\d.]++)[ \t]?[(\[]\s?(?P<words>[^()\[\]{}<>:\n\d\"]{1,30}?)\s?[)\]]"
    r"|\d\s?[\])][ \t]?(?P<bare>[A-Za-z]{2})(?=\s*+(?:[.,;)\n]|\Z))"
)


_LINE = 60  # Characters


class _Place(NamedTuple):
    """What stands in the place of a unit."""

    words: str
    longest: int | None  # Letters of an abbreviation; None: whatever stands here is a unit
    line: str = ""  # With what follows it, where that may go on with it


def _places_of_units(text: str) -> Iterator[_Place]:
    for match in _IN_BRACKETS.finditer(text):
        if _is_head(match["head"]):
            yield _Place(match["words"], None if match["head"].lower() in _NUMBERS else 2)
    for match in _AS_UNIT.finditer(text):
        if not names_unit(_with_word_before(match)):
            continue
        start = match.start("words")
        yield _Place(match["words"], None, text[start : start + _LINE].split("\n")[0])
    for pattern in (_BEHIND_IN, _BEFORE_COLON):
        for match in pattern.finditer(text):
            yield _Place(match["words"], 3)
    for match in _BEHIND_NUMBERS.finditer(text):
        yield _Place(match["words"] or match["bare"], 2)


def _with_word_before(match: re.Match[str]) -> str:
    """Return a head, with what stands before it where its language may have two words for it."""
    start, end = match.span("head")
    return match["head"] if match["head"].isascii() else match.string[max(0, start - 8) : end]


def _is_head(word: str) -> bool:
    """Return whether a word is one for boxes or for their numbers."""
    word = word.lower()
    return word in _NUMBERS or word in BOXES or (not word.isascii() and says_box(word))


def _is_written_as_a_unit(word: str, longest: int) -> bool:
    """Return whether a word is an abbreviation or a plural, as the names of things rarely are."""
    is_plural = word.endswith("s") and not word.endswith("ss")
    return 2 <= len(word) <= longest or (is_plural and len(word) > 2)


def _names_of(labels: Sequence[str]) -> frozenset[str]:
    words: set[str] = set()
    for label in labels:
        words.update(map(_singular, words_of(label)))
    return frozenset(words)


def _singular(word: str) -> str:
    return word.removesuffix("s")
