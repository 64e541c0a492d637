"""The options by which ``run``, ``search``, ``sweep`` and ``probe`` choose and ask models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any

import click

from ..models.http.batch.records import BatchKind
from ..models.options import ModelOptions
from ..serving.programs import PROGRAMS
from .options import space_option

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

MODEL = "a name; NAME=CHECKPOINT for another folder or identifier; NAME=SERVED at a server"

BATCH = click.option(
    "--batch",
    type=click.Choice([kind.value for kind in BatchKind]),
    callback=lambda _, __, value: value and BatchKind(value),
    help="Ask in batches, at half the price: at --provider, or the one address of --base-url.",
)
EXECUTOR = click.option(
    "--executor",
    type=click.Choice(["local", "ray"]),
    default="local",
    help="ray: replicas of the model over a Ray cluster (RAY_ADDRESS, else a local one).",
)
REPLICAS = click.option(
    "--replicas", type=int, metavar="N", help="Of the model on a Ray cluster.", show_default=False
)
LOGPROBS = click.option(
    "--logprobs",
    is_flag=True,
    help="Record how probable the tokens of every reply were; earlier answers without are asked "
    "for again.",
)
SKIP_MISSING = click.option(
    "--skip-missing-images", is_flag=True, help="Leave out the rows whose images are not there."
)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Count calls and cost, and ask nothing.")

_SHARED: tuple[Option, ...] = (
    click.option("--like", metavar="NAME", help="Known model whose prompts and space it shares."),
    space_option,
    click.option(
        "--base-url",
        metavar="URL,URL|@FILE",
        help="OpenAI-compatible servers of the model, up to and with /v1; @FILE has one a line, "
        "and is followed while it changes.",
    ),
    # Not a Choice: plug-ins add providers, and are not imported for a help.
    click.option(
        "--provider",
        metavar="NAME",
        help="Ask the model's maker in its own protocol, with its key from the environment: "
        "openai, anthropic, google or openrouter.",
    ),
    click.option("--key", help="Of the servers or the provider (else: the environment's)."),
    click.option(
        "--header",
        multiple=True,
        metavar="'NAME: VALUE'",
        help="Of every request to the servers or the provider (repeatable).",
    ),
    click.option("--extra-body", metavar="JSON", help="More fields of every request."),
    click.option(
        "--temperature", type=float, metavar="T", help="Sample the replies (else: greedy)."
    ),
    click.option("--batch-size", type=int, metavar="N", help="Most queries at once, on this GPU."),
    click.option("--dtype", metavar="NAME", help="Of the weights on this machine: bfloat16 …"),
    click.option("--device", metavar="NAME", help="Of the model on this machine: cuda:1, cpu …"),
    click.option(
        "--serve",
        metavar="PROGRAM",
        help=f"Start the model on this machine as servers and ask those: {', '.join(PROGRAMS)}.",
    ),
    click.option(
        "--gpus", type=float, metavar="N", help="Of this machine with --serve; of a Ray replica."
    ),
    click.option("--tensor-parallel", type=int, metavar="N", help="GPUs of each server."),
    click.option(
        "--serve-args", metavar="'--flag value'", help="More of each server's command line."
    ),
    click.option(
        "--api-nproc", type=int, metavar="N", help="Calls at a time to an API or each server."
    ),
    click.option("--timeout", type=float, metavar="SECONDS", help="Of one attempt of such a call."),
    click.option(
        "--max-usd", type=float, metavar="USD", help="Stop before calls cost more than this."
    ),
    click.option(
        "--prices",
        metavar="IN,OUT",
        help="US dollars a million tokens sent and answered, where neither the service nor our "
        "table says it.",
    ),
)


def model_options(*more: Option) -> Option:
    """Add the shared options, and ``more``, to a command, which gets them as one ``options``.

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
