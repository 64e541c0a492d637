"""A key of a reply that stands twice: no smaller amount, and no other value, hides a larger one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from asking import QUICK, ask_calls
from chat_server import Answer, ChatServer, in_turn
from hypothesis import given
from hypothesis import strategies as st
from test_charges import PRICES, model_of
from test_stated_costs import PLACES

from vlmeval_findit.engine import HttpService
from vlmeval_findit.models import (
    GPT_5_4,
    Budget,
    CallError,
    Endpoint,
    TokenPrices,
    charge_for,
    error_of,
    judge_response,
    parse_reply,
    usage_of,
)

CHOICES = '"choices": [{"message": {"content": "[]"}, "finish_reason": "stop"}]'
COSTS = sorted(PLACES.keys() - {"a header"})
JUNK = [None, 0, -1, "", "?", "0,02", True, [], {}, {"sum": "x"}]


def twice(first: Mapping[str, Any], second: Any, escaped: str) -> Iterator[str]:
    """Yield the members of an object, of which one that differs stands twice, at any depth."""
    for key, value in first.items():
        other = second[key] if isinstance(second, dict) and key in second else second
        if value == other:
            continue
        rest = [f"{json.dumps(name)}: {json.dumps(first[name])}" for name in first if name != key]
        again = escaped % (ord(key[0]), key[1:])
        yield ", ".join([*rest, f'"{key}": {json.dumps(value)}, "{again}": {json.dumps(other)}'])
        if isinstance(value, dict):
            for inside in twice(value, other, escaped):
                yield ", ".join([*rest, f'"{key}": {{{inside}}}'])


def charged(members: str, prices: Any = None) -> float:
    outcome = judge_response(200, f"{{{CHOICES}, {members}}}".encode()).outcome
    assert not isinstance(outcome, CallError)
    return charge_for(outcome.usage, prices, None if prices is None else 1e-9).cost or 0.0


@pytest.mark.parametrize("escaped", ["%c%s", "\\u%04x%s"], ids=["plain", "escaped"])
@pytest.mark.parametrize("place", COSTS)
def test_the_largest_of_a_cost_that_is_stated_twice_counts(place: str, escaped: str) -> None:
    large = PLACES[place](0.1)
    for other in (PLACES[place](0.000001), *JUNK):
        for members in twice(large, other, escaped):
            assert charged(members) == pytest.approx(0.1), members
            assert charged(members, PRICES) == pytest.approx(0.1), members
    for members in twice(PLACES[place](0.000001), large, escaped):
        assert charged(members) == pytest.approx(0.1), members


COUNTS = st.integers(1, 10**6)
TOKENS = st.fixed_dictionaries(
    {},
    optional={"prompt_tokens": COUNTS, "completion_tokens": COUNTS, "total_tokens": COUNTS},
)


@given(TOKENS, TOKENS, st.floats(0, 1), st.sampled_from([PRICES, GPT_5_4]))
def test_tokens_that_are_stated_twice_cost_as_the_dearer(
    one: Mapping[str, Any], other: Mapping[str, Any], share: float, prices: TokenPrices
) -> None:
    cached = int(share * one.get("prompt_tokens", 0))
    cheaper = {**one, "prompt_tokens_details": {"cached_tokens": cached}}
    alone = [
        charge_for(usage_of({"usage": each}), prices, None).cost or 0.0 for each in (cheaper, other)
    ]
    for usages in ((cheaper, other), (other, cheaper)):
        both = ", ".join(f'"usage": {json.dumps(usage)}' for usage in usages)
        assert charged(both, prices) >= max(alone) * (1 - 1e-9)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_reply_without_such_a_key_stays(reply: Any) -> None:
    assert parse_reply(json.dumps(reply).encode()) == reply


def test_of_what_costs_nothing_the_last_stays() -> None:
    body = b'{"model": "a", "model": "b", "n": [{"index": 2, "index": 1, "usage": 1}], "usage": {}}'
    assert parse_reply(body) == {"model": "b", "n": [{"index": 1, "usage": 1}], "usage": {}}


def test_errors_and_runs_count_the_largest_too() -> None:
    stated = '"usage": {"cost": 0.1, "cost": 0.000001}, "usage": {"cost": 0.000001}'
    failed = error_of(f'{{"error": "late", {stated}}}'.encode(), 500, "", None)
    assert failed.usage.stated == 0.1
    with ChatServer(in_turn(Answer(f"{{{CHOICES}, {stated}}}".encode()))) as server:
        budget = Budget(0.25)
        service = HttpService(model_of(None), [Endpoint(server.url)], budget=budget, policy=QUICK)
        ask_calls(service, 5)
        assert len(server.asked) == 2
    assert budget.spent == pytest.approx(0.2)
