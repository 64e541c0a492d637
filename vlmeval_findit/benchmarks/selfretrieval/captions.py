"""From a reply to two captions: each is read on its own, and has a reason where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from ...core.loose_json import objects_in
from ...core.replies import NOTHING_RECORDED, call_failed
from ...core.thinking import split_thought
from .pairs import Both, Side


class Why(Enum):
    """Why there is no caption; the value is its name in tables."""

    FAILED = "failed"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    NO_JSON = "no_json"
    MISSING_KEY = "missing_key"
    NOT_TEXT = "not_text"
    EMPTY_CAPTION = "empty_caption"


class Said(NamedTuple):
    """What was said of one picture: a caption or, exactly where there is none, a reason."""

    caption: str | None
    why: Why | None = None


Captions = Both[Said]
"""What was said of a pair."""


def why_of(captions: Captions) -> Why | None:
    """The first reason of a pair against a caption; None where both were read."""
    return next((said.why for said in captions if said.why is not None), None)


def nothing(why: Why) -> Captions:
    """No caption of either picture, for one reason."""
    return Both(Said(None, why), Said(None, why))


def read_unrecorded(reply: str | None) -> Captions:
    """The captions of a reply of which nothing but the text is known; None where there is none."""
    if reply is None or call_failed(reply, NOTHING_RECORDED):
        return nothing(Why.FAILED)
    return read(reply)


def read(reply: str) -> Captions:
    """The captions of a reply; whether the call failed is said by its record and not read here.

    Every JSON object of it counts, in order, wherever it stands; of two captions of a picture the
    later one.  What a model thought does not count.

    >>> found = read('{"left_image": "a cat"} or better {"LEFT image": "a black cat", "right": 3}')
    >>> found.left.caption, found.right.why
    ('a black cat', <Why.NOT_TEXT: 'not_text'>)
    """
    if not reply.strip():
        return nothing(Why.EMPTY)
    said = split_thought(reply)
    if said.ends_inside:
        return nothing(Why.TRUNCATED)
    objects = objects_in(said.answer)
    if not objects:
        return nothing(Why.NO_JSON)
    return captions_of(item for one in objects for item in one.items())


_SIDES = {name: side for side in Side for name in (side.value, side.key)}


def side_of(key: object) -> Side | None:
    """The picture that a key is about, in any case and with blanks for underscores.

    >>> side_of("Right image"), side_of("image_2")
    (<Side.RIGHT: 'right'>, None)
    """
    return _SIDES.get("_".join(key.lower().split())) if isinstance(key, str) else None


def captions_of(items: Iterable[tuple[object, Any]]) -> Captions:
    """The captions of keys and values, in their order."""
    found: Mapping[Side | None, Any] = {side_of(key): value for key, value in items}
    return Both(*(_said(found, side) for side in Side))


def _said(found: Mapping[Side | None, Any], side: Side) -> Said:
    if side not in found:
        return Said(None, Why.MISSING_KEY)
    value = found[side]
    if not isinstance(value, str):
        return Said(None, Why.NOT_TEXT)
    return Said(value.strip()) if value.strip() else Said(None, Why.EMPTY_CAPTION)
