"""One answer of a service, or the error of a call, and plain readers of JSON values.

Numbers of a wrong type count as absent; secrets are removed from all but the reply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from ...core.redaction import quoted
from ...core.replies import NOTHING_RECORDED, Recorded, TokenLogprobs
from ..prices import TokenPrices

RETRIED = frozenset({408, 429})  # statuses below 500 that may pass when repeated
REFUSED = frozenset({401, 403, 404, 405, 410})  # key, permission, model or address
HOPELESS = REFUSED | {402}  # fail for every request; 402 is about credit

LONGEST_MESSAGE = 500  # characters stored of an error's message

NO_TOKENS: Mapping[str, int] = MappingProxyType({})


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
        unread: bool = False,
        tokens: Mapping[str, int] = NO_TOKENS,
    ) -> None:
        super().__init__(quoted(message, LONGEST_MESSAGE))
        self.status = status  # 0: no reply
        self.retry_after = retry_after  # seconds
        self.cost = cost  # US dollars, charged all the same
        self.transient = transient or status in RETRIED or status >= 500
        self.hopeless = hopeless  # the next call would fail too
        self.worked_on = worked_on  # may be charged, though no cost is stated
        self.tokens = tokens  # as the service counted them; as of :func:`token_counts`
        self.unread = unread  # a reply came, in a form without an answer: other calls may get such
        self.alike = False  # all first calls at its server were refused in these words
        self.certain = False  # one such error is enough to know that it is hopeless

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
        same.cost, same.worked_on, same.tokens = 0.0, False, NO_TOKENS
        return same


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer."""

    text: str  # parsed for boxes
    record: Recorded = NOTHING_RECORDED  # what the service says of it; tokens: :func:`token_counts`
    id: str = ""
    cost: float | None = None  # US dollars; None: unknown
    cost_from: str = ""  # source of the prices of a computed cost
    cache_discount: float | None = None  # saved by a cache; negative: added
    no_logprobs: str = ""  # why they are missing though requested
    odd_finish: str = ""  # a finish reason that is not known
    # What the service said beside the text: ``tool_calls``, ``refusal``, ``finish_reason``
    beside: Mapping[str, Any] = field(default_factory=dict)

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


def number_of(value: object) -> float | None:
    """Return a finite number; None for any other value."""
    # Python's JSON accepts NaN, infinity and whole numbers of any length: all would break limits.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _MOST else None


def token_counts(usage: Mapping[str, Any]) -> dict[str, int]:
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


def stated_cost(reply: Mapping[str, Any]) -> float | None:
    """Return what a reply says that it cost, in US dollars; None if it does not say."""
    cost = number_of(mapping(reply.get("usage")).get("cost"))
    return None if cost is None or cost < 0 else cost
