"""Every setting, set to an unusual value, is found where it has its effect, or is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import pytest

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.engine import (
    ApiSettings,
    api_chat,
    api_settings,
    asked_settings,
    describe_local,
    of_answers,
    served_model,
)
from vlmeval_findit.models import Budget, ModelEntry, RunSettings
from vlmeval_findit.protocol import text
from vlmeval_findit.serving import ServeOptions

VARIANT = parse("FindIt_Pascal_xyxy_json_bbox_2d")

# Unusual values of the settings of models on this machine, and where a record has them
SETTINGS: Mapping[str, tuple[Any, Callable[[Mapping[str, Any]], Any] | None]] = {
    "revision": ("abc123", None),  # the checkpoint's, which a key and a record have
    "space": ("unit", None),  # of reading
    "device": ("cpu", None),  # no answer depends on it
    "dtype": ("float64", lambda it: it["dtype"]),
    "attention": ("eager", lambda it: it["attention"]),
    "engine": ("numpy", lambda it: it["engine"]),
    "min_pixels": (123_456, lambda it: it["bounds"]["min_pixels"]),
    "max_pixels": (654_321, lambda it: it["bounds"]["max_pixels"]),
    "patches": (7, None),
    "max_new_tokens": (77, lambda it: it["max_new_tokens"]),
    "batch_size": (3, None),  # no answer depends on it
    "temperature": (0.7, lambda it: it["temperature"]),
    "merge_adapter": (True, None),
    "template": ({"add_vision_id": True}, lambda it: it["template"]),
}
# What the checkpoint of these tests, which is no adapter, cannot have
REFUSED = {
    "patches": r"patches: .* takes no patches",
    "merge_adapter": r"merge_adapter has no effect: Qwen/\S+ is no adapter",
}
# What a server of ours has in its requests
REQUESTED: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "min_pixels": lambda it: it["mm_processor_kwargs"]["min_pixels"],
    "max_pixels": lambda it: it["mm_processor_kwargs"]["max_pixels"],
    "max_new_tokens": lambda it: it["max_tokens"],
    "temperature": lambda it: it["temperature"],
    "template": lambda it: it["chat_template_kwargs"],
}


def test_every_setting_has_a_row() -> None:
    assert SETTINGS.keys() == {each.name for each in fields(RunSettings)}


@pytest.mark.sees("key checkpoint", "key dtype")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_here_is_recorded_and_in_the_key(name: str) -> None:
    value, recorded = SETTINGS[name]
    given = {name: value}
    if name in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[name]):
            describe_local(VARIANT, "Qwen3-VL", "Qwen/Qwen3-VL-8B-Instruct", **given)
        return
    described = describe_local(VARIANT, "Qwen3-VL", "Qwen/Qwen3-VL-8B-Instruct", **given)
    if recorded is not None:
        assert recorded(described.answering.settings) == value
    has_effect = name not in ("space", "device", "batch_size")
    assert (name in of_answers(given)) is has_effect


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_under_serve_is_sent_or_refused(name: str) -> None:
    value, _ = SETTINGS[name]
    entry = ModelEntry("Qwen3-VL-8B", {name: value})
    if name == "merge_adapter":
        with pytest.raises(ValueError, match=REFUSED[name]):
            served_model(entry, ServeOptions("vllm"))
        return
    if name in ("device", "attention", "engine", "batch_size"):
        with pytest.raises(ValueError, match=f"^{name} has no effect: under --serve"):
            served_model(entry, ServeOptions("vllm"))
        return
    model = served_model(entry, ServeOptions("vllm"))
    if name in REQUESTED:
        chat = model.chat()
        assert REQUESTED[name](chat.request((text("where?"),), VARIANT, ()).body) == value
        recorded = chat.describe(VARIANT, []).answering.settings
        assert REQUESTED[name]({**recorded, "max_tokens": recorded["max_new_tokens"]}) == value
    if name != "space":
        assert model.stated[name] == value


# Unusual values of the settings of models over HTTP, and where a request has those that it has
OVER_HTTP: Mapping[str, tuple[Any, str | None]] = {
    "retry": (9, None),
    "timeout": (77.0, None),
    "max_usd": (3.5, None),
    "budget": (Budget(1.5), None),
    "max_new_tokens": (77, "max_tokens"),
    "temperature": (0.7, "temperature"),
    "prices": ((1.0, 2.0), None),
}


def test_every_setting_over_http_has_a_row() -> None:
    assert OVER_HTTP.keys() == {each.name for each in fields(ApiSettings)}


@pytest.mark.parametrize("name", OVER_HTTP)
def test_a_setting_over_http_is_sent_and_recorded(name: str) -> None:
    value, field = OVER_HTTP[name]
    api = api_settings({name: value})
    assert (name in asked_settings(api)) is (field is not None)
    if field is not None:
        chat = api_chat("Gemini-2.5-Flash", api)
        assert chat.request((text("where?"),), VARIANT, ()).body[field] == value
        assert chat.describe(VARIANT, []).answering.settings[name] == value
