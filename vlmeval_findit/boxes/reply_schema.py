"""The JSON schema of a reply format: what decoding is held to, so that no syntax can be wrong.

What a schema cannot say stays free: how many boxes there are, what a label is, whether numbers are
a box at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .reply_format import CLASS_KEY, PLURAL_KEYS, ReplyFormat

Schema = Mapping[str, Any]

_NUMBER: Schema = {"type": "number"}


def schema_of(how: ReplyFormat) -> dict[str, Any]:
    """The schema of the replies that adhere to a JSON format.

    Raises:
        ValueError: it is a text format.

    >>> schema_of(ReplyFormat("json", "xyxy", "bbox_2d"))["items"]["required"]
    ['bbox_2d']
    """
    if how.output != "json":
        raise ValueError(f"replies in {how.output} have no grammar")
    return {"type": "array", "items": _entry(how)}


def _entry(how: ReplyFormat) -> dict[str, Any]:
    """One object of the list, its keys in the order in which prompts show them."""
    box = _numbers(how.numbers.width)
    fields: dict[str, Schema] = {}
    if how.frames > 1:
        fields["frame_idx"] = {"type": "integer", "minimum": 0, "maximum": how.frames}
    if how.multilabel and how.key != CLASS_KEY:
        fields["label"] = {"type": "string"}
    if how.structure == "decomposed":
        fields |= dict.fromkeys(how.numbers.keys, _NUMBER)
        return _object(fields)
    nested = how.structure == "nested"
    value = {"type": "array", "items": box} if nested else box
    if how.key == CLASS_KEY:
        return _keyed_by_label(fields, value)
    return _object({**fields, PLURAL_KEYS[how.key] if nested else how.key: value})


def _numbers(width: int) -> dict[str, Any]:
    return {"type": "array", "items": _NUMBER, "minItems": width, "maxItems": width}


def _object(fields: Mapping[str, Schema]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


def _keyed_by_label(fields: Mapping[str, Schema], value: Schema) -> dict[str, Any]:
    """An object whose one key beside ``fields`` is a label."""
    count = len(fields) + 1
    closed = _object(fields)
    return {
        **closed,
        "additionalProperties": value,
        "minProperties": count,
        "maxProperties": count,
    }
