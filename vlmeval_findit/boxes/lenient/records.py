"""What lenient parsing passes on: the repairs that it names, and boxes with their repairs."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple


class Repair(Enum):
    """A repair that lenient parsing made; the value is its name in tables."""

    CUT_OFF = "cut off"  # The reply ends in the middle; what is complete counts
    AROUND = "words around it"  # Prose, a fence or markers
    QUOTES = "quotes and words of Python"  # Other quotes or none, tuples, ``None`` and ``True``
    # A comma, colon or bracket missing, too many, or in full width
    PUNCTUATION = "commas and brackets"
    SPELLING = "blanks and escapes"  # Blanks, line breaks and escapes that JSON lacks
    COMMENTS = "comments"
    KEY = "another key"  # Of the box, its label or its frame
    STRUCTURE = "another structure"  # Nested for one object per box, bare lists, and so on
    OTHER_OUTPUT = "JSON for text or text for JSON"
    NUMBERS = "numbers written otherwise"  # Signs or exponents in text, quoted, in pairs, 012
    CONFIDENCE = "a confidence behind the box"
    LABEL = "marks around a label"  # Tags, bullets, quotes
    TOKENS = "location tokens"  # Such as ``<loc0123>``
    ORDER = "corners in another order"  # Such as lower left and upper right
    PROSE = "boxes in prose"

    # Faster than Enum's, which is computed in Python.
    __hash__ = object.__hash__


Repairs = frozenset[Repair]
NO_REPAIRS: Repairs = frozenset()


class Candidate(NamedTuple):
    """A box, with the repairs that it needed."""

    label: str
    frame: int | None  # None: not stated
    numbers: tuple[Any, ...]  # In the order of the format
    repairs: Repairs
    bare: bool = False  # Only brackets around it
    named: bool = False  # Each of its numbers has a name, so no order can deny it
