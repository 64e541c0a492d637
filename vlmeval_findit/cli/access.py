"""Access to models, and the flags that each access uses: a flag without effect is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from ..benchmarks import baselines
from ..core import may_have_model
from ..models import ModelEntry, find_model, local_names


class Access(Enum):
    """Access to a model; the value is its name in messages."""

    BASELINE = "a baseline"
    LOCAL = "a model on this machine"
    CHECKPOINT = "a checkpoint on this machine"
    SERVED = "a model that this machine serves (--serve)"
    RAY = "a model on a Ray cluster"
    OPENROUTER = "a model at OpenRouter"
    SERVER = "a model of a server (--base-url)"
    PROVIDER = "a model at a provider (--provider)"
    BATCH = "a model that is asked in batches (--batch)"
    VLMEVALKIT = "a model of VLMEvalKit's"


_HTTP = frozenset({Access.SERVER, Access.PROVIDER})
ASKED_BY_NAME = _HTTP | {Access.BATCH}
"""A service has its own names for them."""
LOCAL = frozenset({Access.BASELINE, Access.LOCAL, Access.CHECKPOINT})
"""Models of FindIt's in this process."""
ASKED_BY_US = _HTTP | {Access.SERVED}
"""FindIt asks them about its datasets by itself: VLMEvalKit is not needed."""
_PAID = _HTTP | {Access.OPENROUTER}
_CONCURRENT = _PAID | {Access.SERVED, Access.VLMEVALKIT}
_LIMITED = (
    "FindIt asks within the variant's limit of tokens (--extra-body sets other fields of a "
    "server's request)"
)
_HERE = frozenset({Access.LOCAL, Access.CHECKPOINT, Access.RAY})
_ASKED_IN_WORDS = frozenset(Access) - {Access.BASELINE}
_UNJUDGED = "no judge scores FindIt's datasets"

USED_BY: Mapping[str, frozenset[Access]] = {
    "like": ASKED_BY_NAME | {Access.CHECKPOINT, Access.SERVED},
    **dict.fromkeys(("base_url", "header", "extra_body", "key", "prices"), ASKED_BY_NAME),
    **dict.fromkeys(("system", "prompt_template"), _ASKED_IN_WORDS),
    **dict.fromkeys(("temperature", "samples"), _HERE | _PAID | {Access.SERVED, Access.BATCH}),
    **dict.fromkeys(("batch_size", "device"), _HERE),
    "dtype": _HERE | {Access.SERVED},
    **dict.fromkeys(("api_nproc", "nproc"), _CONCURRENT),
    "retry": _PAID | {Access.SERVED, Access.VLMEVALKIT},
    "timeout": _PAID | {Access.SERVED, Access.BATCH},
    "max_usd": _PAID | {Access.BATCH},
    "checkpoint": frozenset(Access) - {Access.BASELINE},
    **dict.fromkeys(("executor", "replicas"), frozenset({Access.RAY})),
    "gpus": frozenset({Access.RAY, Access.SERVED}),
    **dict.fromkeys(("serve", "tensor_parallel", "serve_args"), frozenset({Access.SERVED})),
    "logprobs": frozenset(Access) - {Access.BASELINE, Access.VLMEVALKIT},
    "use_vllm": frozenset({Access.VLMEVALKIT}),
}
"""Flags that not every access uses, by their names in :class:`.ModelOptions`."""

KEYS_USED_BY: Mapping[str, frozenset[Access]] = {
    **{key: USED_BY[key] for key in ("samples", "logprobs", "max_usd", "serve")},
    "batch": frozenset({Access.BATCH}),
    "threads": USED_BY["api_nproc"],
    "timeout": USED_BY["timeout"],
    **dict.fromkeys(("batch_size", "variants"), USED_BY["batch_size"]),
    "poll": frozenset({Access.BATCH}),
    **dict.fromkeys(("replicas", "cpus", "gpus"), frozenset({Access.RAY})),
}
"""Keys of a whole sweep's file that not every access uses; those in ``inference``, too."""

CHOSEN_BY_FLAGS = frozenset({Access.BATCH, Access.RAY, Access.SERVED})
"""What a flag chooses: one file is asked with it today and without it tomorrow."""

USED_BY_EACH = (
    "temperature",
    "samples",
    "batch_size",
    "device",
    "dtype",
    "system",
    "prompt_template",
)
"""Flags that every model of a command has to use: its answers, or its time, depend on them."""

USED_BY_NONE: Mapping[str, str] = {
    **dict.fromkeys(("top_k", "top_p", "repetition_penalty", "max_tokens", "thinker"), _LIMITED),
    **dict.fromkeys(
        ("judge", "judge_base_url", "judge_key", "judge_api_nproc", "judge_retry"), _UNJUDGED
    ),
    **dict.fromkeys(("judge_timeout", "use_verifier"), _UNJUDGED),
    "api_mode": "FindIt's datasets are asked by FindIt, --api-nproc calls at a time",
    **dict.fromkeys(("monitor_interval", "debug"), "it belongs to --api-mode"),
    "custom_prompt": "FindIt's prompts are those of its datasets",
    "config": "VLMEvalKit's runner takes it: python -m vlmeval --config FILE",
    "video_llm": "FindIt's videos are asked frame by frame",
    "local_media": "FindIt sends the images themselves",
}
"""Flags of VLMEvalKit's that no run of a FindIt dataset uses, and why."""

