"""Where services state what a reply cost, and how they write an amount.

An amount that is there, but in a form that is not read, is named: it may be of any height.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...core import (
    count_of,
    number_of,
    object_or_empty,
    objects_of,
    quoted_json,
    quoted_line,
    scrub,
)

# In a reply as it is read: the headers that it came with, names in lower case
RESPONSE_HEADERS = "response_headers"


class _CostPlace(NamedTuple):
    """A place in a reply."""

    inside: str  # the keys of the object with it, by points; "": the reply itself
    key: str
    in_a_dollar: float = 1.0  # of its unit

    def __str__(self) -> str:
        if self.inside == RESPONSE_HEADERS:
            return f"header {self.key}"
        return f"{self.inside}.{self.key}" if self.inside else self.key


# Of several amounts the largest counts; :func:`_with_fee` has what is added up.
_PLACES = (
    _CostPlace("usage", "cost"),
    _CostPlace("usage", "total_cost"),
    _CostPlace("usage", "estimated_cost"),  # DeepInfra
    _CostPlace("usage", "cost_in_usd_ticks", 1e10),  # xAI: docs.x.ai/developers/cost-tracking
    _CostPlace("usage", "cost_usd"),  # otari
    _CostPlace("usage", "total_cost_usd"),
    _CostPlace("usage", "cost_usd_total"),  # LLM Gateway
    _CostPlace("usage", "market_cost"),  # Vercel's gateway, and others through it
    _CostPlace("usage", "gateway_cost"),
    _CostPlace("usage", "usd_cents", 100.0),  # Puter
    _CostPlace("", "cost"),
    _CostPlace("", "cost_usd"),
    _CostPlace("", "associated_dollar_cost"),  # UiPath
    _CostPlace("x_nanogpt_pricing", "cost"),  # NanoGPT
    _CostPlace("x_nanogpt_pricing", "costUsd"),
    _CostPlace("x_nanogpt_pricing", "amount"),
    _CostPlace("routing_metadata.cost", "usd"),  # Auriko
    _CostPlace("", "total_cost"),
    _CostPlace("", "estimated_cost"),
    _CostPlace("", "cost_details"),
    _CostPlace("usage", "cost_details"),
    _CostPlace(RESPONSE_HEADERS, "x-litellm-response-cost"),
    _CostPlace(RESPONSE_HEADERS, "x-omniroute-response-cost"),
    _CostPlace(RESPONSE_HEADERS, "x-bifrost-cost-usd"),
    _CostPlace(RESPONSE_HEADERS, "helicone-cost"),
    _CostPlace(RESPONSE_HEADERS, "x-nr-request-cost"),  # nRouter
    _CostPlace(RESPONSE_HEADERS, "x-request-cost"),
)

# Names that no place has; its number may be of any unit.
_SOUNDS_LIKE_COST = re.compile(
    r"cost|price|(?:^|_)(?:usd|eur|spen[dt]|charged?|fee)(?:_|$)", re.IGNORECASE
)

_INSIDE = frozenset(place.inside for place in _PLACES)

_FIRST_KEYS = frozenset((place.inside or place.key).split(".")[0] for place in _PLACES)

_READ_HEADERS = frozenset(place.key for place in _PLACES if place.inside == RESPONSE_HEADERS)

# The tier that Google used
TIER_HEADER = "x-gemini-service-tier"

_TEXT = re.compile(
    r"\s*(?:USD|(?:US)?\$)?\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*(?:USD|(?:US)?\$)?\s*", re.IGNORECASE
)
_NOTHING = frozenset({"", "none", "null", "n/a"})  # texts that state no amount

# HTTP's form of a header that came several times
_REPEATED = ", "

# Keys of amounts in an object: request_cost, output_tokens_cost, total_cost, input_fee …
_TOTAL = re.compile(r"total(?:_?(?:cost|price|amount|usd))?|amount|value|usd", re.IGNORECASE)
_PART = re.compile(r".*(?:cost|costs|fee|price|usd|amount)|input|output|request", re.IGNORECASE)

_UPSTREAM = "upstream_inference_cost"
_UPSTREAM_PARTS = ("upstream_inference_prompt_cost", "upstream_inference_completions_cost")

_SHOWN = 40  # characters of an amount that is not read
_LONGEST_PLACE = 100  # characters of its keys, which may be any, too


class StatedCost(NamedTuple):
    """What a reply states that it cost."""

    dollars: float
    is_whole: bool = True  # False: a part of it is missing


def read_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a reply that say what it cost, names in lower case."""
    read: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        if lower in _READ_HEADERS or lower == TIER_HEADER:
            read[lower] = f"{read[lower]}{_REPEATED}{value}" if lower in read else value
    return read


