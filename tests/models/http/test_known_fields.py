"""A misspelt field would be dropped by the service in silence: it is refused, others pass."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import Mock

import pytest

from vlmeval_findit.models import (
    KNOWN_FIELDS,
    ModelEntry,
    ModelOptions,
    Provider,
    chat_model,
    extra_fields,
    meant_fields,
)
from vlmeval_findit.models.http.providers import provider_table

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


# --- a provider's own -----------------------------------------------------------------------------

OWN = ("max_token", "samples", "reasoning.efort", "mine.temprature")
OWN_FIELDS: dict[str, Any] = {
    "max_token": 9,
    "samples": 4,
    "reasoning": {"efort": "low"},
    "mine": {"temprature": 1},
}


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> str:
    row = Provider("mine", Mock(), "http://localhost/v9", own_fields=OWN)
    monkeypatch.setattr(provider_table, "PROVIDERS", {**provider_table.PROVIDERS, "mine": row})
    return row.name


def test_a_provider_s_own_fields_are_sent(mine: str) -> None:
    flags = ModelOptions(provider=mine, extra_body=json.dumps(OWN_FIELDS), space="grid1000")
    for entry in (
        flags.entry("m=there"),
        flags.applied(ModelEntry("m", served="there")),
        ModelEntry("m", served="there", provider=mine, space="grid1000", settings=OWN_FIELDS),
    ):
        model = chat_model("m", entry.provider, "there", entry.space, entry.settings)
        assert OWN_FIELDS.items() <= model.fields.items()


@pytest.mark.parametrize("provider", [None, "openai"])
@pytest.mark.parametrize("name", OWN[:3])
def test_they_are_its_own_alone(name: str, provider: str | None, mine: str) -> None:
    first = name.partition(".")[0]
    typed = {first: OWN_FIELDS[first]}
    with pytest.raises(ValueError, match=r"did you mean|no field of a request"):
        chat_model("m", provider, "there", "grid1000", typed)
    with pytest.raises(ValueError, match=r"did you mean|no field of a request"):
        extra_fields(json.dumps(typed), provider)


@pytest.mark.parametrize("name", ["max_tokem", "messages", "n"])
def test_other_fields_are_refused_there_too(name: str, mine: str) -> None:
    with pytest.raises(ValueError, match=name):
        chat_model("m", mine, "there", "grid1000", {name: 2})
