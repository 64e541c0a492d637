"""A call never costs less than any amount that its reply states, wherever and however it does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any
from unittest.mock import Mock

import pytest
from asking import QUICK, ask_call, ask_calls, call_of
from chat_server import Answer, ChatServer, in_turn
from few_fast import every_nth_fast
from hypothesis import given
from hypothesis import strategies as st
from test_charges import PRICES, model_of

from vlmeval_findit.engine import HttpService
from vlmeval_findit.models import (
    RESPONSE_HEADERS,
    AnthropicBatches,
    BatchService,
    Budget,
    Endpoint,
    amount_of,
    charge_for,
    is_implausible,
    read_headers,
    usage_of,
)
from vlmeval_findit.protocol import USUAL_THOUGHTS

Reply = dict[str, Any]

TOKENS = {"prompt_tokens": 1000, "completion_tokens": 20}

PLACES: Mapping[str, Callable[[Any], Reply]] = {
    "usage.cost": lambda cost: {"usage": {"cost": cost}},
    "usage.total_cost": lambda cost: {"usage": {"total_cost": cost}},
    "usage.estimated_cost": lambda cost: {"usage": {"estimated_cost": cost}},
    "otari": lambda cost: {"usage": {"cost_usd": cost}},
    "LLM Gateway": lambda cost: {"usage": {"cost_usd_total": cost, "cost_usd_request": 0}},
    "Vercel": lambda cost: {"usage": {"cost": 0, "market_cost": cost}},
    "UiPath": lambda cost: {"associated_dollar_cost": cost},
    "NanoGPT": lambda cost: {"x_nanogpt_pricing": {"cost": cost, "currency": "USD"}},
    "NanoGPT, Anthropic": lambda cost: {"x_nanogpt_pricing": {"amount": cost}},
    "Auriko": lambda cost: {"routing_metadata": {"cost": {"usd": cost}}},
    "cost": lambda cost: {"cost": cost},
    "total_cost": lambda cost: {"total_cost": cost},
    "estimated_cost": lambda cost: {"estimated_cost": cost},
    "cost_details": lambda cost: {"cost_details": {"total": cost}},
    "usage.cost_details": lambda cost: {"usage": {"cost_details": {"total": cost}}},
    "a header": lambda cost: {
        RESPONSE_HEADERS: {
            "x-litellm-response-cost": cost if isinstance(cost, str) else json.dumps(cost)
        }
    },
    "the user's key": lambda cost: {
        "usage": {"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": cost}}
    },
}

SHAPES: Mapping[str, Callable[[float], Any]] = {
    "a number": lambda usd: usd,
    "text": str,
    "text with a sign": lambda usd: f"${usd:.9f}",
    "text with a unit": lambda usd: f"{usd:.9f} USD",
    "text after a unit": lambda usd: f"USD {usd:.9f}",
    "a list of one": lambda usd: [usd],
    "an object": lambda usd: {"request_cost": usd / 2, "input_tokens_cost": 0, "total_cost": usd},
    "parts": lambda usd: {"input_tokens_cost": usd / 4, "output_tokens_cost": usd * 3 / 4},
    "parts of a total of 0": lambda usd: {"input_cost": usd, "total_cost": 0},
}
OBJECTS = ("a list of one", "an object", "parts", "parts of a total of 0")
WHOLE_OR_TEXT = ("a header", "the user's key", "cost_details", "usage.cost_details")
ONE_FIELD = {
    "usage.cost",
    "Vercel",
    "NanoGPT",
    "NanoGPT, Anthropic",
    "the user's key",
    "usage.cost_details",
}  # one or two of the same
CASES = [
    (place, shape)
    for place, shape in product(PLACES, SHAPES)
    if not (place in WHOLE_OR_TEXT and shape in OBJECTS)
]


def with_tokens(reply: Reply, *, counted: bool) -> Reply:
    if not counted:
        return reply
    return {**reply, "usage": {**reply.get("usage", {}), **TOKENS}}


@given(usd=st.floats(1e-6, 100.0), counted=st.booleans())
def test_no_stated_amount_is_missed(usd: float, counted: bool) -> None:
    """In every place and shape, so that none depends on being drawn."""
    for place, shape in CASES:
        usage = usage_of(with_tokens(PLACES[place](SHAPES[shape](usd)), counted=counted))
        for prices in (None, PRICES):
            charged = charge_for(usage, prices, None if prices is None else 1000.0)
            assert charged.cost is not None, (place, shape)
            assert charged.cost >= usd * (1 - 1e-3), (place, shape, prices)
        assert usage.stated is not None, (place, shape)
        assert abs(usage.stated - usd) <= 1e-3 * usd, (place, shape)


@given(st.lists(st.tuples(st.sampled_from(CASES), st.floats(1e-6, 9.0)), min_size=1, max_size=4))
def test_the_largest_of_several_amounts_counts(stated: list[tuple[tuple[str, str], float]]) -> None:
    reply: Reply = {}
    dollars = {}
    for (place, shape), usd in stated:
        if place in dollars or len({place, *dollars} & ONE_FIELD) > 1:
            continue
        dollars[place] = usd
        for key, value in PLACES[place](SHAPES[shape](usd)).items():
            is_joined = key in ("usage", RESPONSE_HEADERS)
            reply[key] = {**reply.get(key, {}), **value} if is_joined else value
    assert (usage_of(reply).stated or 0.0) >= max(dollars.values()) * (1 - 1e-3)


@pytest.mark.parametrize(
    "value",
    [None, True, -0.05, "-0.05", "", "None", "free", "1.2.3", float("nan"), float("inf"), 10**400,
     [], {}, {"currency": "USD"}, {"total_tokens": 1020}, {"total_cost": "?"}],
)  # fmt: skip
def test_what_is_no_amount_is_not_read(value: object) -> None:
    assert amount_of(value) is None


UNREAD = ["0,02", "1,234.56", "0.02 EUR", "free", "1.2.3", -0.05, True, 10**400, float("nan"),
          [0.01, 0.02], ["?"], {"sum": 0.02}, {"total_cost": "0,02"},
          {"input_cost": 0.01, "output_cost": "?"}, {"total_cost": 0.01, "output_cost": [0.02]},
          {"input": {"cost": 0.02}}]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", every_nth_fast(UNREAD, 3), ids=str)
def test_an_unread_amount_counts_at_the_greatest_cost(place: str, value: object) -> None:
    usage = usage_of(with_tokens(PLACES[place](value), counted=True))
    assert usage.unread, "it is named"
    charged = charge_for(usage, PRICES, 7.0)
    assert (charged.cost, charged.is_guess) == (7.0, True)
    assert charge_for(usage, PRICES, 7.0, share=0.5).cost == 3.5
    assert charge_for(replace(usage, stated=9.0), PRICES, 7.0).cost == 9.0
    assert charge_for(replace(usage, stated=None), None, None).cost is None


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", [None, "", "None", "null", 0, 0.0])
def test_where_no_amount_is_stated_tokens_count(place: str, value: Any) -> None:
    usage = usage_of(with_tokens(PLACES[place](value), counted=True))
    assert usage.unread == ""
    assert charge_for(usage, PRICES, 7.0).cost == pytest.approx(0.011)


@pytest.mark.parametrize(
    ("value", "dollars"),
    [("0.02, 0.03", 0.03), ("0.03, 0.02", 0.03), ("0.02, None", 0.02), ("$0.02, USD 0.03", 0.03)],
)
def test_of_a_header_that_came_twice_the_larger_counts(value: str, dollars: float) -> None:
    assert usage_of({RESPONSE_HEADERS: {"x-litellm-response-cost": value}}).stated == dollars
    half_read = {RESPONSE_HEADERS: {"x-litellm-response-cost": f"{value}, ?"}}
    assert usage_of(half_read).unread == "header x-litellm-response-cost '?'"


@pytest.mark.parametrize(
    "name",
    ["x-litellm-response-cost", "X-OmniRoute-Response-Cost", "x-bifrost-cost-usd", "Helicone-Cost",
     "x-nr-request-cost", "X-Request-Cost"],
)  # fmt: skip
@pytest.mark.parametrize("value", ["0.05", "0.05 USD", "$0.05"])
def test_costs_in_headers_count(name: str, value: str) -> None:
    headers = read_headers({name: value, "X-Request-Id": "7"})
    assert usage_of({RESPONSE_HEADERS: headers}).stated == 0.05


def test_cents_are_no_dollars() -> None:
    assert usage_of({"usage": {"usd_cents": 5}}).stated == 0.05


@pytest.mark.parametrize(
    ("reply", "named"),
    [
        ({"usage": {"price_eur": 0.05}}, "usage.price_eur 0.05"),
        ({"usage": {"cost_points": 12}}, "usage.cost_points 12"),
        ({"usage": {"prompt_cost": "0.05"}}, "usage.prompt_cost '0.05'"),
        ({"charged": 0.05}, "charged 0.05"),
        ({"usage": {"total_spend": 0.05}}, "usage.total_spend 0.05"),
        ({"usage": {"prompt_cost": 0.05, "cost": 0.05}}, ""),
        ({"usage": {"prompt_cost": 0, "pricing_source": "defaults"}, "costume": "none"}, ""),
    ],
)
def test_a_cost_under_an_unknown_name_is_named(reply: Reply, named: str) -> None:
    usage = usage_of(with_tokens(reply, counted=True))
    assert usage.unread == named
    if named:
        assert charge_for(usage, PRICES, 7.0).cost == 7.0


def test_both_headers_of_one_name_are_read() -> None:
    twice = [("X-LiteLLM-Response-Cost", "0.03"), ("x-litellm-response-cost", "0.02")]
    assert read_headers(Mock(items=lambda: twice)) == {"x-litellm-response-cost": "0.03, 0.02"}


@pytest.mark.parametrize(
    ("usage", "stated", "is_partial"),
    [
        # security/02: OpenRouter with the user's key of a provider
        ((0.01, True, {"upstream_inference_cost": 0.04}), 0.05, False),
        ((0.01, True, {"upstream_inference_cost": None, "upstream_inference_prompt_cost": 0.03,
                       "upstream_inference_completions_cost": 0.01}), 0.05, False),
        ((0, True, {"upstream_inference_prompt_cost": 0.03,
                    "upstream_inference_completions_cost": 0.02}), 0.05, False),
        ((0, True, {"upstream_inference_prompt_cost": 0.03}), 0.03, True),
        ((0.05, True, {"upstream_inference_cost": 0}), 0.05, True),
        ((0.05, True, None), 0.05, True),
        ((None, True, {"upstream_inference_cost": 0.05}), 0.05, True),
        (("0.01", "yes", {"upstream_inference_cost": "0.04"}), 0.05, False),
        (({"total_cost": 0.01}, True, {"upstream_inference_cost": 0.04}), 0.05, False),
        ((0.02, False, {"upstream_inference_cost": 0.05}), 0.05, False),
    ],
)  # fmt: skip
def test_a_fee_and_what_the_provider_takes_are_added(
    usage: tuple[Any, Any, Any], stated: float, is_partial: bool
) -> None:
    cost, is_byok, details = usage
    said = {"cost": cost, "is_byok": is_byok, "cost_details": details}
    read = usage_of({"usage": said})
    assert (read.stated, read.is_partial) == (pytest.approx(stated), is_partial)
    counted = usage_of({"usage": {**said, "prompt_tokens": 9000, "completion_tokens": 20}})
    charged = charge_for(counted, PRICES, 7.0)
    assert charged.cost == pytest.approx(max(stated, 0.091) if is_partial else stated)


# --- token counts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        {"usage": {"prompt_tokens": 330, "completion_tokens": 40}},
        {"usage": {"input_tokens": 330, "output_tokens": 40}},
        {"usage": {"promptTokenCount": 330, "candidatesTokenCount": 40}},
        {"usage": {"promptTokenCount": 330, "candidatesTokenCount": 35, "thoughtsTokenCount": 5}},
        {"usageMetadata": {"promptTokenCount": 330, "candidatesTokenCount": 40}},
        {"usage": {"inputTokens": 330, "outputTokens": 40, "totalTokens": 370}},
        {"usage": {"input_tokens": 30, "cache_read_input_tokens": 300, "output_tokens": 40}},
        {"usage": {"input_tokens": 330, "input_tokens_details": {"cached_tokens": 300},
                   "output_tokens": 40}},
        {"usage": {"prompt_tokens": None, "input_tokens": 330, "completion_tokens": None,
                   "output_tokens": 40}},
        {"usage": {"prompt_tokens": 0, "input_tokens": 330, "output_tokens": 40}},
        {"usage": {"prompt_tokens": "330", "completion_tokens": "40.0"}},
        {"usage": {"prompt_tokens": 330.0, "completion_tokens": " 40 "}},
        {"usage": {"prompt_tokens": 330, "total_tokens": 370}},
        {"usageMetadata": {"promptTokenCount": "330", "candidatesTokenCount": 35.0,
                           "thoughtsTokenCount": "5"}},
        {"usage": {"input_tokens": "30", "cache_read_input_tokens": 3e2, "output_tokens": "40"}},
        {"prompt_eval_count": 330, "eval_count": 40},
    ],
)  # fmt: skip
def test_tokens_are_read_under_their_usual_names(reply: Reply) -> None:
    tokens = usage_of(reply).tokens or {}
    assert (tokens["prompt"], tokens["completion"]) == (330, 40)


# --- the whole way --------------------------------------------------------------------------------


def answer_with(reply: Reply, headers: Mapping[str, str]) -> Answer:
    choice = {"message": {"content": "[]"}, "finish_reason": "stop"}
    return Answer(json.dumps({"choices": [choice], **reply}).encode(), 200, headers)


@pytest.mark.parametrize(
    ("reply", "headers"),
    [
        ({"usage": {"cost": 0.02, **TOKENS}}, {}),
        ({"usage": TOKENS}, {"X-LiteLLM-Response-Cost": "0.02"}),
        ({"cost": "0.02", "usage": TOKENS}, {"x-litellm-response-cost": "None"}),
    ],
)
def test_a_stated_cost_is_in_the_record(reply: Reply, headers: Mapping[str, str]) -> None:
    for prices in (None, PRICES):
        with ChatServer(in_turn(answer_with(reply, headers))) as server:
            budget = Budget(1.0)
            service = HttpService(
                model_of(prices), [Endpoint(server.url)], budget=budget, policy=QUICK
            )
            call = call_of(ask_call(service))
        assert (call["cost"], budget.spent) == (0.02, 0.02)
        assert "cost_from" not in call, "the service stated it"


def said_of(replies: list[Answer], caplog: pytest.LogCaptureFixture) -> tuple[Budget, list[str]]:
    """Ask a priced model for some replies; return what was spent, and the warnings."""
    with ChatServer(in_turn(*replies)) as server:
        budget = Budget()
        model = model_of(PRICES)
        ask_calls(HttpService(model, [Endpoint(server.url)], budget=budget, policy=QUICK), 5)
    return budget, [record.getMessage() for record in caplog.records]


def test_an_unread_cost_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    replies = [answer_with({"usage": {"cost": f"0,0{n}", **TOKENS}}, {}) for n in range(2, 7)]
    budget, said = said_of(replies, caplog)
    (line,) = said
    assert "states a cost in a form that is not read (usage.cost '0,0" in line
    assert "such calls count at the most that they can cost (this one: $" in line
    assert budget.guesses == 5
    assert budget.guessed == budget.spent > 5 * 0.011


def test_an_implausible_cost_counts_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    replies = [answer_with({"usage": {"cost": 1e9 + n, **TOKENS}}, {}) for n in range(5)]
    budget, said = said_of(replies, caplog)
    (line,) = said
    assert "states a cost of $100000000" in line
    assert ", though the most that it can cost is $0." in line
    assert budget.spent >= 5e9
    assert budget.guesses == 0


@pytest.mark.parametrize(
    ("stated", "at_most", "is_said"),
    [(0.5, 0.1, False), (1.5, 0.1, True), (None, 0.1, False), (99.0, None, False),
     (101.0, None, True)],
)  # fmt: skip
def test_a_cost_is_implausible_beyond_ten_times_the_most(
    stated: float | None, at_most: float | None, is_said: bool
) -> None:
    assert is_implausible(stated, at_most) is is_said


def test_only_headers_about_costs_are_kept() -> None:
    headers = {
        "X-LiteLLM-Response-Cost": "0.1",
        "Set-Cookie": "secret",
        "X-Gemini-Service-Tier": "x",
    }
    assert read_headers(headers) == {
        "x-litellm-response-cost": "0.1",
        "x-gemini-service-tier": "x",
    }


@pytest.mark.parametrize(("place", "shape"), [case for case in CASES if case[0] != "a header"])
def test_results_of_batches_state_costs_alike(place: str, shape: str) -> None:
    stated = PLACES[place](SHAPES[shape](0.05))
    choice = {"message": {"content": "[]"}, "finish_reason": "stop"}
    openai = {"response": {"status_code": 200, "body": {"choices": [choice], **stated}}}
    message = {"content": [{"type": "text", "text": "[]"}], "stop_reason": "end_turn", **stated}
    anthropic = {"result": {"type": "succeeded", "message": message}}
    for service, result in ((BatchService, openai), (AnthropicBatches, anthropic)):
        usage = service.completion(result, False, USUAL_THOUGHTS).usage
        assert usage.stated == pytest.approx(0.05)
