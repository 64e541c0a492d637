"""What replies are charged: servers state costs and tokens wrongly, or not at all."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from asking import QUESTION, QUICK, WORDS, ask_calls, call_of
from chat_server import Answer, ChatServer, error, in_turn
from few_fast import every_nth_fast
from hypothesis import given, settings
from hypothesis import strategies as st

from vlmeval_findit.engine import HttpService
from vlmeval_findit.models import (
    Budget,
    CallError,
    Charge,
    ChatCall,
    ChatModel,
    Endpoint,
    MostTokens,
    SpendingError,
    TokenPrices,
    Usage,
    charge_for,
    chat_model,
    error_of,
    judge_response,
    prices_from,
    token_counts,
    usage_of,
)
from vlmeval_findit.protocol import StopReason

PRICES = prices_from("10,50")
GIVEN = "given prices 10/50"
BOX = '[{"bbox": [100, 100, 500, 500]}]'


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2}, {"prompt": 9, "completion": 2}),
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}, {"completion": 2}),
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 3}, {"completion": 2}),
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 51}, {"completion": 42}),
        (
            {"prompt_tokens": 9, "completion_tokens": 2,
             "completion_tokens_details": {"reasoning_tokens": 40}},
            {"completion": 42, "reasoning": 40},
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 50, "total_tokens": 89,
             "completion_tokens_details": {"reasoning_tokens": 30}},
            {"completion": 80},
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 50, "total_tokens": 59,
             "completion_tokens_details": {"reasoning_tokens": 30}},
            {"completion": 50},
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "cache_read_input_tokens": 90,
             "cache_creation_input_tokens": 5},
            {"prompt": 104, "completion": 2},
        ),
        (
            {"input_tokens": 100, "output_tokens": 2, "cache_read_input_tokens": 90},
            {"prompt": 190, "cached": 90, "completion": 2},
        ),
        (
            {"promptTokenCount": 9, "candidatesTokenCount": 50, "thoughtsTokenCount": 30},
            {"prompt": 9, "completion": 80, "reasoning": 30},
        ),
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": "51"}, {"completion": 42}),
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": "5,1"}, {"completion": None}),
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": -1}, {"completion": None}),
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 10**400},
         {"completion": None}),
        ({"prompt_tokens": True, "completion_tokens": False}, {"prompt": None}),
        ({"prompt_tokens": 9.0, "completion_tokens": None}, {"prompt": 9, "completion": None}),
        ({"prompt_tokens": 9.5, "completion_tokens": 2}, {"prompt": None, "completion": 2}),
        ({"prompt_tokens": 9, "total_tokens": 11}, {"prompt": 9, "completion": 2}),
        ({"prompt_tokens": 9, "completion_tokens": "?", "total_tokens": 11}, {"completion": None}),
        ({"prompt_tokens": 11, "total_tokens": 11}, {"prompt": 11, "completion": None}),
        ({"completion_tokens": 2, "total_tokens": 11}, {"prompt": None, "completion": 2}),
        ({"total_tokens": 11}, {"prompt": None, "completion": None}),
        # Portkey: Anthropic's caches are apart, and in the total
        (
            {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 210,
             "cache_read_input_tokens": 90},
            {"prompt": 190, "cached": 90, "completion": 20},
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 210,
             "prompt_tokens_details": {"cached_tokens": 90},
             "completion_tokens_details": {"reasoning_tokens": 90}},
            {"prompt": 100, "cached": 90, "completion": 110},
        ),
        # LiteLLM: null where another field states it
        (
            {"prompt_tokens": 100, "completion_tokens": 20, "reasoning_tokens": 90,
             "prompt_tokens_details": {"cached_tokens": None}, "cache_read_input_tokens": 90,
             "completion_tokens_details": {"reasoning_tokens": None}},
            {"prompt": 100, "cached": 90, "completion": 110},
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
             "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36},
            {"prompt": 100, "cached": 64, "completion": 20},
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 64},
            {"prompt": 100, "cached": 64, "completion": 20},
        ),
    ],
)  # fmt: skip
def test_tokens_that_are_counted_apart_are_added(
    usage: Mapping[str, Any], counts: Mapping[str, int | None]
) -> None:
    read = token_counts(usage)
    assert {name: read.get(name) for name in counts} == counts


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.05}, 0.05),
        ({"cost": 0.05, "cost_details": {"upstream_inference_cost": 0.04}}, 0.05),
        ({"cost": 0.05, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.05}}, 0.05),
        ({"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.05}}, 0.05),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.2}}, 0.21),
        ({"cost": 0, "cost_details": {"upstream_inference_cost": 0.05}}, 0.05),
        ({"cost": 0, "is_byok": True}, None),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": None}}, 0.01),
        ({"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": 0}}, None),
        ({"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": -1}}, None),
        ({"cost": 0, "is_byok": True, "cost_details": [0.05]}, 0.05),
        ({"cost": 0}, 0.0),
        ({"cost": -0.05}, None),
        ({"cost": "0.05"}, 0.05),
        ({"cost": "five"}, None),
        ({"cost": "1.2.3"}, None),
        ({"cost": True}, None),
        ({"cost": float("nan")}, None),
        ({"cost": {"total_cost": 0.05}}, 0.05),  # Perplexity
        ({"cost": {"total_cost": None, "currency": "USD"}}, None),
        ({"cost_in_usd_ticks": 37_756_000}, 0.0037756),  # xAI
        ({"cost_in_usd_ticks": -1}, None),
        ({}, None),
    ],
)
def test_costs_as_services_state_them(usage: Mapping[str, Any], cost: float | None) -> None:
    stated = usage_of({"usage": usage}).stated
    assert stated == (cost if cost is None else pytest.approx(cost))


@pytest.mark.parametrize(
    ("stated", "reply", "counts"),
    [
        ((0, 0), "[]", {}),  # OpenVINO's server
        ((0, 7), "[]", {"completion": 7}),
        ((9, 0), "[]", {"prompt": 9}),
        ((9, 0), "", {"prompt": 9, "completion": 0}),
        ((9, 7), "[]", {"prompt": 9, "completion": 7}),
    ],
)
def test_zeros_of_servers_that_do_not_count_are_absent(
    stated: tuple[int, int], reply: str, counts: Mapping[str, int]
) -> None:
    prompt, completion = stated
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    message = {"content": reply}
    assert usage_of({"usage": usage, "choices": [{"message": message}]}).tokens == counts


@pytest.mark.parametrize(
    ("usage", "prices", "charged"),
    [
        (Usage(0.05, {"prompt": 9, "completion": 9}), PRICES, Charge(0.05)),
        # Less than the list's price, as with a discount
        (Usage(0.005, {"prompt": 1000, "completion": 20}), PRICES, Charge(0.005)),
        # A part is missing in it
        (Usage(0.005, {"prompt": 1000, "completion": 20}, is_partial=True), PRICES,
         Charge(0.011, GIVEN)),
        (Usage(0.02, {"prompt": 1000, "completion": 20}, is_partial=True), PRICES, Charge(0.02)),
        (Usage(0.0), None, Charge(0.0)),
        (Usage(0.0, {"prompt": 1000, "completion": 20}), PRICES, Charge(0.011, GIVEN)),
        (Usage(0.0), PRICES, Charge(7.0, GIVEN, is_guess=True, is_unseen=True)),
        (Usage(None, {"prompt": 9}), PRICES, Charge(7.0, GIVEN, is_guess=True, is_unseen=True)),
        (Usage(None, {"prompt": 1000, "completion": 0}), PRICES, Charge(0.01, GIVEN)),
        (Usage(None, {"completion": 20}), PRICES,
         Charge(7.0, GIVEN, is_guess=True, is_unseen=True)),
        (Usage(None, {"prompt": 9, "completion": 9}), None, Charge(None)),
    ],
)  # fmt: skip
def test_stated_then_tokens_then_the_most(
    usage: Usage, prices: TokenPrices | None, charged: Charge
) -> None:
    assert charge_for(usage, prices, None if prices is None else 7.0) == charged


@pytest.mark.parametrize(
    ("usage", "prices", "charged"),
    [
        (Usage(0.02), None, Charge(0.02)),
        (Usage(), PRICES, Charge(7.0, GIVEN, is_guess=True, is_unseen=True)),
        (Usage(), None, Charge(0.05, is_guess=True, is_unseen=True)),
    ],
)
def test_an_incomplete_reply_costs_at_most_the_dearest(
    usage: Usage, prices: TokenPrices | None, charged: Charge
) -> None:
    assert charge_for(usage, prices, None if prices is None else 7.0, dearest=0.05) == charged
    if prices is None and usage.stated is None:
        assert charge_for(usage, prices, None, dearest=0.0) == Charge(None), "nothing was paid yet"


def test_what_is_free_stays_free() -> None:
    assert charge_for(Usage(0.0), prices_from("0,0"), 0.0).cost == 0.0


# --- usage of which a part is read ----------------------------------------------------------------

NAMES = [
    ("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens"),
    ("promptTokenCount", "candidatesTokenCount"), ("inputTokens", "outputTokens"),
    ("prompt_eval_count", "eval_count"),
]  # fmt: skip
UNREAD: list[object] = [None, "?", "7,5", "1e4x", 7.5, -1, True, {}, [], float("nan"), 10**400]


def paid_for(usage: Mapping[str, Any], share: float = 1.0) -> tuple[ChatCall, float]:
    """Pay for a reply with this usage; return its call, and the most that we estimate."""
    outcome = judge_response(200, body(usage)).outcome
    assert not isinstance(outcome, CallError)
    call = ChatCall(model_of(PRICES), Budget(), WORDS, QUESTION, request=REQUEST)
    call.pay(outcome.usage, share)
    return call, (call.at_most() or 0.0) * share


@pytest.mark.parametrize("names", NAMES, ids=str)
@pytest.mark.parametrize("count", [7, 100_000.0, "100000", "1E+5"], ids=repr)
def test_tokens_that_are_read_count_with_the_most_of_others(
    names: tuple[str, str], count: Any
) -> None:
    sent, answered = names
    for unread, share in product(UNREAD, [1.0, 0.5]):
        usage = {sent: count, answered: unread}
        call, at_most = paid_for(usage, share)
        least = (float(count) * 10 + MOST * 50) / 1e6 * share
        assert call.cost == pytest.approx(max(at_most, least)), usage
        assert call.guesses == 1
        usage = {answered: count, sent: unread}
        call, at_most = paid_for(usage, share)
        assert (call.cost or 0.0) >= max(at_most, float(count) * 50 / 1e6 * share), usage


@pytest.mark.parametrize("prices", ["10,50", "50,10", "10,0", "0,10"])
def test_a_sum_of_tokens_costs_at_least_its_cheapest_split(prices: str) -> None:
    sent, answered = (float(price) for price in prices.split(","))
    for usage in (
        {},
        {"prompt_tokens": 10},
        {"completion_tokens": 10},
        {"prompt_tokens": 10, "completion_tokens": "?"},
    ):
        read = usage_of({"usage": {**usage, "total_tokens": 10_000}})
        charged = charge_for(read, prices_from(prices), 0.0001, most=MostTokens(100, 200))
        assert (charged.cost or 0.0) >= 9_800 * min(sent, answered) / 1e6
        if not usage:
            assert (charged.cost or 0.0) >= 9_800 * sent / 1e6, "its limit holds"


# --- any sequence of replies keeps the limit ------------------------------------------------------


def body(usage: object, content: object = BOX, **more: Any) -> bytes:
    choice = {"message": {"content": content}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], "usage": usage, **more}).encode()


def counted(prompt: object, completion: object, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, **more}


Reporter = Callable[[int, float], bytes]
"""How a service reports a call of so many tokens answered to one prompt token, and its cost."""

REPORTERS: Mapping[str, Reporter] = {
    "a cost": lambda out, usd: body({"cost": usd}),
    "tokens": lambda out, usd: body(counted(1, out)),
    "both": lambda out, usd: body(counted(1, out, cost=usd)),
    "zeros": lambda out, usd: body(counted(0, 0, total_tokens=0)),
    "no tokens sent": lambda out, usd: body(counted(0, out)),
    "no tokens answered": lambda out, usd: body(counted(1, 0)),
    "zeros, thought alone": lambda out, usd: body(
        counted(0, 0), None, choices=[{"message": {"reasoning": "hm"}, "finish_reason": "length"}]
    ),
    "tokens sent alone": lambda out, usd: body({"prompt_tokens": 1}),
    "tokens answered alone": lambda out, usd: body({"completion_tokens": out}),
    "tokens in all alone": lambda out, usd: body({"total_tokens": 1 + out}),
    "negative": lambda out, usd: body(counted(-1, -out, total_tokens=-1)),
    "text": lambda out, usd: body(counted("1", str(out), cost=str(usd))),
    "fractions": lambda out, usd: body(counted(1.0, float(out))),
    "true": lambda out, usd: body(counted(True, True, cost=True)),
    "huge": lambda out, usd: body(counted(10**400, 10**400)),
    "nothing": lambda out, usd: body(None),
    "a list": lambda out, usd: body([usd]),
    "negative cost": lambda out, usd: body(counted(1, out, cost=-usd)),
    "no number": lambda out, usd: body(counted(1, out, cost=float("nan"))),
    "zero cost": lambda out, usd: body(counted(1, out, cost=0, is_byok=True)),
    "own key": lambda out, usd: body(
        {"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": usd}}
    ),
    "own key and a fee": lambda out, usd: body(
        {"cost": usd / 4, "is_byok": True, "cost_details": {"upstream_inference_cost": usd * 3 / 4}}
    ),
    "thoughts in the total": lambda out, usd: body(counted(1, 1, total_tokens=1 + out)),
    "thoughts apart": lambda out, usd: body(
        counted(1, 1, completion_tokens_details={"reasoning_tokens": out - 1})
    ),
    "no choices": lambda out, usd: body(counted(1, out), choices=[]),
    "no choices, no usage": lambda out, usd: body(None, choices=[]),
    "another shape": lambda out, usd: body(None, [{"type": "hologram"}]),
    "another shape, with a cost": lambda out, usd: body({"cost": usd}, [{"type": "text"}]),
    "aborted": lambda out, usd: body(
        counted(1, out), choices=[{"message": {"content": "["}, "finish_reason": "abort"}]
    ),
    "an error and tokens": lambda out, usd: body(counted(1, out), error={"message": "late"}),
    "cut": lambda out, usd: body({"cost": usd})[:-30],
    "a page": lambda out, usd: b"<html>",
    "events": lambda out, usd: b'data: {"choices": []}',
    "empty": lambda out, usd: b"",
    "no object": lambda out, usd: b"[1]",
    "deep": lambda out, usd: body({"cost": usd})[:-1] + b', "x": ' + b"[" * 99999,
    "long number": lambda out, usd: body({"cost": usd})[:-1] + b', "x": ' + b"9" * 5000 + b"}",
}


def model_of(prices: TokenPrices | None) -> ChatModel:
    return replace(chat_model("Qwen3-VL"), prices=prices)


MOST = model_of(PRICES).max_tokens(QUESTION)
REQUEST = model_of(PRICES).request(WORDS, QUESTION)
# Attempts without a reply, or with one that is no answer: what a service may still charge
FAILURES: Mapping[str, CallError] = {
    "no reply in time": CallError("no reply within 600 s", transient=True, worked_on=True),
    "an answer that is lost": CallError("its answer is lost: x", worked_on=True),
    "a gateway that waited": error_of(b"", 504, "Gateway Timeout", None),
}
ATTEMPTS = st.tuples(st.sampled_from([*sorted(REPORTERS), *FAILURES]), st.integers(3, MOST))


def paid(call: ChatCall, kind: str, out: int, usd: float) -> None:
    outcome = (
        FAILURES[kind]
        if kind in FAILURES
        else judge_response(200, REPORTERS[kind](out, usd)).outcome
    )
    if isinstance(outcome, CallError):
        call.fail(outcome)
    else:
        call.pay(outcome.usage)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(ATTEMPTS, max_size=40),
    st.integers(1, 8),
    st.floats(0.001, 1.0),
    st.sampled_from([PRICES, None]),
)
def test_spending_stays_within_limit_plus_calls_in_flight(
    attempts: list[tuple[str, int]], at_once: int, limit: float, prices: TokenPrices | None
) -> None:
    budget, model = Budget(limit), model_of(prices)
    left = deque(attempts)
    flying = deque[tuple[str, int]]()
    ended = 0.0  # really spent on calls that have ended
    try:
        while left or flying:
            while left and len(flying) < at_once and budget.begin():
                assert ended <= limit * (1 + 1e-9), "no call begins beyond the limit"
                flying.append(left.popleft())
            kind, out = flying.popleft()
            usd = (1 * 10 + out * 50) / 1e6
            if kind in FAILURES and prices is None:
                usd = budget.dearest  # nothing says what it costs
            call = ChatCall(model, budget, WORDS, QUESTION, request=REQUEST)
            paid(call, kind, out, usd)
            assert call.cost is None or call.cost >= usd * (1 - 1e-9), kind
            budget.end(call.cost)
            ended += usd
    except SpendingError:
        assert not flying


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 5000), st.integers(1, MOST)), max_size=40),
    st.integers(1, 8),
    st.floats(0.001, 2.0),
)
def test_lost_replies_cost_at_least_what_was_seen(
    calls: list[tuple[bool, int, int]], at_once: int, limit: float
) -> None:
    """Drawn books of a service that counts other tokens than we estimate, and loses replies."""
    budget, model = Budget(limit), model_of(PRICES)
    left = deque(calls)
    flying = deque[tuple[bool, int, int]]()
    lost = []  # dollars by the service's books
    read = [0.0]
    try:
        while left or flying:
            while left and len(flying) < at_once and budget.begin():
                flying.append(left.popleft())
            is_lost, prompt, out = flying.popleft()
            usd = (prompt * 10 + out * 50) / 1e6
            call = ChatCall(model, budget, WORDS, QUESTION, request=REQUEST)
            at_most = call.at_most() or 0.0
            if is_lost:
                call.fail(FAILURES["no reply in time"])
                lost.append(usd)
            else:
                call.pay(Usage(None, {"prompt": prompt, "completion": out}))
                read.append(usd)
            budget.end(call.cost, call.guessed, call.guesses)
            seen = max(at_most, *read)
            books = sum(read) + sum(min(each, seen) for each in lost)
            assert budget.spent >= books * (1 - 1e-9)
    except SpendingError:
        assert not flying
    assert budget.guessed >= sum(min(each, max(read)) for each in lost) * (1 - 1e-9)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.booleans(), min_size=1, max_size=40),
    st.tuples(st.integers(1, 5000), st.integers(1, MOST)),
    st.integers(1, 8),
    st.floats(1.0, 12.0),
)
def test_a_limit_holds_once_a_reply_was_read(
    lost: list[bool], tokens: tuple[int, int], at_once: int, times: float
) -> None:
    """All calls cost the same, more than we estimate or less."""
    usd = (tokens[0] * 10 + tokens[1] * 50) / 1e6
    limit = times * usd
    budget, model = Budget(limit), model_of(PRICES)
    left = deque(lost)
    flying = deque[bool]()
    begun = 0
    is_read = False
    try:
        while left or flying:
            while left and len(flying) < at_once and budget.begin():
                flying.append(left.popleft())
                begun += 1
                assert not is_read or begun * usd <= limit * (1 + 1e-6)
            call = ChatCall(model, budget, WORDS, QUESTION, request=REQUEST)
            if flying.popleft():
                call.fail(FAILURES["an answer that is lost"])
            else:
                call.pay(Usage(None, {"prompt": tokens[0], "completion": tokens[1]}))
                is_read = True
            budget.end(call.cost, call.guessed, call.guesses)
    except SpendingError:
        assert not flying


def test_each_model_has_its_dearest_answer() -> None:
    budget = Budget()
    guess = Charge(0.1, is_guess=True, is_unseen=True)
    assert budget.at_least_seen("A", guess) == guess
    assert budget.at_least_seen("B", Charge(0.5)) == Charge(0.5)
    assert budget.is_estimated, "what answers of B cost says nothing of A"
    assert (budget.spent, budget.at_least_seen("A", guess).cost) == (0.0, 0.1)
    budget.at_least_seen("A", Charge(0.25))
    assert (budget.spent, budget.guessed) == (pytest.approx(0.3), pytest.approx(0.3))
    assert budget.at_least_seen("A", guess).cost == 0.25
    assert not budget.is_estimated
    budget.at_least_seen("A", Charge(0.35))
    assert budget.spent == pytest.approx(0.3 + 3 * 0.1), "all three are raised"


# --- servers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", every_nth_fast(sorted(REPORTERS), 3))
def test_a_run_ends_at_its_limit_however_a_server_reports(kind: str) -> None:
    """Twenty calls of $0.05 each: four, or fewer where the most is assumed."""
    usd = 0.05
    budget = Budget(4 * usd)
    model = model_of(prices_from(f"0,{usd / 100 * 1e6}"))
    reply = Answer(REPORTERS[kind](100, usd))
    with ChatServer(in_turn(reply)) as server:
        service = HttpService(model, [Endpoint(server.url)], budget=budget, policy=QUICK)
        answers = ask_calls(service, 20, images=["one"] * 20)
        assert len(server.asked) <= 4
    assert answers[-1].stop is StopReason.SPENT
    assert "the next call could pass the limit of $0.2" in (answers[-1].error or "")
    assert budget.spent >= usd * len(server.asked) * (1 - 1e-9)


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 524, 529])
def test_a_failure_behind_a_gateway_may_have_cost(status: int) -> None:
    model = model_of(prices_from("0,500"))
    at_most = MOST * 500 / 1e6
    with ChatServer(in_turn(error(status, "no"))) as server:
        budget = Budget(at_most * 1.5)
        ask_calls(HttpService(model, [Endpoint(server.url)], budget=budget, policy=QUICK))
        is_paid = status not in (503, 529)
        assert (len(server.asked) == 1) == is_paid
    assert budget.spent == pytest.approx(at_most if is_paid else 0.0)


def test_an_error_with_another_status_costs_what_it_states() -> None:
    reply = json.dumps({"error": {"message": "late"}, "usage": counted(1000, 1000)}).encode()
    budget = Budget(1.0)
    with ChatServer(in_turn(Answer(reply, 400))) as server:
        service = HttpService(model_of(PRICES), [Endpoint(server.url)], budget=budget, policy=QUICK)
        (answer,) = ask_calls(service)
    assert budget.spent == pytest.approx(0.06)
    assert call_of(answer)["cost_from"] == GIVEN


def test_an_answer_at_its_greatest_price_names_the_prices() -> None:
    reply = json.dumps({"choices": [{"message": {"content": BOX}, "finish_reason": "stop"}]})
    with ChatServer(in_turn(Answer(reply.encode()))) as server:
        service = HttpService(model_of(PRICES), [Endpoint(server.url)], policy=QUICK)
        (answer,) = ask_calls(service)
    call = call_of(answer)
    assert call["cost"] == call["cost_guessed"] > 0
    assert call["cost_from"] == GIVEN, "nothing was stated by the service"


def test_an_error_that_was_reported_before_any_work_is_free() -> None:
    budget = Budget(1.0)
    reply = Answer(json.dumps({"error": {"code": 400, "message": "no"}}).encode())
    with ChatServer(in_turn(reply)) as server:
        service = HttpService(model_of(PRICES), [Endpoint(server.url)], budget=budget, policy=QUICK)
        ask_calls(service, 2)
    assert budget.spent == 0.0


def test_an_unpriceable_reply_ends_a_limited_run() -> None:
    budget = Budget(1.0)
    with ChatServer(in_turn(Answer(b"<html>"))) as server:
        service = HttpService(model_of(None), [Endpoint(server.url)], budget=budget, policy=QUICK)
        answers = ask_calls(service, 4, images=["one"] * 4)
        assert len(server.asked) == 1
    assert "does not say what calls cost" in (answers[-1].error or "")


@pytest.mark.parametrize("key", ["total_tokens", "totalTokenCount", "totalTokens"])
@pytest.mark.parametrize("count", [500, "500", 500.0])
def test_a_sum_of_tokens_alone_counts_at_the_most(key: str, count: object) -> None:
    usage = usage_of({"usage": {key: count}})
    assert usage.says_something
    charged = charge_for(usage, PRICES, 0.04)
    assert (charged.cost, charged.is_guess) == (0.04, True)
    assert not usage_of({"usage": {key: 0}}).says_something
