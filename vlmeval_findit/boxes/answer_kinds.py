"""Decide what a reply says: boxes, that there is none, something unreadable, or only words.

One decision for rejections, rewards, error types and ``read``. A reply says that there is no box
only if it says so as asked and no reader of ours finds a box in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

from .box_records import FormatFailure, ParsedReply
from .lenient.lenient_parsing import LONGEST_REPLY, LenientReply, parse_leniently
from .reading import reader
from .representation import REPRESENTATIONS, STRUCTURES, ReplyFormat
from .spaces import ImageExtent


class AnswerKind(Enum):
    """What a reply says; a failed call says nothing."""

    BOXES = "boxes"  # The strict reading has some
    NO_BOX = "no box"  # It says so as asked
    UNREADABLE = "not readable"  # Boxes or numbers that only lenient parsing reads, or nobody
    WORDS = "words"  # Without any number or bracket
    EMPTY = "empty reply"
    FAILED = "failed call"


# Reasons that a reply of words alone has
_REASONS_OF_WORDS = (FormatFailure.NO_BOX, FormatFailure.NOT_JSON)


def answer_kind(
    text: str, strict: ParsedReply, lenient: LenientReply | None, cut: bool = False
) -> AnswerKind:
    """Return the kind of an answer.

    Args:
        text: the reply without its thought.
        strict: its strict reading.
        lenient: what :func:`.parse_leniently` finds beyond it.
        cut: whether the reply was cut at its token limit.

    >>> how = ReplyFormat("text", "xyxy")
    >>> for text in ("[]", "[] or (1, 2, 3, 4)", "x 1, y 2", "I see no dog."):
    ...     print(answer_kind(text, reader(how)(text), None).value)
    no box
    not readable
    not readable
    words
    """
    if strict.reason is FormatFailure.FAILED_CALL:
        return AnswerKind.FAILED
    if strict.boxes:
        return AnswerKind.BOXES
    if strict.reason is FormatFailure.EMPTY:
        return AnswerKind.EMPTY
    if _says_none(strict, lenient) and not states_box(text):
        return AnswerKind.NO_BOX
    may_be_words = lenient is None and strict.reason in _REASONS_OF_WORDS and not cut
    return AnswerKind.WORDS if may_be_words and is_words(text) else AnswerKind.UNREADABLE


def _says_none(strict: ParsedReply, lenient: LenientReply | None) -> bool:
    if strict.reason is None:
        return True
    # Over frames the release does not count an empty list as adherent, but it is an answer.
    return lenient is not None and not lenient.reading.boxes and not lenient.repairs


def is_words(text: str) -> bool:
    """Return whether a text has letters, and neither numbers nor brackets of lists or objects.

    >>> is_words("There is no dog."), is_words("Two dogs at 10 and 20"), is_words("[x, y]")
    (True, False, False)
    """
    return any(map(str.isalpha, text)) and not has_number_or_bracket(text)


def has_number_or_bracket(text: str) -> bool:
    """Return whether a text has a number, or a bracket of a list or object."""
    return _NUMBER_OR_BRACKET.search(text) is not None


_NUMBER_OR_BRACKET = re.compile(r"[\d\[\]{}]")
_DIGIT = re.compile(r"\d")


def states_box(text: str) -> bool:
    """Return whether any of our readers, strict or lenient and of any format, finds a box.

    >>> states_box("[]"), states_box("[] but {'x1': 1, 'y1': 2, 'x2': 3, 'y2': 4}")
    (False, True)
    """
    # For speed: nearly all replies that say that there is no box have no number.
    if not _DIGIT.search(text):
        return False
    return any(_finds_box(text[:LONGEST_REPLY], fmt) for fmt in _formats())


def _finds_box(text: str, fmt: ReplyFormat) -> bool:
    strict = reader(fmt)(text)
    if strict.boxes:
        return True
    # Lenient parsing leaves a reply alone that adheres in this format.
    looked_at = strict._replace(reason=strict.reason or FormatFailure.NO_BOX)
    lenient = parse_leniently(text, fmt, looked_at, ImageExtent(1.0, 1.0))
    return lenient is not None and bool(lenient.reading.boxes)


def _formats() -> Iterator[ReplyFormat]:
    """Yield formats, without frames, that together find all boxes that ours find."""
    for row in REPRESENTATIONS.values():
        yield ReplyFormat("text", row.name, key=row.json_keys[0])
        # A label before numbers says that they are a box, too, whatever was asked for.
        yield ReplyFormat("text", row.name, key=row.json_keys[0], multilabel=True)
        for structure in STRUCTURES:
            if structure != "decomposed" or row.keys:
                yield ReplyFormat("json", row.name, key=row.json_keys[0], structure=structure)
