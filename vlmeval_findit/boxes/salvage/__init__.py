"""What a tolerant reader could take from a reply that the strict one does not take as it stands.

It stands beside the score and is never the score.  Each thing that it puts up with is a
:class:`Step`.  What it does not do: complete what was cut off, read numbers in another order or
space than the format says, or look at the truth.

No library reads the values: those that repair JSON (json-repair, partial-json-parser, demjson,
json5) complete what was cut off, so that ``[10, 20, 30, 4`` becomes a box; they do not say what
they did, and some take quadratic time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace

from ..reading import reader
from ..reading.boxes import Boxes, in_frames, numbers_to_corners
from ..records import Reading, Reason
from ..reply_format import ReplyFormat
from .entries import Candidate, Entries
from .keys import says_another_order
from .prose import boxes_in
from .steps import Salvaged, Step
from .values import Found, List, values_in

__all__ = ["Salvaged", "Step", "salvage"]

LONGEST = 100_000
"""Characters of a reply that are looked at: what is longer is a loop."""

_NEVER = (Reason.FAILED_CALL, Reason.EMPTY, Reason.TRUNCATED_THINKING)
"""No answer at all."""


def salvage(reply: str, how: ReplyFormat, strict: Reading) -> Salvaged | None:
    """What a tolerant reader takes from a reply; None where that is no more than the strict does.

    Args:
        reply: the model's text, without its thought.
        how: the format that it should have.
        strict: what :func:`..reading.read` made of it; all of its boxes are kept.

    Returns:
        Boxes in the units of the reply.  Without any it is an empty list that the strict reader
        does not take; without steps even one that stands as it should, which over frames does not
        adhere.

    >>> how = ReplyFormat("json", "xyxy", key="bbox_2d")
    >>> cut = "[{'bbox_2d': [1, 2, 3, 4]}, {'bbox_2d': [5, 6, 7"
    >>> found = salvage(cut, how, reader(how)(cut))
    >>> found.reading.boxes, [step.value for step in found.steps]
    ([(1.0, 2.0, 3.0, 4.0)], ['cut off', 'quotes and words of Python'])
    """
    if strict.reason is None or strict.reason in _NEVER:
        return None
    said = reply[:LONGEST]
    entries = Entries(how)
    values = list(values_in(said))
    found = _structured(values, entries, how, strict.reason, said)
    reading, steps = _read(found, entries.indices, how), set().union(*(c.steps for c in found))
    if not reading.boxes and not _OBJECT.search(said) and not says_another_order(said, how.numbers):
        reading, step = _worded(said, how)
        steps = {step}
    if not reading.boxes:
        return None if strict.boxes else _empty(values, said, strict.reason)
    merged = _beside(strict, reading)
    if merged is None:
        return None
    return Salvaged(merged, tuple(step for step in Step if step in steps))


_OBJECT = re.compile(r"[{}]")
"""Of what is no prose: a box in an object that names it otherwise is not read for its numbers."""


def _worded(text: str, how: ReplyFormat) -> tuple[Reading, Step]:
    """The boxes of prose: as text replies have them, or by their numbers alone."""
    if how.output == "json":
        reading = reader(replace(how, output="text", structure="per_box"))(text)
        if reading.boxes:
            return reading, Step.OTHER_OUTPUT
    found = list(boxes_in(text, how))
    indices = [one.frame for one in found if one.frame is not None]
    return _read(found, indices, how), Step.PROSE


def _structured(
    values: Sequence[Found], entries: Entries, how: ReplyFormat, reason: Reason, text: str
) -> list[Candidate]:
    """The boxes of lists and objects; an answer that is said twice counts once."""
    made: list[Candidate] = []
    seen: set[Hashable] = set()
    used: list[Found] = []
    for value in values:
        mine = list(entries.of(value.value))
        key = tuple((one.label, one.frame, one.numbers) for one in mine)
        if mine and key not in seen:
            seen.add(key)
            used.append(value)
            made += [one._replace(steps=one.steps | value.steps) for one in mine]
    around = _around(used, text)
    if any(one.bare for one in made) and says_another_order(around, how.numbers):
        return []
    if how.output == "text":
        return [one._replace(steps=_in_text(one)) for one in made]
    if reason not in (Reason.NOT_JSON, Reason.TRUNCATED) or not around:
        return made
    in_words = any(map(str.isalpha, around))
    return [
        one._replace(
            steps=one.steps - {Step.STRUCTURE} | {Step.PROSE}
            if one.bare and in_words
            else one.steps | {Step.AROUND}
        )
        for one in made
    ]


def _in_text(one: Candidate) -> frozenset[Step]:
    """What it took where text was asked for, in which keys and quotes mean nothing."""
    kept = one.steps & {Step.NUMBERS, Step.CUT_OFF}
    return kept | {Step.NUMBERS if one.bare else Step.OTHER_OUTPUT}


def _around(used: Sequence[Found], text: str) -> str:
    """What stands before, between and after the values that boxes were taken from."""
    pieces, end = [], 0
    for value in used:
        pieces.append(text[end : value.start])
        end = value.end
    return "".join([*pieces, text[end:]]).strip(" \t\r\n,;") if used else ""


def _read(found: Sequence[Candidate], indices: Sequence[int], how: ReplyFormat) -> Reading:
    """Candidates as boxes in their frames."""
    boxes = Boxes()
    if how.frames > 1:
        there = [(one.frame, one.label, one.numbers) for one in found if one.frame is not None]
        return in_frames(how, there, indices, boxes) if there else boxes.done()
    for one in found:
        if boxes.add(numbers_to_corners(how.numbers, one.numbers)) and how.multilabel:
            boxes.labels.append(one.label)
    return boxes.done()


def _beside(strict: Reading, found: Reading) -> Reading | None:
    """The strict reading with what else was found; None where that is nothing, or where the two
    do not agree on what the strict one has."""
    had, kept = Counter(_keys(strict)), []
    for place, key in enumerate(_keys(found)):
        if had[key] > 0:
            had[key] -= 1
        else:
            kept.append(place)
    if not kept or any(had.values()):
        return None
    return Reading(
        strict.boxes + [found.boxes[i] for i in kept],
        strict.labels + [found.labels[i] for i in kept] if found.labels else [],
        strict.frames + [found.frames[i] for i in kept] if found.frames else [],
        strict.reason,
    )


def _keys(reading: Reading) -> list[Hashable]:
    labels = reading.labels or [""] * len(reading.boxes)
    frames = reading.frames or [0] * len(reading.boxes)
    return list(zip(reading.boxes, labels, frames, strict=True))


def _empty(values: Sequence[Found], text: str, reason: Reason) -> Salvaged | None:
    """The reading of a reply whose lists are all empty: it says that there is nothing."""
    if not values or not all(one.value == List([], whole=True) for one in values):
        return None
    around = _around(values, text)
    bare = not around.strip("`").removeprefix("json").strip()
    steps = () if bare and reason in (Reason.NO_BOX, Reason.NO_FRAME) else (Step.AROUND,)
    return Salvaged(Reading([], [], [], reason), steps)
