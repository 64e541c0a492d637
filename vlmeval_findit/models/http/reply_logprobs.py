"""Log-probabilities of replies, verified against their text: the services' tokens differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core import object_or_empty, quoted_value
from ...protocol import LOG_OF_ZERO, USUAL_THOUGHTS, ThoughtRule, TokenLogprobs
from ..reply_tokens import GeneratedTokens, answer_span, byte_ends, span_tokens
from .request_fields import merged_fields

_REFUSALS = frozenset({400, 422, 501})
_ABOVE_NOUGHT = 1e-3  # rounding error of log(1)


def with_logprobs(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that asks for log-probabilities.

    >>> with_logprobs({"temperature": 0})
    {'temperature': 0, 'logprobs': True, 'top_logprobs': 1}

    Raises ValueError where the user's fields ask for none.
    """
    asked = merged_fields(fields, {"logprobs": True}, "Leave yours out, or run without --logprobs")
    # llama.cpp gives none without top_logprobs.
    return {**asked, "top_logprobs": asked.get("top_logprobs", 1)}


def refuses_logprobs(status: int, message: str) -> bool:
    """Return whether an error is about the request for log-probabilities."""
    return status in _REFUSALS and "logprobs" in message.lower()


def _bytes(value: object) -> bytes:
    """Return the bytes of a token; none for anything but a list of bytes."""
    if not isinstance(value, list):
        return b""
    are_bytes = all(type(each) is int and 0 <= each < 256 for each in value)
    return bytes(value) if are_bytes else b""


def reply_logprobs(
    choice: Mapping[str, Any], content: str, finish_reason: str, rule: ThoughtRule = USUAL_THOUGHTS
) -> TokenLogprobs:
    """Return those of the stored part of a reply, or raise ValueError if they are not usable.

    ``content`` is its text, with the thought.
    """
    entries = object_or_empty(choice.get("logprobs")).get("content")
    if not isinstance(entries, list):
        raise ValueError("its reply has no logprobs")
    pieces = []
    logprobs = []
    for entry in map(object_or_empty, entries):
        token = entry.get("token")
        value = entry.get("logprob")
        if isinstance(value, bool) or not isinstance(value, int | float):
            value = None
        if not isinstance(token, str) or value is None:
            raise ValueError(
                f"a token of its logprobs is {quoted_value(entry, 80)}, unlike OpenAI's"
            )
        if value > _ABOVE_NOUGHT:
            raise ValueError(
                f"a token has {quoted_value(value, 20)}, which is not the logarithm of a "
                "probability"
            )
        # Many services give no bytes.
        pieces.append(_bytes(entry.get("bytes")) or token.encode("utf-8", "replace"))
        logprobs.append(float(max(min(value, 0.0), LOG_OF_ZERO)))
    text, ends = byte_ends(pieces)
    span = answer_span(content, rule)
    end = len(content)
    if not text.startswith(content):
        # vLLM and llama.cpp remove the thought from the text, but not its tokens.
        answer = content[slice(*span)]
        begin = text.rfind(answer)
        if begin < 0:
            raise ValueError("the tokens of its logprobs are not those of its reply")
        end = begin + len(answer)
        span = (begin, end)
    begins = ends[-2] if len(ends) > 1 else 0
    last = text[begins:]
    # vLLM includes the token that ended the reply.
    ended = None
    if ends and finish_reason == "stop" and begins >= end and (not last or last.strip()):
        ends = ends[:-1]
        ended = logprobs.pop()
    return span_tokens(GeneratedTokens(ends, tuple(logprobs), ended), span)
