"""What an attempt is charged, and the limit of what a run may spend, in US dollars.

An attempt is charged what its reply states, else by its tokens, else the most that it can cost;
answers and failures by the same rule. Where no price is known, an attempt without a whole reply is
charged what the dearest attempt cost: perhaps nothing was answered.

A server's numbers are believed only if they are plausible: a limit must hold at servers that fill
in zeros, negative numbers or text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, NoReturn

from ...core.json_values import count_of, mapping, number_of, objects
from ..prices import TokenPrices


@dataclass(frozen=True, slots=True)
class Usage:
    """What a reply says of its cost."""

    stated: float | None = None  # US dollars; None: nothing plausible
    tokens: Mapping[str, int] | None = None  # as of :func:`token_counts`


NOTHING_STATED = Usage()


@dataclass(frozen=True, slots=True)
class Charge:
    """What an attempt is charged."""

    cost: float | None  # US dollars; None: unknown
    source: str = ""  # of the prices of a computed cost
    is_guess: bool = False  # the greatest or dearest cost, as nothing plausible was stated


def charge(
    usage: Usage,
    prices: TokenPrices | None,
    at_most: float | None,
    share: float = 1.0,
    dearest: float | None = None,
) -> Charge:
    """Return what an attempt is charged that was answered, or worked on.

    Args:
        usage: what the reply says.
        prices: of tokens, if known.
        at_most: US dollars; None without prices.
        share: of the prices that is charged.
        dearest: US dollars that another attempt cost, for one without a whole reply.
    """
    # A stated 0 is plausible for free models only, of which no price is known.
    if usage.stated is not None and (usage.stated > 0 or prices is None):
        return Charge(usage.stated)
    if prices is not None:
        by_tokens = prices.cost_of(usage.tokens or {})
        if by_tokens is not None:
            return Charge(by_tokens * share, prices.source)
        if at_most is not None:
            return Charge(at_most * share, prices.source, is_guess=True)
    if dearest:
        return Charge(dearest, is_guess=True)
    return Charge(None)


def usage_of(reply: Mapping[str, Any]) -> Usage:
    """Read what a chat reply says of its cost; zeros of a server that counts nothing are absent."""
    usage = mapping(reply.get("usage"))
    tokens = token_counts(usage)
    if tokens.get("prompt") == 0:  # every request has a prompt
        tokens = {}
    elif tokens.get("completion") == 0 and _wrote(reply):
        del tokens["completion"]
    return Usage(stated_cost(usage), tokens)


_WORDS = ("content", "reasoning", "reasoning_content", "refusal", "tool_calls", "function_call")


def _wrote(reply: Mapping[str, Any]) -> bool:
    messages = [mapping(choice.get("message")) for choice in objects(reply.get("choices"))]
    return any(message.get(key) for message in messages for key in _WORDS)


def stated_cost(usage: Mapping[str, Any]) -> float | None:
    """Return the stated cost in US dollars; None if none is stated, or one that cannot be.

    With the user's key of a provider, OpenRouter states its fee, and apart what the provider takes.
    xAI states ten-thousandths of a millionth of a dollar.

    >>> stated_cost({"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.05}})
    0.05
    >>> stated_cost({"cost": 0.05, "cost_details": {"upstream_inference_cost": 0.05}})
    0.05
    >>> stated_cost({"cost_in_usd_ticks": 37756000})
    0.0037756
    """
    cost = _dollars(usage.get("cost"))
    ticks = _dollars(usage.get("cost_in_usd_ticks"))
    if cost is None and ticks is not None:
        return ticks / _TICKS
    upstream = _dollars(mapping(usage.get("cost_details")).get("upstream_inference_cost"))
    is_own_key = usage.get("is_byok") not in (None, False)
    if not is_own_key:
        return (upstream or 0.0) if cost == 0 else cost
    if cost is None or not upstream:
        return None
    return cost + upstream


_TICKS = 1e10  # Of xAI in a dollar: docs.x.ai/developers/cost-tracking


def _dollars(value: object) -> float | None:
    number = number_of(value)
    return None if number is None or number < 0 else number


def token_counts(usage: Mapping[str, Any]) -> dict[str, int]:
    """Return token counts: prompt, of it cached and cache_write; completion, of it reasoning.

    Tokens that a service counts apart (xAI's thoughts, Anthropic's caches behind some proxies) are
    added to the whole that they belong to. If it cannot be told, ``completion`` is left out.

    >>> token_counts({"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 5020})
    {'prompt': 1000, 'completion': 4020}
    """
    known = {}
    unread = set()
    for name, fields in _fields(usage).items():
        stated = [value for value in fields if value is not None]
        if not stated:
            continue
        count = count_of(stated[0])
        if count is None:
            unread.add(name)
        else:
            known[name] = count
    total = known.pop("total", 0)
    if "prompt" not in known or "completion" not in known:
        return known
    beyond = total - known["prompt"] - known["completion"]
    reasoning = known.get("reasoning", 0)
    in_cache = known.get("cached", 0) + known.get("cache_write", 0)
    if in_cache > known["prompt"] or (in_cache == beyond and reasoning != beyond):
        known["prompt"] += in_cache
    if reasoning > known["completion"]:
        known["completion"] += reasoning
    known["completion"] = max(known["completion"], total - known["prompt"])
    if unread & {"total", "reasoning"}:
        known.pop("completion")
    return known


def _fields(usage: Mapping[str, Any]) -> dict[str, tuple[object, ...]]:
    """Return where services state each count; the first that is no null counts."""
    sent = mapping(usage.get("prompt_tokens_details"))
    answered = mapping(usage.get("completion_tokens_details"))
    return {
        "prompt": (usage.get("prompt_tokens"),),
        "cached": (
            sent.get("cached_tokens"),
            usage.get("cache_read_input_tokens"),  # Anthropic
            usage.get("prompt_cache_hit_tokens"),  # DeepSeek
            usage.get("cached_tokens"),  # Moonshot
        ),
        "cache_write": (
            sent.get("cache_write_tokens"),
            usage.get("cache_creation_input_tokens"),  # Anthropic
        ),
        "completion": (usage.get("completion_tokens"),),
        "reasoning": (answered.get("reasoning_tokens"), usage.get("reasoning_tokens")),
        "total": (usage.get("total_tokens"),),
    }


# --- the limit of a run ---------------------------------------------------------------------------


class SpendingError(Exception):
    """A call was not made because of the limit."""


class Budget:
    """What may be spent, and what was, in US dollars; safe to share between threads.

    The cost of an attempt is known only afterwards. So one starts only if spent + (attempts in
    flight + 1) x dearest attempt <= limit; the first goes alone. The limit is exceeded only by an
    attempt that costs more than all before it.
    """

    def __init__(self, limit: float = math.inf) -> None:
        self.limit = limit  # infinite: only count
        self.spent = 0.0
        self.committed = 0.0  # by batches, at most
        self.dearest = 0.0  # cost of one call so far
        self.refused = 0
        self._watchers: list[Callable[[], None]] = []
        self._in_flight = 0
        self._unknown = False  # a call's cost was not stated
        self._lock = Lock()

    @property
    def exhausted(self) -> bool:
        return self.refused > 0

    def begin(self) -> bool:
        """Count an attempt; False: wait for others' costs; SpendingError: it could exceed the
        limit.
        """
        with self._lock:
            fits = self._fits()
            if not fits and self._in_flight == 0:
                if self._unknown:
                    self._refuse(
                        "the service does not say what calls cost, so no limit can be enforced"
                    )
                spent = f"${self.spent:.4f} spent"
                self._refuse(f"the next call could pass the limit of ${self.limit:g} ({spent})")
            self._in_flight += fits
            return fits

    def take_back(self) -> None:
        with self._lock:
            self._in_flight -= 1

    def end(self, cost: float | None) -> None:
        """Count the cost of an attempt (None: not stated)."""
        with self._lock:
            self._in_flight -= 1
            self._unknown = self._unknown or cost is None
            if cost:
                self.spent += cost
                self.dearest = max(self.dearest, cost)
        if not math.isinf(self.limit):
            for watcher in list(self._watchers):
                watcher()

    @contextmanager
    def watched_by(self, watcher: Callable[[], None]) -> Iterator[None]:
        """Call back, in any thread, when an attempt has ended."""
        self._watchers.append(watcher)
        try:
            yield
        finally:
            self._watchers.remove(watcher)

    def commit(self, at_most: float | None) -> None:
        """Reserve a batch's greatest cost (None: unknown), or raise SpendingError."""
        with self._lock:
            if math.isinf(self.limit):
                return
            if at_most is None:
                self._refuse("what a batch costs is not known beforehand: no limit")
            elif self.committed + at_most > self.limit * (1 + 1e-9):
                self._refuse(
                    f"a batch that costs up to ${at_most:.4f} could pass the limit of "
                    f"${self.limit:g} (${self.committed:.4f} may be spent by others)"
                )
            self.committed += at_most

    def _fits(self) -> bool:
        if math.isinf(self.limit):
            return True
        if self._unknown:
            return False
        if not self.dearest:
            return self._in_flight == 0 and self.limit > 0
        # Sums of decimal fractions may be slightly too large.
        return self.spent + (self._in_flight + 1) * self.dearest <= self.limit * (1 + 1e-9)

    def _refuse(self, why: str) -> NoReturn:
        self.refused += 1
        raise SpendingError(why)
