"""What to type where a server refuses all first calls: for the field of a request that it names.

Most fields may be left out. Those of :data:`NEEDED_FIELDS` may not: without them a reply would
come, and its boxes would be read as what they are not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from ...protocol import DatasetVariant
from ...serving import ALL_TOKENS_FIELD, BOUNDS_FIELD, TEMPLATE_FIELD, flag_of, programs_with
from .schema import without_schema

NEEDED_FIELDS: Mapping[str, str] = {
    BOUNDS_FIELD: "bounds the images in which boxes are read",
    TEMPLATE_FIELD: "decides whether the model thinks, by which replies are read",
    ALL_TOKENS_FIELD: "keeps the marks of boxes in replies",
}
"""Fields on which reading depends, and what they do."""

# Fields that a user cannot remove
_ALWAYS = {"model", "messages", "max_tokens"}

# Fields that are named only if the service names them: nearly all take them
_COMMON = {"temperature", "usage", "provider", "reasoning"}


class _Field(NamedTuple):
    """A field of a request that a server may not take."""

    name: str
    pattern: str  # of what names it in messages
    hint: str  # what to type


def advise_on_fields(
    message: str,
    sent: Collection[str],
    variant: DatasetVariant,
    *,
    logprobs: bool = False,
    started: str = "",
) -> str:
    """Return what to type where a server refuses every call.

    Args:
        message: the server's.
        sent: names of the fields of the request.
        variant: what was asked.
        logprobs: whether log-probabilities were asked for.
        started: the program that FindIt started (``--serve``); "" for another server.
    """
    fields = _fields(sent, variant, logprobs, started)
    named = [field for field in fields if re.search(field.pattern, message, re.IGNORECASE)]
    perhaps = [field for field in fields if field.name not in _COMMON]
    refused = "; all first calls were refused in these words"
    if not (named or perhaps):
        return refused
    listed = ", or ".join(f"{field.name} ({field.hint})" for field in named or perhaps)
    verb = "does not take" if named else "may not take"
    return f"{refused}: it {verb} {listed}"


def _fields(
    sent: Collection[str], variant: DatasetVariant, logprobs: bool, started: str
) -> list[_Field]:
    fields: list[_Field] = []
    if variant.reply_schema is not None:
        words = "response_format|schema|grammar|structured|guided"
        fields.append(_Field("response_format", words, without_schema(variant)))
    if logprobs:
        fields.append(_Field("logprobs", "logprob", "run without --logprobs"))
    known = _ALWAYS | {field.name for field in fields}
    for name in sorted(set(sent) - known):
        fields.append(_Field(name, _as_words(name), _hint(name, started)))
    return fields


def _hint(name: str, started: str) -> str:
    """Return what to type for a field."""
    if name in NEEDED_FIELDS:
        return f"it {NEEDED_FIELDS[name]}: {_server_that_takes(name, started)}"
    if started:
        return _WITHOUT_SERVER
    return f"with --extra-body '{{\"{name}\": null}}' it is not sent"


_WITHOUT_SERVER = "without --serve the model runs in this process"


def _server_that_takes(name: str, started: str) -> str:
    flag = flag_of(name)
    if started and flag:
        return f"add --serve-args '{flag}'"
    if started:
        return _WITHOUT_SERVER
    programs = programs_with(name)
    if flag:
        return f"start the server with {flag} ({', '.join(programs)})"
    return f"{', '.join(programs)} take it"


def _as_words(name: str) -> str:
    """Return the pattern of a field's name in messages, which may write it as words."""
    return rf"\b{re.escape(name).replace('_', '[ _-]?')}\b"
