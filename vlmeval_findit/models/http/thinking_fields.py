"""Whether a request asks a model to think: each spelling is a row, and none may say another.

Services, servers and chat templates each have a field of their own, and most drop those that they
do not know. Of two that contradict, one would decide in silence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from ...core import object_or_empty
from ...serving import TEMPLATE_FIELD
from ..model_row import ModelRow


class Thinking(NamedTuple):
    """What a field says: whether the model thinks, and how long (None: not said)."""

    is_on: bool
    effort: str | None = None
    budget: int | None = None  # tokens


Says = Callable[[Any], Thinking | None]
"""Returns what a value says; None: nothing, or it is not of the expected type."""


def _switch(value: Any) -> Thinking | None:
    return Thinking(value) if isinstance(value, bool) else None


def _effort(value: Any) -> Thinking | None:
    if not isinstance(value, str):
        return None
    return Thinking(False) if value.lower() == "none" else Thinking(True, effort=value.lower())


def _budget(value: Any) -> Thinking | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    if value < 0:  # the model chooses
        return Thinking(True)
    return Thinking(True, budget=value) if value else Thinking(False)


def _kind(value: Any) -> Thinking | None:
    words = {"enabled": True, "adaptive": True, "auto": True, "disabled": False}
    return Thinking(words[value]) if value in words else None


def _switch_or_effort(value: Any) -> Thinking | None:
    return _switch(value) or _effort(value)


# Where a request states it, with dots between objects
SPELLINGS: Mapping[str, Says] = {
    "reasoning_effort": _effort,  # OpenAI, vLLM, SGLang, Google's and others' OpenAI protocol
    "reasoning.effort": _effort,  # OpenRouter
    "reasoning.enabled": _switch,
    "reasoning.max_tokens": _budget,
    "thinking": _switch,
    "thinking.type": _kind,  # Anthropic, GLM, DeepSeek, Kimi
    "thinking.budget_tokens": _budget,
    "enable_thinking": _switch,  # Alibaba, SiliconFlow
    "thinking_budget": _budget,
    "thinking_token_budget": _budget,  # vLLM
    "think": _switch_or_effort,  # Ollama
    f"{TEMPLATE_FIELD}.enable_thinking": _switch,  # templates of Qwen, GLM, Gemma
    f"{TEMPLATE_FIELD}.thinking": _switch,  # of DeepSeek, Granite
    f"{TEMPLATE_FIELD}.reasoning_effort": _effort,  # of gpt-oss
    f"{TEMPLATE_FIELD}.thinking_budget": _budget,
    "template.enable_thinking": _switch,  # of a model on this machine
    "template.thinking": _switch,
    "template.reasoning_effort": _effort,
    "generationConfig.thinkingConfig.thinkingBudget": _budget,  # Google
    "generationConfig.thinkingConfig.thinkingLevel": _effort,
    "generation_config.thinking_config.thinking_budget": _budget,
    "generation_config.thinking_config.thinking_level": _effort,
}


def stated_thinking(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any, Thinking]]:
    """Yield each field of a request that states it, with its value and what that says.

    >>> [(name, said.is_on) for name, _, said in stated_thinking({"reasoning": {"effort": "low"}})]
    [('reasoning.effort', True)]
    """
    for spelling, says in SPELLINGS.items():
        *places, name = spelling.split(".")
        inside = fields
        for place in places:
            inside = object_or_empty(inside.get(place))
        said = says(inside.get(name))
        if said is not None:
            yield spelling, inside[name], said


def _disagree(one: Thinking, other: Thinking) -> bool:
    """Return whether two fields cannot both be done."""
    efforts = {one.effort, other.effort} - {None}
    budgets = {one.budget, other.budget} - {None}
    return one.is_on is not other.is_on or len(efforts) > 1 or len(budgets) > 1


def refuse_other_thinking(fields: Mapping[str, Any], name: str, row: ModelRow | None) -> None:
    """Refuse, with a ValueError, fields of which one says that a model thinks and another not.

    So are fields that say another effort, or budget, and those that say other than its name.

    Args:
        fields: of a request, with FindIt's.
        name: of the results; ``…-nothink`` says that it does not.
        row: of the model table; with one that always thinks, replies are read as its.
    """
    known = list(stated_thinking(fields))
    for (one, value, says), (other, its_value, it_says) in combinations(known, 2):
        if _disagree(says, it_says):
            raise ValueError(
                f"{other} {json.dumps(its_value)} and {one} {json.dumps(value)} are the same "
                'setting, but differ. Leave one out; {"reasoning_effort": null} or '
                '{"reasoning": null} leaves out FindIt\'s'
            )
    for field, value, says in known:
        if says.is_on and name.lower().endswith("-nothink"):
            raise ValueError(
                f"{field}: {json.dumps(value)} lets the model think, and {name} says that it does "
                "not. Leave it out, or name the model without -nothink"
            )
        if not says.is_on and row is not None and row.opens_thought:
            raise ValueError(
                f"{field}: {json.dumps(value)} keeps the model from thinking, and replies of "
                f"{row.name} are read as thoughts at first. Leave it out, or let the model be like "
                f"{row.name}-nothink: in its name, or by --like"
            )
