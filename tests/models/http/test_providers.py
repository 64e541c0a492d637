"""OpenAI, Anthropic and Google with the user's key; a server stands in for each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

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

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.core.answers import Answer as Answered
from vlmeval_findit.core.answers import StopReason
from vlmeval_findit.core.question import Message, image, text
from vlmeval_findit.core.replies import recorded
from vlmeval_findit.engine.http_backend import HttpService
from vlmeval_findit.models.http.addresses import provider_endpoints
from vlmeval_findit.models.http.chat import chat_model
from vlmeval_findit.models.http.completion import CallError
from vlmeval_findit.models.http.providers import provider_table
from vlmeval_findit.models.http.providers.anthropic_messages import messages_request
from vlmeval_findit.models.http.providers.google_content import content_request
from vlmeval_findit.models.http.providers.provider_table import Provider
from vlmeval_findit.models.http.schema import WORDS

BY_NAME = [pytest.param(item, id=item.provider) for item in PROTOCOLS]
every_provider = pytest.mark.parametrize("protocol", BY_NAME)


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "a.png"
    Image.new("RGB", (2100, 40), "red").save(path)  # so large that it goes as JPEG
    return path


THRICE = replace(QUICK, attempts=3, refusals=3)


def asked_at(
    protocol: Protocol, server: ChatServer, model: str = "", timeout: float = 60.0, **how: Any
) -> HttpService:
    return HttpService(
        chat_model(model or protocol.model, protocol.provider),
        provider_endpoints(protocol.provider, address(server, protocol), key=KEY),
        timeout,
        policy=THRICE,
        **how,
    )


def message_of(*paths: Path) -> Message:
    return (*(image(str(path)) for path in paths), text("where?"))


def ask(who: HttpService, *paths: Path, name: str = "", **more: Any) -> Answered:
    question = parse(name) if name else QUESTION
    return ask_calls(who, 1, message_of(*paths), question, **more)[0]


# --- answers --------------------------------------------------------------------------------------


@every_provider
def test_records_are_those_of_openrouter(protocol: Protocol, picture: Path) -> None:
    with ChatServer(protocol.answering(lambda body: "[5]")) as server:
        answer = ask(asked_at(protocol, server), picture)
        (asked,) = server.asked
        where = provider_endpoints(protocol.provider, address(server, protocol), key=KEY)[0].name
    assert answer.error is None
    assert answer.text == "[5]"
    record = json.loads(answer.extra)["findit"]
    through_openrouter = chat_model(protocol.model, "openrouter")
    assert record["space"] == through_openrouter.space(QUESTION).as_dict()
    request = through_openrouter.request((image(str(picture)),), QUESTION)
    assert record["images"] == [item.as_record() for item in request.images]
    written = {"cache_write": 200} if protocol is ANTHROPIC else {}
    assert record["tokens"] == {
        "prompt": 900, "cached": 400, **written, "completion": 20, "reasoning": 5
    }  # fmt: skip
    assert record["finish_reason"] == "stop"
    assert record["model"]["provider"] == protocol.provider
    assert record["model"]["identifier"].startswith(protocol.called)
    call = record["call"]
    prices = chat_model(protocol.model, protocol.provider).prices
    assert prices is not None
    assert call["cost"] == pytest.approx(prices.of(record["tokens"]))
    assert call["cost_from"] == "prices of November 2026", "No service stated it."
    assert (call["status"], call["attempts"], call["server"]) == (200, 1, where)
    assert KEY not in json.dumps(record)
    assert KEY not in json.dumps(asked.body)


def test_requests_are_what_the_model_table_says(picture: Path) -> None:
    actual = {}
    for protocol in PROTOCOLS:
        with ChatServer(protocol.answering(lambda body: "[]")) as server:
            shown = message_of(picture)
            ask_calls(asked_at(protocol, server), 2, shown, images=["a picture"] * 2)
        actual[protocol.provider] = server.asked[0].body
    plain = {name: value for name, value in actual["openai"].items() if name != "messages"}
    assert plain == {
        "model": "gpt-5.4", "max_completion_tokens": 768, "temperature": 0.0,
        "reasoning_effort": "none",
    }  # fmt: skip
    assert actual["openai"]["messages"][0]["content"][0]["image_url"]["detail"] == "high"
    assert actual["anthropic"]["thinking"] == {"type": "disabled"}
    first = actual["anthropic"]["messages"][0]["content"][0]
    assert first["cache_control"] == {"type": "ephemeral"}, "Other calls are over the picture."
    assert actual["anthropic"].keys() == {
        "model", "messages", "max_tokens", "temperature", "thinking"
    }  # fmt: skip
    google = actual["google"]
    assert google.keys() == {"contents", "generationConfig"}
    assert google["contents"][0]["parts"][0]["inlineData"]["mimeType"] == "image/jpeg"
    config = google["generationConfig"]
    assert config.pop("thinkingConfig") == {"thinkingBudget": 0}
    assert config == {"temperature": 0.0, "maxOutputTokens": 768}


def test_a_seed_goes_where_there_is_such_a_field() -> None:
    body = {"model": "m", "messages": [], "max_tokens": 9, "temperature": 0.7, "seed": 3}
    asked = content_request(body)
    assert asked["generationConfig"] == {"maxOutputTokens": 9, "temperature": 0.7, "seed": 3}
    assert "seed" not in asked
    assert "seed" not in messages_request(body)


@pytest.mark.parametrize(
    ("protocol", "model"), [(OPENAI, "GPT-6-Astra"), (ANTHROPIC, "Claude-Opus-5.5")]
)
def test_a_model_with_default_reasoning_gets_no_temperature(protocol: Protocol, model: str) -> None:
    with ChatServer(protocol.answering(lambda body: "[]")) as server:
        assert ask(asked_at(protocol, server, model)).error is None
    body = server.asked[0].body
    assert not {"temperature", "reasoning_effort", "thinking", "output_config"} & body.keys()
    assert body.get("max_tokens", body.get("max_completion_tokens")) == 8000


def test_an_answer_after_a_thought_and_a_truncated_answer() -> None:
    cut: list[tuple[Protocol, dict[str, Any]]] = [
        (ANTHROPIC, {"stop_reason": "max_tokens"}),
        (GOOGLE, {"candidate": {"finishReason": "MAX_TOKENS"}}),
    ]
    for protocol, more in cut:
        reply = protocol.reply("[1", thought="hm", **more)
        with ChatServer(in_turn(reply)) as server:
            record = recorded(ask(asked_at(protocol, server)).extra)
        assert (record.thought, record.finish_reason) == ("hm", "length")
    with ChatServer(in_turn(openai_reply("[1", finish_reason="length"))) as server:
        assert recorded(ask(asked_at(OPENAI, server)).extra).finish_reason == "length"


# --- what goes wrong ------------------------------------------------------------------------------


UNREADABLE: list[tuple[Answer, str]] = [
    (GARBAGE, "not JSON"),
    (Answer(b"{}"), "no choices"),
    (Answer(b'{"error": {"message": "fell over"}}'), "fell over"),
]


@every_provider
@pytest.mark.parametrize(("reply", "why"), UNREADABLE, ids=range(len(UNREADABLE)))
def test_a_reply_that_is_none_is_a_failed_call(protocol: Protocol, reply: Answer, why: str) -> None:
    with ChatServer(in_turn(reply)) as server:
        answer = ask(asked_at(protocol, server))
        assert len(server.asked) == 1, "It is not paid again."
    assert why in (answer.error or "")
    assert answer.stop is None


def test_a_prompt_that_google_blocks_fails_alone() -> None:
    blocked = Answer(json.dumps({"promptFeedback": {"blockReason": "SAFETY"}}).encode())
    with ChatServer(in_turn(blocked, google_reply("[1]"))) as server:
        first, second = ask_calls(asked_at(GOOGLE, server), 2)
    assert (first.error, second.text) == ("the prompt was blocked: SAFETY", "[1]")


def test_google_says_in_the_body_how_long_to_wait() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "734.5s"}]
    with ChatServer(in_turn(google_error(429, "quota", details), google_reply("ok"))) as server:
        answer = ask(asked_at(GOOGLE, server))
    assert answer.error == "HTTP 429: quota; asks to come back in 12.2 minutes"


INVALID = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
NO_MORE: list[tuple[Protocol, Answer]] = [
    *((item, item.error(status, "no")) for item in PROTOCOLS for status in (401, 402)),
    (OPENAI, openai_error(429, "You exceeded your current quota", code="insufficient_quota")),
    (ANTHROPIC, anthropic_error(400, "Your credit balance is too low to access the API")),
    (ANTHROPIC, anthropic_error(400, "no", kind="billing_error")),
    (GOOGLE, google_error(400, "API key not valid.", INVALID)),
]


@pytest.mark.parametrize(("protocol", "refusal"), NO_MORE)
def test_without_key_credit_or_model_nothing_more_is_asked(
    protocol: Protocol, refusal: Answer
) -> None:
    with ChatServer(in_turn(refusal)) as server:
        stops = [answer.stop for answer in ask_calls(asked_at(protocol, server), 4)]
        requested = 3 if refusal.status in (401, 403, 404) else 1
        assert stops == [None] * (requested - 1) + [StopReason.HOPELESS]
        assert len(server.asked) == requested


# --- log-probabilities and formats ----------------------------------------------------------------


def test_log_probabilities_of_who_has_them() -> None:
    tokens = [{"token": "[1", "logprob": -0.5, "bytes": [91, 49]}, {"token": "]", "logprob": 0.0}]
    with ChatServer(in_turn(openai_reply("[1]", choice={"logprobs": {"content": tokens}}))) as s:
        answer = ask(asked_at(OPENAI, s), logprobs=True)
    assert s.asked[0].body["logprobs"] is True
    actual = recorded(answer.extra).token_logprobs
    assert actual is not None
    assert actual.logprobs == (-0.5, 0.0)
    chosen = [{"token": "[1", "logProbability": -0.5, "tokenId": 3}, {"token": "]"}]
    result = {"logprobsResult": {"chosenCandidates": chosen}}
    with ChatServer(in_turn(google_reply("[1]", candidate=result))) as server:
        answer = ask(asked_at(GOOGLE, server), logprobs=True)
    assert server.asked[0].body["generationConfig"]["responseLogprobs"] is True
    assert recorded(answer.extra).token_logprobs == actual


def test_log_probabilities_of_who_has_none() -> None:
    with ChatServer(in_turn(anthropic_reply("[1]"))) as server:
        refused = ask(asked_at(ANTHROPIC, server), logprobs=True)
        assert not server.asked, "It is known before anything is sent."
    assert "run without --logprobs" in (refused.error or "")
    assert refused.stop is StopReason.HOPELESS
    no = google_error(400, "Logprobs is not enabled for models/gemini-2.5-flash")
    with ChatServer(in_turn(no)) as server:
        refused = ask(asked_at(GOOGLE, server), logprobs=True)
    assert "run without --logprobs" in (refused.error or "")
    assert refused.stop is StopReason.HOPELESS


HELD = "FindIt_Demo_xyxy_json_constrained"


def test_replies_are_held_to_a_format_in_the_words_of_each() -> None:
    actual = {}
    boxes = '[{"bbox": [1, 2, 3, 4]}]'
    for protocol in PROTOCOLS:

        def reply(body: Mapping[str, Any], protocol: Protocol = protocol) -> str:
            held = HELD_REPLY if WORDS in json.dumps(body) else boxes
            return held if protocol is GOOGLE else f'{{"answer": {held}}}'

        with ChatServer(protocol.answering(reply)) as server:
            answer = ask(asked_at(protocol, server), name=HELD)
        assert (answer.text, answer.error) == (boxes, None)
        first, asked = server.asked
        assert is_first(first)
        actual[protocol] = asked.body
    schema = actual[OPENAI]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["answer"]["type"] == "array"
    held = {"type": "json_schema", "schema": schema}
    assert actual[ANTHROPIC]["output_config"] == {"format": held}
    config = actual[GOOGLE]["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"] == parse(HELD).reply_schema


# --- a plug-in's provider -------------------------------------------------------------------------


def reply_of(text: str = "[1]") -> dict[str, Any]:
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a provider of a single function known."""

    def service_of(chat: Any, timeout: float = 60.0, **more: Any) -> HttpService:
        row = Provider("mine", chat, "http://localhost/v9", **more)
        monkeypatch.setattr(provider_table, "PROVIDERS", {**provider_table.PROVIDERS, "mine": row})
        model = chat_model("Qwen3-VL", "mine", "q3", space="grid1000")
        return HttpService(model, provider_endpoints("mine"), timeout, policy=THRICE)

    return service_of


