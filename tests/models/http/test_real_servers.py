"""Servers that we did not write: llama.cpp's; and LiteLLM's proxy, Portkey's gateway and nginx in
front of a stub.

`transformers serve` is in ``tests/serving/test_api_serve.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asking import QUICK, ask_call, ask_calls, call_of
from broken_server import BrokenServer
from chat_server import Answer, Asked, ChatServer, completion, error, in_turn
from PIL import Image
from real_servers import KEY, litellm_proxy, llama_cpp, nginx, portkey_gateway

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.engine import HttpService
from vlmeval_findit.models import Budget, Endpoint, chat_model, prices_from
from vlmeval_findit.protocol import Message, StopReason, image, text

pytestmark = pytest.mark.slow

HELD = parse("FindIt_Demo_xyxy_json_constrained")


def service(url: str, served: str, fields: dict[str, Any] | None = None) -> HttpService:
    model = chat_model("Qwen3-VL", served=served, fields=fields, max_tokens=40)
    return HttpService(model, [Endpoint(url, KEY)], policy=QUICK)


def limited(url: str, served: str, limit: float, headers: Mapping[str, str] = {}) -> HttpService:
    """Return a model at $10 and $50: its reply costs $0.01, a lost one up to $0.00201."""
    model = chat_model("Qwen3-VL", served=served, max_tokens=40)
    priced = replace(model, prices=prices_from("10,50"))
    where = [Endpoint(url, KEY, headers)]
    return HttpService(priced, where, budget=Budget(limit), policy=QUICK)


@pytest.fixture
def pictures(tmp_path: Path) -> Message:
    path = tmp_path / "a.png"
    Image.new("RGB", (64, 48), (200, 30, 30)).save(path)
    return (image(str(path)), image(str(path)), text("Where is the cat?"))


# --- llama.cpp ------------------------------------------------------------------------------------


def test_llama_cpp_answers_about_images_with_log_probabilities(
    pictures: Message, tmp_path: Path
) -> None:
    with llama_cpp(tmp_path, 4096, vision=True) as url:
        first, second = ask_calls(service(url, "tiny"), 2, pictures, logprobs=True)
        alone = ask_call(service(url, "tiny"), message=pictures[2:])
    assert first.error is None
    assert first.text == second.text
    assert first.record.finish_reason in ("stop", "length")
    # Two images have 16 tokens each, between others.
    images = first.record.tokens["prompt"] - alone.record.tokens["prompt"]
    assert 32 <= images <= 100
    assert first.record.model["identifier"] == str(tmp_path / "text.gguf")
    logprobs = first.record.token_logprobs
    assert logprobs is not None
    assert len(logprobs.ends) == len(logprobs.logprobs) > 0


def test_llama_cpp_holds_replies_to_a_format(pictures: Message, tmp_path: Path) -> None:
    with llama_cpp(tmp_path, 4096, vision=True) as url:
        answer = ask_call(service(url, "tiny"), message=pictures, variant=HELD)
    assert answer.error is None
    assert answer.text.lstrip().startswith("[")


def test_llama_cpp_without_a_projector_ends_the_run(pictures: Message, tmp_path: Path) -> None:
    """Its status is 500, as of errors that pass."""
    with llama_cpp(tmp_path, 4096, vision=False) as url:
        answers = ask_calls(service(url, "tiny"), 9, pictures)
    assert len(answers) < 9
    assert not any(answer.text for answer in answers)
    assert "you may need to provide the mmproj" in (answers[0].error or "")
    assert answers[-1].stop is StopReason.HOPELESS
    assert call_of(answers[0])["attempts"] == 1


def test_a_message_beyond_llama_cpps_context_is_a_failed_call(
    tmp_path: Path,
) -> None:
    with llama_cpp(tmp_path, 512, vision=False) as url:
        answer = ask_call(service(url, "tiny"), message=(text("cat " * 300),))
    assert answer.text == ""
    assert "exceeds the available context size (512 tokens)" in (answer.error or "")
    assert call_of(answer)["attempts"] == 1


# --- LiteLLM --------------------------------------------------------------------------------------


def behind(asked: Asked, number: int) -> Answer:
    """Answer as the models behind the proxy."""
    model = asked.body["model"]
    if model == "late":
        return replace(completion("[5]"), delay=4.0)
    if model == "broken":
        return error(500, "upstream fell over")
    if model == "strict" and "temperature" in asked.body:
        return error(400, "Unsupported parameter: 'temperature' is not supported.")
    return completion("[5]", model=f"{model}-2026", message={"reasoning_content": "hm"})


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ChatServer(behind) as server:
        rows = [
            _model("well", server.url),
            _model("falls", server.url, model="openai/broken"),
            _model("broken", server.url),
            _model("strict", server.url),
            _model(
                "drops", server.url, model="openai/strict", additional_drop_params=["temperature"]
            ),
            _model("unreachable", "http://127.0.0.1:9/v1"),
            _model("limited", server.url, rpm=1),
            _model("priced", server.url, input_cost_per_token=2e-5, output_cost_per_token=1e-4),
            _model("late", server.url, timeout=1),
        ]
        config = {
            "model_list": rows,
            "router_settings": {
                "num_retries": 0,
                "fallbacks": [{"falls": ["well"]}],
                "enable_pre_call_checks": True,
            },
            "litellm_settings": {"num_retries": 0, "telemetry": False},
            "general_settings": {"master_key": KEY},
        }
        with litellm_proxy(tmp_path_factory.mktemp("proxy"), config) as url:
            yield url


def _model(name: str, address: str, **more: Any) -> dict[str, Any]:
    behind_it = {"model": f"openai/{name}", "api_base": address, "api_key": "none", **more}
    return {"model_name": name, "litellm_params": behind_it}


def test_litellm_passes_answers_on(proxy: str) -> None:
    answer = ask_call(service(proxy, "well"))
    assert (answer.text, answer.error) == ("[5]", None)
    assert answer.record.thought == "hm"
    assert answer.record.tokens == {"prompt": 900, "completion": 20}


def test_litellms_fallback_is_told_by_the_name_that_answered(proxy: str) -> None:
    names = [
        ask_call(service(proxy, name)).record.model["identifier"] for name in ("well", "falls")
    ]
    assert names == ["well", "well-2026"]


def test_litellms_fallbacks_can_be_forbidden(proxy: str) -> None:
    answer = ask_call(service(proxy, "falls", {"disable_fallbacks": True}))
    assert answer.text == ""
    assert "upstream fell over" in (answer.error or "")


@pytest.mark.parametrize(
    ("name", "why", "attempts"),
    [
        ("broken", "upstream fell over", 4),
        ("unreachable", "Connection error", 4),
        ("nobody", "Invalid model name passed in model=nobody", 1),
        ("strict", "'temperature' is not supported", 1),
    ],
)
def test_litellms_errors_are_failed_calls_in_its_words(
    proxy: str, name: str, why: str, attempts: int
) -> None:
    answer = ask_call(service(proxy, name))
    assert answer.text == ""
    assert why in (answer.error or "")
    assert call_of(answer)["attempts"] == attempts


def test_a_field_that_a_model_behind_litellm_refuses_is_named(proxy: str) -> None:
    answers = ask_calls(service(proxy, "strict"), 8)
    assert len(answers) < 8
    assert """--extra-body '{"temperature": null}'""" in (answers[-1].error or "")
    (answer,) = ask_calls(service(proxy, "strict", {"temperature": None}))
    assert answer.text == "[5]"


def test_litellms_rate_limit_is_a_passing_failure(proxy: str) -> None:
    first, second = ask_calls(service(proxy, "limited"), 2)
    assert first.text == "[5]"
    assert "HTTP 429: No deployments available" in (second.error or "")
    assert call_of(second)["attempts"] == QUICK.attempts


def test_a_schema_that_litellm_drops_is_noticed_early(
    proxy: str,
) -> None:
    (answer,) = ask_calls(service(proxy, "well"), 5, variant=HELD)
    assert "it does not constrain replies to a format" in (answer.error or "")


def test_a_wrong_key_for_litellm_ends_the_run(proxy: str) -> None:
    model = chat_model("Qwen3-VL", served="well")
    wrong = HttpService(model, [Endpoint(proxy, "sk-wrong")], policy=QUICK)
    answers = ask_calls(wrong, 9)
    assert len(answers) < 9
    assert not any(answer.text for answer in answers)


def test_what_litellm_states_in_a_header_is_the_cost(proxy: str) -> None:
    """900 tokens at $20 a million, and 20 at $100: $0.02."""
    budget = Budget(0.05)
    model = chat_model("Qwen3-VL", served="priced", max_tokens=40)
    asked = HttpService(model, [Endpoint(proxy, KEY)], budget=budget, policy=QUICK)
    answers = ask_calls(asked, 9)
    assert [answer.error for answer in answers[:2]] == [None, None]
    assert call_of(answers[0])["cost"] == pytest.approx(0.02)
    assert budget.spent == pytest.approx(0.04)
    assert answers[-1].stop is StopReason.SPENT


def test_a_reply_that_litellm_did_not_wait_for_is_charged(proxy: str) -> None:
    asked = limited(proxy, "late", 0.003)
    (answer,) = ask_calls(asked)
    assert "HTTP 408" in (answer.error or "")
    assert asked.budget.spent == pytest.approx(call_of(answer)["cost"])
    assert call_of(answer)["attempts"] == 1, "another could pass the limit"


# --- Portkey and nginx ----------------------------------------------------------------------------


def test_a_reply_that_portkey_did_not_wait_for_is_charged(tmp_path: Path) -> None:
    with ChatServer(behind) as server, portkey_gateway(tmp_path) as url:
        headers = {
            "x-portkey-provider": "openai",
            "x-portkey-custom-host": server.url,
            "x-portkey-request-timeout": "1000",
        }
        well = limited(url, "well", 1.0, headers)
        assert ask_call(well).text == "[5]"
        assert well.budget.spent == pytest.approx(0.01)
        late = limited(url, "late", 0.003, headers)
        answer = ask_call(late)
        assert "HTTP 408" in (answer.error or "")
    assert late.budget.spent > 0.0
    assert call_of(answer)["attempts"] == 1


@pytest.mark.parametrize(
    ("mode", "status"), [("ends at once", 502), ("resets at once", 502), ("never answers", 504)]
)
def test_a_reply_that_nginx_lost_is_charged(mode: str, status: int, tmp_path: Path) -> None:
    with BrokenServer(mode, b"") as server, nginx(tmp_path, server.url) as url:
        asked = limited(url, "any", 0.003)
        answer = ask_call(asked)
        assert server.asked == 1
    assert f"HTTP {status}" in (answer.error or "")
    assert asked.budget.spent > 0.0


def test_a_header_that_nginx_passes_on_is_read(tmp_path: Path) -> None:
    """Longer than the 4 KiB of its buffer, nginx itself refuses it."""
    long = replace(completion("[5]"), headers={"X-Policy": "a" * 3000})
    with ChatServer(in_turn(long)) as server, nginx(tmp_path, server.url) as url:
        assert ask_call(limited(url, "any", 1.0)).text == "[5]"
