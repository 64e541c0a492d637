"""From the body of a chat reply to its text, or to the reason why there is none.

A body without a choice is a failed call, not an answer of the model; a choice without a text is an
answer, and an empty one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .families import THINK
from .thinking import split_thought

RETRIED = frozenset({408, 429})
"""Statuses below 500 after which the same request may be answered."""

HOPELESS = frozenset({401, 402, 404})
"""Statuses after which no other request is answered either: key, credit, model."""


class CallError(Exception):
    """A call that got no answer.

    ``status`` is the HTTP status (0: none came); ``cost`` what it cost all the same, in US dollars;
    ``retry_after`` the seconds that the server asks to wait.
    """

    def __init__(
        self,
        message: str,
        status: int = 0,
        retry_after: float | None = None,
        cost: float = 0.0,
        transient: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.cost = cost
        self.transient = transient or status in RETRIED or status >= 500

    @property
    def hopeless(self) -> bool:
        """Whether the next call would fail in the same way."""
        return self.status in HOPELESS


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer.

    ``text`` is what is read for boxes, ``thought`` what the model thought before, which
    ``ends_in_thought`` where no text came after it.  ``cost`` is in US dollars, None where the
    service does not say it.  ``model`` says who answered: the service's identifier, the provider.
    """

    text: str
    thought: str = ""
    ends_in_thought: bool = False
    finish_reason: str = ""
    tokens: Mapping[str, int] = field(default_factory=dict)
    cost: float | None = None
    model: Mapping[str, str] = field(default_factory=dict)
    id: str = ""

    def begun_in_thought(self) -> Completion:
        """The answer of a model whose prompt opens a thought: cut off unclosed, it is all thought.

        The mark that opens the thought is in the prompt then, not in the reply.
        """
        if self.thought or self.finish_reason != "length":
            return self
        return replace(self, text="", thought=self.text, ends_in_thought=True)


def read_completion(body: bytes) -> Completion:
    """The answer in the body of a reply with status 200.

    Raises:
        CallError: it is not JSON, reports an error, or has no choice.
    """
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        start = body[:80].decode("utf-8", "replace")
        raise CallError(f"the reply is not JSON: {start!r}") from None
    if not isinstance(reply, dict):
        raise CallError("the reply is not a JSON object")
    cost = _cost(reply)
    if reply.get("error"):
        raise _reported(reply["error"], cost)
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise CallError("the reply has no choices", cost=cost or 0.0)
    choice = choices[0]
    if choice.get("error"):
        raise _reported(choice["error"], cost)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise CallError("the reply's choice has no message", cost=cost or 0.0)
    # Servers that are not told to part them leave the thought in the text.
    said = split_thought(_text(message.get("content")), THINK)
    thought, finish_reason = _thought(message) or said.thought, _finish_reason(choice)
    who = {"identifier": reply.get("model"), "provider": reply.get("provider")}
    return Completion(
        text=said.reply.strip(),
        thought=thought,
        ends_in_thought=bool(thought) and not said.reply and finish_reason == "length",
        finish_reason=finish_reason,
        tokens=_tokens(reply),
        cost=cost,
        model={name: str(value) for name, value in who.items() if value},
        id=str(reply.get("id") or ""),
    )


def error_message(body: bytes) -> str:
    """The message in the body of a reply with another status."""
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        return body[:200].decode("utf-8", "replace").strip()
    if isinstance(reply, dict):
        error = reply.get("error", reply.get("detail", reply.get("message", reply)))
        return str(error.get("message", error) if isinstance(error, dict) else error)[:500]
    return str(reply)[:200]


def _reported(error: object, cost: float | None) -> CallError:
    """Some services report an error in a reply of status 200."""
    if not isinstance(error, dict):
        return CallError(f"the service reports: {str(error)[:500]}", cost=cost or 0.0)
    code = error.get("code")
    status = code if isinstance(code, int) and not isinstance(code, bool) else 0
    message = str(error.get("message", error))[:500]
    return CallError(f"the service reports: {message}", status, cost=cost or 0.0)


def _text(content: object) -> str:
    """Content is a string, a list of parts, or null."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        return "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    return content if isinstance(content, str) else ""


def _thought(message: Mapping[str, Any]) -> str:
    for key in ("reasoning", "reasoning_content"):
        if isinstance(message.get(key), str):
            return str(message[key])
    return ""


_FINISH = {"max_tokens": "length", "end_turn": "stop", "eos": "stop"}


def _finish_reason(choice: Mapping[str, Any]) -> str:
    reason = str(choice.get("finish_reason") or "")
    return _FINISH.get(reason, reason)


def _usage(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    usage = reply.get("usage")
    return usage if isinstance(usage, dict) else {}


def _cost(reply: Mapping[str, Any]) -> float | None:
    cost = _usage(reply).get("cost")
    number = isinstance(cost, int | float) and not isinstance(cost, bool)
    return float(cost) if number else None  # type: ignore[arg-type]


def _tokens(reply: Mapping[str, Any]) -> dict[str, int]:
    usage = _usage(reply)
    details = usage.get("completion_tokens_details")
    counts = {
        "prompt": usage.get("prompt_tokens"),
        "completion": usage.get("completion_tokens"),
        "reasoning": details.get("reasoning_tokens") if isinstance(details, dict) else None,
    }
    return {kind: count for kind, count in counts.items() if isinstance(count, int)}
