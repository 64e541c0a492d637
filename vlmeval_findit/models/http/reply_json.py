"""Parse the JSON of replies: of what costs money, no value hides another.

JSON allows a key to stand twice in an object, and parsers take the last. An amount or a count that
stands twice becomes a list of its values, which :mod:`.stated_costs` takes for a cost that is not
read for sure, and at least the largest of them.
"""

from __future__ import annotations

import json
from typing import Any

from ..tiers import FIELDS
from .stated_costs import is_about_cost

_OF_TOKENS = frozenset({"usage", "usageMetadata", "prompt_eval_count", "eval_count"})
# What is an object, where it is anything
_OBJECTS = frozenset({"usage", "usageMetadata", "x_nanogpt_pricing", "routing_metadata"})
# Tokens of the prompt that cost less: the larger their number, the cheaper the call
_CHEAPER = frozenset({"cached_tokens", "prompt_cache_hit_tokens", "cachedContentTokenCount"})


class _Pairs(dict[str, Any]):
    """An object in which a key stands twice; as an object it has the last of its values."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def parse_reply(body: bytes) -> Any:
    """Parse a body; ValueError if it is no JSON, RecursionError if it is nested too deeply.

    >>> parse_reply(b'{"id": 1, "id": 2, "usage": {"cost": 5, "cost": 0}, "usage": {"cost": 1}}')
    {'id': 2, 'usage': {'cost': [5, 0, 1]}}
    """
    found: list[_Pairs] = []

    def of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) == len(pairs):
            return values
        found.append(_Pairs(pairs))
        return found[-1]

    reply = json.loads(body, object_pairs_hook=of_pairs)
    return _plain(reply, is_money=False) if found else reply


def _plain(value: Any, *, is_money: bool) -> Any:
    """Return a value without keys that stand twice: the last stays; where it is money, all."""
    if isinstance(value, list):
        return [_plain(each, is_money=is_money) for each in value]
    if not isinstance(value, dict):
        return value
    plain: dict[str, Any] = {}
    is_twice = False
    for key, inner in value.pairs if isinstance(value, _Pairs) else value.items():
        costs = is_money or key in _OF_TOKENS or key in FIELDS or is_about_cost(key)
        each = _plain(inner, is_money=costs)
        if costs and key in plain:
            is_twice = True
            plain[key] = _both(key, plain[key], each)
        else:
            plain[key] = each
    return _at_full_price(plain) if is_twice else plain


def _both(key: str, one: Any, other: Any) -> Any:
    """Return both values of a key: an object of the keys of both, or a list.

    >>> [_both("cost", 0.1, other) for other in (0.1, "0,2", None, {"total_cost": 0.3})]
    [0.1, [0.1, '0,2'], 0.1, [0.1, {'total_cost': 0.3}]]
    >>> _both("usage", {"cost": 3}, {"cost": 1, "is_byok": True})
    {'cost': [3, 1], 'is_byok': True}
    """
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, dict) and isinstance(other, dict):
        both = {**one, **other}
        for inner in one.keys() & other.keys():
            both[inner] = _both(inner, one[inner], other[inner])
        return both
    if key in _OBJECTS and (isinstance(one, dict) or isinstance(other, dict)):
        return one if isinstance(one, dict) else other
    values = [*_listed(one), *_listed(other)]
    different = [value for at, value in enumerate(values) if value not in values[:at]]
    return different[0] if len(different) == 1 else different


def _at_full_price(usage: dict[str, Any]) -> dict[str, Any]:
    """Remove the tokens that cost less: which value they go with is not known."""
    return {
        key: _at_full_price(value) if isinstance(value, dict) else value
        for key, value in usage.items()
        if key not in _CHEAPER
    }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
