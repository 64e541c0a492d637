"""How services are asked to hold a reply to a JSON schema, and whether they do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from typing import Any

from ...core.question import Question
from ...core.redaction import quoted
from .completion import CallError, Completion


class SchemaRoot(Enum):
    """What a service takes as the whole of a schema."""

    LIST = "whatever the schema says"
    OBJECT = "an object with named keys and nothing of lengths: the list is its only value"


_ANSWER = "answer"  # the key of the list where a service takes no list


def response_format(schema: Mapping[str, Any], root: SchemaRoot) -> dict[str, Any]:
    """The field of a request that holds a reply to a schema.

    Raises:
        ValueError: the service cannot hold to it.
    """
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
    if root is SchemaRoot.OBJECT:
        with suppress(ValueError, RecursionError):
            said = json.loads(text)
            if isinstance(said, dict) and [*said] == [_ANSWER]:
                return json.dumps(said[_ANSWER], ensure_ascii=False)
    return text


def without_schema(question: Question) -> str:
    """What to type where a server does not hold replies to a format."""
    free = question.name.removesuffix("_constrained")
    return f"ask {free} without _constrained; in a sweep's file, decodings: [none]"


# --- the question before the first ---------------------------------------------------------------

# It comes before the first call that relies on a schema.  No answer that is said freely fits its
# own: a server that ignores ``response_format`` is found out even where a model's own replies
# happen to be as the format has them.
WORDS = "Say hello in three words."
_ONLY = {"word": "quokka"}  # the only reply that fits
_SCHEMA = _object("word", {"type": "string", "enum": [_ONLY["word"]]})
_SHOWN = 80  # characters of another that a message shows


def first_question(body: Mapping[str, Any], root: SchemaRoot) -> dict[str, Any]:
    """The request that asks it in the manner of another, which is to be held to a format."""
    content = [{"type": "text", "text": WORDS}]
    held = response_format(_SCHEMA, root)
    return {
        **body,
        "messages": [{"role": "user", "content": content}],
        "response_format": held,
    }


def check_held(completion: Completion, question: Question) -> None:
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
        f"{json.dumps(_ONLY)} fits, it said {came}: {without_schema(question)}",
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
