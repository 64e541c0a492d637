"""From a reply to numbers: reading what a model said (protocol section 3).

:func:`read` never raises, evaluates nothing, and takes time linear in the length of the reply.  The
patterns below are possessive (``++``): a token is never given back, so a long run of digits, blanks
or brackets is looked at once.  What stands *before* a box (its label, its frame index) is found by
looking back from the box, not by a pattern that starts anywhere.

Every way of writing a box comes down to two questions that are answered once, in
:func:`_numbers_to_corners`: are these numbers finite, and which rectangle are they?
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from math import inf, isfinite
from typing import Any

from .records import Reading, Reason
from .representation import Corners, Numbers, Representation
from .variant import CLASS_KEY, PLURAL_KEYS, ReplyFormat

Reader = Callable[[str], Reading]

_OPEN, _CLOSE = "<|begin_of_box|>", "<|end_of_box|>"
"""The markers that GLM puts around its answer."""

_NUMBER = r"(\d++(?:\.\d++)?)"
_COMMA = r"\s*+,\s*+"
_EMPTY_LIST = re.compile(r"\[\s*+\]")
_PAIR = re.compile(rf"\(\s*+{_NUMBER}{_COMMA}{_NUMBER}\s*+\)")


def read(reply: str, how: ReplyFormat) -> Reading:
    """What a reply says, read as its prompt prescribed.

    Args:
        reply: the model's text, whatever it is.
        how: the format that the reply should have.

    Returns:
        Boxes in the units of the reply, their labels and frames, and why the reply is not adherent.
    """
    return reader(how)(reply)


@lru_cache(maxsize=4096)
def reader(how: ReplyFormat) -> Reader:
    """The function that reads replies of a format: chosen once, called for every reply."""
    if how.output == "json":
        return _json_video(how) if how.frames > 1 else _json_image(how)
    if how.frames > 1:
        return _text_video(how)
    return _text_labelled(how) if how.multilabel else _text_plain(how)


# --- numbers --------------------------------------------------------------------------------------


def _numbers_to_corners(row: Representation, values: Sequence[Any]) -> Corners | Reason:
    """The box that these values are in a representation, or why they are none."""
    if len(values) != row.width:
        return Reason.WRONG_SHAPE
    try:
        numbers = [float(value) for value in values]
    except OverflowError:
        return Reason.NOT_FINITE
    except (TypeError, ValueError):
        return Reason.NOT_A_NUMBER
    # A sum is finite only if all of its terms are; the second look is for huge finite numbers.
    if not isfinite(sum(numbers)) and not all(map(isfinite, numbers)):
        return Reason.NOT_FINITE
    return row.to_corners(numbers)


class _Boxes:
    """The boxes of one reply while it is read: keeps the first reason against the reply."""

    __slots__ = ("boxes", "frames", "labels", "reason")

    def __init__(self) -> None:
        self.boxes: list[Corners] = []
        self.labels: list[str] = []
        self.frames: list[int] = []
        self.reason: Reason | None = None

    def blame(self, reason: Reason) -> None:
        if self.reason is None:
            self.reason = reason

    def add(self, box: Corners | Reason) -> bool:
        """Take a box; or, if it is none, remember why.  Says whether it was taken."""
        if isinstance(box, Reason):
            self.blame(box)
            return False
        self.boxes.append(box)
        return True

    def done(self) -> Reading:
        return Reading(self.boxes, self.labels, self.frames, self.reason)


def _nothing(reason: Reason | None) -> Reading:
    return Reading([], [], [], reason)


# --- text -----------------------------------------------------------------------------------------


def _bracketed(row: Representation, before: str = "", brackets: str = r"\[\]") -> re.Pattern[str]:
    """The pattern of a box in brackets; its groups are the numbers."""
    opening, closing = brackets[:2], brackets[2:]
    numbers = _COMMA.join([_NUMBER] * row.width)
    return re.compile(rf"{before}{opening}\s*+{numbers}\s*+{closing}")


def _marked_text(reply: str) -> str:
    """What stands in the first pair of GLM's markers, or everything."""
    start = reply.find(_OPEN)
    end = reply.find(_CLOSE, start + len(_OPEN)) if start >= 0 else -1
    return reply if end < 0 else reply[start + len(_OPEN) : end]


