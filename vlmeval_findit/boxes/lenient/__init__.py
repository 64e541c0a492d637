"""Lenient parsing: what can be read from a reply that does not adhere; never used for the score.

Nothing cut off is completed, no order or space guessed, no truth used. Libraries that repair JSON
complete silently (``[10, 20, 30, 4`` becomes a box), and some take quadratic time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..reading import boxes_said, reader
from ..records import FormatFailure, ParsedReply
from ..representation import ReplyFormat
from .entries import Candidate, Entries, boxes_in, says_another_order
from .values import Found, List, Repair, values_in

__all__ = ["LenientReply", "Repair", "parse_leniently"]

LONGEST = 100_000  # Characters of a reply that are read; a longer one is a loop

_NEVER = (
    FormatFailure.FAILED_CALL,
    FormatFailure.EMPTY,
    FormatFailure.TRUNCATED_THINKING,
)  # No answer at all


class LenientReply(NamedTuple):
    """What lenient parsing takes from a reply that does not adhere."""

    reading: ParsedReply  # Begins with the strict reading's boxes, in order; keeps its reason
    repairs: tuple[Repair, ...]  # In the order of :class:`Repair`


def parse_leniently(reply: str, how: ReplyFormat, strict: ParsedReply) -> LenientReply | None:
    """Parse a reply leniently; None if that finds no more than ``strict``, whose boxes it keeps.

    ``reply`` is without its thought, boxes are in its units. An empty list is returned only if a
    repair was needed or an empty list does not adhere, as over frames.

    >>> how = ReplyFormat("json", "xyxy", key="bbox_2d")
    >>> cut = "[{'bbox_2d': [1, 2, 3, 4]}, {'bbox_2d': [5, 6, 7"
    >>> found = parse_leniently(cut, how, reader(how)(cut))
    >>> found.reading.boxes, [repair.value for repair in found.repairs]
    (((1.0, 2.0, 3.0, 4.0),), ['cut off', 'quotes and words of Python'])
    """
    if strict.reason is None or strict.reason in _NEVER:
        return None
    said = reply[:LONGEST]
    entries = Entries(how)
    values = list(values_in(said))
    found = _structured(values, entries, how, strict.reason, said)
    reading, repairs = _read(found, entries.indices, how), set().union(*(c.repairs for c in found))
    if not reading.boxes and not _OBJECT.search(said) and not says_another_order(said, how.numbers):
        reading, repair = _worded(said, how)
        repairs = {repair}
    if not reading.boxes:
        return None if strict.boxes else _empty(values, said, strict.reason)
    merged = _beside(strict, reading)
    if merged is None:
        return None
    return LenientReply(merged, tuple(repair for repair in Repair if repair in repairs))


# A text with objects is not read as prose: their keys may give numbers another meaning
_OBJECT = re.compile(r"[{}]")


def _worded(text: str, how: ReplyFormat) -> tuple[ParsedReply, Repair]:
    if how.output == "json":
        reading = reader(replace(how, output="text", structure="per_box"))(text)
        if reading.boxes:
            return reading, Repair.OTHER_OUTPUT
    found = list(boxes_in(text, how))
    indices = [one.frame for one in found if one.frame is not None]
    return _read(found, indices, how), Repair.PROSE


def _structured(
    values: Sequence[Found], entries: Entries, how: ReplyFormat, reason: FormatFailure, text: str
) -> list[Candidate]:
    """Return the boxes of lists and objects; an answer that is repeated counts once."""
    made: list[Candidate] = []
    seen: set[Hashable] = set()
    used: list[Found] = []
    for value in values:
        mine = list(entries.of(value.value))
        key = tuple((one.label, one.frame, one.numbers) for one in mine)
        if mine and key not in seen:
            seen.add(key)
            used.append(value)
            made += [one._replace(repairs=one.repairs | value.repairs) for one in mine]
    around = _around(used, text)
    if any(one.bare for one in made) and says_another_order(around, how.numbers):
        return []
    if how.output == "text":
        return [one._replace(repairs=_in_text(one)) for one in made]
    if reason not in (FormatFailure.NOT_JSON, FormatFailure.TRUNCATED) or not around:
        return made
    in_words = any(map(str.isalpha, around))
    return [
        one._replace(
            repairs=one.repairs - {Repair.STRUCTURE} | {Repair.PROSE}
            if one.bare and in_words
            else one.repairs | {Repair.AROUND}
        )
        for one in made
    ]


def _in_text(one: Candidate) -> frozenset[Repair]:
    """Return the repairs where text was asked for: keys and quotes need none."""
    kept = one.repairs & {Repair.NUMBERS, Repair.CUT_OFF}
    return kept | {Repair.NUMBERS if one.bare else Repair.OTHER_OUTPUT}


def _around(used: Sequence[Found], text: str) -> str:
    pieces, end = [], 0
    for value in used:
        pieces.append(text[end : value.start])
        end = value.end
    return "".join([*pieces, text[end:]]).strip(" \t\r\n,;") if used else ""


def _read(found: Sequence[Candidate], indices: Sequence[int], how: ReplyFormat) -> ParsedReply:
    video = how.frames > 1
    said = [(c.label, c.numbers, c.frame or 0) for c in found if c.frame is not None or not video]
    return boxes_said(how, how.numbers, said, indices if video else ())


def _beside(strict: ParsedReply, found: ParsedReply) -> ParsedReply | None:
    """Add new boxes to the strict reading; None if there are none or the two disagree."""
    had, kept = Counter(_keys(strict)), []
    for place, key in enumerate(_keys(found)):
        if had[key] > 0:
            had[key] -= 1
        else:
            kept.append(place)
    if not kept or any(had.values()):
        return None
    return ParsedReply(
        (*strict.boxes, *(found.boxes[i] for i in kept)),
        (*strict.labels, *(found.labels[i] for i in kept)) if found.labels else (),
        (*strict.frames, *(found.frames[i] for i in kept)) if found.frames else (),
        strict.reason,
    )


def _keys(reading: ParsedReply) -> list[Hashable]:
    labels = reading.labels or [""] * len(reading.boxes)
    frames = reading.frames or [0] * len(reading.boxes)
    return list(zip(reading.boxes, labels, frames, strict=True))


def _empty(values: Sequence[Found], text: str, reason: FormatFailure) -> LenientReply | None:
    """Read a reply whose lists are all empty: it says that there is nothing."""
    if not values or not all(one.value == List([], whole=True) for one in values):
        return None
    around = _around(values, text)
    bare = not around.strip("`").removeprefix("json").strip()
    repairs = (
        ()
        if bare and reason in (FormatFailure.NO_BOX, FormatFailure.NO_FRAME)
        else (Repair.AROUND,)
    )
    return LenientReply(ParsedReply((), (), (), reason), repairs)
