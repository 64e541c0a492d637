"""From the body of a chat reply to its text, or to the reason why there is none.  A service may say
anything: a value of the wrong type counts as not said, and secrets go from all but the reply.
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
from ...core.replies import split_thought
from ...core.token_logprobs import TokenLogprobs
from ..prices import Prices
from .logprobs import LogprobsError, reply_logprobs

RETRIED = frozenset({408, 429})  # statuses below 500 after which the same request may be answered
REFUSED = frozenset({401, 403, 404})  # key, permission or model: mostly every request is refused
HOPELESS = REFUSED | {402}  # no other request is answered either; the one more is about credit

_MESSAGE, _NAME = 500, 200  # characters that are kept of a message, and of a name or an id
_LARGEST_COUNT = 2**53


class CallError(Exception):
    """A call that got no answer; its message is one line without secrets."""

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
        self.status = status  # 0: no reply came
        self.retry_after = retry_after  # seconds that the server asks to wait
        self.cost = cost  # what it cost all the same, in US dollars
        self.transient = transient or status in RETRIED or status >= 500
        self.hopeless = hopeless  # the next call would fail in the same way
        self.worked_on = worked_on  # the service may have answered unseen, and asks for its money
        self.alike = False  # whether a server's first calls were all refused in these words

    def of_another(self) -> CallError:
        """The same for a call that failed because of it, which is not charged for it."""
        same = copy(self)
        same.cost, same.worked_on = 0.0, False
        return same


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer."""

    text: str  # what is read for boxes
    thought: str = ""
    ends_in_thought: bool = False
    finish_reason: str = ""
    tokens: Mapping[str, int] = field(default_factory=dict)  # as of :func:`_tokens`
    cost: float | None = None  # US dollars; None: not known
    cache_discount: float | None = None  # what a cache took off it; below zero: put on it
    model: Mapping[str, str] = field(default_factory=dict)  # the service's identifier, the provider
    id: str = ""
    cost_from: str = ""  # the prices by which the cost was computed; empty: the service said it
    token_logprobs: TokenLogprobs | None = None
    no_logprobs: str = ""  # why there are none, though they were asked for

    def priced(self, prices: Prices | None, share: float = 1.0) -> Completion:
        """The same with what it cost by a share of prices, where the service does not say it."""
        if prices is None or self.cost is not None or (cost := prices.of(self.tokens)) is None:
            return self
        return replace(self, cost=cost * share, cost_from=prices.source)

    def begun_in_thought(self) -> Completion:
        """The answer of a model whose prompt opens a thought: cut off, it is all thought."""
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
    usage = mapping(reply.get("usage"))
    cost = _number(usage.get("cost"))
    cost = None if cost is None or cost < 0 else cost
    if reply.get("error"):
        raise _reported(reply["error"], cost)
    # A body without a choice is a failed call; a choice without a text is an empty answer.
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
    text = _decoded(body)
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        reply = text
    # Google's may be a list with one object.
    error = reply[0] if isinstance(reply, list) and reply else reply
    if isinstance(error, dict):
        error = error.get("error", error.get("detail", error.get("message", error)))
    message = f"HTTP {status}: {quoted(_message(error), _MESSAGE) or reason}"
    if retry_after is None and (delay := _RETRY_DELAY.search(text)):
        retry_after = float(delay[1])
    hopeless = _is_hopeless(status, text)
    found = CallError(message, status, retry_after=retry_after, hopeless=hopeless)
    if _NO_KEY_OR_CREDIT.search(text):
        found.hopeless, found.transient = True, False
    return found


_NO_KEY_OR_CREDIT = re.compile(
    r'"(?:insufficient_quota|billing_error|API_KEY_INVALID)"|credit balance is too low',
    re.IGNORECASE,
)
"""What the status does not say: OpenAI has no credit with 429, Google no such key with 400,
Anthropic no credit with 400."""

_RETRY_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?)s"')
"""Seconds that Google asks for: not in a header, but among the error's details."""

MODERATED = re.compile(  # a moderator refused this one input, which some say with status 403
    r"content[ _-]?(?:policy|filter|management|safety)|moderat|flagged|usage polic|safety system"
    r'|"reasons"',
    re.IGNORECASE,
)


def _is_hopeless(status: int, said: str) -> bool:
    return status in HOPELESS and not (status == 403 and MODERATED.search(said))


def _reported(error: object, cost: float | None) -> CallError:
    """Some services report an error in a reply of status 200."""
    code = str(mapping(error).get("code"))
    status = int(code) if re.fullmatch("[45][0-9]{2}", code) else 0
    said = f"HTTP {status}: " if status else ""
    message = f"{said}the service reports: {_message(error)}"
    hopeless = _is_hopeless(status, json.dumps(error))
    return CallError(message, status, cost=cost or 0.0, hopeless=hopeless)


def _message(error: object) -> str:
    said = error.get("message", error) if isinstance(error, dict) else error
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)


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


def mapping(value: object) -> Mapping[str, Any]:
    """A value that should be an object of JSON; what is none says nothing."""
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    # NaN and infinity are numbers to Python's JSON, and would end every limit.
    return float(value) if abs(value) < _LARGEST_COUNT and math.isfinite(value) else None


def _tokens(usage: Mapping[str, Any]) -> dict[str, int]:
    """Tokens: prompt, of it cached and cache_write; completion, of it reasoning."""
    sent = mapping(usage.get("prompt_tokens_details"))
    answered = mapping(usage.get("completion_tokens_details"))
    # The second name of either is Anthropic's own.
    counts = {
        "prompt": usage.get("prompt_tokens"),
        "cached": sent.get("cached_tokens", usage.get("cache_read_input_tokens")),
        "cache_write": sent.get("cache_write_tokens", usage.get("cache_creation_input_tokens")),
        "completion": usage.get("completion_tokens"),
        "reasoning": answered.get("reasoning_tokens"),
    }
    return {kind: count for kind, count in counts.items() if _is_count(count)}


def _is_count(count: Any) -> bool:
    is_whole = isinstance(count, int) and not isinstance(count, bool)
    return is_whole and 0 <= count < _LARGEST_COUNT