def test_whatever_it_raises_or_returns_is_a_failed_call(mine: Any) -> None:
    def raising(error: BaseException) -> Any:
        def chat(*_: Any) -> Any:
            raise error

        return chat

    busy = CallError("busy", 429, retry_after=0.01)
    assert call_of(ask(mine(raising(busy))))["attempts"] == 3
    for error in (ZeroDivisionError("oops"), SystemExit(3)):
        answer = ask(mine(raising(error)))
        assert "the provider mine failed" in (answer.error or "")
        assert call_of(answer)["attempts"] == 1
    gone = ask(mine(raising(CallError("no credit", 402, hopeless=True))))
    assert gone.stop is StopReason.HOPELESS


def test_a_provider_without_schemas_is_not_asked_for_a_format(mine: Any) -> None:
    who = mine(lambda *_: reply_of())
    with pytest.raises(ValueError, match="holds no reply to a format"):
        who.model.describe(parse(HELD), [])
    refused = ask(who, logprobs=True)
    assert "run without --logprobs" in (refused.error or "")


def test_openrouter_is_a_provider_and_recorded_as_a_server(
    monkeypatch: pytest.MonkeyPatch, picture: Path
) -> None:
    with pytest.raises(ValueError, match="OPENROUTER_API_KEY is not set"):
        provider_endpoints("openrouter")
    with ChatServer(in_turn(openai_reply("[1]", provider="OpenAI"))) as server:
        monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
        monkeypatch.setenv("OPENROUTER_BASE_URL", server.url)
        who = HttpService(chat_model("GPT-5.4", "openrouter"), provider_endpoints("openrouter"))
        answer = ask(who, picture)
        (asked,) = server.asked
    assert answer.record["model"]["provider"] == "OpenAI"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert (asked.body["model"], asked.body["usage"]) == ("openai/gpt-5.4", {"include": True})
    assert who.model.describe(QUESTION, who.endpoints).answering.kind == "chat completions"
