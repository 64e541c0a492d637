"""Whether a model thinks is said once, in whatever words: contradictions are refused."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

import pytest
from few_fast import every_nth_fast

from vlmeval_findit.models import (
    NANO,
    SPELLINGS,
    chat_model,
    find_model,
    refuse_settings,
    run_settings,
)

# Each spelling with a value that lets a model think, and one that does not (None: it has none)
VALUES: Mapping[str, tuple[Any, Any]] = {
    "reasoning_effort": ("low", "none"),
    "reasoning.effort": ("low", "none"),
    "reasoning.enabled": (True, False),
    "reasoning.max_tokens": (2000, 0),
    "thinking": (True, False),
    "thinking.type": ("enabled", "disabled"),
    "thinking.budget_tokens": (2000, 0),
    "enable_thinking": (True, False),
    "thinking_budget": (2000, 0),
    "thinking_token_budget": (2000, 0),
    "think": ("low", False),
    "chat_template_kwargs.enable_thinking": (True, False),
    "chat_template_kwargs.thinking": (True, False),
    "chat_template_kwargs.reasoning_effort": ("low", "none"),
    "chat_template_kwargs.thinking_budget": (2000, 0),
    "generationConfig.thinkingConfig.thinkingBudget": (2000, 0),
    "generationConfig.thinkingConfig.thinkingLevel": ("low", "none"),
    "generation_config.thinking_config.thinking_budget": (2000, 0),
    "generation_config.thinking_config.thinking_level": ("low", "none"),
    "template.enable_thinking": (True, False),
    "template.thinking": (True, False),
    "template.reasoning_effort": ("low", "none"),
}
REFUSED = "are the same setting, but differ|contradict"


def request(*stated: tuple[str, Any]) -> dict[str, Any]:
    """Return fields of a request, with the objects around them."""
    fields: dict[str, Any] = {}
    for spelling, value in stated:
        *places, name = spelling.split(".")
        inside = fields
        for place in places:
            inside = inside.setdefault(place, {})
        inside[name] = value
    return fields


def fit(one: str, other: str) -> bool:
    """Return whether a request can have both: ``thinking`` is a switch or an object."""
    return not (other.startswith(f"{one}.") or one.startswith(f"{other}."))


PAIRS = [pair for pair in permutations(VALUES, 2) if fit(*pair)]


def test_the_table_has_all_spellings() -> None:
    assert VALUES.keys() == SPELLINGS.keys()


@pytest.mark.parametrize("first", every_nth_fast(VALUES, 3))
def test_two_spellings_say_the_same_or_are_refused(first: str) -> None:
    for one, other in (pair for pair in PAIRS if pair[0] == first):
        (on, off), (its_on, its_off) = VALUES[one], VALUES[other]
        chat_model("mine", fields=request((one, on), (other, its_on)))
        chat_model("mine", fields=request((one, off), (other, its_off)))
        with pytest.raises(ValueError, match=REFUSED):
            chat_model("mine", fields=request((one, on), (other, its_off)))


@pytest.mark.parametrize("spelling", VALUES)
def test_a_name_says_that_its_model_does_not_think(spelling: str) -> None:
    on, off = VALUES[spelling]
    chat_model("mine-nothink", fields=request((spelling, off)))
    with pytest.raises(ValueError, match=r"nothink|FindIt sends|but differ"):
        chat_model("mine-nothink", fields=request((spelling, on)))


@pytest.mark.parametrize("spelling", VALUES)
@pytest.mark.parametrize("like", ["Qwen3.5", None])
def test_replies_of_models_that_think_are_read_so(spelling: str, like: str | None) -> None:
    name = "mine" if like else "Qwen3.5-9B"
    on, off = VALUES[spelling]
    chat_model(name, fields=request((spelling, on)), like=like)
    with pytest.raises(ValueError, match=r"let the model be like Qwen3\.5-nothink"):
        chat_model(name, fields=request((spelling, off)), like=like)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("reasoning_effort", "low"), ("reasoning.effort", "high")),
        (("reasoning_effort", "low"), ("think", "high")),
        (("thinking.budget_tokens", 1000), ("reasoning.max_tokens", 2000)),
        (("thinking_budget", 1000), ("chat_template_kwargs.thinking_budget", 2000)),
    ],
)
def test_efforts_and_budgets_agree(one: tuple[str, Any], other: tuple[str, Any]) -> None:
    with pytest.raises(ValueError, match=REFUSED):
        chat_model("mine", fields=request(one, ("enable_thinking", True), other))


@pytest.mark.parametrize(
    ("provider", "name"),
    [("openai", "GPT-5.4"), ("openrouter", "GPT-5.4"), ("google", "Gemini-2.5-Flash")],
)
def test_what_the_row_says_is_replaced_or_contradicted(provider: str, name: str) -> None:
    google = "generationConfig.thinkingConfig.thinkingBudget"
    for spelling in (
        "enable_thinking",
        "thinking.type",
        google,
    ):
        fields = request((spelling, VALUES[spelling][0]))
        with pytest.raises(ValueError, match=REFUSED):
            chat_model(name, provider, fields=fields)
        chat_model(name, provider, fields={**fields, "reasoning_effort": None, "reasoning": None})


def test_words_that_say_nothing_of_it_are_no_contradiction() -> None:
    fields = {"thinking": {"display": "omitted"}, "reasoning": {"exclude": True}}
    chat_model("mine-nothink", fields={**fields, "reasoning_effort": None})


def test_a_local_models_switches_are_compared_too() -> None:
    thinks, nano = find_model("Qwen3.5"), find_model(NANO)
    assert thinks is not None
    assert nano is not None
    off = run_settings({"template": {"enable_thinking": False}})
    on = run_settings({"template": {"enable_thinking": True}})
    with pytest.raises(ValueError, match=r"template\.enable_thinking: false"):
        refuse_settings(thinks, "a/b", off)
    with pytest.raises(ValueError, match="mine-nothink says that it does not"):
        refuse_settings(nano, "a/b", on, name="mine-nothink")
    refuse_settings(thinks, "a/b", on)
