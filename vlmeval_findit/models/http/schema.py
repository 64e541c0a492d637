"""How services are asked to hold a reply to a JSON schema, and whether they do.

One question comes before the first call that relies on it.  Said freely, no answer to it fits its
schema: a server that ignores ``response_format`` is found out so even where a model's own replies
happen to be as the format has them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from typing import Any, NamedTuple

from ...core.question import Question
from ...core.redaction import quoted
from .completion import CallError, Completion
from .refusals import without_schema


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


# --- the question before the first ---------------------------------------------------------------

WORDS = "Say hello in three words."
"""The question."""

_ONLY = {"word": "quokka"}
"""The only reply that fits."""

_SHOWN = 80
"""Characters of another that a message shows."""

_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": [_ONLY["word"]]}},
    "required": ["word"],
    "additionalProperties": False,
}


class First(NamedTuple):
    """Its request, and what to type ``instead`` where the reply is free."""

    body: Mapping[str, Any]
    instead: str


def first_question(body: Mapping[str, Any], question: Question, root: SchemaRoot) -> First:
    """The request that asks it in the manner of another, which is to be held to a format."""
    content = [{"type": "text", "text": WORDS}]
    held = response_format(_SCHEMA, root)
    first = {"messages": [{"role": "user", "content": content}], "response_format": held}
    return First({**body, **first}, without_schema(question))


def check(completion: Completion, first: First) -> None:
    """Refuse a reply to it that nothing held; one that was cut off shows nothing.

    Raises:
        CallError: it is free, as all others of this server would be.
    """
    if completion.finish_reason == "length":
        return
    with suppress(ValueError, RecursionError):
        if json.loads(unwrapped(completion.text, SchemaRoot.OBJECT)) == _ONLY:
            return
    came = repr(quoted(completion.text, _SHOWN)) if completion.text else "an empty reply"
    raise CallError(
        f"it does not hold replies to a format: asked {WORDS!r} with a response_format that only "
        f"{json.dumps(_ONLY)} fits, it said {came}: {first.instead}",
        hopeless=True,
    )


def was_free(completion: Completion) -> bool:
    """Whether a whole reply is no list of JSON, so that nothing can have held it to one."""
    if completion.finish_reason != "stop":
        return False
    try:
        return not isinstance(json.loads(completion.text), list)
    except (ValueError, RecursionError):
        return True
