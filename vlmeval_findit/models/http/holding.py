"""Whether a server holds replies to a format: one question before the first that relies on it.

Said freely, no answer to it fits its schema.  A server that ignores ``response_format`` is found
out so even where a model's own replies happen to be as the format has them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ...core.question import Question
from ...core.redaction import quoted
from .completion import CallError, Completion
from .refusals import without_schema
from .schema import SchemaRoot, response_format, unwrapped

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
