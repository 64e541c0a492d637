"""Count what a run would do, without a model, a network or a key.

Missing images are no error: they are told apart by name, and calls over them weigh nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..engine.calls import Cell, Images
from ..engine.cell_builder import CellBuilder
from ..engine.journal.view import JournalView
from ..models.entry import ModelEntry
from ..models.http.batch.records import HALF
from ..models.http.chat import ChatModel
from ..models.http.spending import Load
from ..runs.race import rounds_of
from .config import Race, Sweep, all_questions
from .counting import CallCounter, Messages, Track, Weighing, read_images


@dataclass(frozen=True, slots=True)
class Group:
    """Cells of one model that are counted together."""

    name: str
    cells: tuple[Cell, ...]
    chat: ChatModel | None = None  # how it is asked, if over HTTP
    share: float = 1.0  # of the price of single calls


@dataclass(frozen=True, slots=True)
class Count:
    """What one group would be asked."""

    name: str
    cells: int
    queries: int  # rows of all cells
    images: int  # distinct files
    calls: int  # distinct calls
    finished: int  # with a suitable answer in the journal
    load: Load | None = None  # what the others send (None: not over HTTP)


@dataclass(frozen=True, slots=True)
class DryRun:
    """The counts of every group, and of distinct and missing images."""

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
    images = cells[0].prompts.images if cells else Images()
    contents, missing = read_images(images, track)
    with ExitStack() as stack:
        finished = None
        if journal is not None:
            # Without a journal, nothing is finished.
            with suppress(FileNotFoundError, NotADirectoryError):
                finished = stack.enter_context(JournalView(journal))
        counter = CallCounter(messages, images, contents, finished)
        asked = [
            (one, counter.count(one.cells)) for one in track(groups, len(groups), "models counted")
        ]
    weighing = Weighing(messages, images)
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
    files = len({path for shown in images.files for path in shown})
    return DryRun(tuple(counts), files, missing)


def sweep_groups(
    sweep: Sweep,
    settings: Mapping[str, Mapping[str, Any]],
    chats: Mapping[str, ChatModel],
) -> list[Group]:
    """Return the cells of a sweep, one group per model.

    Later stages are counted as if the first format won: as many calls.

    Args:
        settings: by model, :meth:`.BackendFactory.settings`.
        chats: by model, how it is asked over HTTP.

    Raises:
        FileNotFoundError: a table is missing; the message says how to make it.
    """
    tables = CellBuilder(skip_missing=None)

    def cells(entry: ModelEntry) -> tuple[Cell, ...]:
        found = all_questions(sweep, entry.name)
        given = settings[entry.name]
        return tuple(
            tables.cell(entry.name, one, sweep.limit, given, logprobs=sweep.logprobs)
            for one in found
        )

    share = 1.0 if sweep.batch is None else HALF
    return [Group(entry.name, cells(entry), chats.get(entry.name), share) for entry in sweep.models]


def least_of_a_race(sweep: Sweep, race: Race, cells: Sequence[Cell]) -> int:
    """Count a model's queries if one format is left after the first round of a race.

    Questions named beside tables are asked in full.
    """
    least, rest = 0, {}
    for cell in cells:
        if sweep.tables and cell.question in sweep.questions:
            least += len(cell.rows)
            continue
        asked = len(rounds_of(cell.task, cell.rows, race.seed)[0])
        least += asked
        rest[cell.question.column] = len(cell.rows) - asked
    return least + sum(rest.values())
