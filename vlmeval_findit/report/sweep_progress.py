"""Follow a sweep while it runs, by its files alone; nothing is written or locked.

Identities name the cells, journals have their calls, provenances show which cells are scored, locks
whether the sweep is running.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from .. import benchmarks
from ..core import is_held, open_text
from ..engine import CellBuilder, JournalTail, lock_path
from ..protocol import SAMPLE_SETTING, DatasetVariant, Identity
from ..storage import (
    SWEEP_JOURNAL,
    RunFiles,
    files_below,
    parse_record,
    read_identity,
    run_of,
)

IDENTITY = "_identity.json"
_LOCKS = (".sweep.lock", f"{SWEEP_JOURNAL}.lock")


class SweepState(Enum):
    """State of a sweep; the value is its name in messages."""

    WAITING = "nobody works on it yet"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class CellView:
    """The current state of a cell: a model over a dataset in a format."""

    model: str
    variant: DatasetVariant
    rows: int | None  # to ask; None: not known yet
    answered: int = 0  # calls
    failed: int = 0  # calls
    attempts: int = 0  # calls, including repeated ones
    cost: float | None = None  # US dollars
    seconds: float = 0.0  # of all attempts
    finished: bool = False
    begun: bool = True
    metric_values: Mapping[str, float] = field(default_factory=dict)  # of a finished cell

    @property
    def left(self) -> int | None:
        """Calls that remain; none of a finished cell, even if calls failed."""
        if self.finished:
            return 0
        return None if self.rows is None else max(self.rows - self.answered - self.failed, 0)


@dataclass(frozen=True, slots=True)
class SweepFiles:
    """The files of a sweep, and its cells as far as its file names them."""

    folder: Path
    journal: Path | None = None  # None: journals in the folder only
    planned: tuple[CellView, ...] = ()


@dataclass(frozen=True, slots=True)
class SweepSnapshot:
    """The state of a sweep at a moment."""

    state: SweepState
    cells: tuple[CellView, ...]
    speed: float | None  # calls per second; None: not known yet
    unread: int  # bytes of journals that were not read yet

    @property
    def answered(self) -> int:
        return sum(cell.answered for cell in self.cells)

    @property
    def failed(self) -> int:
        return sum(cell.failed for cell in self.cells)

    @property
    def left(self) -> int:
        """Calls that remain, as far as they are known."""
        return sum(cell.left or 0 for cell in self.cells)

    @property
    def cost(self) -> float | None:
        """US dollars of the calls with a known cost; None: there are none."""
        known = [cell.cost for cell in self.cells if cell.cost is not None]
        return sum(known) if known else None

    @property
    def seconds_left(self) -> float | None:
        """Remaining seconds at this speed."""
        return self.left / self.speed if self.speed and self.left else None


class FollowedSweep:
    """A sweep that is followed; every call of :meth:`read` reads new records."""

    def __init__(self, files: SweepFiles) -> None:
        self._files = files
        self._identities: dict[tuple[Path, int], Identity | None] = {}  # by file and its time
        self._journals: dict[Path, _Journal] = {}
        self._start: tuple[float, int] | None = None  # time and attempts, to measure the speed
        self._was_running = False

    def read(self, now: float) -> SweepSnapshot:
        """Read new records; return the current state.

        Args:
            now: seconds of a clock that never goes back.

        Raises:
            ValueError, OSError: a file cannot be read.
        """
        named = self._files.journal
        paths = sorted(files_below(self._files.folder))
        journals = dict.fromkeys(path for path in paths if path.name.endswith(SWEEP_JOURNAL))
        if named is not None:
            journals = {named: None} | journals
        locks = {path for path in paths if path.name.endswith(_LOCKS)}
        # First: records that are written before the lock is released are read below.
        running = any(map(is_held, locks | ({lock_path(named)} if named else set())))
        for path in journals:
            self._journals.setdefault(path, _Journal(path)).read()
        # VLMEvalKit links files of a run's folder into the model's: one run, two paths.
        identities = [p for p in paths if p.name.endswith(IDENTITY) and not p.is_symlink()]
        cells = tuple(self._views(identities))
        unread = sum(journal.tail.left for journal in self._journals.values())
        speed = self._speed(now, cells) if running and not unread else None
        self._start = self._start if running else None
        self._was_running |= running
        begun = [cell for cell in cells if cell.begun]
        state = SweepState.WAITING
        if running:
            state = SweepState.RUNNING
        elif self._was_running or (begun and all(cell.finished for cell in begun)):
            state = SweepState.ENDED
        return SweepSnapshot(state, cells, speed, unread)

    def _speed(self, now: float, cells: tuple[CellView, ...]) -> float | None:
        """Return calls per second since the sweep was first seen running."""
        attempts = sum(cell.attempts for cell in cells)
        self._start = self._start or (now, attempts)
        start, attempts_at_start = self._start
        return (attempts - attempts_at_start) / (now - start) if now > start else None

    def _views(self, paths: Sequence[Path]) -> Iterator[CellView]:
        """Yield the cells of identities, then those that are planned and have none."""
        cells = []
        for path in paths:
            key = (path, path.stat().st_mtime_ns)
            predictions = run_of(path).predictions
            if key not in self._identities:
                self._identities[key] = read_identity(predictions)
            if (identity := self._identities[key]) is not None:
                variant = benchmarks.parse(identity.dataset)
                order = (identity.model, variant.board_dataset, variant.format_place, str(path))
                cells.append((order, identity, variant, predictions))
        begun = set()
        for _, identity, variant, predictions in sorted(cells, key=lambda cell: cell[0]):
            begun.add((predictions.parent, identity.model, variant))
            yield self._view(identity, variant, predictions)
        for planned in self._files.planned:
            folder = self._files.folder / planned.model
            if (folder, planned.model, planned.variant) not in begun:
                yield planned

    def _view(self, identity: Identity, variant: DatasetVariant, predictions: Path) -> CellView:
        rows = None if identity.rows is None else len(identity.rows)
        view = CellView(identity.model, variant, rows)
        for journal in self._journals.values():
            # A folder may hold several runs of one cell, each with a journal next to it.
            is_named = journal.tail.path == self._files.journal
            if is_named or predictions.is_relative_to(journal.tail.path.parent):
                calls = journal.calls.get((identity.model, variant.name))
                view = view if calls is None else calls.added_to(view, identity.rows)
        files = RunFiles(predictions)
        if not files.provenance.is_file():
            return view
        with open_text(files.score) as f:
            (score,) = csv.DictReader(f)
        names = [metric.name for metric in benchmarks.benchmark_of(variant).metrics]
        return replace(
            view,
            answered=int(score["answered"]),
            failed=int(score["failed calls"]),
            finished=True,
            metric_values={name: float(score[name]) for name in names if score.get(name)},
        )


@dataclass(slots=True)
class _CellCalls:
    """The calls of a cell in a journal."""

    answers: dict[int, float | None] = field(default_factory=dict)  # seconds by row; None: failed
    attempts: int = 0
    cost: float | None = None
    seconds: float = 0.0

    def add(self, record: Mapping[str, Any]) -> None:
        row = record["row"]
        seconds = record.get("seconds") or 0.0
        before = self.answers.get(row)
        if not record["error"] and before == seconds:
            return  # an answer that was merged from a shard occurs twice
        if (cost := parse_record(record["extra_records"]).call.get("cost")) is not None:
            self.cost = (self.cost or 0.0) + cost
        self.seconds += seconds
        self.attempts += 1
        self.answers[row] = before if record["error"] else seconds

    def added_to(self, view: CellView, rows: tuple[int, ...] | None) -> CellView:
        """Add the calls over some rows (None: all) to those of other journals."""
        counted = self.answers.keys() if rows is None else self.answers.keys() & rows
        failed = sum(self.answers[row] is None for row in counted)
        return replace(
            view,
            answered=view.answered + len(counted) - failed,
            failed=view.failed + failed,
            attempts=view.attempts + self.attempts,
            cost=view.cost if self.cost is None else (view.cost or 0.0) + self.cost,
            seconds=view.seconds + self.seconds,
        )


class _Journal:
    """A journal; it may contain calls of other sweeps, and of cells without an identity yet."""

    def __init__(self, path: Path) -> None:
        self.tail = JournalTail(path)
        self.calls: dict[tuple[str, str], _CellCalls] = {}  # by model and dataset

    def read(self) -> None:
        if self.tail.is_another():
            self.calls = {}
        for record in self.tail.records():
            # Of several samples the first is shown.
            if SAMPLE_SETTING not in record.get("settings", {}):
                key = record["model"], record["dataset"]
                self.calls.setdefault(key, _CellCalls()).add(record)


def planned_rows(tables: CellBuilder, variant: DatasetVariant, limit: int | None) -> int | None:
    """Return the number of rows that a model will be asked; None without a table."""
    try:
        return len(list(tables.dataset(variant).queries)[:limit])
    except (OSError, ValueError):
        return None
