"""One row of a VP-Bench table; its kind, and whether its mark is there, by its wording."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from ...core.table_files import PlainQuery

LETTERS = "ABCD"  # of the options, in their order


class Kind(Enum):
    """The kind of a question, by its wording or its maker."""

    EXISTENCE = "existence"
    COUNTING = "counting"
    LOCALISATION = "localisation"
    REFERENCE = "reference"
    UNKNOWN = "unknown"


class HintColumn(Enum):
    """The authors' column of a hint; their code reads ``hint`` alone, never ``context``."""

    HINT = "hint"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True, kw_only=True)
class VPQuery(PlainQuery):
    """One question about marks in images; ``cluster`` is the first image, unmarked where known."""

    hint: str = ""
    hint_column: HintColumn = HintColumn.HINT
    question: str
    options: tuple[tuple[str, str], ...]  # letter, text; in order, without blank ones
    answer: str = ""  # the right letter; "" where none is known: such a row is asked, not scored
    amount: str = ""  # how many marks there are
    shapes: tuple[str, ...] = ()  # by our names: box, oval, arrow, mask, contour, tag, …
    properties: tuple[str, ...] = ()  # what else is known of them: colours
    kind: Kind = Kind.UNKNOWN
    absent: bool = False  # it asks about a mark that is not there, and the right option says so
    source: str = ""  # a task of the authors, or the dataset that it was made of


# A mark by any of its names.
_MARK = (
    r"(?:marks?|markers?|box(?:es)?|rectangles?|ovals?|ellipses?|circles?|arrows?|masks?|contours?"
    r"|outlines?|tags?|labels?|points?|dots?|scribbles?|visual prompts?)"
)

_NAMES_MARK = re.compile(
    rf"\b(?:{_MARK}|marked|boxed|circled|outlined|masked|tagged|labell?ed|pointed)\b", re.IGNORECASE
)

_ADJECTIVES = (
    r"(?:(?:black|red|green|blue|dark|light|square|round|rounded|open|filled|plain|loose|tight"
    r"|digit|letter|number|bounding|drawn|visible|such) )*"
)

_COUNTS = re.compile(r"\bhow many\b", re.IGNORECASE)
_EXISTS = re.compile(r"\b(?:is|are) there\b|\bwhich of\b.*\b(?:is|are) present\b", re.IGNORECASE)
_PLACES = re.compile(r"\bwhere\b|\bwhich (?:part|corner|region|quadrant)\b", re.IGNORECASE)

_ASKS_FOR_MARK = re.compile(
    rf"\b(?:is|are) there (?:an? |any )?{_ADJECTIVES}{_MARK}\b", re.IGNORECASE
)

_DENIES = re.compile(  # says that a mark is not there
    rf"\bno {_ADJECTIVES}{_MARK}\b|\bno such\b|\babsent\b|\bnot present\b"
    rf"|\b{_MARK} (?:is|are|does|do)(?: not|n't) (?:there|exist|shown|drawn)\b",
    re.IGNORECASE,
)

_NO = re.compile(r"no\b(?! \w)|none\b(?: of (?:them|these|the above))?", re.IGNORECASE)


def kind_of(question: str) -> Kind:
    """Classify a question by its words.

    >>> kind_of("In which corner is the red box?"), kind_of("What is inside the red box?")
    (<Kind.LOCALISATION: 'localisation'>, <Kind.REFERENCE: 'reference'>)
    """
    words = " ".join(question.split())
    for kind, pattern in (
        (Kind.COUNTING, _COUNTS),
        (Kind.EXISTENCE, _EXISTS),
        (Kind.LOCALISATION, _PLACES),
        (Kind.REFERENCE, _NAMES_MARK),
    ):
        if pattern.search(words):
            return kind
    return Kind.UNKNOWN


def is_absent(question: str, right: str) -> bool:
    """Tell whether the right option says that the mark in question is not there.

    A plain "No" says so where it answers whether there is one.

    >>> is_absent("What does the blue arrow point at?", "There is no blue arrow.")
    True
    >>> is_absent("Is there a red oval?", "No"), is_absent("Is there a dog in the box?", "No")
    (True, False)
    """
    said = " ".join(right.split())
    if _DENIES.search(said):
        return True
    asked = _ASKS_FOR_MARK.search(" ".join(question.split()))
    which = kind_of(question) is Kind.EXISTENCE and re.search(r"\bwhich of\b", question, re.I)
    return bool((asked or which) and _NO.match(said))
