"""The ways of asking a model, and which flags each of them uses: what none uses is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from ..benchmarks import baselines
from ..core.vlmevalkit import may_have_model
from ..models.entry import ModelEntry
from ..models.table import find_model, local_names

REPLAY = "Replay"


class Way(Enum):
    """How a model is asked; the value is what messages call it."""

    BASELINE = "a baseline"
    REPLAY = "a recorded run"
    LOCAL = "a model on this machine"
    CHECKPOINT = "a checkpoint on this machine"
    SERVED = "a model that this machine serves (--serve)"
    RAY = "a model on a Ray cluster"
    OPENROUTER = "a model at OpenRouter"
    SERVER = "a model of a server (--base-url)"
    PROVIDER = "a model at a provider (--provider)"
    BATCH = "a model that is asked in batches (--batch)"
    HOSTS_OWN = "VLMEvalKit's own model"
    CONFIG = "a model of a --config file"


_CALLED = frozenset({Way.SERVER, Way.PROVIDER})
_PAID = _CALLED | {Way.OPENROUTER}
_AT_ONCE = _PAID | {Way.SERVED, Way.HOSTS_OWN, Way.CONFIG}
_LIMITED = (
    "FindIt asks within the variant's limit of tokens (--extra-body sets other fields of a "
    "server's request)"
)
_HERE = frozenset({Way.LOCAL, Way.CHECKPOINT, Way.RAY})
_UNJUDGED = "no judge scores FindIt's datasets"

USED_BY: Mapping[str, frozenset[Way]] = {
    "like": _CALLED | {Way.CHECKPOINT, Way.SERVED, Way.BATCH},
    "base_url": _CALLED | {Way.BATCH},
    "header": _CALLED | {Way.BATCH},
    "extra_body": _CALLED | {Way.BATCH},
    "key": _CALLED | {Way.BATCH},
    "temperature": _HERE | _PAID | {Way.SERVED, Way.BATCH},
    "batch_size": _HERE,
    "device": _HERE,
    "dtype": _HERE | {Way.SERVED},
    "api_nproc": _AT_ONCE,
    "nproc": _AT_ONCE,
    "retry": _PAID | {Way.SERVED, Way.HOSTS_OWN},
    "timeout": _PAID | {Way.SERVED, Way.BATCH, Way.CONFIG},
    "prices": _CALLED | {Way.BATCH},
    "max_usd": _PAID | {Way.BATCH, Way.CONFIG},
    "executor": frozenset({Way.RAY}),
    "replicas": frozenset({Way.RAY}),
    "gpus": frozenset({Way.RAY, Way.SERVED}),
    "serve": frozenset({Way.SERVED}),
    "tensor_parallel": frozenset({Way.SERVED}),
    "serve_args": frozenset({Way.SERVED}),
    "confidences": frozenset(Way) - {Way.BASELINE, Way.REPLAY, Way.HOSTS_OWN},
    "use_vllm": frozenset({Way.SERVED, Way.HOSTS_OWN, Way.CONFIG}),
}
"""Flags that not every way uses, by their names in :class:`.ModelOptions`."""

USED_BY_EACH = ("temperature", "batch_size", "device", "dtype")
"""Flags that every model of a command has to use: its answers, or its time, depend on them."""

USED_BY_NONE: Mapping[str, str] = {
    **dict.fromkeys(("top_k", "top_p", "repetition_penalty", "max_tokens", "thinker"), _LIMITED),
    **dict.fromkeys(
        ("judge", "judge_base_url", "judge_key", "judge_api_nproc", "judge_retry"), _UNJUDGED
    ),
    **dict.fromkeys(("judge_timeout", "use_verifier"), _UNJUDGED),
    "api_mode": "it is VLMEvalKit's own way of asking. FindIt's datasets are asked by FindIt, "
    "--api-nproc calls at a time",
    "monitor_interval": "it is of --api-mode",
    "debug": "it is of --api-mode",
    "custom_prompt": "FindIt's prompts are those of its datasets",
    "video_llm": "FindIt's videos are asked frame by frame",
    "local_media": "FindIt sends the pictures themselves",
}
"""Flags of VLMEvalKit's that no run of a dataset of ours uses, and why."""

OURS_ONLY = (
    *("image_root", "skip_missing_images", "prompts", "force", "confidences", "dry_run"),
    *("space", "max_usd", "provider", "header", "prices", "batch_size", "dtype", "device"),
)
"""Flags of ours that VLMEvalKit's own datasets do not use."""


def way_of(entry: ModelEntry, serves: bool = False) -> Way:
    """How a model is asked; ``serves``: this machine starts servers for its own.

    A name of VLMEvalKit's own is its own model: its list goes before ours.

    Raises:
        ValueError: a model that answers without being asked anywhere is said to be somewhere.
    """
    free = {REPLAY: Way.REPLAY, **dict.fromkeys(baselines(), Way.BASELINE)}
    if entry.name in free:
        if entry.base_url or entry.provider:
            flag = "--provider" if entry.provider else "--base-url"
            what = free[entry.name].value
            raise ValueError(f"{flag}: {entry.name} is {what} and asks nobody. Leave {flag} out")
        return free[entry.name]
    if entry.provider:
        return Way.PROVIDER
    if entry.base_url:
        return Way.SERVER
    if entry.checkpoint is not None:
        return Way.SERVED if serves else Way.CHECKPOINT
    if may_have_model(entry.name):
        return Way.HOSTS_OWN
    if entry.name in local_names():
        return Way.SERVED if serves else Way.LOCAL
    row = find_model(entry.name)
    return Way.OPENROUTER if row and row.api and row.entry == entry.name else Way.HOSTS_OWN


def flag_name(name: str) -> str:
    """A flag as it is typed.

    >>> flag_name("max_usd")
    '--max-usd'
    """
    return f"--{name.replace('_', '-')}"


def refuse_unused(given: Iterable[str], ways: Sequence[tuple[str, Way]]) -> None:
    """Refuse the first flag that none of the models uses, or not each that should.

    Args:
        given: names of :class:`.ModelOptions`, or of VLMEvalKit's flags.
        ways: models, and how they are asked; one may be asked in several ways at once.

    Raises:
        ValueError: the message names flag, model and who would use it.
    """
    for name in given:
        flag = flag_name(name)
        if name in USED_BY_NONE:
            raise ValueError(f"{flag} has no effect: {USED_BY_NONE[name]}. Leave the flag out")
        used_by = USED_BY.get(name, frozenset(Way))
        unused = [(model, way) for model, way in ways if way not in used_by]
        if not unused or (len(unused) < len(ways) and name not in USED_BY_EACH):
            continue
        model, way = unused[0]
        users = ", ".join(one.value for one in Way if one in used_by)
        raise ValueError(
            f"{flag} has no effect: {model} is {way.value}, and the flag is used by {users}. "
            f"{'Leave the flag out' if len(unused) == len(ways) else 'Ask that model apart'}"
        )