def _text_verdict(found: _Boxes, text: str) -> Reading:
    """A text reply adheres when it has a box or says that there is none."""
    if not found.boxes and found.reason is None and not _EMPTY_LIST.search(text):
        found.blame(Reason.NO_BOX if text.strip() else Reason.EMPTY)
    return found.done()


def _text_plain(how: ReplyFormat) -> Reader:
    row = how.row
    box = _bracketed(row)
    round_box = _bracketed(row, brackets=r"\(\)")
    unconstrained = how.representation == "unconstrained"

    def groups(text: str) -> Iterator[Numbers | tuple[str, ...]]:
        yield from box.findall(text)
        if unconstrained:
            pairs = iter(_PAIR.findall(text))
            # (a, b) … (c, d): the first pair belongs to the second, the third to the fourth.
            yield from (first + second for first, second in zip(pairs, pairs, strict=False))
            yield from round_box.findall(text)

    def reading(reply: str) -> Reading:
        text = _marked_text(reply)
        found = _Boxes()
        for numbers in groups(text):
            found.add(_numbers_to_corners(row, numbers))
        return _text_verdict(found, text)

    return reading


def _text_labelled(how: ReplyFormat) -> Reader:
    row = how.row
    passes = [(_bracketed(row, before=r":\s*+"), ":[]")]
    if how.representation == "unconstrained":
        passes.append((_bracketed(row, before=r":\s*+", brackets=r"\(\)"), ":[]()"))

    def reading(reply: str) -> Reading:
        text = _marked_text(reply)
        found = _Boxes()
        for pattern, stops in passes:
            for box, start in _matches(pattern, text):
                label = _back_to(stops, text, start, box.start())
                if label and found.add(_numbers_to_corners(row, box.groups())):
                    found.labels.append(label.strip())
        return _text_verdict(found, text)

    return reading


def _text_video(how: ReplyFormat) -> Reader:
    row = how.row
    pattern = _bracketed(row, before=r":\s*+")

    def entries(text: str) -> Iterator[tuple[int, str, Sequence[str]]]:
        for box, start in _matches(pattern, text):
            end = box.start()
            label = ""
            if how.multilabel:
                # <index>: label: [a, b, c, d]
                label = _back_to(":[]", text, start, end)
                end -= len(label) + 1
                if end < start or text[end] != ":":
                    continue
            index = _index_before(text, start, end)
            if index is not None:
                yield index, label.strip(), box.groups()

    def reading(reply: str) -> Reading:
        text = _marked_text(reply)
        found = list(entries(text))
        if not found:
            return _nothing(Reason.NO_BOX if text.strip() else Reason.EMPTY)
        return _in_frames(how, found, (index for index, _, _ in found), _Boxes())

    return reading


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], int]]:
    """The matches of a pattern, each with the end of the one before it."""
    start = 0
    for found in pattern.finditer(text):
        yield found, start
        start = found.end()


def _back_to(stops: str, text: str, start: int, end: int) -> str:
    """What stands before ``end``, back to the nearest of the stop characters or to ``start``."""
    return text[max(start, *(text.rfind(stop, start, end) + 1 for stop in stops)) : end]


def _index_before(text: str, start: int, end: int) -> int | None:
    """The frame number that ends at ``end``: digits, perhaps with a closing angle bracket."""
    before = text[start:end].rstrip()
    before = before.removesuffix(">").rstrip()
    digits = len(before)
    while digits and before[digits - 1].isdecimal():
        digits -= 1
    return _as_index(before[digits:])


# --- frames ---------------------------------------------------------------------------------------


