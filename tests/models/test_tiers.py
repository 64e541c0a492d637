"""Tiers, speeds and regions that replies state, caches of an hour, and long prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from asking import QUICK, ask_calls, call_of
from chat_server import ChatServer, error, in_turn
from provider_servers import ANTHROPIC, GOOGLE, KEY, OPENAI, PROTOCOLS, Protocol, address

from vlmeval_findit.engine import HttpService
from vlmeval_findit.models import (
    GEMINI_2_5_FLASH,
    GPT_5_4,
    GPT_6_ASTRA,
    OPUS_5_5,
    SONNET_4_5,
    TokenPrices,
    Usage,
    charge_for,
    chat_model,
    prices_from,
    provider_endpoints,
    surcharge,
    tiers_in,
    usage_of,
)

TOKENS = {"prompt": 1000, "completion": 20}
GIVEN = prices_from("10,50")


@pytest.mark.parametrize(
    ("prices", "place", "multiple"),
    [
        (GPT_5_4, {}, 1.0),
        (GPT_5_4, {"service_tier": None, "speed": ""}, 1.0),
        (GPT_5_4, {"service_tier": "default"}, 1.0),
        (GPT_5_4, {"service_tier": "priority"}, 2.0),
        (GPT_5_4, {"service_tier": "auto"}, 2.0),
        (GPT_5_4, {"service_tier": "flex"}, 0.5),
        (GPT_5_4, {"service_tier": "batch"}, 0.5),
        (GPT_5_4, {"service_tier": "ultrafast"}, 6.0),
        (GPT_6_ASTRA, {"service_tier": "Fast"}, 2.0),
        (GEMINI_2_5_FLASH, {"service_tier": "SERVICE_TIER_PRIORITY"}, 2.0),
        (OPUS_5_5, {"speed": "fast"}, 2.0),
        (OPUS_5_5, {"speed": "fast", "inference_geo": "us"}, 2.2),
        (OPUS_5_5, {"inference_geo": "not_available", "speed": "standard"}, 1.0),
        (OPUS_5_5, {"inference_geo": "mars"}, 1.1),
        (SONNET_4_5, {"speed": "fast"}, 6.0),
        # Forms that are no word
        (GPT_5_4, {"service_tier": ["priority"]}, 2.0),
        (GPT_5_4, {"service_tier": ["default", "priority"]}, 2.0),
        (GPT_5_4, {"service_tier": {"name": "priority"}}, 2.0),
        (GPT_5_4, {"service_tier": {"tier": "priority"}}, 6.0),
        (GPT_5_4, {"service_tier": {"name": {"x": 1}}}, 6.0),
        (GPT_5_4, {"service_tier": 5}, 6.0),
        (GPT_5_4, {"service_tier": 0}, 6.0),
        (GPT_5_4, {"service_tier": True}, 6.0),
        (GPT_5_4, {"service_tier": [7.5]}, 6.0),
        (GPT_5_4, {"service_tier": []}, 1.0),
        (GPT_5_4, {"service_tier": {}}, 1.0),
        (OPUS_5_5, {"inference_geo": ["us"]}, 1.1),
        (OPUS_5_5, {"speed": {"type": "fast"}}, 2.0),
        # A user's prices are those of the user's tier, if it is a cheap one.
        (GIVEN, {"service_tier": "flex"}, 1.0),
        (GIVEN, {"service_tier": "priority"}, 2.5),
        (GIVEN, {"service_tier": "turbo"}, 6.0),
    ],
)
def test_a_tier_is_a_multiple_of_the_price(
    prices: TokenPrices, place: Mapping[str, object], multiple: float
) -> None:
    assert surcharge(tiers_in(place), prices).multiple == pytest.approx(multiple)
    charged = charge_for(Usage(None, TOKENS, tiers_in(place)), prices, 9.0)
    assert charged.cost == pytest.approx((prices.cost_of(TOKENS) or 0.0) * multiple)


def test_several_words_of_a_field_count_as_the_dearest() -> None:
    tiers = tiers_in({"service_tier": "flex"}, {"service_tier": "priority"})
    assert surcharge(tiers, GPT_5_4).multiple == 2.0


@pytest.mark.parametrize(
    ("tier", "multiple"), [("batch", 0.5), ("flex", 0.5), ("default", 0.5), ("priority", 1.0)]
)
def test_a_batch_has_its_discount_once(tier: str, multiple: float) -> None:
    usage = Usage(None, TOKENS, tiers_in({"service_tier": tier}))
    charged = charge_for(usage, GPT_5_4, 9.0, share=0.5)
    assert charged.cost == pytest.approx((GPT_5_4.cost_of(TOKENS) or 0.0) * multiple)


def test_a_stated_cost_without_the_tier_is_not_believed() -> None:
    usage = Usage(0.00001, TOKENS, tiers_in({"service_tier": "priority"}))
    assert charge_for(usage, GPT_5_4, 9.0).cost == pytest.approx(2 * 0.0028)
    dear = Usage(0.5, TOKENS, tiers_in({"service_tier": "priority"}))
    assert charge_for(dear, GPT_5_4, 9.0).cost == 0.5


def test_an_unknown_tier_is_a_guess_and_is_named() -> None:
    charged = charge_for(Usage(None, TOKENS, tiers_in({"service_tier": "turbo"})), GPT_5_4, 9.0)
    assert charged.is_guess
    assert list(map(str, charged.unknown)) == ["service_tier turbo"]
    assert charged.source == "prices of November 2026, service_tier turbo x 6"


@pytest.mark.parametrize(
    ("tokens", "dollars"),
    [
        ({"prompt": 1000, "cache_write": 400, "completion": 0}, 600 * 3 + 400 * 3.75),
        ({"prompt": 1000, "cache_write": 400, "cache_write_1h": 400, "completion": 0},
         600 * 3 + 400 * 6),
        ({"prompt": 1000, "cache_write": 400, "cache_write_1h": 100, "completion": 0},
         600 * 3 + 300 * 3.75 + 100 * 6),
        ({"prompt": 200_000, "completion": 100}, 200_000 * 3 + 100 * 15),
        ({"prompt": 200_001, "completion": 100}, 2 * 200_001 * 3 + 1.5 * 100 * 15),
    ],
)  # fmt: skip
def test_hour_long_caches_and_long_prompts_cost_more(
    tokens: dict[str, int], dollars: float
) -> None:
    assert SONNET_4_5.cost_of(tokens) == pytest.approx(dollars / 1e6)
    is_long = tokens["prompt"] > 200_000
    assert charge_for(Usage(None, tokens), SONNET_4_5, 9.0).is_guess is is_long


def test_a_user_prices_long_prompts() -> None:
    tokens = {"prompt": 300_000, "completion": 0}
    assert GIVEN.cost_of(tokens) == pytest.approx(3.0)
    assert GIVEN.most(300_000, 0, 0) == pytest.approx(3.0)
    assert GPT_5_4.most(300_000, 0, 0) == pytest.approx(1.5)


# --- replies of providers -------------------------------------------------------------------------

STATED: Mapping[str, tuple[dict[str, Any], float]] = {
    "openai": ({"service_tier": "priority"}, 2.0),
    "anthropic": ({"usage": {"input_tokens": 900, "output_tokens": 20, "speed": "fast",
                             "inference_geo": "us"}}, 6.6),
    "google": ({"usageMetadata": {"promptTokenCount": 900, "candidatesTokenCount": 20,
                                  "serviceTier": "priority"}}, 2.0),
}  # fmt: skip


def asked_at(protocol: Protocol, server: ChatServer, **fields: Any) -> HttpService:
    model = chat_model(protocol.model, protocol.provider, fields=fields)
    where = provider_endpoints(protocol.provider, address(server, protocol), key=KEY)
    return HttpService(model, where, policy=QUICK)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda each: each.provider)
def test_the_tier_of_a_reply_is_charged(protocol: Protocol) -> None:
    more, multiple = STATED[protocol.provider]
    with ChatServer(in_turn(protocol.reply(**more))) as server:
        service = asked_at(protocol, server)
        (answer,) = ask_calls(service)
    call = call_of(answer)
    tokens = answer.record.tokens
    assert service.model.prices is not None
    assert call["cost"] == pytest.approx((service.model.prices.cost_of(tokens) or 0.0) * multiple)
    assert " x " in call["cost_from"]
    assert "cost_guessed" not in call


def test_capacity_of_anthropic_that_is_paid_beforehand_adds_nothing() -> None:
    usage = {"input_tokens": 900, "output_tokens": 20, "service_tier": "priority"}
    with ChatServer(in_turn(ANTHROPIC.reply(usage=usage))) as server:
        (answer,) = ask_calls(asked_at(ANTHROPIC, server))
    assert call_of(answer)["cost"] == pytest.approx((900 * 3 + 20 * 15) / 1e6)


def test_the_tier_in_googles_header_counts() -> None:
    reply = GOOGLE.reply()
    dear = replace(reply, headers={"x-gemini-service-tier": "priority"})
    with ChatServer(in_turn(reply, dear)) as server:
        first, second = ask_calls(asked_at(GOOGLE, server), 2)
    assert call_of(second)["cost"] == pytest.approx(2 * call_of(first)["cost"])


def test_an_unknown_tier_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with ChatServer(in_turn(OPENAI.reply(service_tier="turbo"))) as server:
        answers = ask_calls(asked_at(OPENAI, server), 5)
    said = [each.getMessage() for each in caplog.records if "turbo" in each.getMessage()]
    assert len(said) == 1
    assert """at 6 times the price. Ask for the usual one with --extra-body""" in said[0]
    assert """'{"service_tier": "default"}'""" in said[0]
    assert all(call_of(answer)["cost_guessed"] == call_of(answer)["cost"] for answer in answers)


def test_a_lost_reply_may_have_the_dearest_stated_tier() -> None:
    dear = OPENAI.reply(service_tier="priority")
    with ChatServer(in_turn(error(504, "no"), error(504, "no"), dear, error(504, "no"))) as server:
        service = replace(asked_at(OPENAI, server), policy=replace(QUICK, attempts=1))
        costs = [call_of(answer)["cost"] for answer in ask_calls(service, 4)]
    assert costs[0] == costs[1]
    assert costs[3] == pytest.approx(2 * costs[0])
    with ChatServer(in_turn(error(504, "no"))) as server:
        asked = asked_at(OPENAI, server, service_tier="priority")
        asked = replace(asked, policy=replace(QUICK, attempts=1))
        (answer,) = ask_calls(asked)
    assert call_of(answer)["cost"] == pytest.approx(2 * costs[0])


def test_caches_of_an_hour_are_told_apart_in_replies() -> None:
    usage = {
        "input_tokens": 300, "output_tokens": 20, "cache_creation_input_tokens": 200,
        "cache_creation": {"ephemeral_5m_input_tokens": 50, "ephemeral_1h_input_tokens": 150},
    }  # fmt: skip
    with ChatServer(in_turn(ANTHROPIC.reply(usage=usage))) as server:
        (answer,) = ask_calls(asked_at(ANTHROPIC, server))
    dollars = (300 * 3 + 50 * 3.75 + 150 * 6 + 20 * 15) / 1e6
    assert call_of(answer)["cost"] == pytest.approx(dollars)
    assert usage_of({"usage": {"cache_creation": {"ephemeral_1h_input_tokens": 0}}}).tokens == {}
