"""``--dry-run``: count calls and cost, without a model, a network or a key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import attrgetter
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

from ..core import agreeing, counted
from ..engine import (
    Cell,
    Deployment,
    InVLMEvalKit,
    JournalView,
    PendingBatches,
    check_earlier_answers,
)
from ..leaderboard import Column, count_column, table_of
from ..models import PRICES_AS_OF, ChatModel, Load, ModelOptions, tiers_in
from ..sweeps import (
    DryRun,
    GroupCounts,
    JournalOf,
    Sweep,
    Track,
    check_cell,
    count_calls,
    opened_journals,
    prepare_cell,
    scoring_settings,
    sweep_groups,
)
from .command_base import say
from .early_checks import check_answers
from .printing import WHOLE_OUTPUT, print_folded, print_lines, print_table
from .who_answers import budget_for, deployments_for

T = TypeVar("T")


def of_sweep(sweep: Sweep, options: ModelOptions, journal_of: JournalOf | None = None) -> int:
    """Count the calls of a sweep, unless its run would be refused.

    ``journal_of``: returns the journal of a cell (None: the sweep has one).
    """
    deployments = deployments_for(sweep, options, budget_for(sweep), asks=False)
    # A sweep has its batches in its own journal
    pending = None if journal_of is None else PendingBatches.of(sweep.work_dir)
    groups = sweep_groups(sweep, deployments)
    with opened_journals(journal_of or (lambda cell: sweep.journal)) as view_of:
        for deployment, group in zip(deployments, groups, strict=True):
            for cell in group.cells:
                _check_cell(sweep, deployment, cell, view_of(cell))
                if pending is not None and journal_of is not None:
                    pending.refuse(cell, journal_of(cell))
        with _bars() as track:
            dry = count_calls(groups, view_of, track)
    numbers = ["cells", "queries", "images", "calls", "finished"]
    if any(each.submitted for each in dry.counts):
        numbers.append("submitted")
    columns: list[Column[GroupCounts]] = [Column("model", lambda each: each.name)]
    columns += [count_column(number, attrgetter(number)) for number in numbers]
    print_table(table_of("Calls", columns, dry.counts), WHOLE_OUTPUT)
    loads = [(each.name, each.load) for each in dry.counts if each.load is not None]
    print_lines([f"{name} over HTTP: {_line(load)}" for name, load in loads], WHOLE_OUTPUT)
    chats = [(each.name, each.chat) for each in groups if each.chat is not None]
    print_lines([line for name, chat in chats if (line := _tier_line(name, chat))], WHOLE_OUTPUT)
    _print_sums(dry, sweep.batch is not None)
    if sweep.race:
        say("the race makes at most these calls")
    return 0


def _check_cell(
    sweep: Sweep, deployment: Deployment, cell: Cell, journal: JournalView | None
) -> None:
    """Refuse a cell that a run refuses; what VLMEvalKit alone knows of its models is not known."""
    settings = scoring_settings(sweep, deployment.entry)
    if isinstance(deployment, InVLMEvalKit):
        check_answers(deployment, [cell.variant], settings)
    elif journal is None:
        check_cell(sweep.work_dir, cell, settings, deployment)
    else:
        output = prepare_cell(sweep.work_dir, cell, settings, deployment)
        check_earlier_answers(deployment, [output], journal)


@contextmanager
def _bars() -> Iterator[Track]:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:

        def track(items: Iterable[T], total: int, what: str) -> Iterable[T]:
            return bar.track(items, total, description=what)

        yield track


def _print_sums(dry: DryRun, half: bool) -> None:
    names = ("cells", "queries", "calls", "finished", "submitted")
    cells, queries, calls, finished, submitted = (
        sum(getattr(each, name) for each in dry.counts) for name in names
    )
    on_way = f", {submitted:,} on their way in batches" if submitted else ""
    say(
        f"{counted(cells, 'cell')}, {counted(queries, 'query', 'queries')}, "
        f"{counted(dry.images, 'image')}, "
        f"{counted(calls, 'model call')}, {calls - finished - submitted:,} of them still to make"
        f"{on_way}"
    )
    load = reduce(Load.__add__, (each.load for each in dry.counts if each.load), Load())
    if load.calls:
        priced = load.usd_in or load.usd_out_at_most
        prices = f"; prices are of {PRICES_AS_OF}, unless --prices is given" if priced else ""
        print_folded(f"over HTTP: {_line(load)}. Tokens are estimates{prices}.")
        if half and load.usd_in:
            say("Dollars are those of a batch, half of the price of single calls.")
    if dry.missing:
        one = "is missing: it is counted by its name"
        are = agreeing(dry.missing, one, "are missing: they are counted by their names")
        say(f"{counted(dry.missing, 'image')} {are},")
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
        f"{counted(load.calls, 'call')}, {counted(load.images, 'image')}, about "
        f"{load.tokens_in:,} tokens in{again}, at most {load.tokens_out_at_most:,} out{price}"
    )
