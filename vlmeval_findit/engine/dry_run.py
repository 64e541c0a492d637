"""What a run would do, counted without a model, a network or a key.

Missing images are no error: equal ones are then counted by their names, and calls over them have
no weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ..benchmarks.findit.formats import Format
from ..core.files import file_sha256
from ..models.http.batch.dialects import HALF
from ..models.http.chat import ChatModel
from ..models.http.estimate import Load, Scale
from .calls import Call, Cell
from .config import ModelEntry, Race, Sweep, questions_of
from .journal.lookup import JournalView
from .plan import Plan, make_plan
from .race import rounds_of
from .run import Chosen, Tables, wanted_formats


@dataclass(frozen=True, slots=True)
class Group:
    """What is counted together: some cells of one model.

    ``model`` is its name in a journal, ``chat`` how it is asked where that is over HTTP, ``share``
    what it pays of the price of single calls.
    """

    name: str
    model: str
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


def count(groups: Sequence[Group], journal: Path | None = None) -> DryRun:
    """Count cells, queries, images, calls, finished calls, and what calls over HTTP send."""
    with ExitStack() as stack:
        finished = None
        if journal is not None:
            # Where there is none, nothing is finished.
            with suppress(FileNotFoundError, NotADirectoryError):
                finished = stack.enter_context(JournalView(journal))
        return _count(groups, finished)


def _count(groups: Sequence[Group], finished: JournalView | None) -> DryRun:
    names, scale = _ImageNames(), Scale()
    counted: dict[Any, _Counted] = {}
    counts = []
    for group in groups:
        # Models that are asked the same are planned once: a key has the model's name in it, so
        # not where there is a journal.
        known = None if finished is None else group.model
        same = (known, *map(_asked_in, group.cells))
        if same not in counted:
            counted[same] = _counted(make_plan(group.cells, names), finished)
        plan, calls, left, pictures = counted[same]
        load = None
        if group.chat is not None:
            made = (call for call in plan.calls if not _is_finished(call, finished))
            load = _load(made, pictures, group.chat, scale).paid(group.share)
        counts.append(
            Count(group.name, len(plan.cells), plan.queries, plan.images, calls, calls - left, load)
        )
    return DryRun(tuple(counts), len(names.seen), len(names.missing))


def _is_finished(call: Call, journal: JournalView | None) -> bool:
    wanted = call.cell.confidences
    return journal is not None and journal.serves(call.key, confidences=wanted)


class _Counted(NamedTuple):
    """A plan, its calls, those that are left, and how many of these are over each picture."""

    plan: Plan
    calls: int
    left: int
    pictures: Counter[tuple[str, ...]]


def _counted(plan: Plan, finished: JournalView | None) -> _Counted:
    calls, pictures = 0, Counter[tuple[str, ...]]()
    for call in plan.calls:
        calls += 1
        if not _is_finished(call, finished):
            pictures[call.asked.image_sha256] += 1
    return _Counted(plan, calls, pictures.total(), pictures)


def _asked_in(cell: Cell) -> tuple[object, ...]:
    """What says which calls a cell makes, beside who answers them."""
    return cell.question, cell.rows, repr(cell.settings), repr(sorted(cell.task.chosen.items()))


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
    return [
        Group(entry.name, entry.name, cells(entry), chats.get(entry.name), share)
        for entry in sweep.models
    ]


def least_of_a_race(sweep: Sweep, race: Race, cells: Sequence[Cell]) -> int:
    """How many queries a model is asked if all formats but one are dropped after a first round.

    Questions that the sweep names are asked in full.
    """
    least, rest = 0, {}
    for cell in cells:
        if cell.question in sweep.questions:
            least += len(cell.rows)
            continue
        asked = len(rounds_of(cell, race.seed)[0])
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


_AT_A_TIME = 1024
"""Calls whose images are looked at before their loads are added up."""


def _load(
    calls: Iterable[Call], pictures: Counter[tuple[str, ...]], chat: ChatModel, scale: Scale
) -> Load:
    def one(call: Call) -> Load:
        question = call.cell.question
        space = chat.space(question)
        try:
            return scale.load(call.message, question, space, chat.manner(space))
        except OSError:
            # An image is not there yet, or is none: its call would fail and send nothing.
            return Load()

    seen, total, coming = Counter[tuple[str, ...]](), Load(), iter(calls)
    with ThreadPoolExecutor(4) as pool:
        while some := list(islice(coming, _AT_A_TIME)):
            for call, load in zip(some, pool.map(one, some), strict=True):
                over = call.asked.image_sha256
                total += load.priced(seen[over], pictures[over], chat.prices)
                seen[over] += 1
    return total


class _ImageNames:
    """Names of images by content where they are there, else by path."""

    def __init__(self) -> None:
        self.seen: dict[Path, str] = {}
        self.missing: set[Path] = set()

    def __call__(self, path: Path) -> str:
        if path not in self.seen:
            try:
                self.seen[path] = file_sha256(path)
            except OSError:
                self.missing.add(path)
                self.seen[path] = str(path)
        return self.seen[path]
