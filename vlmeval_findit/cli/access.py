"""Options that only some kinds of deployments use: one without effect is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..core import flag_name, no_effect
from ..engine import (
    Deployment,
    InBatches,
    OnRay,
    Served,
    has_effect,
    users_of,
    why_without_effect,
)
from ..models import ModelEntry, declared_options, options_to

_LIMITED = (
    "VLMEvalKit's runner takes it; FindIt asks a server so with --extra-body "
    """'{"top_k": 20, "max_tokens": 500}'"""
)
_UNJUDGED = "no judge scores FindIt's datasets"

KEYS_OF_SWEEPS: Mapping[str, str] = {
    **{key: key for key in ("samples", "logprobs", "max_usd", "serve", "batch", "timeout")},
    **{"threads": "api_nproc", "batch_size": "batch_size"},
    "poll": "batch",
    **dict.fromkeys(("replicas", "cpus", "gpus"), "replicas"),
}
"""Keys of a whole sweep's file, those in ``inference`` too, and the option that acts as they do."""

CHOSEN_BY_FLAGS = (InBatches, OnRay, Served)
"""What a flag chooses: one file is asked with it today and without it tomorrow."""

USED_BY_EACH = options_to("settings", "resources") | {"samples", "system", "prompt_template"}
"""Flags that every model of a command has to use: its answers, or its time, depend on them."""

OF_JUDGES = (
    *("judge", "judge_base_url", "judge_key", "judge_api_nproc", "judge_retry"),
    *("judge_timeout", "use_verifier"),
)
"""Flags of VLMEvalKit's that are of the judges of its datasets."""

OF_QUESTIONS = frozenset(
    {"image_root", "prompts", "logprobs", "samples", "prompt_template", "system", "space"}
    | {"skip_missing_images", "dry_run", "serve", "batch"}
)
"""FindIt's flags of how its datasets are asked and read, whoever answers."""

USED_BY_NONE: Mapping[str, str] = {
    **dict.fromkeys(("top_k", "top_p", "repetition_penalty", "max_tokens", "thinker"), _LIMITED),
    **dict.fromkeys(OF_JUDGES, _UNJUDGED),
    "api_mode": "FindIt's datasets are asked by FindIt, --api-nproc calls at a time",
    **dict.fromkeys(("monitor_interval", "debug"), "it belongs to --api-mode"),
    "custom_prompt": "FindIt's prompts are those of its datasets",
    "config": "VLMEvalKit's runner takes it: python -m vlmeval --config FILE",
    "video_llm": "FindIt's videos are asked frame by frame",
    "local_media": "FindIt sends the images themselves",
}
"""Flags of VLMEvalKit's that no run of a FindIt dataset uses, and why."""

HOST_TAKES = frozenset(
    {"like", "base_url", "key", "timeout", "extra_body", "api_nproc", "temperature"}
)
"""Options of models that VLMEvalKit's runner takes for its datasets, too."""

FINDIT_ONLY = {"image_root"} | declared_options().keys() - HOST_TAKES
"""FindIt's flags that VLMEvalKit's datasets do not use."""


def without_effect(name: str, why: str, advice: str = "Leave it out") -> ValueError:
    """Make the error for a flag, by its option's name, that would change nothing."""
    return ValueError(no_effect(flag_name(name), why, advice))


_KEYS = {"like": "like", "prices": "prices", "headers": "header", "checkpoint": "checkpoint"}
_KEYS |= {"system": "system", "prompt_template": "prompt_template"}
"""Keys of a model in a file by which not every kind asks, and their names as options."""


def refuse_unused_keys(stated: ModelEntry, deployment: Deployment) -> None:
    """Refuse a key of a model in a file where the same flag would be refused."""
    for key, option in _KEYS.items():
        if getattr(stated, key) is not None and not has_effect(deployment, option):
            why = why_without_effect(deployment, option)
            raise ValueError(f"{stated.where}{no_effect(key, why)}")


def unused_sweep_keys(places: Mapping[str, str], deployments: Sequence[Deployment]) -> list[str]:
    """Return a line for each key of a whole sweep that has no effect this time.

    ``places`` begin messages: file and line of each key that says another value than its default.

    Raises:
        ValueError: a key has no effect whichever flag is typed.
    """
    unused = []
    for key, where in places.items():
        option = KEYS_OF_SWEEPS.get(key)
        if option is None or any(has_effect(each, option) for each in deployments):
            continue
        users = users_of(option)
        more = " (--executor ray)" if OnRay in users else ""
        why = f"{why_without_effect(deployments[0], option)}{more}"
        if not set(users) <= set(CHOSEN_BY_FLAGS):
            raise ValueError(f"{where}{no_effect(key, why)}")
        unused.append(f"{where}{no_effect(key, why, '')}")
    return unused


def refuse_unused(flags: Iterable[str], deployments: Sequence[Deployment]) -> None:
    """Refuse the first flag that no model uses, or that some model should use but does not.

    Flags are names of :class:`.ModelOptions` or of VLMEvalKit's.
    """
    for name in flags:
        if name in USED_BY_NONE:
            raise without_effect(name, USED_BY_NONE[name])
        unused = [each for each in deployments if not has_effect(each, name)]
        if not unused or (len(unused) < len(deployments) and name not in USED_BY_EACH):
            continue
        why = why_without_effect(unused[0], name)
        if len(unused) < len(deployments):
            raise without_effect(name, why, "Run that model without it")
        raise without_effect(name, why)
