"""A misspelt field would be dropped by the service in silence: it is refused, others pass."""

from __future__ import annotations

import json

import pytest

from vlmeval_findit.models import KNOWN_FIELDS, chat_model, extra_fields, meant_fields

GOOGLES = "generationConfig.thinkingConfig"
MISSPELT = [
    ("temprature", "temperature"),
    ("temperatur", "temperature"),
    ("Temperature", "temperature"),
    ("tempertaure", "temperature"),
    ("max_token", "max_tokens"),
    ("max-tokens", "max_tokens"),
    ("maxTokens", "max_tokens"),
    ("repetition_penality", "repetition_penalty"),
    ("repitition_penalty", "repetition_penalty"),
    ("presense_penalty", "presence_penalty"),
    ("reasoning_efort", "reasoning_effort"),
    ("chat_template_kwarg", "chat_template_kwargs"),
    ("chat_template_kwargs.enable_thinkng", "chat_template_kwargs.enable_thinking"),
    ("mm_procesor_kwargs", "mm_processor_kwargs"),
    ("mm_processor_kwargs.max_pixel", "mm_processor_kwargs.max_pixels"),
    ("generationConfig.maxOutputToken", "generationConfig.maxOutputTokens"),
    (
        f"{GOOGLES}.thinkingBuget",
        f"{GOOGLES}.thinkingBudget",
    ),
    ("provider.require_parameter", "provider.require_parameters"),
    ("reasoning.max_token", "reasoning.max_tokens"),
    ("thinking.budget_token", "thinking.budget_tokens"),
    ("sead_", None),
]
PASSES = [
    "my_field", "top_pp", "topp", "seeds", "x", "temperature_range", "guided_schema", "lora",
    "user_id",
    "chat_template_kwargs.my_switch", "vllm_xargs.temprature", "logit_bias.temprature",
    "metadata.temprature", "mm_processor_kwargs.my_bound",
]  # fmt: skip


def fields(name: str) -> dict[str, object]:
    *places, last = name.split(".")
    made: dict[str, object] = {last: 1}
    for place in reversed(places):
        made = {place: made}
    return made


@pytest.mark.parametrize(("typed", "meant"), MISSPELT)
def test_a_field_very_near_to_a_known_one_is_misspelt(typed: str, meant: str | None) -> None:
    assert list(meant_fields(fields(typed))) == ([(typed, meant)] if meant else [])
    if meant is None:
        return
    with pytest.raises(ValueError, match=f"did you mean {meant}"):
        chat_model("mine", fields=fields(typed))
    with pytest.raises(ValueError, match=f"--extra-body: unknown field .*did you mean {meant}"):
        extra_fields(json.dumps(fields(typed)))


@pytest.mark.parametrize("typed", PASSES)
def test_all_other_fields_pass(typed: str) -> None:
    assert list(meant_fields(fields(typed))) == []


@pytest.mark.parametrize("place", KNOWN_FIELDS)
def test_no_known_field_is_taken_for_another(place: str) -> None:
    for name in KNOWN_FIELDS[place]:
        whole = f"{place}.{name}" if place else name
        assert list(meant_fields(fields(whole))) == []
