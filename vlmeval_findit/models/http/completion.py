"""Parse the body of a chat reply into its text, or the reason why there is none.

Values of a wrong type count as absent; secrets are removed from all but the reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from ...core.answers import error_line
from ...core.redaction import of_whole_characters, quoted
from ...core.replies import LEAST, NOTHING_RECORDED, Recorded, TokenLogprobs
from ...core.thoughts import USUAL, ThoughtRule, split_thought
from ..prices import TokenPrices
from ..reply_tokens import GeneratedTokens, answer_span, byte_ends, span_tokens

RETRIED = frozenset({408, 429})  # statuses below 500 that may pass when repeated
REFUSED = frozenset({401, 403, 404})  # key, permission or model: most likely for every request
HOPELESS = REFUSED | {402}  # fail for every request; 402 is about credit

_MESSAGE, _NAME = 500, 200  # characters stored of a message, and of a name or id


class CallError(Exception):
    """A call without an answer; the message is one line without secrets."""

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
        self.status = status  # 0: no reply
        self.retry_after = retry_after  # seconds
        self.cost = cost  # US dollars, charged all the same
        self.transient = transient or status in RETRIED or status >= 500
        self.hopeless = hopeless  # the next call would fail too
        self.worked_on = worked_on  # may have been answered unseen, and charged
        self.alike = False  # all first calls at its server were refused in these words

    def with_note(self, note: str) -> CallError:
        """Copy it with words behind its message."""
        if not note:
            return self
        same = copy(self)
        same.args = (f"{self}{note}",)
        return same

    def of_another(self) -> CallError:
        """Copy it for a call that failed because of it, without its cost."""
        same = copy(self)
        same.cost, same.worked_on = 0.0, False
        return same


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer."""

    text: str  # parsed for boxes
    record: Recorded = NOTHING_RECORDED  # what the service says of it; tokens as of :func:`_tokens`
    id: str = ""
    cost: float | None = None  # US dollars; None: unknown
    cost_from: str = ""  # source of the prices of a computed cost
    cache_discount: float | None = None  # saved by a cache; negative: added
    no_logprobs: str = ""  # why they are missing though requested

    def priced(self, prices: TokenPrices | None, share: float = 1.0) -> Completion:
        """Add the cost by a share of ``prices``, if the service states none."""
        if (
            prices is None
            or self.cost is not None
            or (cost := prices.of(self.record.tokens)) is None
        ):
            return self
        return replace(self, cost=cost * share, cost_from=prices.source)

    def begun_in_thought(self) -> Completion:
        """Return the answer to a prompt that opens a thought: cut off, it is all thought."""
        if self.record.thought or self.record.finish_reason != "length":
            return self
        none_left = self.record.token_logprobs and TokenLogprobs((), ())
        record = replace(self.record, thought=self.text, token_logprobs=none_left)
        return replace(self, text="", record=replace(record, ends_in_thought=True))


def object_in(body: bytes) -> dict[str, Any]:
    """Parse the body of a reply as a JSON object, or raise CallError."""
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        start = quoted(body.decode("utf-8", "replace"), 80)
        raise CallError(f"the reply is not JSON: {start!r}") from None
    if not isinstance(reply, dict):
        raise CallError("the reply is not a JSON object")
    return reply


def read_completion(
    reply: Mapping[str, Any], *, logprobs: bool = False, rule: ThoughtRule = USUAL
) -> Completion:
    """Return the answer in a chat reply of status 200, or raise the CallError that it reports.

    Nothing else is raised: the reply may have to be paid, whatever is wrong with it.
    """
    try:
        return _completion(reply, logprobs, rule)
    except CallError:
        raise
    except Exception as error:
        cost, start = stated_cost(reply), quoted(repr(reply), 80)
        why = f"the reply cannot be read ({error_line(error)}): {start}"
        raise CallError(why, cost=cost or 0.0, worked_on=cost is None) from error


