"""Find the characters of a reply that state its boxes: numbers, labels and what is between.

The reader runs again on the reply with each number replaced by its ordinal, so its boxes show which
numbers made them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import isfinite
from typing import NamedTuple

from .box_records import ParsedReply
from .reading import read
from .representation import CLASS_KEY, PLURAL_KEYS, REPRESENTATIONS, ReplyFormat, Representation

Span = tuple[int, int]  # Characters of the reply from start to before end


class _Place(NamedTuple):
    """Where a reply states the numbers and the label of a box."""

    numbers: tuple[Span, ...]
    label: Span | None


class BoxSpans(NamedTuple):
    """Where a reply states a box."""

    numbers: tuple[Span, ...]  # In the order of its representation
    label: Span | None  # None: there is none, or its place is not known
    # Since the previous box (empty: nothing between; None: some box has no place)
    before: Span | None


def stated_places(reply: str, fmt: ReplyFormat, reading: ParsedReply) -> list[BoxSpans | None]:
    """Find where a reply states each box; None where that cannot be told.

    >>> how = ReplyFormat("text", "xyxy", multilabel=True)
    >>> stated_places("cat: [1, 2, 30, 4]", how, read("cat: [1, 2, 30, 4]", how))
    [BoxSpans(numbers=((6, 7), (9, 10), (12, 14), (16, 17)), label=(0, 3), before=(0, 0))]
    """
    if not reading.boxes:
        return []
    marks = dict(_json_marks(reply, fmt) if fmt.output == "json" else _text_marks(reply))
    again = read(_replaced(reply, marks), _tracing(fmt))
    if len(again.boxes) != len(reading.boxes) or again.frames != reading.frames:
        return [None] * len(reading.boxes)
    stated: list[_Place | None] = []
    for at, ordinals in enumerate(again.boxes):
        spans = [marks.get(f"{ordinal:.0f}") for ordinal in ordinals]
        numbers = tuple(span for span in spans if span is not None)
        if len(numbers) < fmt.numbers.width:
            stated.append(None)
            continue
        label = None
        if reading.labels and fmt.output == "text":
            label = _label_before(reply, reading.labels[at], numbers[0][0])
        elif reading.labels:
            label = _label_at(reply, reading.labels[at], marks.get(again.labels[at]))
        stated.append(_Place(numbers, label))
    known = [place for place in stated if place is not None]
    if len(known) < len(stated):
        # It is not known what is between the boxes.
        return [place and BoxSpans(place.numbers, place.label, None) for place in stated]
    between = _between(reply, fmt, known)
    return [
        BoxSpans(place.numbers, place.label, before)
        for place, before in zip(known, between, strict=True)
    ]


# --- numbers replaced by their ordinals -----------------------------------------------------------

_FIRST = 2**40  # Ordinal of the first number: above all coordinates, exact as a float

_MARK = "\ue000"  # Before the ordinal of a label: a private-use character


@dataclass(frozen=True, slots=True)
class _Tracing(ReplyFormat):
    @property
    def numbers(self) -> Representation:
        return replace(REPRESENTATIONS[self.representation], to_corners=tuple)  # type: ignore[arg-type]


@lru_cache(maxsize=4096)
def _tracing(fmt: ReplyFormat) -> ReplyFormat:
    return _Tracing(**{field.name: getattr(fmt, field.name) for field in fields(fmt)})


# A number in text; before a colon it is a frame's or a label's
_TEXT_NUMBER = re.compile(r"(?<![\w.])\d++(?:\.\d++)?+(?![\w.])(?!\s*+>?\s*+:)")

_JSON_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
_JSON_PART = re.compile(
    r'(?P<frame>"frame_idx"\s*+:[^,}\]]*+)'
    r'|"(?P<string>(?:[^"\\\n]|\\.)*+)(?P<closed>"?+)'
    rf"|(?<![\w.+-])(?P<number>{_JSON_NUMBER})(?![\w.])"
)
_NUMBER_IN_STRING = re.compile(rf"\s*+({_JSON_NUMBER})\s*+")


def _text_marks(reply: str) -> Iterator[tuple[str, Span]]:
    """Yield what stands for the numbers of a reply, and their places."""
    numbers = (match for match in _TEXT_NUMBER.finditer(reply) if isfinite(float(match[0])))
    for at, match in enumerate(numbers):
        yield str(_FIRST + at), match.span()


def _json_marks(reply: str, fmt: ReplyFormat) -> Iterator[tuple[str, Span]]:
    """Yield what stands for the numbers and the labels of a reply, and their places."""
    keys = {"frame_idx"}
    if fmt.key != CLASS_KEY or fmt.structure == "decomposed":
        keys |= {"label", fmt.key, PLURAL_KEYS.get(fmt.key, fmt.key), *fmt.numbers.keys}
    for at, match in enumerate(_JSON_PART.finditer(reply)):
        number = match["number"]
        place = match.span()
        if match["closed"]:
            quoted = _NUMBER_IN_STRING.fullmatch(reply, *match.span("string"))
            if quoted is not None:
                number = quoted[1]
                place = quoted.span(1)
        if number is not None and isfinite(float(number)):
            yield str(_FIRST + at), place
        elif match["closed"] and match["string"] not in keys:
            yield f"{_MARK}{at}", match.span("string")


def _replaced(reply: str, marks: Mapping[str, Span]) -> str:
    pieces: list[str] = []
    end = 0
    for mark, (start, stop) in marks.items():
        pieces += (reply[end:start], mark)
        end = stop
    return "".join([*pieces, reply[end:]])


# --- labels ---------------------------------------------------------------------------------------


def _label_before(reply: str, label: str, number: int) -> Span | None:
    """Return the place of a label before the colon before its box's first number."""
    end = len(reply[: reply.rfind(":", 0, number)].rstrip())
    start = end - len(label)
    return (start, end) if label and reply[start:end] == label else None


def _label_at(reply: str, label: str, span: Span | None) -> Span | None:
    if span is None or not label:
        return None
    try:
        return span if json.loads(f'"{reply[slice(*span)]}"').strip() == label else None
    except ValueError:
        return None


# --- between the boxes ----------------------------------------------------------------------------


def _between(reply: str, fmt: ReplyFormat, boxes: Sequence[_Place]) -> list[Span]:
    """Return the span from the previous box in the text to each box."""

    def numbers_of(at: int) -> Span:
        numbers = boxes[at].numbers
        return min(numbers)[0], max(numbers)[1]

    before: dict[int, Span] = {}
    end: int | None = None
    for at in sorted(range(len(boxes)), key=numbers_of):
        first, last = numbers_of(at)
        label = boxes[at].label
        upto = first if label is None else min(first, label[0])
        if end is not None and upto < end:
            # Several boxes share a label, before the first of them.
            upto = first
        start = _beginning(reply, fmt, upto) if end is None else end
        before[at] = (start, upto)
        end = last if label is None else max(last, label[1])
    return [before[at] for at in range(len(boxes))]


_OPENING = re.compile(r'(?:\[\s*+)?+(?:\{[^{}\[\]]*+)?+(?:\[\s*+)*+"?\s*+\Z')
_LONGEST = 200  # Characters before a box that are searched for the start of its list


def _beginning(reply: str, fmt: ReplyFormat, first: int) -> int:
    """Return where the first box's answer begins: its list in JSON, its line in text."""
    if fmt.output == "text":
        return reply.rfind("\n", 0, first) + 1
    from_here = max(0, first - _LONGEST)
    opening = _OPENING.search(reply[from_here:first])
    return from_here + opening.start() if opening else first
