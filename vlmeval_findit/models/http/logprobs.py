"""Log-probabilities of OpenAI-compatible services, verified against the text.

The services' tokens differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...core.replies import LEAST, TokenLogprobs
from ..reply_tokens import GeneratedTokens, answer_span, byte_ends, kept_tokens

# llama.cpp gives none without top_logprobs.
FIELDS: Mapping[str, Any] = {"logprobs": True, "top_logprobs": 1}
_REFUSALS = frozenset({400, 422, 501})
_ABOVE_NOUGHT = 1e-3  # rounding error of log(1)


class LogprobsError(ValueError):
    """A reply has no usable log-probabilities."""


def refuses_logprobs(status: int, message: str) -> bool:
    """Return whether an error is about the request for log-probabilities."""
    return status in _REFUSALS and "logprobs" in message.lower()


def reply_logprobs(choice: Mapping[str, Any], content: str, finish_reason: str) -> TokenLogprobs:
    """Return those of the stored part of a reply, or raise LogprobsError.

    ``content`` is its text, with the thought.
    """
    entries = _entries(choice)
    text, ends = byte_ends(map(_bytes, entries))
    span, end = answer_span(content), len(content)
    if not text.startswith(content):
        # vLLM and llama.cpp remove the thought from the text, but not its tokens.
        kept = content[slice(*span)]
        begin = text.rfind(kept)
        if begin < 0:
            raise LogprobsError("the tokens of its logprobs are not those of its reply")
        end = begin + len(kept)
        span = (begin, end)
    logprobs = tuple(map(_logprob, entries))
    begins = (0, *ends)[len(ends) - 1] if ends else 0
    last = text[begins:]
    # vLLM includes the token that ended the reply.
    if ends and finish_reason == "stop" and begins >= end and (not last or last.strip()):
        return kept_tokens(GeneratedTokens(ends[:-1], logprobs[:-1], logprobs[-1]), span)
    return kept_tokens(GeneratedTokens(ends, logprobs), span)


def _entries(choice: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    logprobs = choice.get("logprobs")
    entries = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(entries, list):
        raise LogprobsError("its reply has no logprobs")
    if not all(isinstance(one, dict) and isinstance(one.get("token"), str) for one in entries):
        raise LogprobsError("its logprobs are not as OpenAI's")
    return entries


def _bytes(entry: Mapping[str, Any]) -> bytes:
    listed = entry.get("bytes")
    if isinstance(listed, list) and listed:
        try:
            return bytes(listed)
        except (TypeError, ValueError):
            raise LogprobsError("its logprobs have bytes that are none") from None
    return str(entry["token"]).encode("utf-8", "replace")  # many services give no bytes


def _logprob(entry: Mapping[str, Any]) -> float:
    value = entry.get("logprob")
    if not isinstance(value, int | float) or isinstance(value, bool) or math.isnan(value):
        raise LogprobsError(f"a token of its logprobs has {value!r:.40}")
    if value > _ABOVE_NOUGHT:
        raise LogprobsError(f"a token of its logprobs has {value:g}, which is no logarithm of one")
    return max(min(float(value), 0.0), LEAST)
