"""What a run would do, counted without a model, a network or a key.

Missing images are no error: equal ones are then counted by their names, and calls over them have
no weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..benchmarks.findit.formats import Format
from ..models.http.batch.records import HALF
from ..models.http.chat import ChatModel
from ..models.http.estimate import Load
from ..runs.race import rounds_of
from .calls import Cell
from .config import ModelEntry, Race, Sweep, questions_of
from .counting import CallCounter, Content, Messages, Track, Weighing
from .journal.lookup import JournalView
from .run import Chosen, Tables, wanted_formats


@dataclass(frozen=True, slots=True)
class Group:
    """What is counted together: some cells of one model."""

    name: str
    cells: tuple[Cell, ...]
    chat: ChatModel | None = None
    """How it is asked, where that is over HTTP."""
    share: float = 1.0
    """What it pays of the price of single calls."""


@dataclass(frozen=True, slots=True)
class Count:
    """What one group would be asked."""

    name: str
    cells: int
    queries: int
    """Rows of all cells."""
    images: int
    """Distinct files."""
    calls: int
    """Distinct calls."""
    finished: int
    """Those that the journal has as they are wanted."""
    load: Load | None = None
    """What the others send (None: not over HTTP)."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """The counts of every group; ``images`` of all together, ``missing`` those that are no file."""

    counts: tuple[Count, ...]
    images: int
    missing: int


def count(
    groups: Sequence[Group], journal: Path | None = None, track: Track = lambda items, *_: items
) -> DryRun:
    """Count cells, queries, images, calls, finished calls, and what calls over HTTP send."""
    messages = Messages()
    cells = [cell for group in groups for cell in group.cells]
    for cell in track(cells, len(cells), "cells read"):
        messages.of(cell)
    content = Content(messages.shown, track)
    with ExitStack() as stack:
        finished = None
        if journal is not None:
            # Where there is none, nothing is finished.
            with suppress(FileNotFoundError, NotADirectoryError):
                finished = stack.enter_context(JournalView(journal))
        counter = CallCounter(messages, content, finished)
        asked = [
            (one, counter.count(one.cells)) for one in track(groups, len(groups), "models counted")
        ]
    weighing = Weighing(messages)
    for group, counted in asked:
        if group.chat is not None:
            weighing.note(group.cells, counted, group.chat)
    weighing.encode(track)
    counts = []
    for group, counted in asked:
        load = group.chat and weighing.load(group.cells, counted, group.chat).paid(group.share)
        queries = sum(len(cell.rows) for cell in group.cells)
        found = counted.images, counted.calls, counted.finished
        counts.append(Count(group.name, len(group.cells), queries, *found, load))
    return DryRun(tuple(counts), content.files, content.missing)


def sweep_groups(
    sweep: Sweep,
    settings: Mapping[str, Mapping[str, Any]],
    chats: Mapping[str, ChatModel],
    chosen: Chosen | None = None,
) -> list[Group]:
    """The cells of a sweep, a group a model.

    A later stage is counted as if the first format of the stage before won: as many calls.

    Args:
        sweep: the sweep.
        settings: by model what is part of every call's key (:meth:`.run.Host.settings`).
        chats: by model how it is asked, where that is over HTTP.
        chosen: by model the one format that it is asked in.

    Raises:
        FileNotFoundError: a table is nowhere; the message says how to make it.
    """
    tables = Tables(skip_missing=None)

    def cells(entry: ModelEntry) -> tuple[Cell, ...]:
        found = questions_of(sweep, all_formats(sweep, entry, chosen))
        given = settings[entry.name]
        made = (tables.cell(entry.name, one, sweep.limit, given) for one in found)
        return tuple(replace(cell, confidences=sweep.confidences) for cell in made)

    share = 1.0 if sweep.batch is None else HALF
    return [Group(entry.name, cells(entry), chats.get(entry.name), share) for entry in sweep.models]


def least_of_a_race(sweep: Sweep, race: Race, cells: Sequence[Cell]) -> int:
    """How many queries a model is asked if all formats but one are dropped after a first round.

    Questions that the sweep names are asked in full.
    """
    least, rest = 0, {}
    for cell in cells:
        if cell.question in sweep.questions:
            least += len(cell.rows)
            continue
        asked = len(rounds_of(cell.task, cell.rows, race.seed)[0])
        least += asked
        rest[cell.question.column] = len(cell.rows) - asked
    return least + sum(rest.values())


def all_formats(sweep: Sweep, entry: ModelEntry, chosen: Chosen | None) -> list[Format]:
    """The formats of all stages, each once."""
    found: dict[Format, None] = {}
    winner: Format | None = None
    for stage in range(len(sweep.stages) if chosen is None else 1):
        wanted = wanted_formats(sweep, stage, entry.name, chosen, winner)
        found.update(dict.fromkeys(wanted))
        winner = wanted[0]
    return list(found)
