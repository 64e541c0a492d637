"""``--dry-run``: what a run would do and send, without a model, a network or a key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import Progress

from ..benchmarks import parse
from ..core.settings import skips_missing
from ..engine.calls import given_key
from ..engine.served import served_model
from ..engine.servers import chat_of, settings
from ..engine.tables import Tables
from ..leaderboard.table import Field, Table
from ..leaderboard.table import count as number_of
from ..models.entry import ModelEntry
from ..models.http.chat import ChatModel, chat_model, token_limit
from ..models.http.providers.table import OPENROUTER
from ..models.http.spending import Load
from ..models.prices import AS_OF
from ..models.revision import known_revision
from ..models.table import find_model, local_names
from ..sweeps.config import Sweep
from ..sweeps.counting import Track
from ..sweeps.dry_run import Count, DryRun, Group, count, least_of_a_race, sweep_groups
from .printing import print_folded, print_lines, print_table
from .ways import Way, way_of

T = TypeVar("T")

_REST = "the whole output (… | cat)"
"""Where the rest of long tables is: into a pipe all is written."""


def of_data(names: Sequence[str], entries: Sequence[ModelEntry], limit: int | None) -> int:
    """Count what the models of a command line would be sent for these datasets.

    Raises:
        ValueError: a model is not over HTTP.
    """
    tables = Tables(skips_missing())
    groups = []
    for entry in entries:
        called = entry.base_url or entry.provider
        chat = chat_of(entry) if called else chat_model(entry.name, OPENROUTER)
        for name in names:
            cell = tables.cell(chat.name, parse(name), limit, {})
            groups.append(Group(f"{entry.name}  {name}", (cell,), chat))
    with _tracked() as track:
        dry = count(groups, track=track)
    for group, one in zip(groups, dry.counts, strict=True):
        assert group.chat is not None
        space = group.chat.space(group.cells[0].question)
        print_folded(f"{one.name}  as {group.chat.served}, {space.as_dict()}")
        print_folded(f"  {_line(one.load or Load())}")
    sums = _sum(dry.counts)
    print_folded(f"all: {_line(sums)}")
    print_folded(f"{_estimates(sums)} Replies that an earlier run left are not taken off.")
    return 0


def _is_called(entry: ModelEntry, sweep: Sweep) -> bool:
    return bool(sweep.batch or entry.base_url or entry.provider)


def _given(entry: ModelEntry, sweep: Sweep) -> Mapping[str, Any]:
    """What is part of every key, by how a model is asked."""
    if _is_called(entry, sweep):
        return settings(entry)
    if sweep.serve is not None and way_of(entry, serves=True) is Way.SERVED:
        return served_model(entry, sweep.serve).key()
    return _key(entry)


def _key(entry: ModelEntry) -> dict[str, Any]:
    """What of a model is part of its calls' keys, as :mod:`..host.entries` says it too."""
    row, identifier = local_names().get(entry.like or entry.name, (None, None))
    checkpoint = entry.settings.get("model_path") or entry.checkpoint or identifier
    known = row or (entry.like and find_model(entry.like))
    local = str(checkpoint) if known and checkpoint else None
    return given_key(entry.settings, known_revision(local) or local if local else None)


def _estimates(sums: Load) -> str:
    """What the figures rest on; whose the prices are only where something was priced."""
    if not sums.usd_in and not sums.usd_out_at_most:
        return "Tokens are estimates."
    return f"Tokens are estimates; prices are those of {AS_OF} where none were given."


def of_sweep(sweep: Sweep) -> int:
    """Count what a sweep would do."""
    given = {one.name: _given(one, sweep) for one in sweep.models}
    groups = sweep_groups(sweep, given, _chats(sweep))
    with _tracked() as track:
        dry = count(groups, sweep.journal, track)
    numbers = ("cells", "queries", "images", "calls", "finished")
    rows = [[one.name, *(getattr(one, number) for number in numbers)] for one in dry.counts]
    print_table(Table("Calls", [Field("model"), *map(number_of, numbers)], rows), _REST)
    loads = [(one.name, one.load) for one in dry.counts if one.load is not None]
    print_lines([f"{name} over HTTP: {_line(load)}" for name, load in loads], _REST)
    _print_sums(dry, sweep.batch is not None)
    if sweep.race is not None:
        least = sum(least_of_a_race(sweep, sweep.race, group.cells) for group in groups)
        print(f"the race makes at least {least:,} of these calls, at most all")
    return 0


@contextmanager
def _tracked() -> Iterator[Track]:
    """A bar for each loop of the count while the block runs; nothing where nobody sees it."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:

        def track(items: Iterable[T], total: int, what: str) -> Iterable[T]:
            return bar.track(items, total, description=what)

        yield track


def _print_sums(dry: DryRun, half: bool) -> None:
    sums = [sum(getattr(one, name) for one in dry.counts) for name in ("cells", "queries")]
    calls = sum(one.calls for one in dry.counts)
    left = calls - sum(one.finished for one in dry.counts)
    print(
        f"{sums[0]:,} cells, {sums[1]:,} queries, {dry.images:,} images, "
        f"{calls:,} model calls, {left:,} of them to be made"
    )
    if any(one.load for one in dry.counts):
        load = _sum(dry.counts)
        print_folded(f"over HTTP: {_line(load)}. {_estimates(load)}")
        if half and load.usd_in:
            print("Dollars are those of a batch, half of the price of single calls.")
    if dry.missing:
        print(f"{dry.missing:,} images are not there yet: equal ones are counted by their names,")
        print("and calls over HTTP that want them are not weighed")


def _chats(sweep: Sweep) -> dict[str, ChatModel]:
    """How the models of a sweep are asked that are asked over HTTP."""

    def chat(entry: ModelEntry) -> ChatModel | None:
        if _is_called(entry, sweep):
            return chat_of(entry)
        row = find_model(entry.name)
        if row is None or row.api is None or row.entry != entry.name:
            return None
        return chat_model(entry.name, OPENROUTER, max_tokens=token_limit(entry.settings)[0])

    found = ((entry.name, chat(entry)) for entry in sweep.models)
    return {name: one for name, one in found if one is not None}


def _sum(counts: Sequence[Count]) -> Load:
    return reduce(Load.__add__, (one.load for one in counts if one.load), Load())


def _line(sums: Load) -> str:
    again = f" ({sums.tokens_again:,} of them again)" if sums.tokens_again else ""
    price = ""
    if sums.usd_in:
        price = f"; ${sums.usd_in:,.2f} in, at most ${sums.usd_out_at_most:,.2f} out"
    return (
        f"{sums.calls:,} calls, {sums.images:,} images, {sums.size:,} bytes, about "
        f"{sums.tokens_in:,} tokens in{again}, at most {sums.tokens_out_at_most:,} out{price}"
    )
