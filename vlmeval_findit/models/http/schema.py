"""Ask services for replies that fit a JSON schema, and check whether they enforce it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from typing import Any

from ...core import quoted_line
from ...protocol import DatasetVariant
from .call_errors import CallError
from .completion import Completion


class SchemaRoot(Enum):
    """What a service takes as the root of a schema."""

    LIST = "whatever the schema says"
    OBJECT = "an object with named keys and nothing of lengths: the list is its only value"


_ANSWER = "answer"  # key of the list, for services that need an object


def response_format(schema: Mapping[str, Any], root: SchemaRoot) -> dict[str, Any]:
    """Return the request field that enforces a schema; ValueError if the service cannot."""
    whole = dict(schema) if root is SchemaRoot.LIST else _object(_ANSWER, _without_lengths(schema))
    named = {"name": "boxes", "strict": True, "schema": whole}
    return {"type": "json_schema", "json_schema": named}


def _object(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: value},
        "required": [name],
        "additionalProperties": False,
    }


def _without_lengths(schema: Mapping[str, Any]) -> dict[str, Any]:
    if schema.get("additionalProperties"):
        raise ValueError(
            "the service accepts no schema of objects whose keys are labels: ask it in a format "
            "with named keys, or without _constrained"
        )
    short = {name: value for name, value in schema.items() if name not in _LENGTHS}
    if "items" in short:
        short["items"] = _without_lengths(short["items"])
    if "properties" in short:
        fields = short["properties"].items()
        short["properties"] = {name: _without_lengths(value) for name, value in fields}
    return short


_LENGTHS = ("minItems", "maxItems", "minProperties", "maxProperties", "minimum", "maximum")


def unwrapped(text: str, root: SchemaRoot | None) -> str:
    """Return a reply without the object that a service needed around it.

    >>> unwrapped('{"answer": [{"bbox": [1, 2, 3, 4]}]}', SchemaRoot.OBJECT)
    '[{"bbox": [1, 2, 3, 4]}]'
    """
    if root is SchemaRoot.OBJECT:
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
            if isinstance(value, dict) and [*value] == [_ANSWER]:
                return json.dumps(value[_ANSWER], ensure_ascii=False)
    return text


def without_schema(variant: DatasetVariant) -> str:
    """Say what to type if a server does not enforce schemas."""
    free = variant.name.removesuffix("_constrained")
    return f"ask {free} without _constrained; in a sweep's file, decodings: [none]"


class SchemaCheck(Enum):
    """What a server's reply to the check showed, unless that is an error."""

    ENFORCED = "it enforces schemas"
    UNKNOWN = "the call that asked was cut off"


# Asked before the first call with a schema. Only an enforced reply fits: a server that
# ignores ``response_format`` is detected even if the model's replies happen to fit.
PROBE_REQUEST = "Say hello in three words."
_ONLY = {"word": "quokka"}  # the only fitting reply
_SCHEMA = _object("word", {"type": "string", "enum": [_ONLY["word"]]})


def check_request(body: Mapping[str, Any], root: SchemaRoot) -> dict[str, Any]:
    """Return the check as a request like ``body``."""
    asked = [{"role": "user", "content": [{"type": "text", "text": PROBE_REQUEST}]}]
    return {**body, "messages": asked, "response_format": response_format(_SCHEMA, root)}


def refuse_unconstrained(completion: Completion, variant: DatasetVariant) -> None:
    """Raise CallError for a reply to the check that was not enforced; ignore a truncated reply."""
    if completion.record.finish_reason == "length":
        return
    with suppress(ValueError, RecursionError):
        if json.loads(unwrapped(completion.text, SchemaRoot.OBJECT)) == _ONLY:
            return
    reply = repr(quoted_line(completion.text, 80)) if completion.text else "an empty reply"
    raise CallError(
        f"it does not constrain replies to a format: asked {PROBE_REQUEST!r} with a "
        f"response_format that only {json.dumps(_ONLY)} fits, it replied {reply}: "
        f"{without_schema(variant)}",
        hopeless=True,
    )
