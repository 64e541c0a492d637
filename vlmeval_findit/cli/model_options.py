"""The options by which ``run``, ``search``, ``sweep`` and ``probe`` choose and ask models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial, wraps
from typing import Any

import click

from ..models import BatchKind, ModelOptions
from ..serving import PROGRAMS
from .command_base import declare, force_option, option, space_option, switch

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

MODEL = "NAME, NAME=CHECKPOINT (a folder or hub identifier) or, at a server, NAME=SERVED."

_OF_SOME: Mapping[str, Option] = {
    "batch": declare(
        "--batch",
        type=click.Choice([kind.value for kind in BatchKind]),
        callback=lambda _, __, value: value and BatchKind(value),
        help="Ask in batches, at half the price: at --provider, or the only address of --base-url.",
    ),
    "executor": declare(
        "--executor",
        type=click.Choice(["local", "ray"]),
        default="local",
        help="ray: replicas of the model over a Ray cluster (RAY_ADDRESS, else a local cluster).",
    ),
    "replicas": option(
        "--replicas", "N", "Replicas of the model on a Ray cluster.", type=int, show_default=False
    ),
    "samples": option(
        "--samples",
        "N",
        "Replies to each query, for the samples command; needs --temperature.  [default: 1]",
        type=int,
        show_default=False,
    ),
    "logprobs": switch(
        "--logprobs",
        "Record the probability of every token; earlier answers without are asked again.",
    ),
    "skip_missing": switch("--skip-missing-images", "Leave out rows whose images are missing."),
    "dry_run": switch("--dry-run", "Count calls and cost; ask nothing."),
    "force": force_option,
}
"""Options of some of these commands."""

_PROMPT: tuple[Option, ...] = (
    option("--system", "FILE", "Text that goes before every prompt."),
    option(
        "--prompt-template",
        "FILE",
        "Jinja template of the prompt, in place of the dataset's words.",
    ),
)


MODEL_GROUPS = {
    "The model": (
        "like",
        "space",
        "system",
        "prompt_template",
        "temperature",
        "samples",
        "logprobs",
    ),
    "Servers and providers": (
        "base_url",
        "provider",
        "key",
        "header",
        "extra_body",
        "batch",
        "api_nproc",
        "timeout",
    ),
    "This machine or cluster": (
        "batch_size",
        "dtype",
        "device",
        "serve",
        "gpus",
        "tensor_parallel",
        "serve_args",
        "executor",
        "replicas",
    ),
    "Cost": ("max_usd", "prices", "dry_run"),
    "Every command": ("plugin", "verbose", "quiet"),
}
"""Names of options by their heading in the help of commands that ask models."""


def _with(options: Sequence[Option], command: Callable[..., Any]) -> Callable[..., Any]:
    for add in reversed(options):
        command = add(command)
    return command


prompt_options = partial(_with, _PROMPT)
"""Adds ``--system`` and ``--prompt-template`` to a command."""

_SHARED: tuple[Option, ...] = (
    option("--like", "NAME", "Known model whose prompts and space it shares."),
    space_option,
    *_PROMPT,
    option(
        "--base-url",
        "URL,URL|@FILE",
        "OpenAI-compatible servers of the model, up to and with /v1; @FILE has an address a "
        "line and may change during the run.",
    ),
    # Not a Choice: plug-ins add providers, and are not imported for a help.
    option(
        "--provider",
        "NAME",
        "Ask the model's maker in the maker's protocol, with its key from the environment: "
        "openai, anthropic, google or openrouter.",
    ),
    declare("--key", help="Key of the servers or the provider, else from the environment."),
    option(
        "--header",
        "'NAME: VALUE'",
        "Header of every request to the servers or the provider (repeatable).",
        multiple=True,
    ),
    option("--extra-body", "JSON", "More fields of every request."),
    option(
        "--temperature", "T", "Sample the replies at this temperature, else greedy.", type=float
    ),
    option("--batch-size", "N", "Most queries at once on this machine.", type=int),
    option("--dtype", "NAME", "Type of the weights on this machine: bfloat16 …"),
    option("--device", "NAME", "Device of the model on this machine: cuda:1, cpu …"),
    option(
        "--serve", "PROGRAM", f"Start servers of the model on this machine: {', '.join(PROGRAMS)}."
    ),
    option("--gpus", "N", "GPUs of this machine for --serve, or of each Ray replica.", type=float),
    option("--tensor-parallel", "N", "GPUs of each server.", type=int),
    option("--serve-args", "'--flag value'", "More flags of each server."),
    option("--api-nproc", "N", "Concurrent calls to an API or each server.", type=int),
    option("--timeout", "SECONDS", "Time limit of an attempt.", type=float),
    option("--max-usd", "USD", "Stop before calls cost more than this.", type=float),
    option(
        "--prices",
        "IN,OUT",
        "US dollars per million tokens sent and answered, if neither the service nor the "
        "model table says it.",
    ),
)


def model_options(*more: str) -> Option:
    """Add the shared options, and those named, to a command, which gets them as ``options``.

    The other arguments of the command stay as they are.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def call(**values: Any) -> Any:
            names = [field.name for field in fields(ModelOptions) if field.name in values]
            options = ModelOptions(**{name: values.pop(name) for name in names})
            return command(options=options, **values)

        return _with((*_SHARED, *map(_OF_SOME.__getitem__, more)), call)

    return decorate