def _completion(reply: Mapping[str, Any], logprobs: bool, rule: ThoughtRule) -> Completion:
    usage, cost = mapping(reply.get("usage")), stated_cost(reply)
    if reply.get("error"):
        raise _reported(reply["error"], cost)
    # Without a choice the call failed; a choice without text is an empty answer.
    choices = reply.get("choices")
    choice = mapping(choices[0]) if isinstance(choices, list) and choices else {}
    if choice.get("error"):
        raise _reported(choice["error"], cost)
    message = choice.get("message")
    if not isinstance(message, dict):
        missing = "message in its choice" if choice else "choices"
        raise CallError(f"the reply has no {missing}", cost=cost or 0.0)
    # Servers without a reasoning parser leave the thought in the text.
    content = of_whole_characters(_text(message.get("content")))
    split = split_thought(content, rule)
    thoughts = (message.get(key) for key in ("reasoning", "reasoning_content"))
    stated = next((each for each in thoughts if isinstance(each, str)), "")
    thought = of_whole_characters(stated) or split.thought
    finish = _name(choice.get("finish_reason"))
    finish_reason = _FINISH.get(finish, finish)
    who = {"identifier": _name(reply.get("model")), "provider": _name(reply.get("provider"))}
    token_logprobs, no_logprobs = None, ""
    if logprobs:
        try:
            token_logprobs = reply_logprobs(choice, content, finish_reason, rule)
        except ValueError as error:
            no_logprobs = str(error)
    is_cut = bool(thought) and not split.answer and finish_reason == "length"
    record = Recorded(
        thought=thought,
        ends_in_thought=split.ends_inside or is_cut,
        finish_reason=finish_reason,
        tokens=_tokens(usage),
        model={name: value for name, value in who.items() if value},
        token_logprobs=token_logprobs,
    )
    discount = _number(usage.get("cache_discount", reply.get("cache_discount")))
    id, text = _name(reply.get("id")), split.answer.strip()
    return Completion(text, record, id, cost, "", discount, no_logprobs)


def stated_cost(reply: Mapping[str, Any]) -> float | None:
    """Return what a reply says that it cost, in US dollars; None if it does not say."""
    cost = _number(mapping(reply.get("usage")).get("cost"))
    return None if cost is None or cost < 0 else cost


def error_of(body: bytes, status: int, reason: str, retry_after: float | None) -> CallError:
    """Return the error in a reply with another status than 200."""
    text = body.decode("utf-8", "replace").strip()
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        reply = text
    # Google's may be a list of a single object.
    error = reply[0] if isinstance(reply, list) and reply else reply
    if isinstance(error, dict):
        error = next((error[k] for k in ("error", "detail", "message") if k in error), error)
    message = f"HTTP {status}: {quoted(_message(error), _MESSAGE) or reason}"
    if retry_after is None and (delay := _RETRY_DELAY.search(text)):
        retry_after = float(delay[1])
    hopeless = _is_hopeless(status, text)
    call_error = CallError(message, status, retry_after=retry_after, hopeless=hopeless)
    if _NO_KEY_OR_CREDIT.search(text):
        call_error.hopeless, call_error.transient = True, False
    return call_error


_NO_KEY_OR_CREDIT = re.compile(
    r'"(?:insufficient_quota|billing_error|API_KEY_INVALID)"|credit balance is too low',
    re.IGNORECASE,
)
"""Beyond the status: no credit at OpenAI (429) and Anthropic (400), no such key at Google (400)."""

_RETRY_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?)s"')
"""Seconds that Google asks to wait: in the error's details, not in a header."""

MODERATED = re.compile(  # this input was refused, by some with status 403
    r"content[ _-]?(?:policy|filter|management|safety)|moderat|flagged|usage polic|safety system"
    r'|"reasons"',
    re.IGNORECASE,
)


def _is_hopeless(status: int, text: str) -> bool:
    return status in HOPELESS and not (status == 403 and MODERATED.search(text))


def _reported(error: object, cost: float | None) -> CallError:
    code = str(mapping(error).get("code"))
    status = int(code) if re.fullmatch("[45][0-9]{2}", code) else 0
    prefix = f"HTTP {status}: " if status else ""
    message = f"{prefix}the service reports: {_message(error)}"
    hopeless = _is_hopeless(status, json.dumps(error))
    return CallError(message, status, cost=cost or 0.0, hopeless=hopeless)


