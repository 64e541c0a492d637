"""The options by which ``run``, ``search``, ``sweep`` and ``probe`` choose and ask models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any

import click

from ..models.http.batch import BatchKind
from ..models.model_entry import ModelOptions
from ..serving.programs import PROGRAMS
from .shared_options import space_option

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

MODEL = "NAME, NAME=CHECKPOINT (a folder or hub identifier) or, at a server, NAME=SERVED."

BATCH = click.option(
    "--batch",
    type=click.Choice([kind.value for kind in BatchKind]),
    callback=lambda _, __, value: value and BatchKind(value),
    help="Ask in batches, at half the price: at --provider, or the only address of --base-url.",
)
EXECUTOR = click.option(
    "--executor",
    type=click.Choice(["local", "ray"]),
    default="local",
    help="ray: replicas of the model over a Ray cluster (RAY_ADDRESS, else a local cluster).",
)
REPLICAS = click.option(
    "--replicas",
    type=int,
    metavar="N",
    help="Replicas of the model on a Ray cluster.",
    show_default=False,
)
SAMPLES = click.option(
    "--samples",
    type=int,
    metavar="N",
    help="Replies to each query, for the samples command; needs --temperature.  [default: 1]",
    show_default=False,
)
LOGPROBS = click.option(
    "--logprobs",
    is_flag=True,
    help="Record the probability of every token; earlier answers without are asked again.",
)
SKIP_MISSING = click.option(
    "--skip-missing-images", is_flag=True, help="Leave out rows whose images are missing."
)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Count calls and cost; ask nothing.")

_PROMPT: tuple[Option, ...] = (
    click.option("--system", metavar="FILE", help="Text that goes before every question."),
    click.option(
        "--prompt-template",
        metavar="FILE",
        help="Jinja template of the question, in place of the dataset's words.",
    ),
)


MODEL_GROUPS = {
    "The model": (
        *("like", "space", "system", "prompt_template", "temperature", "samples", "logprobs"),
    ),
    "Servers and providers": (
        *("base_url", "provider", "key", "header", "extra_body", "batch", "api_nproc", "timeout"),
    ),
    "This machine or cluster": (
        *("batch_size", "dtype", "device", "serve", "gpus", "tensor_parallel", "serve_args"),
        *("executor", "replicas"),
    ),
    "Cost": ("max_usd", "prices", "dry_run"),
    "Every command": ("plugin", "verbose", "quiet"),
}
"""Names of options by their heading in the help of commands that ask models."""


def prompt_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--system`` and ``--prompt-template`` to a command."""
    for option in reversed(_PROMPT):
        command = option(command)
    return command


_SHARED: tuple[Option, ...] = (
    click.option("--like", metavar="NAME", help="Known model whose prompts and space it shares."),
    space_option,
    *_PROMPT,
    click.option(
        "--base-url",
        metavar="URL,URL|@FILE",
        help="OpenAI-compatible servers of the model, up to and with /v1; @FILE has an address a "
        "line and may change during the run.",
    ),
    # Not a Choice: plug-ins add providers, and are not imported for a help.
    click.option(
        "--provider",
        metavar="NAME",
        help="Ask the model's maker in its own protocol, with its key from the environment: "
        "openai, anthropic, google or openrouter.",
    ),
    click.option("--key", help="Key of the servers or the provider, else from the environment."),
    click.option(
        "--header",
        multiple=True,
        metavar="'NAME: VALUE'",
        help="Header of every request to the servers or the provider (repeatable).",
    ),
    click.option("--extra-body", metavar="JSON", help="More fields of every request."),
    click.option(
        "--temperature",
        type=float,
        metavar="T",
        help="Sample the replies at this temperature, else greedy.",
    ),
    click.option(
        "--batch-size", type=int, metavar="N", help="Most queries at once on this machine."
    ),
    click.option("--dtype", metavar="NAME", help="Type of the weights on this machine: bfloat16 …"),
    click.option(
        "--device", metavar="NAME", help="Device of the model on this machine: cuda:1, cpu …"
    ),
    click.option(
        "--serve",
        metavar="PROGRAM",
        help=f"Start servers of the model on this machine: {', '.join(PROGRAMS)}.",
    ),
    click.option(
        "--gpus",
        type=float,
        metavar="N",
        help="GPUs of this machine for --serve, or of each Ray replica.",
    ),
    click.option("--tensor-parallel", type=int, metavar="N", help="GPUs of each server."),
    click.option("--serve-args", metavar="'--flag value'", help="More flags of each server."),
    click.option(
        "--api-nproc", type=int, metavar="N", help="Concurrent calls to an API or each server."
    ),
    click.option("--timeout", type=float, metavar="SECONDS", help="Time limit of an attempt."),
    click.option(
        "--max-usd", type=float, metavar="USD", help="Stop before calls cost more than this."
    ),
    click.option(
        "--prices",
        metavar="IN,OUT",
        help="US dollars per million tokens sent and answered, if neither the service nor the "
        "model table says it.",
    ),
)


def model_options(*more: Option) -> Option:
    """Add the shared options, and ``more``, to a command, which gets them as ``options``.

    The other arguments of the command stay as they are.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def call(**values: Any) -> Any:
            names = [option.name for option in fields(ModelOptions) if option.name in values]
            options = ModelOptions(**{name: values.pop(name) for name in names})
            return command(options=options, **values)

        decorated: Callable[..., Any] = call
        for option in reversed((*_SHARED, *more)):
            decorated = option(decorated)
        return decorated

    return decorate
