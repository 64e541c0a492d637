"""``--dry-run``: count calls and cost, without a model, a network or a key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import Progress

from ..core import counted
from ..engine import (
    BackendFactory,
    Cell,
    chat_of,
    given_key,
    refuse_headers,
)
from ..leaderboard import Field, Table
from ..leaderboard import count_column as number_of
from ..models import (
    OPENROUTER,
    PRICES_AS_OF,
    ChatModel,
    Load,
    ModelEntry,
    ModelOptions,
    chat_model,
    find_model,
    known_revision,
    tiers_in,
    token_limit,
)
from ..sweeps import (
    DryRun,
    Sweep,
    Track,
    check_cell,
    count_calls,
    scoring_settings,
    sweep_groups,
)
from .access import Access
from .command_base import say
from .early_checks import check_answers
from .printing import print_folded, print_lines, print_table
from .sweep import backends_for, budget_for

T = TypeVar("T")

_REST = "the whole output (… | cat)"
"""The place of the rest of long tables: a pipe gets all."""


def of_sweep(sweep: Sweep, options: ModelOptions, subtracts: bool = True) -> int:
    """Count the calls of a sweep, unless its run would be refused.

    ``subtracts``: answers in its journal are finished calls.
    """
    factories = backends_for(sweep, options, budget_for(sweep), asks=False)
    for entry in sweep.models:
        if entry.name in factories:
            factories[entry.name].check(entry)
    keys = {entry.name: _key(entry, factories.get(entry.name)) for entry in sweep.models}
    chats = {entry.name: chat for entry in sweep.models if (chat := _chat(entry, sweep))}
    groups = sweep_groups(sweep, keys, chats)
    for entry, group in zip(sweep.models, groups, strict=True):
        _check_cells(sweep, entry, group.cells, factories.get(entry.name))
    with _bars() as track:
        dry = count_calls(groups, sweep.journal if subtracts else None, track)
    numbers = ("cells", "queries", "images", "calls", "finished")
    rows = [[each.name, *(getattr(each, number) for number in numbers)] for each in dry.counts]
    print_table(Table("Calls", [Field("model"), *map(number_of, numbers)], rows), _REST)
    loads = [(each.name, each.load) for each in dry.counts if each.load is not None]
    print_lines([f"{name} over HTTP: {_line(load)}" for name, load in loads], _REST)
    print_lines([line for name, chat in chats.items() if (line := _tier_line(name, chat))], _REST)
    _print_sums(dry, sweep.batch is not None)
    if sweep.race:
        say("the race makes at most these calls")
    if not subtracts:
        say("Replies of earlier runs are not subtracted.")
    return 0


def _check_cells(
    sweep: Sweep, entry: ModelEntry, cells: Iterable[Cell], factory: BackendFactory | None
) -> None:
    """Refuse cells that a run refuses; without ``factory`` the model is VLMEvalKit's."""
    settings = scoring_settings(sweep, entry)
    for cell in cells:
        if factory is None:
            refuse_headers(entry)
            check_answers(entry, Access.VLMEVALKIT, cell.variant, settings)
        else:
            check_cell(sweep.work_dir, entry, cell, settings, factory)


def _is_http(entry: ModelEntry) -> bool:
    return bool(entry.base_url or entry.provider)


def _key(entry: ModelEntry, factory: BackendFactory | None) -> Mapping[str, Any]:
    """Return the part of every call's key that comes from the model.

    Without ``factory`` the model is VLMEvalKit's, and not described without it.
    """
    if factory is not None:
        return factory.settings(entry)
    checkpoint = entry.settings.get("model_path")
    known = str(checkpoint) if checkpoint and (entry.like and find_model(entry.like)) else None
    return given_key(entry.settings, known_revision(known) or known if known else None)


def _chat(entry: ModelEntry, sweep: Sweep) -> ChatModel | None:
    """Return the chat model of an entry; None if it is not asked over HTTP."""
    if sweep.batch or _is_http(entry):
        return chat_of(entry)
    row = find_model(entry.name)
    if row is None or row.api is None or row.entry != entry.name:
        return None
    return chat_model(entry.name, OPENROUTER, max_tokens=token_limit(entry.settings)[0])


@contextmanager
def _bars() -> Iterator[Track]:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:

        def track(items: Iterable[T], total: int, what: str) -> Iterable[T]:
            return bar.track(items, total, description=what)

        yield track


def _print_sums(dry: DryRun, half: bool) -> None:
    names = ("cells", "queries", "calls", "finished")
    cells, queries, calls, finished = (
        sum(getattr(each, name) for each in dry.counts) for name in names
    )
    say(
        f"{counted(cells, 'cell')}, {queries:,} queries, {counted(dry.images, 'image')}, "
        f"{counted(calls, 'model call')}, {calls - finished:,} of them still to make"
    )
    load = reduce(Load.__add__, (each.load for each in dry.counts if each.load), Load())
    if load.calls:
        priced = load.usd_in or load.usd_out_at_most
        prices = f"; prices are of {PRICES_AS_OF}, unless --prices is given" if priced else ""
        print_folded(f"over HTTP: {_line(load)}. Tokens are estimates{prices}.")
        if half and load.usd_in:
            say("Dollars are those of a batch, half of the price of single calls.")
    if dry.missing:
        say(f"{dry.missing:,} images are missing: they are counted by their names,")
        say("and HTTP calls with them are not in the estimate")


def _tier_line(name: str, chat: ChatModel) -> str:
    """Say what the tier in every request costs; "" if it costs what the standard one does."""
    if chat.prices is None:
        tiers = ", ".join(map(str, tiers_in(chat.fields)))
        return f"{name} asks for {tiers}, which may cost more" if tiers else ""
    extra = chat.asked_surcharge(chat.prices)
    if not extra.named:
        return ""
    line = f"{name} asks for {extra.named}: dollars are those of it"
    if extra.unknown:
        line += "; its price is not known, so that is the most that any service asks"
    return line


def _line(load: Load) -> str:
    again = f" ({load.tokens_again:,} of them again)" if load.tokens_again else ""
    price = ""
    if load.usd_in:
        price = f"; ${load.usd_in:,.2f} in, at most ${load.usd_out_at_most:,.2f} out"
    return (
        f"{load.calls:,} calls, {load.images:,} images, about "
        f"{load.tokens_in:,} tokens in{again}, at most {load.tokens_out_at_most:,} out{price}"
    )
