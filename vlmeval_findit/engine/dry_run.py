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
from .counting import CallCounter, Content, Messages, Track, Weighing, untracked
from .journal.lookup import JournalView
from .run import Chosen, Tables, wanted_formats


@dataclass(frozen=True, slots=True)
class Group:
    """What is counted together: some cells of one model.

    ``chat`` is how it is asked where that is over HTTP, ``share`` what it pays of the price of
    single calls.
    """

    name: str
    cells: tuple[Cell, ...]
    chat: ChatModel | None = None
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Count:
    """What one group would be asked.

    ``queries`` are rows of cells, ``images`` distinct files, ``calls`` distinct calls, ``finished``
    those that the journal has as they are wanted; ``load`` is what the others send (None: not over
    HTTP).
    """

    name: str
    cells: int
    queries: int
    images: int
    calls: int
    finished: int
    load: Load | None = None


@dataclass(frozen=True, slots=True)
class DryRun:
    """The counts of every group; ``images`` of all together, ``missing`` those that are no file."""

    counts: tuple[Count, ...]
    images: int
    missing: int


def count(groups: Sequence[Group], journal: Path | None = None, track: Track = untracked) -> DryRun:
    """Count cells, queries, images, calls, finished calls, and what calls over HTTP send."""
    with ExitStack() as stack:
        finished = None
        if journal is not None:
            # Where there is none, nothing is finished.
            with suppress(FileNotFoundError, NotADirectoryError):
                finished = stack.enter_context(JournalView(journal))
        return _count(groups, finished, track)


def _count(groups: Sequence[Group], finished: JournalView | None, track: Track) -> DryRun:
    messages = Messages()
    cells = [cell for group in groups for cell in group.cells]
    for cell in track(cells, len(cells), "cells read"):
        messages.of(cell)
    content = Content(messages.shown, track)
    counter = CallCounter(messages, content, finished)
    counted = [counter.count(group.cells) for group in track(groups, len(groups), "models counted")]
    weighing = Weighing(messages)
    asked = list(zip(groups, counted, strict=True))
    for group, one in asked:
        if group.chat is not None:
            weighing.note(group.cells, one, group.chat)
    weighing.encode(track)
    counts = tuple(
        Count(
            name=group.name,
            cells=len(group.cells),
            queries=sum(len(cell.rows) for cell in group.cells),
            images=one.images,
            calls=one.calls,
            finished=one.finished,
            load=weighing.load(group.cells, one, group.chat).paid(group.share)
            if group.chat
            else None,
        )
        for group, one in asked
    )
    return DryRun(counts, len(content.files), len(content.missing))


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
