"""What a sweep would do, counted without a model and without looking at missing images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..best_format import Format
from ..files import file_sha256
from .calls import Cell
from .cells import variants
from .config import ModelEntry, Sweep
from .journal import records
from .plan import Plan, make_plan
from .run import Chosen, Tables, wanted_formats


@dataclass(frozen=True, slots=True)
class Count:
    """What one model would be asked.

    ``queries`` are rows of cells, ``images`` distinct files, ``calls`` distinct calls, ``finished``
    those that the journal has.
    """

    model: str
    cells: int
    queries: int
    images: int
    calls: int
    finished: int


@dataclass(frozen=True, slots=True)
class DryRun:
    """The counts of every model; ``images`` of all together, ``missing`` those that are no file."""

    counts: tuple[Count, ...]
    images: int
    missing: int


def count(
    sweep: Sweep, settings: Mapping[str, Mapping[str, Any]], chosen: Chosen | None = None
) -> DryRun:
    """Count the cells, queries, images and calls of a sweep.

    A later stage is counted as if the first format of the stage before won: as many calls.

    Args:
        sweep: the sweep.
        settings: by model what is part of every call's key (:meth:`.run.Host.settings`).
        chosen: by model the one format that it is asked in.

    Raises:
        FileNotFoundError: a table is nowhere; the message says how to make it.
    """
    names = _ImageNames()
    tables = Tables(skip_missing=None)
    finished = _finished(sweep.journal)
    plans: dict[Any, Plan] = {}
    counts = []
    for entry in sweep.models:
        wanted = all_formats(sweep, entry, chosen)
        given = settings[entry.name]
        # Models that are asked the same are counted once, unless the journal knows one of them.
        known = entry.name if entry.name in finished else None
        same = (known, tuple(wanted), repr(sorted(given.items())))
        if same not in plans:
            plans[same] = make_plan(_cells(sweep, entry, tables, wanted, given), names)
        counts.append(_count(entry.name, plans[same], finished.get(entry.name, frozenset())))
    return DryRun(tuple(counts), len(names.seen), len(names.missing))


def all_formats(sweep: Sweep, entry: ModelEntry, chosen: Chosen | None) -> list[Format]:
    """The formats of all stages, each once."""
    found: dict[Format, None] = {}
    winner: Format | None = None
    for stage in range(len(sweep.stages) if chosen is None else 1):
        wanted = wanted_formats(sweep, stage, entry.name, chosen, winner)
        found.update(dict.fromkeys(wanted))
        winner = wanted[0]
    return list(found)


def _cells(
    sweep: Sweep,
    entry: ModelEntry,
    tables: Tables,
    wanted: Sequence[Format],
    given: Mapping[str, Any],
) -> list[Cell]:
    found = variants(sweep.tables, wanted, sweep.views)
    return [tables.cell(entry.name, variant, sweep.limit, given) for variant in found]


def _count(model: str, plan: Plan, finished: frozenset[str]) -> Count:
    done = sum(call.key in finished for call in plan.calls) if finished else 0
    return Count(model, len(plan.cells), plan.queries, plan.images, len(plan.calls), done)


def _finished(journal: Path) -> dict[str, frozenset[str]]:
    """The keys of answered calls in a journal, by model."""
    if not journal.is_file():
        return {}
    found: dict[str, set[str]] = {}
    for record in records(journal):
        if not record.get("error"):
            found.setdefault(record.get("model", ""), set()).add(record["key"])
    return {model: frozenset(keys) for model, keys in found.items()}


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
