"""How services are asked to hold a reply to a JSON schema, and the reply as the format has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any


class SchemaRoot(Enum):
    """What a service takes as the whole of a schema."""

    LIST = "list"
    """Whatever the schema says."""
    OBJECT = "object"
    """An object with named keys and nothing of lengths: the list is its only value."""


_ANSWER = "answer"
"""The key of the list where a service takes no list."""


def response_format(schema: Mapping[str, Any], root: SchemaRoot) -> dict[str, Any]:
    """The field of a request that holds a reply to a schema.

    Raises:
        ValueError: the service cannot hold to it.
    """
    if root is SchemaRoot.OBJECT:
        fields = {_ANSWER: _without_lengths(schema)}
        schema = {
            "type": "object",
            "properties": fields,
            "required": [_ANSWER],
            "additionalProperties": False,
        }
    named = {"name": "boxes", "strict": True, "schema": schema}
    return {"type": "json_schema", "json_schema": named}


def _without_lengths(schema: Mapping[str, Any]) -> dict[str, Any]:
    if schema.get("additionalProperties"):
        raise ValueError(
            "the service takes no objects whose keys are labels in a schema: ask it in a format "
            "with a key of its own, or without _constrained"
        )
    made = {name: value for name, value in schema.items() if name not in _LENGTHS}
    if "items" in made:
        made["items"] = _without_lengths(made["items"])
    if "properties" in made:
        fields = made["properties"].items()
        made["properties"] = {name: _without_lengths(value) for name, value in fields}
    return made


_LENGTHS = ("minItems", "maxItems", "minProperties", "maxProperties", "minimum", "maximum")


def unwrapped(text: str, root: SchemaRoot | None) -> str:
    """The reply as the format has it, out of the object that a service needed around it.

    >>> unwrapped('{"answer": [{"bbox": [1, 2, 3, 4]}]}', SchemaRoot.OBJECT)
    '[{"bbox": [1, 2, 3, 4]}]'
    """
    if root is not SchemaRoot.OBJECT:
        return text
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(said, dict) or [*said] != [_ANSWER]:
        return text
    return json.dumps(said[_ANSWER], ensure_ascii=False)
