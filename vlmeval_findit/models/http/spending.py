"""What an attempt is charged, and the limit of what a run may spend, in US dollars.

An attempt is charged if its request was sent whole (:mod:`.sent_whole`): what its reply states,
else by its tokens and its tier, else the most that it can cost, by our estimate and by the dearest
answer of its model (:meth:`Budget.at_least_seen`); answers and failures by the same rule. Where no
price is known, an attempt without a whole reply is charged what the dearest attempt cost: perhaps
nothing was answered.

A server's numbers are believed only if they are plausible: a limit must hold at servers that fill
in zeros, negative numbers or text.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple, NoReturn

from ...core import count_of, largest_count, object_or_empty, objects_of
from ...protocol import thought_in
from ..prices import TokenPrices
from ..tiers import StatedTier, Surcharge, surcharge, tiers_in
from .stated_costs import RESPONSE_HEADERS, TIER_HEADER, stated_cost, unread_cost


@dataclass(frozen=True, slots=True)
class Usage:
    """What a reply says of its cost."""

    stated: float | None = None  # US dollars; None: nothing plausible
    tokens: Mapping[str, int] | None = None  # as of :func:`token_counts`
    tiers: tuple[StatedTier, ...] = ()
    is_partial: bool = False  # a part of the stated cost is missing
    unread: str = ""  # a cost that is stated, but cannot be read: its place and form
    total: int = 0  # tokens sent and answered; alone, they have no price

    @property
    def says_something(self) -> bool:
        """Whether it says that something was worked on."""
        return bool(self.stated or self.unread or self.total) or any((self.tokens or {}).values())


NOTHING_STATED = Usage()


@dataclass(frozen=True, slots=True)
class Charge:
    """What an attempt is charged."""

    cost: float | None  # US dollars; None: unknown
    source: str = ""  # of the prices of a computed cost
    is_guess: bool = False  # something that it rests on is not known
    unknown: tuple[StatedTier, ...] = ()  # tiers that it rests on, of which no price is known
    is_unseen: bool = False  # nothing readable was stated: the greatest or dearest cost


class MostTokens(NamedTuple):
    """The most tokens of a call: sent, by our estimate, and answered, by its limit."""

    sent: int = 0
    answered: int = 0
    multiple: float = 1.0  # of the price, at the dearest tier that was asked for or stated


NO_ESTIMATE = MostTokens()


def charge_for(
    usage: Usage,
    prices: TokenPrices | None,
    at_most: float | None,
    share: float = 1.0,
    dearest: float | None = None,
    most: MostTokens = NO_ESTIMATE,
) -> Charge:
    """Return what an attempt is charged that was answered, or worked on.

    Args:
        usage: what the reply says.
        prices: of tokens, if known.
        at_most: US dollars at the dearest tier; None without prices.
        share: of the prices that is charged.
        dearest: US dollars that another attempt cost, for one without a whole reply.
        most: tokens of which the reply states no number, or none that can be read.
    """
    stated = usage.stated
    if prices is None:
        if stated is not None and not (usage.unread and stated == 0):
            is_unseen = bool(usage.unread)
            return Charge(stated, is_guess=is_unseen, is_unseen=is_unseen)
        return Charge(dearest, is_guess=True, is_unseen=True) if dearest else Charge(None)
    extra = surcharge(usage.tiers, prices)
    by_price = _by_price(usage, prices, at_most, share, extra, most)
    if usage.unread:
        known = (stated, by_price.cost, None if at_most is None else at_most * share)
        greatest = max((each for each in known if each is not None), default=None)
        return replace(by_price, cost=greatest, is_guess=True, is_unseen=True)
    if not stated:  # 0 is plausible for free models only, of which no price is known
        return by_price
    # A dearer tier, or a missing part, may not be in what is stated.
    is_short = usage.is_partial or (extra.multiple > 1 and not by_price.is_guess)
    if is_short and by_price.cost is not None and by_price.cost > stated:
        return by_price
    return Charge(stated)


def _by_price(
    usage: Usage,
    prices: TokenPrices,
    at_most: float | None,
    share: float,
    extra: Surcharge,
    most: MostTokens,
) -> Charge:
    """Return what an attempt is charged by its tokens, or the most that it can cost."""
    tokens = usage.tokens or {}
    by_tokens = prices.cost_of(tokens)
    if by_tokens is None:
        multiple = max(extra.multiple, most.multiple)
        greatest = [_by_some_tokens(usage, prices, most) * multiple * share]
        if at_most is not None:
            greatest.append(at_most * share)
        # Without any number of tokens, and without an estimate, nothing is known.
        cost = max(greatest) or at_most
        return Charge(cost, prices.source, is_guess=True, is_unseen=True)
    source = ", ".join(filter(None, (prices.source, extra.named)))
    is_guess = bool(extra.unknown) or prices.ends_before(tokens["prompt"])
    return Charge(by_tokens * extra.of(share), source, is_guess, extra.unknown)


def _by_some_tokens(usage: Usage, prices: TokenPrices, most: MostTokens) -> float:
    """Return the most that a reply can cost of which only some tokens, or their sum, are known.

    >>> from vlmeval_findit.models.prices import prices_from
    >>> _by_some_tokens(Usage(tokens={"prompt": 1000}), prices_from("10,50"), MostTokens(9, 100))
    0.015
    >>> _by_some_tokens(Usage(total=1000), prices_from("10,50"), MostTokens(9, 100))
    0.014
    """
    known = dict(usage.tokens or {})
    if not known and not usage.total:
        return 0.0
    if "prompt" not in known and "completion" not in known:
        is_dearer = prices.answered > prices.sent
        known["completion"] = min(usage.total, most.answered) if is_dearer else 0
    if "prompt" not in known:
        known["prompt"] = max(most.sent, usage.total - known["completion"])
    if "completion" not in known:
        known["completion"] = max(most.answered, usage.total - known["prompt"])
    return prices.cost_of(known) or 0.0


# A stated cost above so many times the greatest of the call, or, without prices, so many dollars
_IMPLAUSIBLE_TIMES = 10.0
_IMPLAUSIBLE_DOLLARS = 100.0


def is_implausible(stated: float | None, at_most: float | None) -> bool:
    """Return whether a stated cost is so high that it is probably wrong; it counts all the same.

    Args:
        stated: US dollars.
        at_most: US dollars that the call can cost; None without prices.
    """
    limit = _IMPLAUSIBLE_DOLLARS if at_most is None else _IMPLAUSIBLE_TIMES * at_most
    return stated is not None and stated > limit


def usage_of(reply: Mapping[str, Any]) -> Usage:
    """Read what a chat reply says of its cost; zeros of a server that counts nothing are absent."""
    beside = {name: reply[name] for name in _OLLAMA if name in reply}
    usage = {
        **beside,
        **object_or_empty(reply.get("usageMetadata")),
        **object_or_empty(reply.get("usage")),
    }
    tokens = token_counts(usage)
    total = max((largest_count(value) or 0 for value in _fields(usage)["total"]), default=0)
    if tokens.get("prompt") == 0:  # every request has a prompt
        del tokens["prompt"]
    if tokens.get("completion") == 0 and ("prompt" not in tokens or _wrote(reply)):
        del tokens["completion"]
    headers = object_or_empty(reply.get(RESPONSE_HEADERS))
    tiers = tiers_in(reply, usage, {"service_tier": headers.get(TIER_HEADER)})
    cost = stated_cost(reply)
    unread = unread_cost(reply)
    if cost is None or not (cost.dollars or cost.is_whole):
        return Usage(None, tokens, tiers, unread=unread, total=total)
    return Usage(cost.dollars, tokens, tiers, not cost.is_whole, unread, total)


_OLLAMA = ("prompt_eval_count", "eval_count")  # beside the message

_WORDS = ("content", "refusal", "tool_calls", "function_call")


def _wrote(reply: Mapping[str, Any]) -> bool:
    messages = [
        object_or_empty(choice.get("message")) for choice in objects_of(reply.get("choices"))
    ]
    return any(thought_in(each) or any(map(each.get, _WORDS)) for each in messages)


def token_counts(usage: Mapping[str, Any]) -> dict[str, int]:
    """Return token counts: prompt, of it cached and cache_write (of that cache_write_1h, kept for
    an hour); completion, of it reasoning.

    Tokens that a service counts apart (xAI's thoughts, Anthropic's caches behind some proxies) are
    added to the whole that they belong to. If it cannot be told, ``completion`` is left out. If
    it is not stated, it is what the total has beyond the prompt.

    >>> token_counts({"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 5020})
    {'prompt': 1000, 'completion': 4020}
    """
    known = {}
    unread = set()
    for name, fields in _fields(usage).items():
        stated = [value for value in fields if value is not None]
        counts = [count for count in map(largest_count, stated) if count is not None]
        if counts:
            known[name] = max(counts)
        elif stated:
            unread.add(name)
    if not known.get("cache_write_1h"):
        known.pop("cache_write_1h", None)
    total = known.pop("total", 0)
    least = _least_of_several_prompts(usage)
    sent = known.get("prompt", total) if least is None else least
    if "completion" not in known.keys() | unread and total > sent:
        known["completion"] = total - sent
    if "prompt" not in known or "completion" not in known:
        return known
    beyond = total - known["prompt"] - known["completion"]
    reasoning = known.get("reasoning", 0)
    in_cache = known.get("cached", 0) + known.get("cache_write", 0)
    if in_cache > known["prompt"] or (in_cache == beyond and reasoning != beyond):
        known["prompt"] += in_cache
    if reasoning > known["completion"]:
        known["completion"] += reasoning
    sent = known["prompt"] if least is None else least
    known["completion"] = max(known["completion"], total - sent)
    if unread & {"total", "reasoning"}:
        known.pop("completion")
    return known


def _least_of_several_prompts(usage: Mapping[str, Any]) -> int | None:
    """Return the fewest tokens of a prompt, if several numbers of one key are stated."""
    lists = (field for field in _fields(usage)["prompt"] if isinstance(field, list))
    counts = map(count_of, chain.from_iterable(lists))
    return min((count for count in counts if count is not None), default=None)


def _fields(usage: Mapping[str, Any]) -> dict[str, tuple[object, ...]]:
    """Return where services state each count; the greatest counts.

    The usual names are those of OpenAI's chat completions, of its Responses and of Anthropic, and
    of Google (in ``usageMetadata``: :mod:`.providers.google_content`).
    """
    sent = _details(usage, "prompt_tokens_details", "input_tokens_details")
    answered = _details(usage, "completion_tokens_details", "output_tokens_details")
    kept = object_or_empty(usage.get("cache_creation"))  # Anthropic
    return {
        "prompt": (
            usage.get("prompt_tokens"),
            # Anthropic counts apart what its caches have.
            _sum_of(
                usage, "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"
            ),
            usage.get("promptTokenCount"),
            usage.get("inputTokens"),  # Amazon
            usage.get("prompt_eval_count"),  # Ollama
        ),
        "cached": (
            sent.get("cached_tokens"),
            usage.get("cache_read_input_tokens"),  # Anthropic
            usage.get("prompt_cache_hit_tokens"),  # DeepSeek
            usage.get("cached_tokens"),  # Moonshot
            usage.get("cachedContentTokenCount"),
        ),
        "cache_write": (
            sent.get("cache_write_tokens"),
            usage.get("cache_creation_input_tokens"),  # Anthropic
        ),
        "cache_write_1h": (kept.get("ephemeral_1h_input_tokens"),),
        "completion": (
            usage.get("completion_tokens"),
            usage.get("output_tokens"),
            _sum_of(usage, "candidatesTokenCount", "thoughtsTokenCount"),
            usage.get("outputTokens"),
            usage.get("eval_count"),
        ),
        "reasoning": (
            answered.get("reasoning_tokens"),
            usage.get("reasoning_tokens"),
            usage.get("thoughtsTokenCount"),
        ),
        "total": (
            usage.get("total_tokens"),
            usage.get("totalTokenCount"),
            usage.get("totalTokens"),
        ),
    }


def _details(usage: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((object_or_empty(usage[name]) for name in names if usage.get(name)), {})


def _sum_of(usage: Mapping[str, Any], name: str, *apart: str) -> object:
    """Return a count with those that are counted apart; as it is if it is none."""
    count = largest_count(usage.get(name))
    if count is None:
        return usage.get(name)
    more = (largest_count(usage.get(each)) for each in apart)
    return count + sum(each or 0 for each in more)


# --- the limit of a run ---------------------------------------------------------------------------


class SpendingError(Exception):
    """A call was not made because of the limit."""


@dataclass(slots=True)
class _Seen:
    """What answers of one model cost."""

    dearest: float = 0.0  # of those whose cost is known
    # Charges of the others, each with how many there are: a heap, the least first
    guesses: list[tuple[float, int]] = field(default_factory=list)


class Budget:
    """What may be spent, and what was, in US dollars; safe to share between threads.

    The cost of an attempt is known only afterwards. So one starts only if spent + (attempts in
    flight + 1) x dearest attempt <= limit; the first goes alone. The limit is exceeded only by an
    attempt that costs more than all before it.
    """

    def __init__(self, limit: float = math.inf) -> None:
        self.limit = limit  # infinite: only count
        self.spent = 0.0
        self.guessed = 0.0  # of it, by attempts of which the cost is not known
        self.guesses = 0  # such attempts
        self.told: set[tuple[str, str]] = set()  # models, and what was said of their costs
        self.committed = 0.0  # by batches, at most
        self.dearest = 0.0  # cost of one call so far
        self.multiple = 1.0  # of the dearest tier that a reply stated
        self.refused = 0
        self._seen: defaultdict[str, _Seen] = defaultdict(_Seen)  # by model
        self._watchers: list[Callable[[], None]] = []
        self._in_flight = 0
        self._unknown = False  # a call's cost was not stated
        self._lock = Lock()

    @property
    def exhausted(self) -> bool:
        return self.refused > 0

    @property
    def is_estimated(self) -> bool:
        """Whether guesses rest on our estimate alone, as no answer of their model told its cost."""
        with self._lock:
            return any(seen.guesses and not seen.dearest for seen in self._seen.values())

    def begin(self) -> bool:
        """Count an attempt; False: wait for others' costs; SpendingError: it could exceed the
        limit.
        """
        with self._lock:
            fits = self._fits()
            if not fits and self._in_flight == 0:
                if self._unknown:
                    self._refuse(
                        "the service does not say what calls cost, so no limit can be enforced: "
                        "type --prices IN,OUT in US dollars a million tokens sent and answered"
                    )
                spent = f"${self.spent:.4f} spent"
                self._refuse(f"the next call could pass the limit of ${self.limit:g} ({spent})")
            self._in_flight += fits
            return fits

    def take_back(self) -> None:
        with self._lock:
            self._in_flight -= 1

    def end(self, cost: float | None, guessed: float = 0.0, guesses: int = 0) -> None:
        """Count the cost of a call's attempt (None: not stated).

        ``guessed`` of it is of so many requests (``guesses``) of which the cost is not known.
        """
        with self._lock:
            self._in_flight -= 1
        self.count(cost, guessed, guesses)
        if not math.isinf(self.limit):
            for watcher in list(self._watchers):
                watcher()

    def count(self, cost: float | None, guessed: float = 0.0, guesses: int = 0) -> None:
        """Count what a call of a batch cost, as :meth:`end` does; no attempt was in flight."""
        with self._lock:
            self._unknown = self._unknown or cost is None
            if cost:
                self.spent += cost
                self.guessed += guessed
                self.guesses += guesses
                self.dearest = max(self.dearest, cost)

    def at_least_seen(self, model: str, charge: Charge) -> Charge:
        """Return a charge, that of an attempt whose cost cannot be read at least the dearest's.

        Our estimate of what such an attempt can cost may be too low: of a service's tokens of an
        image only its readable answers tell. One that comes later raises what was spent before it.
        """
        if charge.cost is None:
            return charge
        with self._lock:
            seen = self._seen[model]
            if charge.is_unseen:
                most = max(charge.cost, seen.dearest)
                heappush(seen.guesses, (most, 1))
                return replace(charge, cost=most)
            if charge.cost > seen.dearest:
                seen.dearest = charge.cost
                raised = _raise_to(charge.cost, seen.guesses)
                self.spent += raised
                self.guessed += raised
        return charge

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


def _raise_to(dearest: float, guesses: list[tuple[float, int]]) -> float:
    """Raise all guesses below an amount to it, and return what they are raised by together."""
    raised = 0.0
    below = 0
    while guesses and guesses[0][0] < dearest:
        amount, count = heappop(guesses)
        raised += (dearest - amount) * count
        below += count
    if below:
        heappush(guesses, (dearest, below))
    return raised
