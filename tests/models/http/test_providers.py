"""OpenAI, Anthropic and Google with the user's key; a server stands in for each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from asking import QUESTION, QUICK, ask_calls, call_of
from chat_server import GARBAGE, HELD_REPLY, Answer, ChatServer, in_turn, is_first
from PIL import Image
from provider_servers import (
    ANTHROPIC,
    GOOGLE,
    KEY,
    OPENAI,
    PROTOCOLS,
    Protocol,
    address,
    anthropic_error,
    anthropic_reply,
    google_error,
    google_reply,
    openai_error,
    openai_reply,
)

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.engine import HttpService
from vlmeval_findit.models import (
    PROBE_REQUEST,
    CallError,
    Provider,
    chat_model,
    content_request,
    messages_request,
    provider_endpoints,
)
from vlmeval_findit.models.http.providers import provider_table
from vlmeval_findit.protocol import CallResult, StopReason, image, text
from vlmeval_findit.storage import record_text

every_provider = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda each: each.provider)
THRICE = replace(QUICK, attempts=3, refusals=3)


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("pictures") / "a.png"
    Image.new("RGB", (2100, 40), "red").save(path)  # so large that it goes as JPEG
    return str(path)


def asked_at(protocol: Protocol, server: ChatServer, model: str = "") -> HttpService:
    chat = chat_model(model or protocol.model, protocol.provider)
    where = provider_endpoints(protocol.provider, address(server, protocol), key=KEY)
    return HttpService(chat, where, 60.0, policy=THRICE)


def answers(protocol: Protocol, *replies: Answer, **how: Any) -> list[CallResult]:
    """Return the answers to calls, one for each reply."""
    with ChatServer(in_turn(*replies)) as server:
        return ask_calls(asked_at(protocol, server), len(replies), **how)


# --- answers --------------------------------------------------------------------------------------


ASKED: dict[str, dict[str, Any]] = {
    "openai": {
        "model": "gpt-5.4", "max_completion_tokens": 768, "temperature": 0.0,
        "reasoning_effort": "none",
    },
    "anthropic": {
        "model": "claude-sonnet-4-5", "max_tokens": 768, "temperature": 0.0,
        "thinking": {"type": "disabled"},
    },
    "google": {
        "generationConfig": {
            "temperature": 0.0, "maxOutputTokens": 768, "thinkingConfig": {"thinkingBudget": 0}
        }
    },
}  # fmt: skip


@every_provider
def test_requests_follow_the_model_table(protocol: Protocol, picture: str) -> None:
    message = (image(picture), text("where?"))
    with ChatServer(protocol.answering(lambda body: "[5]")) as server:
        who = asked_at(protocol, server)
        answer, _ = ask_calls(who, 2, message, images=["a picture"] * 2)
        body = dict(server.asked[0].body)
    assert (answer.error, answer.text) == (None, "[5]")
    record = answer.record
    through_openrouter = chat_model(protocol.model, "openrouter")
    assert record.space == through_openrouter.space(QUESTION).as_dict()
    request = through_openrouter.request(message, QUESTION)
    assert record.images == tuple(item.as_record() for item in request.images)
    written = {"cache_write": 200} if protocol is ANTHROPIC else {}
    counts = {"prompt": 900, "cached": 400, **written, "completion": 20, "reasoning": 5}
    assert record.tokens == counts
    assert record.finish_reason == "stop"
    assert record.model["provider"] == protocol.provider
    assert record.model["identifier"].startswith(protocol.called)
    call = record.call
    assert who.model.prices is not None
    assert call["cost"] == pytest.approx(who.model.prices.cost_of(record.tokens))
    assert call["cost_from"] == "prices of November 2026", "No service stated it."
    (server_name,) = who.servers()
    assert (call["status"], call["attempts"], call["server"]) == (200, 1, server_name)
    assert KEY not in json.dumps([record_text(record), body])
    turns = body.pop("contents" if protocol is GOOGLE else "messages")
    assert body == ASKED[protocol.provider]
    shown = turns[0]["parts" if protocol is GOOGLE else "content"][0]
    if protocol is OPENAI:
        assert shown["image_url"]["detail"] == "high"
    elif protocol is ANTHROPIC:
        assert shown["cache_control"] == {"type": "ephemeral"}, "Another call is over the picture."
    else:
        assert shown["inlineData"]["mimeType"] == "image/jpeg"


def test_a_seed_goes_where_there_is_such_a_field() -> None:
    body = {"model": "m", "messages": [], "max_tokens": 9, "temperature": 0.7, "seed": 3}
    asked = content_request(body)
    assert asked["generationConfig"] == {"maxOutputTokens": 9, "temperature": 0.7, "seed": 3}
    assert "seed" not in {**asked, **messages_request(body)}


@pytest.mark.parametrize(
    ("protocol", "model", "limit"),
    [
        (OPENAI, "GPT-6-Astra", "max_completion_tokens"),
        (ANTHROPIC, "Claude-Opus-5.5", "max_tokens"),
    ],
)
def test_a_model_with_default_reasoning_gets_no_temperature(
    protocol: Protocol, model: str, limit: str
) -> None:
    with ChatServer(protocol.answering(lambda body: "[]")) as server:
        (answer,) = ask_calls(asked_at(protocol, server, model))
    assert answer.error is None
    assert server.asked[0].body.keys() == {"model", "messages", limit}
    assert server.asked[0].body[limit] == 8000


@pytest.mark.parametrize(
    ("protocol", "reply", "thought"),
    [
        (ANTHROPIC, anthropic_reply("[1", thought="hm", stop_reason="max_tokens"), "hm"),
        (GOOGLE, google_reply("[1", thought="hm", candidate={"finishReason": "MAX_TOKENS"}), "hm"),
        (OPENAI, openai_reply("[1", finish_reason="length"), ""),
    ],
)
def test_an_answer_after_a_thought_that_is_truncated(
    protocol: Protocol, reply: Answer, thought: str
) -> None:
    record = answers(protocol, reply)[0].record
    assert (record.thought, record.finish_reason) == (thought, "length")


# --- what goes wrong ------------------------------------------------------------------------------


@every_provider
@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (GARBAGE, "not JSON"),
        (Answer(b"{}"), "no choices"),
        (Answer(b'{"error": {"message": "fell over"}}'), "fell over"),
    ],
    ids=range(3),
)
def test_a_reply_that_is_none_is_a_failed_call(protocol: Protocol, reply: Answer, why: str) -> None:
    with ChatServer(in_turn(reply)) as server:
        (answer,) = ask_calls(asked_at(protocol, server))
        assert len(server.asked) == 1, "It is not paid again."
    assert why in (answer.error or "")
    assert answer.stop is None


def test_google_says_in_the_body_how_long_to_wait() -> None:
    blocked = Answer(json.dumps({"promptFeedback": {"blockReason": "SAFETY"}}).encode())
    first, second = answers(GOOGLE, blocked, google_reply("[1]"))
    assert (first.error, second.text) == (
        "the service reports: the prompt was blocked: SAFETY",
        "[1]",
    )
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "734.5s"}]
    (answer,) = answers(GOOGLE, google_error(429, "quota", details))
    assert answer.error == "HTTP 429: quota; asks to come back in 12.2 minutes"


INVALID = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]


@pytest.mark.parametrize(
    ("protocol", "refusal", "requested"),
    [
        *((each, each.error(401, "no"), 3) for each in PROTOCOLS),
        (OPENAI, openai_error(402, "no"), 1),
        (OPENAI, openai_error(429, "You exceeded your quota", code="insufficient_quota"), 1),
        (ANTHROPIC, anthropic_error(400, "Your credit balance is too low to access the API"), 1),
        (ANTHROPIC, anthropic_error(400, "no", kind="billing_error"), 1),
        (GOOGLE, google_error(400, "API key not valid.", INVALID), 1),
    ],
)
def test_without_key_credit_or_model_nothing_more_is_asked(
    protocol: Protocol, refusal: Answer, requested: int
) -> None:
    with ChatServer(in_turn(refusal)) as server:
        stops = [answer.stop for answer in ask_calls(asked_at(protocol, server), 4)]
        assert stops == [None] * (requested - 1) + [StopReason.HOPELESS]
        assert len(server.asked) == requested


# --- log-probabilities and formats ----------------------------------------------------------------


TOKENS = [{"token": "[1", "logprob": -0.5, "bytes": [91, 49]}, {"token": "]", "logprob": 0.0}]
CHOSEN = [{"token": "[1", "logProbability": -0.5, "tokenId": 3}, {"token": "]"}]


@pytest.mark.parametrize(
    ("protocol", "reply"),
    [
        (OPENAI, openai_reply("[1]", choice={"logprobs": {"content": TOKENS}})),
        (GOOGLE, google_reply("[1]", candidate={"logprobsResult": {"chosenCandidates": CHOSEN}})),
    ],
)
def test_log_probabilities_of_who_has_them(protocol: Protocol, reply: Answer) -> None:
    with ChatServer(in_turn(reply)) as server:
        (answer,) = ask_calls(asked_at(protocol, server), logprobs=True)
    assert "logprobs" in json.dumps(server.asked[0].body)
    actual = answer.record.token_logprobs
    assert actual is not None
    assert actual.logprobs == (-0.5, 0.0)


@pytest.mark.parametrize(
    ("protocol", "reply", "requests"),
    [
        (ANTHROPIC, anthropic_reply("[1]"), 0),  # known before anything is sent
        (GOOGLE, google_error(400, "Logprobs is not enabled for models/gemini-2.5-flash"), 1),
    ],
)
def test_log_probabilities_of_who_has_none(
    protocol: Protocol, reply: Answer, requests: int
) -> None:
    with ChatServer(in_turn(reply)) as server:
        (refused,) = ask_calls(asked_at(protocol, server), logprobs=True)
        assert len(server.asked) == requests
    assert "run without --logprobs" in (refused.error or "")
    assert refused.stop is StopReason.HOPELESS


HELD = parse("FindIt_Demo_xyxy_json_constrained")


@every_provider
def test_each_provider_constrains_replies_in_its_words(protocol: Protocol) -> None:
    boxes = '[{"bbox": [1, 2, 3, 4]}]'

    def reply(body: Mapping[str, Any]) -> str:
        held = HELD_REPLY if PROBE_REQUEST in json.dumps(body) else boxes
        return held if protocol is GOOGLE else f'{{"answer": {held}}}'

    with ChatServer(protocol.answering(reply)) as server:
        (answer,) = ask_calls(asked_at(protocol, server), variant=HELD)
    assert (answer.text, answer.error) == (boxes, None)
    first, asked = server.asked
    assert is_first(first)
    if protocol is GOOGLE:
        config = asked.body["generationConfig"]
        assert config["responseMimeType"] == "application/json"
        assert config["responseJsonSchema"] == HELD.reply_schema
        return
    if protocol is OPENAI:
        schema = asked.body["response_format"]["json_schema"]["schema"]
    else:
        assert asked.body["output_config"]["format"]["type"] == "json_schema"
        schema = asked.body["output_config"]["format"]["schema"]
    assert schema["properties"]["answer"]["type"] == "array"


# --- a plug-in's provider, and OpenRouter ---------------------------------------------------------


def test_whatever_a_plug_in_s_provider_does_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = Mock()
    row = Provider("mine", chat, "http://localhost/v9")
    monkeypatch.setattr(provider_table, "PROVIDERS", {**provider_table.PROVIDERS, "mine": row})
    model = chat_model("Qwen3-VL", "mine", "q3", space="grid1000")

    def ask(does: Any, **how: Any) -> CallResult:
        chat.side_effect = does
        service = HttpService(model, provider_endpoints("mine"), 60.0, policy=THRICE)
        return ask_calls(service, **how)[0]

    assert call_of(ask(CallError("busy", 429, retry_after=0.01)))["attempts"] == 3
    for error in (ZeroDivisionError("oops"), SystemExit(3)):
        answer = ask(error)
        assert "the provider mine failed" in (answer.error or "")
        assert call_of(answer)["attempts"] == 1
    assert ask(CallError("no credit", 402, hopeless=True)).stop is StopReason.HOPELESS
    choice = {"message": {"content": "[1]"}, "finish_reason": "stop"}
    assert ask(lambda *_: {"choices": [choice]}).text == "[1]"
    # Its row has neither schemas nor log-probabilities.
    assert "run without --logprobs" in (ask(None, logprobs=True).error or "")
    with pytest.raises(ValueError, match="cannot constrain replies to a format"):
        model.describe(HELD, [])


def test_openrouter_is_a_provider_and_recorded_as_a_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match="OPENROUTER_API_KEY is not set"):
        provider_endpoints("openrouter")
    with ChatServer(in_turn(openai_reply("[1]", provider="OpenAI"))) as server:
        monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
        monkeypatch.setenv("OPENROUTER_BASE_URL", server.url)
        who = HttpService(chat_model("GPT-5.4", "openrouter"), provider_endpoints("openrouter"))
        (answer,) = ask_calls(who)
        (asked,) = server.asked
    assert answer.record.model["provider"] == "OpenAI"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert (asked.body["model"], asked.body["usage"]) == ("openai/gpt-5.4", {"include": True})
    answering = who.model.describe(QUESTION, who.endpoints).answering
    assert answering.kind == "chat completions"
    assert answering.settings["images"] == "for_provider"