def stated_cost(reply: Mapping[str, Any]) -> StatedCost | None:
    """Return what a reply states that it cost, nowhere less than any amount in it.

    None: nothing is stated, or nothing that can be.

    >>> stated_cost({"usage": {"cost": {"request_cost": 0.02, "total_cost": 0.0203}}})
    StatedCost(dollars=0.0203, is_whole=True)
    >>> stated_cost({"usage": {"estimated_cost": 0.02}, "cost": "0.03"})
    StatedCost(dollars=0.03, is_whole=True)
    """
    usage = object_or_empty(reply.get("usage"))
    stated_details = (place.get("cost_details") for place in (reply, usage))
    details = (each for each in stated_details if isinstance(each, dict))
    upstream = max(filter(None, map(_upstream, details)), default=None)
    stated = [] if upstream is None else [upstream]
    for place, value in _values(reply):
        amount = amount_of(value)
        if amount is not None:
            stated.append(amount._replace(dollars=amount.dollars / place.in_a_dollar))
    if not usage.get("is_byok"):
        return max(stated, default=None)
    with_fee = _with_fee(amount_of(usage.get("cost")), upstream)
    if with_fee is None:
        return max(stated, default=None)
    # What is missing in it is missing in all.
    return StatedCost(max([with_fee, *stated]).dollars, with_fee.is_whole)


def unread_cost(reply: Mapping[str, Any]) -> str:
    """Return a cost that a reply states in a form that is not read, with its place; else "".

    So is a number whose key sounds like a cost, where no known place states one.

    >>> unread_cost({"usage": {"cost": "0,02"}}), unread_cost({"usage": {"price_eur": 0.02}})
    ("usage.cost '0,02'", 'usage.price_eur 0.02')
    """
    for place, value in _values(reply):
        if _is_unread(value):
            return _shown(place, value)
    for inside in ("usage", "usageMetadata", ""):
        for key, value in _object_at(reply, inside).items():
            # Of tokens: a key that stands twice, as :mod:`.reply_json` reads it
            if isinstance(value, list) and any(count_of(each) for each in value):
                return _shown(_CostPlace(inside, key), value)
    if stated_cost(reply) is not None:
        return ""
    for inside in ("usage", ""):
        for key, value in _object_at(reply, inside).items():
            if _SOUNDS_LIKE_COST.search(key) and _dollars(value):
                return _shown(_CostPlace(inside, key), value)
    return ""


def is_about_cost(key: str) -> bool:
    """Return whether a key of a reply may state a cost, or lead to one."""
    return key in _FIRST_KEYS or _SOUNDS_LIKE_COST.search(key) is not None


def _shown(place: _CostPlace, value: object) -> str:
    shown = repr(scrub(value)) if isinstance(value, str) else quoted_json(value)
    return f"{quoted_line(str(place), _LONGEST_PLACE)} {quoted_line(shown, _SHOWN)}"


def _object_at(reply: Mapping[str, Any], inside: str) -> Mapping[str, Any]:
    """Return the object at keys in a reply; an empty one if there is none."""
    found = reply
    for key in inside.split(".") if inside else ():
        value = found.get(key)
        if isinstance(value, list):  # of a key that stands twice
            value = next(iter(objects_of(value)), None)
        found = object_or_empty(value)
    return found


def _values(reply: Mapping[str, Any]) -> Iterator[tuple[_CostPlace, object]]:
    """Yield what stands where costs may be stated: nothing in most replies."""
    found = {inside: _object_at(reply, inside) for inside in _INSIDE}
    for place in _PLACES:
        value: object = found[place.inside].get(place.key)
        if value is None:
            continue
        if place.key == "cost_details" and isinstance(value, dict):
            value = _without_upstream(value)
        if place.inside == RESPONSE_HEADERS and isinstance(value, str):
            for each in value.split(_REPEATED):
                yield place, each
        else:
            yield place, value