def _message(error: object) -> str:
    message = error.get("message", error) if isinstance(error, dict) else error
    return message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)


def _name(value: object) -> str:
    return quoted(value, _NAME) if isinstance(value, str) else ""


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in objects(content) if part.get("type") == "text"]
    return joined(texts)


_FINISH = {"max_tokens": "length", "end_turn": "stop", "eos": "stop"}


def mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object, or an empty object for any other value."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return the JSON objects of a list; none of any other value."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def joined(texts: Iterable[object]) -> str:
    """Join those values that are text."""
    return "".join(text for text in texts if isinstance(text, str))


def count_of(value: object) -> int | None:
    """Return a count, of tokens for example; None for any other value."""
    return value if type(value) is int and 0 <= value < _MOST else None


_MOST = 2**53  # greater whole numbers are not exact in JSON


def _number(value: object) -> float | None:
    # Python's JSON accepts NaN, infinity and whole numbers of any length: all would break limits.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _MOST else None


def _tokens(usage: Mapping[str, Any]) -> dict[str, int]:
    """Return token counts: prompt, of it cached and cache_write; completion, of it reasoning."""
    sent = mapping(usage.get("prompt_tokens_details"))
    answered = mapping(usage.get("completion_tokens_details"))
    # Second names are Anthropic's.
    counts = {
        "prompt": usage.get("prompt_tokens"),
        "cached": sent.get("cached_tokens", usage.get("cache_read_input_tokens")),
        "cache_write": sent.get("cache_write_tokens", usage.get("cache_creation_input_tokens")),
        "completion": usage.get("completion_tokens"),
        "reasoning": answered.get("reasoning_tokens"),
    }
    known = {kind: count_of(count) for kind, count in counts.items()}
    return {kind: count for kind, count in known.items() if count is not None}


# --- log-probabilities, verified against the text: the services' tokens differ --------------------

# llama.cpp gives none without top_logprobs.
LOGPROBS_FIELDS: Mapping[str, Any] = {"logprobs": True, "top_logprobs": 1}
_REFUSALS = frozenset({400, 422, 501})
_ABOVE_NOUGHT = 1e-3  # rounding error of log(1)


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
    choice: Mapping[str, Any], content: str, finish_reason: str, rule: ThoughtRule = USUAL
) -> TokenLogprobs:
    """Return those of the stored part of a reply, or raise ValueError if they are not usable.

    ``content`` is its text, with the thought.
    """
    entries = mapping(choice.get("logprobs")).get("content")
    if not isinstance(entries, list):
        raise ValueError("its reply has no logprobs")
    pieces, logprobs = [], []
    for entry in map(mapping, entries):
        token, value = entry.get("token"), entry.get("logprob")
        if isinstance(value, bool) or not isinstance(value, int | float):
            value = None
        if not isinstance(token, str) or value is None:
            raise ValueError(f"a token of its logprobs is {entry!r:.80}, not as OpenAI's")
        if value > _ABOVE_NOUGHT:
            raise ValueError(f"a token has {value!r:.20}, which is no logarithm of a probability")
        # Many services give no bytes.
        pieces.append(_bytes(entry.get("bytes")) or token.encode("utf-8", "replace"))
        logprobs.append(float(max(min(value, 0.0), LEAST)))
    text, ends = byte_ends(pieces)
    span, end = answer_span(content, rule), len(content)
    if not text.startswith(content):
        # vLLM and llama.cpp remove the thought from the text, but not its tokens.
        answer = content[slice(*span)]
        begin = text.rfind(answer)
        if begin < 0:
            raise ValueError("the tokens of its logprobs are not those of its reply")
        end = begin + len(answer)
        span = (begin, end)
    begins = (0, *ends)[len(ends) - 1] if ends else 0
    last = text[begins:]
    # vLLM includes the token that ended the reply.
    ended = None
    if ends and finish_reason == "stop" and begins >= end and (not last or last.strip()):
        ends, ended = ends[:-1], logprobs.pop()
    return span_tokens(GeneratedTokens(ends, tuple(logprobs), ended), span)
