"""Replies that are JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Any

from ..records import Reading, Reason
from ..reply_format import CLASS_KEY, PLURAL_KEYS, ReplyFormat
from .boxes import CLOSE, OPEN, Boxes, Said, as_index, in_frames, nothing

Reader = Callable[[str], Reading]

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
        start = text.find(OPEN, end)
        end = text.find(CLOSE, start + len(OPEN)) if start >= 0 else -1
        if end < 0:
            return
        yield text[start + len(OPEN) : end]
        end += len(CLOSE)


def _first_json_block(text: str) -> Any:
    for block in _blocks(text):
        value = _parse(block)
        if value is not _NOT_JSON:
            return value
    return _NOT_JSON


def _image_json(reply: str) -> Any:
    """The JSON value of a reply about one image."""
    text = _unfenced(reply)
    if OPEN in text:
        value = _first_json_block(text)
        if value is not _NOT_JSON:
            return value
    return _parse(text)


def _video_json(reply: str) -> Any:
    """The JSON value of a reply about frames: text before the first marker is the answer."""
    text = _unfenced(reply)
    if OPEN not in text or next(_blocks(text), None) is None:
        return _parse(text)
    before = text[: text.find(OPEN)]
    return _parse(before) if before.strip() else _first_json_block(text)


_CUT_TOKEN = re.compile(r"-|\.|[eE][+-]?|tr?u?|fa?l?s?|nu?l?")
"""What a number or a word of JSON leaves unread where it is cut off."""


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
        unterminated = error.msg.startswith("Unterminated") or _CUT_TOKEN.fullmatch(text, error.pos)
        return Reason.TRUNCATED if unterminated or error.pos >= len(text) else Reason.NOT_JSON
    except (ValueError, RecursionError):
        return Reason.NOT_JSON
    return Reason.NOT_JSON


def _entries(value: Any, reply: str, how: ReplyFormat) -> list[Any] | Reason:
    """The list of a reply, or why it has none; where nested, one bare object counts as a list."""
    if value is _NOT_JSON:
        return _why_not_json(reply)
    if isinstance(value, dict) and how.structure == "nested":
        return [value]
    return value if isinstance(value, list) else Reason.NOT_A_LIST


def _text_of(value: Any) -> str:
    try:
        return str(value).strip()
    except (RecursionError, ValueError):
        return ""


def _own_label(entry: dict[str, Any]) -> str:
    """The label of an object: missing is empty, null is the word None (protocol section 3)."""
    return _text_of(entry.get("label", ""))


def _boxes_of(how: ReplyFormat) -> Callable[[Any], Iterable[Said]]:
    """The function that takes the boxes out of one entry of the list, for a structure and key."""
    key = PLURAL_KEYS.get(how.key, how.key) if how.structure == "nested" else how.key
    keys, never_beside = how.numbers.keys, how.numbers.never_beside

    def decomposed(entry: dict[str, Any]) -> Said:
        if not never_beside.isdisjoint(entry):
            return "", Reason.WRONG_SHAPE
        try:
            return _own_label(entry), [entry[name] for name in keys]
        except KeyError:
            return "", Reason.WRONG_KEY

    def by_class(entry: dict[str, Any]) -> Said:
        rest = [name for name in entry if name != "frame_idx" or how.frames == 1]
        if len(rest) != 1:
            return "", Reason.WRONG_KEY
        return rest[0].strip(), entry[rest[0]]

    def by_key(entry: dict[str, Any]) -> Said:
        if key not in entry:
            return "", Reason.WRONG_KEY
        return _own_label(entry) if how.multilabel else "", entry[key]

    if how.structure == "decomposed":
        take = decomposed
    elif how.key == CLASS_KEY:
        take = by_class
    else:
        take = by_key

    def one(entry: Any) -> Iterable[Said]:
        if not isinstance(entry, dict):
            return (("", Reason.NOT_AN_OBJECT),)
        label, values = take(entry)
        return ((label, values if isinstance(values, (list, Reason)) else Reason.WRONG_SHAPE),)

    def many(entry: Any) -> Iterable[Said]:
        for label, values in one(entry):
            if isinstance(values, Reason):
                yield label, values
                continue
            for box in values:
                yield label, box if isinstance(box, list) else Reason.WRONG_SHAPE

    return many if how.structure == "nested" else one


def image(how: ReplyFormat) -> Reader:
    """Reads a reply about one image: a list of objects, whatever their structure."""
    representation = how.numbers
    boxes_of = _boxes_of(how)

    def reading(reply: str) -> Reading:
        entries = _entries(_image_json(reply), reply, how)
        if isinstance(entries, Reason):
            return nothing(entries)
        found = Boxes()
        said = [box for entry in entries for box in boxes_of(entry)]
        found.add_all(representation, said, how.multilabel)
        return found.done()

    return reading


def video(how: ReplyFormat) -> Reader:
    """Reads a reply about frames: every object says its frame."""
    boxes_of = _boxes_of(how)

    def reading(reply: str) -> Reading:
        entries = _entries(_video_json(reply), reply, how)
        if isinstance(entries, Reason):
            return nothing(entries)
        found = Boxes()
        indices: list[int] = []
        good: list[tuple[int, str, Sequence[Any]]] = []
        for entry in entries:
            index = as_index(entry.get("frame_idx")) if isinstance(entry, dict) else None
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
        return in_frames(how, good, indices, found)

    return reading
