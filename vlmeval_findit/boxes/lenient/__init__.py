"""Lenient parsing: what can be read from a reply that does not adhere; never used for the score.

Nothing cut off is completed, no order or space guessed, no truth used. Libraries that repair JSON
complete silently (``[10, 20, 30, 4`` becomes a box), and some take quadratic time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..box_records import FormatFailure, ParsedReply
from ..reading import parsed_reply, reader
from ..representation import ReplyFormat
from .box_search import Candidate, Entries, boxes_in, names_another_order
from .values import List, ParsedValue, Repair, values_in

__all__ = ["LenientReply", "Repair", "parse_leniently"]

LONGEST = 100_000  # Characters of a reply that are read; a longer one is a loop

# No answer at all
_NEVER = (FormatFailure.FAILED_CALL, FormatFailure.EMPTY, FormatFailure.TRUNCATED_THINKING)


class LenientReply(NamedTuple):
    """What lenient parsing takes from a reply that does not adhere."""

    reading: ParsedReply  # Begins with the strict reading's boxes, in order; keeps its reason
    repairs: tuple[Repair, ...]  # In the order of :class:`Repair`


def parse_leniently(reply: str, fmt: ReplyFormat, strict: ParsedReply) -> LenientReply | None:
    """Parse a reply leniently; None if that finds no more than ``strict``, whose boxes it keeps.

    ``reply`` is without its thought, boxes are in its units. An empty list is returned only if a
    repair was needed or an empty list does not adhere, as over frames.

    >>> how = ReplyFormat("json", "xyxy", key="bbox_2d")
    >>> cut = "[{'bbox_2d': [1, 2, 3, 4]}, {'bbox_2d': [5, 6, 7"
    >>> result = parse_leniently(cut, how, reader(how)(cut))
    >>> result.reading.boxes, [repair.value for repair in result.repairs]
    (((1.0, 2.0, 3.0, 4.0),), ['cut off', 'quotes and words of Python'])
    """
    if strict.reason is None or strict.reason in _NEVER:
        return None
    text = reply[:LONGEST]
    entries = Entries(fmt)
    values = list(values_in(text))
    candidates = _structured(values, entries, fmt, strict.reason, text)
    reading = _read(candidates, entries.indices, fmt)
    repairs = set().union(*(candidate.repairs for candidate in candidates))
    # A text with objects is not read as prose: their keys may give numbers another meaning.
    prose = "{" not in text and "}" not in text
    if not reading.boxes and prose and not names_another_order(text, fmt.numbers):
        reading, repair = _worded(text, fmt)
        repairs = {repair}
    if not reading.boxes:
        return None if strict.boxes else _empty(values, text, strict.reason)
    merged = _merged(strict, reading)
    if merged is None:
        return None
    return LenientReply(merged, tuple(repair for repair in Repair if repair in repairs))


def _worded(text: str, fmt: ReplyFormat) -> tuple[ParsedReply, Repair]:
    if fmt.output == "json":
        reading = reader(replace(fmt, output="text", structure="per_box"))(text)
        if reading.boxes:
            return reading, Repair.OTHER_OUTPUT
    candidates = list(boxes_in(text, fmt))
    indices = [candidate.frame for candidate in candidates if candidate.frame is not None]
    return _read(candidates, indices, fmt), Repair.PROSE


def _structured(
    values: Sequence[ParsedValue],
    entries: Entries,
    fmt: ReplyFormat,
    reason: FormatFailure,
    text: str,
) -> list[Candidate]:
    """Return the boxes of lists and objects; a repeated answer counts once."""
    built: list[Candidate] = []
    seen: set[Hashable] = set()
    used: list[ParsedValue] = []
    for value in values:
        mine = list(entries.of(value.value))
        key = tuple((candidate.label, candidate.frame, candidate.numbers) for candidate in mine)
        if mine and key not in seen:
            seen.add(key)
            used.append(value)
            built += [box._replace(repairs=box.repairs | value.repairs) for box in mine]
    around = _around(used, text)
    if any(candidate.bare for candidate in built) and names_another_order(around, fmt.numbers):
        return []
    if fmt.output == "text":
        return [candidate._replace(repairs=_in_text(candidate)) for candidate in built]
    if reason not in (FormatFailure.NOT_JSON, FormatFailure.TRUNCATED) or not around:
        return built
    in_words = any(map(str.isalpha, around))

    def around_it(candidate: Candidate) -> frozenset[Repair]:
        if candidate.bare and in_words:
            return candidate.repairs - {Repair.STRUCTURE} | {Repair.PROSE}
        return candidate.repairs | {Repair.AROUND}

    return [candidate._replace(repairs=around_it(candidate)) for candidate in built]


def _in_text(candidate: Candidate) -> frozenset[Repair]:
    """Return the repairs where text was asked for: keys and quotes need none."""
    added = candidate.repairs & {Repair.NUMBERS, Repair.CUT_OFF}
    return added | {Repair.NUMBERS if candidate.bare else Repair.OTHER_OUTPUT}


def _around(used: Sequence[ParsedValue], text: str) -> str:
    pieces, end = [], 0
    for value in used:
        pieces.append(text[end : value.start])
        end = value.end
    return "".join([*pieces, text[end:]]).strip(" \t\r\n,;") if used else ""


def _read(candidates: Sequence[Candidate], indices: Sequence[int], fmt: ReplyFormat) -> ParsedReply:
    video = fmt.frames > 1
    used = [box for box in candidates if box.frame is not None or not video]
    raw_boxes = [(box.label, box.numbers, box.frame or 0) for box in used]
    return parsed_reply(fmt, fmt.numbers, raw_boxes, indices if video else ())


def _merged(strict: ParsedReply, lenient: ParsedReply) -> ParsedReply | None:
    """Add new boxes to the strict reading; None if there are none or the two disagree."""
    had, added = Counter(_keys(strict)), []
    for place, key in enumerate(_keys(lenient)):
        if had[key] > 0:
            had[key] -= 1
        else:
            added.append(place)
    if not added or any(had.values()):
        return None
    return ParsedReply(
        (*strict.boxes, *(lenient.boxes[i] for i in added)),
        (*strict.labels, *(lenient.labels[i] for i in added)) if lenient.labels else (),
        (*strict.frames, *(lenient.frames[i] for i in added)) if lenient.frames else (),
        strict.reason,
    )


def _keys(reading: ParsedReply) -> list[Hashable]:
    labels = reading.labels or [""] * len(reading.boxes)
    frames = reading.frames or [0] * len(reading.boxes)
    return list(zip(reading.boxes, labels, frames, strict=True))


def _empty(values: Sequence[ParsedValue], text: str, reason: FormatFailure) -> LenientReply | None:
    """Read a reply whose lists are all empty: it says that there is nothing."""
    # An object without keys equals an empty list, as both are tuples.
    lists = [each.value for each in values if isinstance(each.value, List)]
    if not values or len(lists) < len(values) or any(each != ([], True) for each in lists):
        return None
    bare = not _around(values, text).strip("`").removeprefix("json").strip()
    as_asked = bare and reason in (FormatFailure.NO_BOX, FormatFailure.NO_FRAME)
    repairs = () if as_asked else (Repair.AROUND,)
    return LenientReply(ParsedReply((), (), (), reason), repairs)
