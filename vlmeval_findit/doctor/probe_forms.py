"""Replies to a probe that are not as they were asked for: which form they have instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..benchmarks.findit.variant import Variant, format_problem
from ..boxes.reading import reader
from ..boxes.reply_format import KEYS, OUTPUTS, STRUCTURES, default_key
from ..boxes.representation import NO_RECTANGLE
from ..core.loose_json import objects_in
from ..core.replies import Reply


@dataclass(frozen=True, slots=True)
class OtherForm:
    """The form of ``count`` replies: a format that could have been asked for, or an unknown key."""

    count: int
    question: Variant | None = None
    key: str = ""


def other_form(question: Variant, replies: Sequence[Reply]) -> OtherForm | None:
    """The form of more replies than have the one that was asked for; None where there is none."""
    said = [reply.answer for reply in replies if not reply.failed]
    # Any four numbers in brackets are a text reply, those of an object too.
    plain = [text for text in said if not objects_in(text)]
    found = [
        OtherForm(_readable(one, said if one.output == "json" else plain), one)
        for one in _formats(question)
    ]
    keys = Counter(key for text in said for key in dict.fromkeys(_keys_of_boxes(text)))
    found += [OtherForm(count, key=key) for key, count in keys.items() if key not in KEYS]
    best = max(found, key=lambda one: one.count, default=None)
    return best if best is not None and best.count > _readable(question, said) else None


def _formats(question: Variant) -> Iterator[Variant]:
    """The formats whose boxes have the same numbers."""
    for output in OUTPUTS:
        for key in KEYS if output == "json" else [default_key(question.representation)]:
            for structure in STRUCTURES if output == "json" else STRUCTURES[:1]:
                made = replace(question, output=output, key=key, structure=structure, decoding=None)
                if format_problem(made) is None:
                    yield made


def _readable(question: Variant, replies: Sequence[str]) -> int:
    """How many replies have boxes and are as a format prescribes."""
    readings = map(reader(question.reply), replies)
    return sum(
        one.reason is None and any(tuple(box) != NO_RECTANGLE for box in one.boxes)
        for one in readings
    )


def _keys_of_boxes(text: str) -> Iterator[str]:
    """The keys of a reply's objects under which there is a list of four numbers."""
    for found in objects_in(text):
        for key, value in found.items():
            if isinstance(value, list) and [*map(type, value)] == [float] * 4:
                yield key
