"""A user's fields of a request and FindIt's: both are sent and recorded, or the run is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.models import (
    chat_model,
    find_provider,
    merged_fields,
    stated_fields,
    with_logprobs,
)
from vlmeval_findit.protocol import text

FREE = parse("FindIt_Pascal_xyxy_json_bbox_2d")
CONSTRAINED = parse("FindIt_Pascal_xyxy_json_bbox_2d_constrained")

# A deployment's model and provider, a variant, what a user gives, and what must be sent of it
MERGED: Mapping[str, tuple[Any, ...]] = {
    "Google's configuration": (
        *("Gemini-2.5-Flash", "google", FREE, {"generationConfig": {"topK": 40}}),
        {"generationConfig": {"topK": 40, "temperature": 0.0, "maxOutputTokens": 768,
                              "thinkingConfig": {"thinkingBudget": 0}}},
    ),
    "Google's other objects": (
        *("Gemini-2.5-Flash", "google", FREE, {"safetySettings": [1], "labels": {"a": "b"}}),
        {"safetySettings": [1], "labels": {"a": "b"}},
    ),
    "Anthropic's output": (
        *("Claude-Sonnet-4.5", "anthropic", CONSTRAINED, {"output_config": {"effort": "low"}}),
        {"output_config": {"effort": "low", "format": ...}},
    ),
    "Anthropic's thinking": (
        *("Claude-Sonnet-4.5", "anthropic", FREE),
        {"thinking": {"type": "enabled", "budget_tokens": 2000}, "reasoning_effort": None},
        {"thinking": {"type": "enabled", "budget_tokens": 2000}},
    ),
    "OpenRouter's routing": (
        *("GPT-5.4", "openrouter", CONSTRAINED),
        {"provider": {"order": ["azure"], "allow_fallbacks": False}},
        {"provider": {"order": ["azure"], "allow_fallbacks": False, "require_parameters": True}},
    ),
    "a server's template": (
        *("Qwen3.5-9B-nothink", None, FREE, {"chat_template_kwargs": {"add_vision_id": True}}),
        {"chat_template_kwargs": {"add_vision_id": True, "enable_thinking": False}},
    ),
}  # fmt: skip

# What a user gives that contradicts FindIt's, and both values in the message
CONTRADICTIONS: Mapping[str, tuple[Any, ...]] = {
    "Anthropic's thinking": (
        *("Claude-Sonnet-4.5", "anthropic", FREE, {"thinking": {"type": "enabled"}}),
        'thinking.type "enabled" and reasoning_effort "none" are the same setting',
    ),
    "Anthropic's schema": (
        *("Claude-Sonnet-4.5", "anthropic", CONSTRAINED, {"output_config": {"format": 1}}),
        "output_config.format: 1 is given",
    ),
    "Google's temperature": (
        *("Gemini-2.5-Flash", "google", FREE, {"generationConfig": {"temperature": 0.7}}),
        "generationConfig.temperature: 0.7 is given, but FindIt sends 0.0",
    ),
    "Google's thinking": (
        *("Gemini-2.5-Flash", "google", FREE),
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 9}}},
        'generationConfig.thinkingConfig.thinkingBudget 9 and reasoning_effort "none" are',
    ),
    "Google's limit": (
        *("Gemini-2.5-Flash", "google", FREE, {"generationConfig": {"maxOutputTokens": 9}}),
        "generationConfig.maxOutputTokens: 9 is given",
    ),
    "OpenRouter's routing": (
        *("GPT-5.4", "openrouter", CONSTRAINED, {"provider": {"require_parameters": False}}),
        "provider.require_parameters: false is given, but FindIt sends true",
    ),
    "a server's template": (
        *("Qwen3.5-9B-nothink", None, FREE, {"chat_template_kwargs": {"enable_thinking": True}}),
        "chat_template_kwargs.enable_thinking: true is given, but FindIt sends false",
    ),
    "a server's schema": (
        *("Qwen3-VL-8B", None, CONSTRAINED, {"response_format": {"type": "text"}}),
        'response_format.type: "text" is given, but FindIt sends "json_schema"',
    ),
}


@pytest.mark.parametrize("case", MERGED)
def test_both_are_sent_and_recorded(case: str) -> None:
    name, provider, variant, given, wanted = MERGED[case]
    model = chat_model(name, provider, fields=given)
    body = dict(model.request((text("where?"),), variant, ()).body)
    sent = dict(find_provider(provider).chat.request(body)) if provider else body
    recorded = model.describe(variant, []).answering.settings
    for field, value in wanted.items():
        assert recorded[field] == sent[field]
        if not isinstance(value, dict):
            assert sent[field] == value
            continue
        assert sent[field].keys() == value.keys()
        assert all(it in (..., sent[field][key]) for key, it in value.items())


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_contradiction_is_refused_before_a_call(case: str) -> None:
    name, provider, variant, given, words = CONTRADICTIONS[case]
    with pytest.raises(ValueError, match=re.escape(words)):
        chat_model(name, provider, fields=given).describe(variant, [])


@pytest.mark.parametrize("provider", [None, "openrouter", "openai", "anthropic", "google"])
@pytest.mark.parametrize(
    "field", ["model", "messages", "stream", "contents", "system", "systemInstruction"]
)
def test_nobody_replaces_the_question_or_the_model(field: str, provider: str | None) -> None:
    with pytest.raises(ValueError, match=f"^{field} is set by FindIt"):
        chat_model("Mine", provider, "mine", "unit", {field: "other"})


def test_no_value_is_lost_however_deep() -> None:
    theirs = {"a": {"b": {"c": 1}, "d": [1]}, "e": None}
    ours = {"a": {"b": {"f": 2}, "d": [1]}, "g": 0}
    assert merged_fields(theirs, ours) == {
        "a": {"b": {"c": 1, "f": 2}, "d": [1]}, "e": None, "g": 0
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"^a\.b\.c: 1 is given, but FindIt sends 3"):
        merged_fields(theirs, {"a": {"b": {"c": 3}}})


@pytest.mark.parametrize("given", [False, None, 0])
def test_fields_without_logprobs_contradict_asking_for_them(given: Any) -> None:
    with pytest.raises(ValueError, match=r"logprobs: \S+ is given, .* run without --logprobs"):
        with_logprobs({"logprobs": given})


def test_more_logprobs_than_asked_for_are_sent() -> None:
    given = {"logprobs": True, "top_logprobs": 5}
    assert with_logprobs(given) == given


def test_settings_stay_in_their_order() -> None:
    """So they are sent and recorded in it."""
    settings = {"seed": 1, "a": {"c": 1, "b": 2}, "d": 3}
    joined = stated_fields(settings, {"x": 9, "d": None, "a": {"e": 4, "b": 2}})
    assert list(joined.items()) == [
        ("seed", 1), ("a", {"c": 1, "b": 2, "e": 4}), ("d", None), ("x", 9)
    ]  # fmt: skip
    assert list(joined["a"]) == ["c", "b", "e"]
    assert list(merged_fields({"b": 1, "a": 2}, {"c": 3, "a": 2})) == ["b", "a", "c"]


QWEN = {"kind": "smart_resize", "min_pixels": 3136, "max_pixels": 100352}


@pytest.mark.parametrize("provider", [None, "openrouter"])
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"mm_processor_kwargs": {"min_pixels": 3136, "max_pixels": 999999}},
         "mm_processor_kwargs.max_pixels: 999999 "),
        ({"mm_processor_kwargs": {"min_pixels": 4}}, "mm_processor_kwargs.min_pixels: 4 "),
        ({"mm_processor_kwargs": {"size": {"longest_edge": 9}}},
         "mm_processor_kwargs.size.longest_edge: 9 "),
        ({"mm_processor_kwargs": {"images_kwargs": {"size": {"shortest_edge": 9}}}},
         "mm_processor_kwargs.images_kwargs.size.shortest_edge: 9 "),
        ({"max_pixels": 9}, "max_pixels: 9 "),
        ({"parameters": {"min_pixels": 9}}, "parameters.min_pixels: 9 "),
    ],
)  # fmt: skip
def test_bounds_other_than_the_spaces_are_refused(
    given: dict[str, Any], name: str, provider: str | None
) -> None:
    model = chat_model("mine", provider, "mine", fields=given, space=QWEN)
    with pytest.raises(ValueError, match=re.escape(name)) as raised:
        model.describe(FREE, [])
    assert re.search("m(in|ax)_pixels (3136|100352) of the space", str(raised.value))


@pytest.mark.parametrize("space", [QWEN, "grid1000"])
def test_bounds_of_the_space_or_without_one_are_sent(space: Any) -> None:
    bounds = {"min_pixels": 3136, "max_pixels": 100352 if space == QWEN else 9}
    given = {"mm_processor_kwargs": bounds}
    described = chat_model("mine", fields=given, space=space).describe(FREE, [])
    assert described.answering.settings["mm_processor_kwargs"] == bounds


@pytest.mark.parametrize(
    ("name", "provider", "given", "is_refused"),
    [
        ("GPT-5.4", "openai", {"reasoning": {"effort": "high"}}, True),
        ("GPT-5.4", "openai", {"reasoning": {"effort": "high"}, "reasoning_effort": None}, False),
        ("GPT-5.4", "openrouter", {"reasoning_effort": "high"}, True),
        ("GPT-5.4", "openrouter", {"reasoning_effort": "high", "reasoning": None}, False),
        ("mine", None, {"reasoning_effort": "high", "reasoning": {"effort": "low"}}, True),
        ("mine", None, {"reasoning_effort": "low", "reasoning": {"effort": "low"}}, False),
    ],
)
def test_two_spellings_of_the_reasoning_agree(
    name: str, provider: str | None, given: dict[str, Any], is_refused: bool
) -> None:
    if not is_refused:
        chat_model(name, provider, fields=given)
        return
    with pytest.raises(ValueError, match="are the same setting, but differ"):
        chat_model(name, provider, fields=given)


def test_an_object_of_settings_is_no_field() -> None:
    with pytest.raises(ValueError, match=r"settings is no field.*Write the fields that are in it"):
        chat_model("mine", fields={"settings": {"top_p": 0.5}})