def _without_upstream(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details without readable amounts of the provider: they are read together."""
    apart = (_UPSTREAM, *_UPSTREAM_PARTS)
    return {key: value for key, value in details.items() if key not in apart or _is_unread(value)}


def _with_fee(cost: StatedCost | None, upstream: StatedCost | None) -> StatedCost | None:
    """Return what a call costs with the user's key of a provider.

    OpenRouter states its fee as the cost; what the provider takes stands apart.

    >>> _with_fee(StatedCost(0.01), StatedCost(0.04))
    StatedCost(dollars=0.05, is_whole=True)
    >>> _with_fee(StatedCost(0.05), None)
    StatedCost(dollars=0.05, is_whole=False)
    """
    if cost is None or upstream is None:
        known = cost or upstream
        return None if known is None else known._replace(is_whole=False)
    return StatedCost(cost.dollars + upstream.dollars, cost.is_whole and upstream.is_whole)


def _upstream(details: Mapping[str, Any]) -> StatedCost | None:
    """Return what the provider takes: its sum, else the parts of it; None if neither is stated."""
    whole = _largest_in(details.get(_UPSTREAM))
    parts = [_largest_in(details.get(name)) for name in _UPSTREAM_PARTS]
    known = [part for part in parts if part is not None]
    by_parts = sum(known)
    if whole or by_parts:
        return StatedCost(max(whole or 0.0, by_parts), bool(whole) or None not in parts)
    return None


def amount_of(value: object) -> StatedCost | None:
    """Return an amount in US dollars: a number, text, or an object of parts; None for others.

    A list is the largest that is in it: one of several values is not read for sure.

    >>> [amount_of(value).dollars for value in (0.02, "0.02", "$0.02", "2e-2 USD", "USD 0.02")]
    [0.02, 0.02, 0.02, 0.02, 0.02]
    >>> amount_of({"input_tokens_cost": 0.01, "output_tokens_cost": 0.02})
    StatedCost(dollars=0.03, is_whole=False)
    """
    if isinstance(value, list):
        amounts = (amount_of(each) for each in value)
        return max((each for each in amounts if each is not None), default=None)
    if not isinstance(value, dict):
        number = _dollars(value)
        return None if number is None else StatedCost(number)
    total = 0.0
    parts = []
    for key, part in value.items():
        dollars = _largest_in(part)
        if dollars is None:
            continue
        if _TOTAL.fullmatch(key):
            total = max(total, dollars)
        elif _PART.fullmatch(key):
            parts.append(dollars)
    if total:
        return StatedCost(max(total, *parts, 0.0))
    return StatedCost(sum(parts), is_whole=False) if parts else None


def _is_unread(value: object) -> bool:
    """Return whether an amount, or a part of one, is there in a form that is not read.

    >>> [_is_unread(value) for value in ("0,02", -1, True, {"total_cost": "?"}, {"sum": 0.02})]
    [True, True, True, True, True]
    >>> [_is_unread(value) for value in (0.02, None, "None", {"currency": "USD"}, [])]
    [False, False, False, False, False]
    """
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        return _is_there(value) and _dollars(value) is None
    named = [part for key, part in value.items() if _TOTAL.fullmatch(key) or _PART.fullmatch(key)]
    if named:
        return any(_is_there(part) and _dollars(part) is None for part in named)
    return any(_dollars(part) is not None for part in value.values())


def _is_there(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() not in _NOTHING
    return value is not None and value is not False and value not in ([], {})


def _largest_in(value: object) -> float | None:
    """Return an amount in US dollars, of a list the largest; None if there is none."""
    values = value if isinstance(value, list) else [value]
    amounts = map(_dollars, values)
    return max((each for each in amounts if each is not None), default=None)


def _dollars(value: object) -> float | None:
    if isinstance(value, str):
        text = _TEXT.fullmatch(value)
        try:
            value = float(text[1]) if text else None
        except ValueError:  # more than one point
            return None
    number = number_of(value)
    return None if number is None or number < 0 else number
