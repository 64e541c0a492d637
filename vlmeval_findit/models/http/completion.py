"""From the body of a chat reply to its text, or to the reason why there is none.

A body without a choice is a failed call, not an answer of the model; a choice without a text is an
answer, and an empty one.  A service may say anything: what is not of the type that it should be is
taken as not said, and secrets are gone from all that is not the reply (:mod:`...core.redaction`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.redaction import of_whole_characters, quoted
from ...core.thinking import split_thought
from ...core.token_logprobs import TokenLogprobs
from ..prices import Prices
from .logprobs import LogprobsError, reply_logprobs

RETRIED = frozenset({408, 429})
"""Statuses below 500 after which the same request may be answered."""

REFUSED = frozenset({401, 403, 404})
"""Statuses that are about key, permission or model, and mostly refuse every request."""

HOPELESS = REFUSED | {402}
"""Statuses after which no other request is answered either; the one more is about credit."""

_MESSAGE, _NAME = 500, 200
"""Characters that are kept of a message, and of a name or an id."""

_LARGEST_COUNT = 2**53


class CallError(Exception):
    """A call that got no answer; its message is one line without secrets.

    ``status`` is the HTTP status (0: none came); ``cost`` what it cost all the same, in US dollars;
    ``retry_after`` the seconds that the server asks to wait; ``hopeless`` whether the next call
    would fail in the same way; ``worked_on``: the service may have answered without our seeing it,
    and asks for its money.  So many calls were refused ``alike`` where that makes it hopeless.
    """

    def __init__(
        self,
        message: str,
        status: int = 0,
        *,
        retry_after: float | None = None,
        cost: float = 0.0,
        transient: bool = False,
        hopeless: bool = False,
        worked_on: bool = False,
    ) -> None:
        super().__init__(quoted(message, _MESSAGE))
        self.status = status
        self.retry_after = retry_after
        self.cost = cost
        self.transient = transient or status in RETRIED or status >= 500
        self.hopeless = hopeless
        self.worked_on = worked_on
        self.alike = 0

    def of_another(self) -> CallError:
        """The same for a call that failed because of it, which is not charged for it."""
        same = copy(self)
        same.cost, same.worked_on = 0.0, False
        return same


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer.

    ``text`` is what is read for boxes, ``thought`` what the model thought before, which
    ``ends_in_thought`` where no text came after it.  ``tokens`` count the ``prompt``, of it those
    ``cached`` (read from a cache) and ``cache_write``, the ``completion`` and of it ``reasoning``.
    ``cost`` is in US dollars, None where it is not known; ``cost_from`` says by which prices it was
    computed (empty: the service said it), ``cache_discount`` what a cache took off it (what writing
    costs more, below zero).  ``model`` says who answered: the service's identifier, the provider.
    ``token_logprobs`` are None where they were not asked for, or for the reason ``no_logprobs``.
    """

    text: str
    thought: str = ""
    ends_in_thought: bool = False
    finish_reason: str = ""
    tokens: Mapping[str, int] = field(default_factory=dict)
    cost: float | None = None
    cache_discount: float | None = None
    model: Mapping[str, str] = field(default_factory=dict)
    id: str = ""
    cost_from: str = ""
    token_logprobs: TokenLogprobs | None = None
    no_logprobs: str = ""

    def priced(self, prices: Prices | None, share: float = 1.0) -> Completion:
        """The same with what it cost by these prices, where the service does not say it.

        Args:
            prices: None: not known.
            share: of these prices that is paid.
        """
        if prices is None or self.cost is not None or (cost := prices.of(self.tokens)) is None:
            return self
        return replace(self, cost=cost * share, cost_from=prices.source)

    def begun_in_thought(self) -> Completion:
        """The answer of a model whose prompt opens a thought: cut off unclosed, it is all thought.

        The mark that opens the thought is in the prompt then, not in the reply.
        """
        if self.thought or self.finish_reason != "length":
            return self
        none_left = None if self.token_logprobs is None else TokenLogprobs((), ())
        thought = replace(self, text="", thought=self.text, ends_in_thought=True)
        return replace(thought, token_logprobs=none_left)


def object_in(body: bytes) -> dict[str, Any]:
    """The JSON object that the body of a reply is.

    Raises:
        CallError: it is none.
    """
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        start = quoted(_decoded(body), 80)
        raise CallError(f"the reply is not JSON: {start!r}") from None
    if not isinstance(reply, dict):
        raise CallError("the reply is not a JSON object")
    return reply


def read_completion(reply: bytes | Mapping[str, Any], *, confidences: bool = False) -> Completion:
    """The answer in a chat reply of status 200, or in its body; ``confidences`` were asked for.

    Raises:
        CallError: it is not JSON, reports an error, or has no choice.
    """
    if isinstance(reply, bytes):
        reply = object_in(reply)
    usage = _mapping(reply.get("usage"))
    cost = _number(usage.get("cost"))
    cost = None if cost is None or cost < 0 else cost
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
    content = of_whole_characters(_text(message.get("content")))
    said = split_thought(content)
    thought = of_whole_characters(_thought(message)) or said.thought
    finish_reason = _name(choice.get("finish_reason"))
    finish_reason = _FINISH.get(finish_reason, finish_reason)
    who = {"identifier": _name(reply.get("model")), "provider": _name(reply.get("provider"))}
    logprobs, no_logprobs = None, ""
    if confidences:
        try:
            logprobs = reply_logprobs(choice, content, finish_reason)
        except LogprobsError as error:
            no_logprobs = str(error)
    return Completion(
        text=said.answer.strip(),
        thought=thought,
        ends_in_thought=said.ends_inside
        or (bool(thought) and not said.answer and finish_reason == "length"),
        finish_reason=finish_reason,
        tokens=_tokens(usage),
        cost=cost,
        cache_discount=_number(usage.get("cache_discount", reply.get("cache_discount"))),
        model={name: value for name, value in who.items() if value},
        id=_name(reply.get("id")),
        token_logprobs=logprobs,
        no_logprobs=no_logprobs,
    )


