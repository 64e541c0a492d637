"""Servers that we did not write: llama.cpp's, and LiteLLM's proxy in front of a stub.

`transformers serve` is in ``tests/serving/test_api_serve.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import QUICK, ask_call, ask_calls, call_of
from chat_server import Answer, Asked, ChatServer, completion, error
from PIL import Image
from real_servers import KEY, litellm_proxy, llama_cpp

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.engine.http_backend import HttpService
from vlmeval_findit.models.http.chat import chat_model
from vlmeval_findit.models.http.endpoint import Endpoint
from vlmeval_findit.protocol.call_results import StopReason
from vlmeval_findit.protocol.dataset_variant import Message, image, text

pytestmark = pytest.mark.slow

HELD = parse("FindIt_Demo_xyxy_json_constrained")


def service(url: str, served: str, fields: dict[str, Any] | None = None) -> HttpService:
    model = chat_model("Qwen3-VL", served=served, fields=fields, max_tokens=40)
    return HttpService(model, [Endpoint(url, KEY)], policy=QUICK)


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
    assert first.record["finish_reason"] in ("stop", "length")
    # Two images have 16 tokens each, between others.
    images = first.record["tokens"]["prompt"] - alone.record["tokens"]["prompt"]
    assert 32 <= images <= 100
    assert first.record["model"]["identifier"] == str(tmp_path / "text.gguf")
    logprobs = first.record["logprobs"]
    assert len(logprobs["ends"]) == len(logprobs["logprobs"]) > 0


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
    assert answer.record["thought"] == "hm"
    assert answer.record["tokens"] == {"prompt": 900, "completion": 20}


def test_litellms_fallback_is_told_by_the_name_that_answered(proxy: str) -> None:
    names = [
        ask_call(service(proxy, name)).record["model"]["identifier"] for name in ("well", "falls")
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
