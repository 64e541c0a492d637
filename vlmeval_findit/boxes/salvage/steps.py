"""What a tolerant reader does to a reply, step by step."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ..records import Reading


class Step(Enum):
    """One thing that a tolerant reader puts up with; the value is its name in tables."""

    CUT_OFF = "cut off"
    """The reply ends in the middle; what is whole before the end counts."""
    AROUND = "words around it"
    """Prose, a fence or markers stand before or after the answer."""
    QUOTES = "quotes and words of Python"
    """Single quotes or none, tuples, ``None`` and ``True``."""
    PUNCTUATION = "commas and brackets"
    """A comma, a colon or a bracket is missing, or there is one too many."""
    COMMENTS = "comments"
    KEY = "another key"
    """The box, its label or its frame stands under another key than was asked for."""
    STRUCTURE = "another structure"
    """Nested for one object a box, one object for a list, bare lists, and so on."""
    OTHER_OUTPUT = "JSON for text or text for JSON"
    NUMBERS = "numbers written otherwise"
    """With a sign or an exponent in text, as words in quotes, or in pairs."""
    PROSE = "boxes in prose"

    # A step is itself alone; the hash of an enum's name is worked out in Python at every look.
    __hash__ = object.__hash__


class Salvaged(NamedTuple):
    """What a tolerant reader takes from a reply that does not adhere.

    ``reading`` begins with all boxes of the strict reading, in their order, and keeps its reason;
    ``steps`` are in the order of :class:`Step`.
    """

    reading: Reading
    steps: tuple[Step, ...]
