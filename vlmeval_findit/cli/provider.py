"""``--provider``: a model at who makes it, with a key of one's own."""

from __future__ import annotations

import argparse
from dataclasses import replace

from ..models.entry import ModelEntry
from ..models.http.providers.table import find_provider
from ..models.prices import prices_from
from ..sweeps.config import Sweep

PROVIDER_HELP = (
    "ask the model there in its own protocol, with its key from the environment: openai, "
    "anthropic, google or openrouter; with --base-url at that address"
)


PRICES_HELP = (
    "what calls cost, in US dollars a million tokens sent and answered, where neither the service "
    "nor our table says it"
)


def add_provider_flag(parser: argparse.ArgumentParser) -> None:
    """The flag."""
    # Not `choices`: plug-ins add providers, and are not asked before somebody wants one.
    parser.add_argument("--provider", metavar="NAME", help=PROVIDER_HELP)


def with_provider(entry: ModelEntry, args: argparse.Namespace) -> ModelEntry:
    """A model at the provider and prices that a command line names; NAME=SERVED is its name there.

    Raises:
        ValueError: there is no such provider, or the model is said to be elsewhere.
    """
    entry = with_prices(entry, args)
    if args.provider is None:
        return entry
    name = find_provider(args.provider).name
    if entry.provider not in (None, name):
        raise ValueError(
            f"--provider {name}: {entry.name} is to be asked at {entry.provider} by its entry"
        )
    return replace(served_there(entry, f"{name}'s"), provider=name)


def with_prices(entry: ModelEntry, args: argparse.Namespace) -> ModelEntry:
    """A model with the prices that a command line says.

    Raises:
        ValueError: they are none.
    """
    return entry if args.prices is None else replace(entry, prices=prices_from(args.prices))


def served_there(entry: ModelEntry, whose: str) -> ModelEntry:
    """NAME=SERVED of a model that is asked elsewhere: what was read as a checkpoint is its name.

    Raises:
        ValueError: ``--served`` says another name.
    """
    if entry.checkpoint is None:
        return entry
    if entry.served not in (None, entry.checkpoint):
        raise ValueError(
            f"--served {entry.served} and --model {entry.name}={entry.checkpoint}: which is "
            f"{whose} name for the model?"
        )
    return replace(entry, served=entry.checkpoint, checkpoint=None)


def all_at_provider(sweep: Sweep, args: argparse.Namespace) -> Sweep:
    """A sweep whose models are all asked at the provider, and prices, that a command line names.

    Raises:
        ValueError: one of them is said to be elsewhere.
    """
    for entry in sweep.models:
        if args.provider is not None and entry.checkpoint is not None:
            raise ValueError(
                f"--provider {args.provider}: {entry.name} has a checkpoint, which is of a model "
                "on this machine"
            )
    return replace(sweep, models=tuple(with_provider(entry, args) for entry in sweep.models))