def _as_index(value: object) -> int | None:
    """What ``int()`` makes of a value; None where it makes nothing of it."""
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError, OverflowError):
        # A run of thousands of digits is a number, but no frame has it.
        return _NO_SUCH_FRAME if isinstance(value, str) and value.strip().isdecimal() else None


_NO_SUCH_FRAME = 10**9


def _in_frames(
    how: ReplyFormat,
    entries: Iterable[tuple[int, str, Sequence[Any]]],
    indices: Iterable[int],
    found: _Boxes,
) -> Reading:
    """Boxes in their frames.  Numbers count from 0 if the smallest of ``indices`` is 0, else 1."""
    first = 0 if min(indices) == 0 else 1
    for index, label, values in entries:
        frame = index - first
        if not 0 <= frame < how.frames:
            found.blame(Reason.FRAME_OUT_OF_RANGE)
        elif found.add(_numbers_to_corners(how.row, values)):
            found.frames.append(frame)
            if how.multilabel:
                found.labels.append(label)
    return found.done()


# --- JSON -----------------------------------------------------------------------------------------

_NOT_JSON = object()


def _parse(text: str) -> Any:
    """The value that a text is in JSON, or ``_NOT_JSON``."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return _NOT_JSON
    except RecursionError:
        return _NOT_JSON
    except ValueError:
        # An integer of thousands of digits is valid JSON that Python refuses to convert.
        try:
            return json.loads(text, parse_int=_int_or_infinity)
        except (ValueError, RecursionError):
            return _NOT_JSON


def _int_or_infinity(digits: str) -> float:
    return int(digits) if len(digits) < 4000 else inf


def _unfenced(reply: str) -> str:
    """What stands in the first fence, or everything."""
    start = reply.find("```")
    if start < 0:
        return reply
    start += 3
    if reply[start : start + 4].lower() == "json":
        start += 4
    end = reply.find("```", start)
    return reply if end < 0 else reply[start:end].strip()


def _blocks(text: str) -> Iterator[str]:
    """What stands in each pair of GLM's markers."""
    end = 0
    while True:
        start = text.find(_OPEN, end)
        end = text.find(_CLOSE, start + len(_OPEN)) if start >= 0 else -1
        if end < 0:
            return
        yield text[start + len(_OPEN) : end]
        end += len(_CLOSE)


def _first_json_block(text: str) -> Any:
    for block in _blocks(text):
        value = _parse(block)
        if value is not _NOT_JSON:
            return value
    return _NOT_JSON


def _image_json(reply: str) -> Any:
    """The JSON value of a reply about one image."""
    text = _unfenced(reply)
    if _OPEN in text:
        value = _first_json_block(text)
        if value is not _NOT_JSON:
            return value
    return _parse(text)


def _video_json(reply: str) -> Any:
    """The JSON value of a reply about frames: text before the first marker is the answer."""
    text = _unfenced(reply)
    if _OPEN not in text or next(_blocks(text), None) is None:
        return _parse(text)
    before = text[: text.find(_OPEN)]
    return _parse(before) if before.strip() else _first_json_block(text)


def _why_not_json(reply: str) -> Reason:
    """Tell a reply that was cut off from one that was never JSON."""
    text = reply.strip()
    if not text:
        return Reason.EMPTY
    start = min((i for i in (text.find("["), text.find("{")) if i >= 0), default=-1)
    if start < 0:
        return Reason.NOT_JSON
    try:
        json.JSONDecoder().raw_decode(text, start)
    except json.JSONDecodeError as error:
        unterminated = error.msg.startswith("Unterminated")
        return Reason.TRUNCATED if unterminated or error.pos >= len(text) else Reason.NOT_JSON
    except (ValueError, RecursionError):
        return Reason.NOT_JSON
    return Reason.NOT_JSON