def error_of(body: bytes, status: int, reason: str, retry_after: float | None) -> CallError:
    """The error in a reply with another status than 200."""
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        reply = _decoded(body)
    # Google's may be a list with one object.
    error = reply[0] if isinstance(reply, list) and reply else reply
    if isinstance(error, dict):
        error = error.get("error", error.get("detail", error.get("message", error)))
    message = f"HTTP {status}: {quoted(_message(error), _MESSAGE) or reason}"
    if retry_after is None:
        retry_after = _retry_delay(error)
    hopeless = _is_hopeless(status, error)
    found = CallError(message, status, retry_after=retry_after, hopeless=hopeless)
    if _is_about_key_or_credit(error):
        found.hopeless, found.transient = True, False
    return found


_NO_CREDIT = re.compile(r"credit balance is too low", re.IGNORECASE)


def _is_about_key_or_credit(error: object) -> bool:
    """Whether an error says of key or credit what its status does not.

    OpenAI has no credit with 429, Google no such key with 400, Anthropic no credit with 400.
    """
    if not isinstance(error, dict):
        return False
    return (
        "insufficient_quota" in (error.get("code"), error.get("type"))
        or error.get("type") == "billing_error"
        or any(one.get("reason") == "API_KEY_INVALID" for one in _details_of(error))
        or _NO_CREDIT.search(_message(error)) is not None
    )


def _retry_delay(error: object) -> float | None:
    """Seconds that Google asks for: not in a header, but among the error's details."""
    for one in _details_of(error):
        delay = one.get("retryDelay")
        if isinstance(delay, str) and re.fullmatch(r"\d{1,9}(\.\d{1,9})?s", delay):
            return float(delay[:-1])
    return None


def _details_of(error: object) -> list[Mapping[str, Any]]:
    details = _mapping(error).get("details")
    return [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []


def _reported(error: object, cost: float | None) -> CallError:
    """Some services report an error in a reply of status 200."""
    status = _status(_mapping(error).get("code"))
    message = f"the service reports: {_message(error)}"
    if status:
        message = f"HTTP {status}: {message}"
    hopeless = _is_hopeless(status, error)
    return CallError(message, status, cost=cost or 0.0, hopeless=hopeless)


def _is_hopeless(status: int, error: object) -> bool:
    """Whether other requests would be refused too: not where a moderator refused this one input,
    which services say with status 403.
    """
    if status != 403:
        return status in HOPELESS
    said = _mapping(error)
    if {"flagged_input", "reasons"} & _mapping(said.get("metadata")).keys():
        return False
    words = f"{said.get('code')} {said.get('type')} {_message(error)}"
    return MODERATED.search(words) is None


MODERATED = re.compile(
    r"content[ _-]?(?:policy|filter|management|safety)|moderat|flagged|usage polic|safety system",
    re.IGNORECASE,
)


def _message(error: object) -> str:
    """What an error says, of whatever type it is."""
    said = error.get("message", error) if isinstance(error, dict) else error
    if isinstance(said, str):
        return said
    try:
        return json.dumps(said, ensure_ascii=False)
    except (ValueError, RecursionError):
        return "something nested too deeply"


def _status(code: object) -> int:
    if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
        code = int(code)
    known = isinstance(code, int) and not isinstance(code, bool) and 400 <= code <= 599
    return code if known else 0  # type: ignore[return-value]


def _decoded(body: bytes) -> str:
    return body.decode("utf-8", "replace").strip()


def _name(value: object) -> str:
    return quoted(value, _NAME) if isinstance(value, str) else ""


def _text(content: object) -> str:
    """Content is a string, a list of parts, or null."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        texts = [part.get("text") for part in parts]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _thought(message: Mapping[str, Any]) -> str:
    said = (message.get(key) for key in ("reasoning", "reasoning_content"))
    return next((thought for thought in said if isinstance(thought, str)), "")


_FINISH = {"max_tokens": "length", "end_turn": "stop", "eos": "stop"}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    # NaN and infinity are numbers to Python's JSON, and would end every limit.
    return float(value) if abs(value) < _LARGEST_COUNT and math.isfinite(value) else None


def _tokens(usage: Mapping[str, Any]) -> dict[str, int]:
    sent = _mapping(usage.get("prompt_tokens_details"))
    answered = _mapping(usage.get("completion_tokens_details"))
    # The second name of either is Anthropic's own.
    counts = {
        "prompt": usage.get("prompt_tokens"),
        "cached": sent.get("cached_tokens", usage.get("cache_read_input_tokens")),
        "cache_write": sent.get("cache_write_tokens", usage.get("cache_creation_input_tokens")),
        "completion": usage.get("completion_tokens"),
        "reasoning": answered.get("reasoning_tokens"),
    }
    return {
        kind: count
        for kind, count in counts.items()
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < _LARGEST_COUNT
    }