FINDIT_ONLY = (
    "image_root",
    "skip_missing_images",
    "prompts",
    "force",
    "logprobs",
    "dry_run",
    "system",
    "prompt_template",
    "space",
    "max_usd",
    "provider",
    "header",
    "prices",
    "batch_size",
    "dtype",
    "device",
    "samples",
)
"""FindIt's flags that VLMEvalKit's datasets do not use."""


def access_of(entry: ModelEntry, serves: bool = False) -> Access:
    """Return the access to a model; ``serves``: this machine starts servers for its models.

    A name in VLMEvalKit's list means VLMEvalKit's model.
    """
    flag = "--provider" if entry.provider else "--base-url" if entry.base_url else None
    row = find_model(entry.name)
    is_baseline = False
    if row is None or (row.api is None and row.local is None):
        # Imports all benchmarks: not for a model of which the table says how it is asked.
        is_baseline = entry.name in baselines()
    if is_baseline:
        if flag:
            raise ValueError(
                f"{flag}: {entry.name} is a baseline and calls no server. Leave {flag} out"
            )
        return Access.BASELINE
    if flag:
        return Access.PROVIDER if entry.provider else Access.SERVER
    if entry.checkpoint is not None:
        return Access.SERVED if serves else Access.CHECKPOINT
    if may_have_model(entry.name):
        return Access.VLMEVALKIT
    if entry.name in local_names():
        return Access.SERVED if serves else Access.LOCAL
    is_api = row is not None and row.api is not None and row.entry == entry.name
    return Access.OPENROUTER if is_api else Access.VLMEVALKIT


def flag_name(name: str) -> str:
    """Return a flag as it is typed.

    >>> flag_name("max_usd")
    '--max-usd'
    """
    return f"--{name.replace('_', '-')}"


def without_effect(name: str, why: str, advice: str = "Leave the flag out") -> ValueError:
    """Make the error for a flag that would change nothing.

    >>> print(without_effect("from", "grid1000 is a space"))
    --from has no effect: grid1000 is a space. Leave the flag out
    """
    return ValueError(f"{flag_name(name)} has no effect: {why}. {advice}")


_KEYS = {"like": "like", "prices": "prices", "headers": "header", "checkpoint": "checkpoint"}
_KEYS |= {"system": "system", "prompt_template": "prompt_template"}
"""Keys of a model in a file by which not every access asks, and their names in :data:`USED_BY`."""


def refuse_unused_keys(entry: ModelEntry, access: Access) -> None:
    """Refuse a key of a model in a file where the same flag would be refused."""
    for key, name in _KEYS.items():
        used_by = USED_BY[name]
        if getattr(entry, key) is not None and access not in used_by:
            raise ValueError(
                f"{entry.where}{key} has no effect: {entry.name} is {access.value}; only these "
                f"use it: {_named(used_by)}. Leave the key out"
            )


def unused_sweep_keys(
    places: Mapping[str, str], accesses: Sequence[tuple[str, Access]]
) -> list[str]:
    """Return a line for each key of a whole sweep that has no effect this time.

    ``places`` begin messages: file and line of each key that says another value than its default.

    Raises:
        ValueError: a key has no effect whichever flag is typed.
    """
    unused = []
    for key, where in places.items():
        used_by = KEYS_USED_BY.get(key, frozenset(Access))
        if any(access in used_by for _, access in accesses):
            continue
        model, access = accesses[0]
        more = " (--executor ray)" if Access.RAY in used_by else ""
        message = (
            f"{where}{key} has no effect: {model} is {access.value}; only these use it: "
            f"{_named(used_by)}{more}"
        )
        if not used_by <= CHOSEN_BY_FLAGS:
            raise ValueError(f"{message}. Leave the key out")
        unused.append(message)
    return unused


def _named(accesses: frozenset[Access]) -> str:
    return ", ".join(each.value for each in Access if each in accesses)


def refuse_unused(flags: Iterable[str], accesses: Sequence[tuple[str, Access]]) -> None:
    """Refuse the first flag that no model uses, or that some model should use but does not.

    Flags are names of :class:`.ModelOptions` or of VLMEvalKit's; a model may have several accesses.
    """
    for name in flags:
        if name in USED_BY_NONE:
            raise without_effect(name, USED_BY_NONE[name])
        used_by = USED_BY.get(name, frozenset(Access))
        unused = [(model, access) for model, access in accesses if access not in used_by]
        if not unused or (len(unused) < len(accesses) and name not in USED_BY_EACH):
            continue
        model, access = unused[0]
        why = f"{model} is {access.value}; only these use it: {_named(used_by)}"
        if len(unused) < len(accesses):
            raise without_effect(name, why, "Run that model without it")
        raise without_effect(name, why)