def _entries(value: Any, how: ReplyFormat) -> list[Any] | None:
    """The list of a reply; one bare object counts as a list where the structure is nested."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and how.structure == "nested":
        return [value]
    return None


def _text_of(value: Any) -> str:
    try:
        return str(value).strip()
    except (RecursionError, ValueError):
        return ""


def _own_label(entry: dict[str, Any]) -> str:
    """The label of an object: missing is empty, null is the word None (protocol section 3)."""
    return _text_of(entry.get("label", ""))


Found = tuple[str, Sequence[Any] | Reason]
"""A label and the numbers under it, or why there are none."""


def _boxes_of(how: ReplyFormat) -> Callable[[Any], Iterable[Found]]:
    """The function that takes the boxes out of one entry of the list, for a structure and key."""
    key = PLURAL_KEYS.get(how.key, how.key) if how.structure == "nested" else how.key
    keys = how.row.keys

    def decomposed(entry: dict[str, Any]) -> Found:
        try:
            return _own_label(entry), [entry[name] for name in keys]
        except KeyError:
            return "", Reason.WRONG_KEY

    def by_class(entry: dict[str, Any]) -> Found:
        rest = [name for name in entry if name != "frame_idx" or how.frames == 1]
        if len(rest) != 1:
            return "", Reason.WRONG_KEY
        return rest[0].strip(), entry[rest[0]]

    def by_key(entry: dict[str, Any]) -> Found:
        if key not in entry:
            return "", Reason.WRONG_KEY
        return _own_label(entry) if how.multilabel else "", entry[key]

    if how.structure == "decomposed":
        take = decomposed
    elif how.key == CLASS_KEY:
        take = by_class
    else:
        take = by_key

    def one(entry: Any) -> Iterable[Found]:
        if not isinstance(entry, dict):
            return (("", Reason.NOT_AN_OBJECT),)
        label, values = take(entry)
        return ((label, values if isinstance(values, (list, Reason)) else Reason.WRONG_SHAPE),)

    def many(entry: Any) -> Iterable[Found]:
        for label, values in one(entry):
            if isinstance(values, Reason):
                yield label, values
                continue
            for box in values:
                yield label, box if isinstance(box, list) else Reason.WRONG_SHAPE

    return many if how.structure == "nested" else one


def _json_image(how: ReplyFormat) -> Reader:
    row = how.row
    boxes_of = _boxes_of(how)

    def reading(reply: str) -> Reading:
        value = _image_json(reply)
        if value is _NOT_JSON:
            return _nothing(_why_not_json(reply))
        entries = _entries(value, how)
        if entries is None:
            return _nothing(Reason.NOT_A_LIST)
        found = _Boxes()
        for entry in entries:
            for label, values in boxes_of(entry):
                if isinstance(values, Reason):
                    found.blame(values)
                elif found.add(_numbers_to_corners(row, values)) and how.multilabel:
                    found.labels.append(label)
        return found.done()

    return reading


def _json_video(how: ReplyFormat) -> Reader:
    boxes_of = _boxes_of(how)

    def reading(reply: str) -> Reading:
        value = _video_json(reply)
        if value is _NOT_JSON:
            return _nothing(_why_not_json(reply))
        entries = _entries(value, how)
        if entries is None:
            return _nothing(Reason.NOT_A_LIST)
        found = _Boxes()
        indices: list[int] = []
        good: list[tuple[int, str, Sequence[Any]]] = []
        for entry in entries:
            index = _as_index(entry.get("frame_idx")) if isinstance(entry, dict) else None
            if index is None:
                found.blame(Reason.NO_FRAME if isinstance(entry, dict) else Reason.NOT_AN_OBJECT)
                continue
            # The smallest index decides how frames are counted, even that of a malformed entry.
            indices.append(index)
            for label, values in boxes_of(entry):
                if isinstance(values, Reason):
                    found.blame(values)
                else:
                    good.append((index, label, values))
        if not indices:
            found.blame(Reason.NO_FRAME)
            return found.done()
        return _in_frames(how, good, indices, found)

    return reading
