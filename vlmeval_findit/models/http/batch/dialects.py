"""How requests and results of a batch are written: OpenAI's lines, and Anthropic's.

Both begin with the chat body that a single call has, and end in the completion that one gives.

Sources: the batch pages of developers.openai.com/api/reference and platform.claude.com/docs, and
``vllm run-batch``, which reads and writes OpenAI's lines.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

from ..completion import CallError, Completion, error_of, read_completion
from ..providers.anthropic_messages import chat_reply, messages_request

HALF = 0.5
"""What a batch costs of the price of single calls, at OpenAI and at Anthropic."""


class BatchKind(Enum):
    """Who takes batches."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    FILES = "files"


class BatchRequest(NamedTuple):
    """A batch that should be made: our name for it, the ids of its requests, and when it was noted
    (seconds since 1970)."""

    name: str
    keys: frozenset[str]
    at: float


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a batch is written.

    ``line`` makes one request of an id and a chat body; requests stand ``between`` in a file that
    begins with ``head`` and ends with ``tail``, at most ``requests`` of them in at most ``size``
    bytes.  ``completion`` reads a result, with log-probabilities where they were asked for, and
    raises CallError where it is none.
    """

    line: Callable[[str, Mapping[str, Any]], dict[str, Any]]
    completion: Callable[[Mapping[str, Any], bool], Completion]
    head: bytes
    between: bytes
    tail: bytes
    requests: int
    size: int
    gives_logprobs: bool = True
    holds_to_schemas: bool = True


# --- OpenAI ---------------------------------------------------------------------------------------


def _openai_line(key: str, body: Mapping[str, Any]) -> dict[str, Any]:
    url = "/v1/chat/completions"
    return {"custom_id": key, "method": "POST", "url": url, "body": dict(body)}


def _openai_completion(line: Mapping[str, Any], confidences: bool) -> Completion:
    response = line.get("response")
    if isinstance(response, dict) and response.get("body"):
        status, body = response.get("status_code"), json.dumps(response["body"]).encode()
        if status == 200:
            return read_completion(body, confidences=confidences)
        if isinstance(status, int):
            raise error_of(body, status, "", None)
    raise _reported(line.get("error"))


def _reported(error: object) -> CallError:
    """An error in place of a reply."""
    try:
        read_completion(json.dumps({"error": error or {"message": "no reply"}}).encode())
    except CallError as found:
        return found
    raise AssertionError("an error is no completion")


# --- Anthropic ------------------------------------------------------------------------------------


def _anthropic_line(key: str, body: Mapping[str, Any]) -> dict[str, Any]:
    return {"custom_id": key, "params": messages_request(body)}


def _anthropic_completion(line: Mapping[str, Any], confidences: bool) -> Completion:
    result = line.get("result")
    result = result if isinstance(result, dict) else {}
    message = result.get("message")
    if result.get("type") == "succeeded" and isinstance(message, dict):
        return read_completion(json.dumps(chat_reply(message)).encode())
    error = result.get("error")
    if isinstance(error, dict):
        raise _reported(error.get("error", error))
    raise _reported({"message": f"the request is {result.get('type') or 'without a result'}"})


# --- the table ------------------------------------------------------------------------------------

_OPENAI = Dialect(
    _openai_line,
    _openai_completion,
    head=b"",
    between=b"\n",
    tail=b"\n",
    requests=50_000,
    size=200 * 10**6,
)

DIALECTS = {
    BatchKind.OPENAI: _OPENAI,
    BatchKind.ANTHROPIC: Dialect(
        _anthropic_line,
        _anthropic_completion,
        head=b'{"requests": [',
        between=b",\n",
        tail=b"]}\n",
        requests=100_000,
        size=256 * 10**6,
        gives_logprobs=False,
        holds_to_schemas=False,
    ),
    BatchKind.FILES: replace(_OPENAI, requests=sys.maxsize, size=sys.maxsize),
}
