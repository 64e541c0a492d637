"""Parsing of replies and other programs' captions: two captions, or why they are missing."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...core import objects_in, read_json
from ...protocol import ParseFailure, Reply, read_reply
from .image_pairs import ImagePair, PairSide, PerSide

log = logging.getLogger(__name__)


# Why a caption is missing
NO_JSON = "no_json"
NO_KEY = "missing_key"
NOT_TEXT = "not_text"
EMPTY = "empty_caption"
REASONS = (NO_JSON, NO_KEY, NOT_TEXT, EMPTY)


class Caption(NamedTuple):
    """An image's caption, or the reason why it is missing."""

    caption: str | None
    why: str | None = None


Captions = PerSide[Caption]  # of a pair


def missing_reason(captions: Iterable[Caption]) -> str | None:
    """Return the first reason of a pair; None if both captions were read."""
    return next((value.why for value in captions if value.why is not None), None)


def read_captions(reply: Reply) -> Captions:
    """Read a reply's captions; without an answer both are missing for the same reason."""
    result = read_reply(reply, parse_captions)
    if isinstance(result, ParseFailure):
        return PerSide(Caption(None, result.reason), Caption(None, result.reason))
    return result


def parse_captions(answer: str) -> Captions | ParseFailure:
    """Read the captions from all JSON objects in an answer; the last of a side counts.

    >>> both = parse_captions('{"left_image": "cat"} or {"LEFT image": "black cat", "right": 3}')
    >>> both.left.caption, both.right.why
    ('black cat', 'not_text')
    """
    objects = objects_in(answer)
    if not objects:
        return ParseFailure(NO_JSON)
    stated: dict[PairSide | None, Any] = {}
    for item in objects:
        stated |= {side_of(key): value for key, value in item.items()}
    return PerSide(_caption_of(stated, PairSide.LEFT), _caption_of(stated, PairSide.RIGHT))


_SIDES = {side.value: side for side in PairSide} | {side.key: side for side in PairSide}


def side_of(key: object) -> PairSide | None:
    """Return the side that a key names, in any case and with blanks for underscores.

    >>> side_of("Right image"), side_of("image_2")
    (<PairSide.RIGHT: 'right'>, None)
    """
    return _SIDES.get("_".join(key.lower().split())) if isinstance(key, str) else None


def _caption_of(result: Mapping[PairSide | None, Any], side: PairSide) -> Caption:
    if side not in result:
        return Caption(None, NO_KEY)
    value = result[side]
    if not isinstance(value, str):
        return Caption(None, NOT_TEXT)
    return Caption(value.strip()) if value.strip() else Caption(None, EMPTY)


def replies_of(path: Path, pairs: Collection[ImagePair]) -> list[Reply]:
    """Read the captions of a file {uid: {"left": text, "right": text}} as replies to pairs.

    Keys may be those of a reply, and a raw reply may stand for the object.  Missing pairs have no
    captions, and are logged, as unknown uids are; a ValueError if there are no others.
    """
    try:
        values = read_json(path)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path}: should be an object {{uid: {{left, right}}}}")
    replies, unknown = as_replies(values, pairs)
    if values and len(unknown) == len(values):
        raise ValueError(
            f"{path}: none of its {len(values)} uids belongs to a pair; the first is {unknown[0]!r}"
        )
    if unknown:
        log.warning(
            "%s: %d uids of no pair, the first %r: not used", path, len(unknown), unknown[0]
        )
    missing = len(pairs) - (len(values) - len(unknown))
    if missing:
        log.warning("%s: %d of %d pairs are not in it: wrong", path, missing, len(pairs))
    return replies


def as_replies(
    values: Mapping[str, Any], pairs: Collection[ImagePair]
) -> tuple[list[Reply], tuple[str, ...]]:
    """Convert captions by uid to replies, and list the unknown uids."""
    replies = []
    for pair in pairs:
        value = values.get(pair.uid, {})
        if not isinstance(value, str):
            value = json.dumps(value if isinstance(value, dict) else {"left": None, "right": None})
        replies.append(Reply(pair.index, value))
    known = {pair.uid for pair in pairs}
    return replies, tuple(uid for uid in values if uid not in known)
