"""Where services state what a reply cost, and how they write an amount."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...core import mapping, number_of

# In a reply as it is read: the headers that it came with, names in lower case
RESPONSE_HEADERS = "response_headers"


class _Place(NamedTuple):
    """A place in a reply."""

    path: tuple[str, ...]
    in_a_dollar: float = 1.0  # of its unit


# Besides ``usage.cost``: :func:`_cost_of_usage`.  Of several amounts the largest counts.
_PLACES = (
    _Place(("usage", "total_cost")),
    _Place(("usage", "estimated_cost")),  # DeepInfra
    _Place(("usage", "cost_in_usd_ticks"), 1e10),  # xAI: docs.x.ai/developers/cost-tracking
    _Place(("cost",)),
    _Place(("total_cost",)),
    _Place(("estimated_cost",)),
    _Place((RESPONSE_HEADERS, "x-litellm-response-cost")),
)

_READ_HEADERS = frozenset(place.path[1] for place in _PLACES if place.path[0] == RESPONSE_HEADERS)

# The tier that Google used
TIER_HEADER = "x-gemini-service-tier"

_TEXT = re.compile(r"\s*(?:US)?\$?\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*(?:USD|\$)?\s*", re.IGNORECASE)

# Keys of amounts in an object: request_cost, output_tokens_cost, total_cost, input_fee …
_TOTAL = re.compile(r"total(?:_?(?:cost|price|amount|usd))?|amount|value|usd", re.IGNORECASE)
_PART = re.compile(r".*(?:cost|costs|fee|price|usd|amount)|input|output|request", re.IGNORECASE)

_UPSTREAM = "upstream_inference_cost"
_UPSTREAM_PARTS = ("upstream_inference_prompt_cost", "upstream_inference_completions_cost")


class StatedCost(NamedTuple):
    """What a reply states that it cost."""

    dollars: float
    is_whole: bool = True  # False: a part of it is missing


def read_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a reply that say what it cost, names in lower case."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {name: lower[name] for name in (*_READ_HEADERS, TIER_HEADER) if name in lower}


def stated_cost(reply: Mapping[str, Any]) -> StatedCost | None:
    """Return what a reply states that it cost, nowhere less than any amount in it.

    None: nothing is stated, or nothing that can be.

    >>> stated_cost({"usage": {"cost": {"request_cost": 0.02, "total_cost": 0.0203}}})
    StatedCost(dollars=0.0203, is_whole=True)
    >>> stated_cost({"usage": {"estimated_cost": 0.02}, "cost": "0.03"})
    StatedCost(dollars=0.03, is_whole=True)
    """
    stated = list(_stated_at_places(reply))
    through_key = _cost_of_usage(mapping(reply.get("usage")))
    if through_key is not None:
        stated.append(through_key)
    return max(stated, default=None)


def _stated_at_places(reply: Mapping[str, Any]) -> Iterator[StatedCost]:
    for place in _PLACES:
        value: object = reply
        for key in place.path:
            value = mapping(value).get(key)
        amount = amount_of(value)
        if amount is not None:
            yield amount._replace(dollars=amount.dollars / place.in_a_dollar)


def _cost_of_usage(usage: Mapping[str, Any]) -> StatedCost | None:
    """Return ``usage.cost``; with the user's key of a provider, OpenRouter states its fee there.

    What the provider takes stands apart, perhaps in two parts.

    >>> _cost_of_usage({"cost": 0.01, "is_byok": True,
    ...     "cost_details": {"upstream_inference_cost": 0.04}})
    StatedCost(dollars=0.05, is_whole=True)
    >>> _cost_of_usage({"cost": "0.05", "is_byok": True})
    StatedCost(dollars=0.05, is_whole=False)
    """
    cost = amount_of(usage.get("cost"))
    upstream = _upstream(mapping(usage.get("cost_details")))
    if not usage.get("is_byok"):
        return max((each for each in (cost, upstream) if each is not None), default=None)
    if cost is None or upstream is None:
        known = cost or upstream
        return None if known is None else known._replace(is_whole=False)
    return StatedCost(cost.dollars + upstream.dollars, cost.is_whole and upstream.is_whole)


def _upstream(details: Mapping[str, Any]) -> StatedCost | None:
    """Return what the provider takes: its sum, else the parts of it; None if neither is stated."""
    whole = _dollars(details.get(_UPSTREAM))
    parts = [_dollars(details.get(name)) for name in _UPSTREAM_PARTS]
    known = [part for part in parts if part is not None]
    by_parts = sum(known)
    if whole or by_parts:
        return StatedCost(max(whole or 0.0, by_parts), bool(whole) or None not in parts)
    return None


def amount_of(value: object) -> StatedCost | None:
    """Return an amount in US dollars: a number, text, or an object of parts; None for others.

    >>> [amount_of(value).dollars for value in (0.02, "0.02", "$0.02", "2e-2 USD")]
    [0.02, 0.02, 0.02, 0.02]
    >>> amount_of({"input_tokens_cost": 0.01, "output_tokens_cost": 0.02})
    StatedCost(dollars=0.03, is_whole=False)
    """
    if not isinstance(value, dict):
        number = _dollars(value)
        return None if number is None else StatedCost(number)
    total = 0.0
    parts = []
    for key, part in value.items():
        dollars = _dollars(part)
        if dollars is None:
            continue
        if _TOTAL.fullmatch(key):
            total = max(total, dollars)
        elif _PART.fullmatch(key):
            parts.append(dollars)
    if total:
        return StatedCost(max(total, *parts, 0.0))
    return StatedCost(sum(parts), is_whole=False) if parts else None


def _dollars(value: object) -> float | None:
    if isinstance(value, str):
        text = _TEXT.fullmatch(value)
        try:
            value = float(text[1]) if text else None
        except ValueError:  # more than one point
            return None
    number = number_of(value)
    return None if number is None or number < 0 else number
