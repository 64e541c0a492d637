"""Follow a sweep while it runs, by its files alone; nothing is written or locked.

Identities name the cells, the journal has their calls, provenances show which cells are scored,
locks whether the sweep is running.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from .. import benchmarks
from ..core.identity import SAMPLE, Identity, IdentityError, read_identity
from ..core.lock import is_held
from ..core.question import Question, QuestionError
from ..core.replies import recorded
from ..core.run_files import MORE_SAMPLES, RunFiles
from ..engine.calls import CellBuilder
from ..engine.journal.view import JournalTail
from ..engine.journal.writer import lock_path
from ..runs.scored_run import RowData, RunError, load_run

IDENTITY = "_identity.json"
JOURNAL = "calls.jsonl"
_LOCKS = (".sweep.lock", f"{JOURNAL}.lock")

SPEED_OVER = 120.0
"""Seconds over which the speed of calls is measured."""


class SweepState(Enum):
    """State of a sweep; the value is its name in messages."""

    WAITING = "nobody works on it yet"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class CellView:
    """The current state of a cell: a model over a question."""

    model: str
    question: Question
    rows: int | None  # to ask; None: not known yet
    answered: int = 0  # calls
    failed: int = 0  # calls
    attempts: int = 0  # calls, including repeated ones
    cost: float | None = None  # US dollars
    seconds: float = 0.0  # of all attempts
    finished: bool = False
    begun: bool = True
    metric_values: Mapping[str, float | None] = field(default_factory=dict)
    """Of a finished cell, by the names of metrics."""

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
    journals: tuple[Path, ...] = ()
    planned: tuple[CellView, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of sweeps at a moment."""

    state: SweepState
    cells: tuple[CellView, ...]
    speed: float | None  # calls per second; None: not known yet
    unread: int  # bytes of journals that were not read yet
    problems: tuple[str, ...]  # files that cannot be read, with the reason

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


class Followed:
    """Sweeps that are followed; every call of :meth:`read` reads new records.

    Args:
        places: their files.
    """

    def __init__(self, places: Sequence[SweepFiles]) -> None:
        self._places = tuple(places)
        self._cells: dict[Path, _Cell] = {}
        self._stamps: dict[Path, Stamp] = {}
        self._journals: dict[Path, _Journal] = {}
        self._speeds: deque[tuple[float, int]] = deque()
        self._was_running = False
        self._problems: dict[Path, str] = {}

    def read(self, now: float) -> Snapshot:
        """Read new records; return the current state.

        Args:
            now: seconds of a clock that never goes back.
        """
        files = [(place, *_files_of(place)) for place in self._places]
        # First: records that are written before the lock is released are read below.
        running = any(is_held(lock) for *_, locks in files for lock in locks)
        for place, identities, journals, _ in files:
            for path in identities:
                self._identity(path)
            for path in journals:
                folder = place.folder if path in place.journals else path.parent
                self._journals.setdefault(path, _Journal(path)).folders.add(folder)
        for path, journal in self._journals.items():
            self._set_problem(path, journal.read())
        cells = tuple(self._views())
        unread = sum(journal.tail.left for journal in self._journals.values())
        attempts = sum(cell.attempts for cell in cells)
        state, speed = self._state(running, cells), self._speed(now, attempts, unread)
        problems = tuple(self._problems.values())
        return Snapshot(state, cells, speed if running else None, unread, problems)

    def _state(self, running: bool, cells: Sequence[CellView]) -> SweepState:
        if running:
            self._was_running = True
            return SweepState.RUNNING
        begun = [cell for cell in cells if cell.begun]
        over = begun and all(cell.finished for cell in begun)
        return SweepState.ENDED if self._was_running or over else SweepState.WAITING

    def _speed(self, now: float, attempts: int, unread: int) -> float | None:
        """Return calls per second, of the calls since the first read."""
        if unread:
            self._speeds.clear()
            return None
        self._speeds.append((now, attempts))
        while len(self._speeds) > 2 and now - self._speeds[1][0] >= SPEED_OVER:
            self._speeds.popleft()
        (start, before), (end, after) = self._speeds[0], self._speeds[-1]
        return (after - before) / (end - start) if end > start else None

    def _identity(self, path: Path) -> None:
        """Add the cell of an identity that was written since the last read."""
        stamp = stamp_of(path)
        if stamp is None or self._stamps.get(path) == stamp:
            return
        self._stamps[path] = stamp
        predictions = path.with_name(f"{path.name.removesuffix(IDENTITY)}.json")
        try:
            identity = read_identity(predictions)
            question = benchmarks.parse(identity.dataset) if identity else None
        except (IdentityError, QuestionError, OSError) as error:
            self._set_problem(path, str(error))
            return
        self._set_problem(path, None)
        if identity is not None and question is not None:
            self._cells[path] = _Cell(predictions, identity, question)

    def _set_problem(self, path: Path, problem: str | None) -> None:
        if problem is None:
            self._problems.pop(path, None)
        else:
            self._problems[path] = problem

    def _views(self) -> Iterator[CellView]:
        begun = set()
        for cell in sorted(self._cells.values(), key=_Cell.order):
            begun.add((cell.predictions.parent, cell.identity.model, cell.question))
            yield cell.view(self._journals.values())
        for place in self._places:
            for planned in place.planned:
                if (place.folder / planned.model, planned.model, planned.question) not in begun:
                    yield planned


# --- a cell ---------------------------------------------------------------------------------------

Stamp = tuple[int, int]
"""Time and size of a file: they change when it is written again."""


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of a file; None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


class _Call(NamedTuple):
    """One line of a journal."""

    row: int
    answered: bool
    cost: float | None
    seconds: float
    made_by: Mapping[str, Any] | None

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> _Call | None:
        """Return the call of a record; None without a row, or of a further sample."""
        row = record.get("row")
        if not isinstance(row, int) or SAMPLE in record.get("settings", {}):
            return None
        cost = recorded(record["extra_records"]).call.get("cost")
        seconds = record.get("seconds")
        return cls(
            row,
            not record["error"],
            cost if isinstance(cost, int | float) else None,
            seconds if isinstance(seconds, int | float) else 0.0,
            record.get("made_by"),
        )


class _Cell:
    """A cell with its files, and its state when they last changed."""

    def __init__(self, predictions: Path, identity: Identity, question: Question) -> None:
        self.predictions, self.identity, self.question = predictions, identity, question
        self._version: object = None  # stamp of its score, and number of its calls by journal
        self._rows = frozenset(identity.rows or ())
        rows = None if identity.rows is None else len(identity.rows)
        self._view = self._new = CellView(identity.model, question, rows)

    @property
    def key(self) -> Key:
        return self.identity.model, self.question.name

    def order(self) -> tuple[object, ...]:
        question = self.question
        return self.identity.model, question.board_dataset, question.format_place, question.name

    def view(self, journals: Iterable[_Journal]) -> CellView:
        """Return the current state; calls are counted again only after a change."""
        related = [journal for journal in journals if journal.is_of(self.predictions)]
        provenance = RunFiles(self.predictions).provenance
        stamp = stamp_of(provenance)
        version = stamp, [(j.restarts, len(j.calls.get(self.key, ()))) for j in related]
        if version != self._version:
            calls = (call for journal in related for call in journal.calls.get(self.key, ()))
            self._view = replace(self._new, **_counted(filter(self._belongs, calls)))
            self._version = version
            if stamp is not None:
                try:
                    self._view = _scored(self._view, provenance)
                except (RunError, OSError, ValueError):
                    self._version = None  # its files may be incomplete: read them again
        return self._view

    def _belongs(self, call: _Call) -> bool:
        if self.identity.rows is not None and call.row not in self._rows:
            return False
        return call.made_by is None or self.identity.has_made(call.made_by)


def _counted(calls: Iterable[_Call]) -> dict[str, Any]:
    """Count the calls of a cell; an answer that was merged from a shard occurs twice."""
    answered: dict[int, float | None] = {}  # by row, seconds of the answer
    cost, seconds, attempts = None, 0.0, 0
    for call in calls:
        before = answered.get(call.row)
        if call.answered and before is not None and before == call.seconds:
            continue
        if call.cost is not None:
            cost = (cost or 0.0) + call.cost
        seconds += call.seconds
        attempts += 1
        answered[call.row] = call.seconds if call.answered else before
    failed = sum(duration is None for duration in answered.values())
    counts = {"answered": len(answered) - failed, "failed": failed}
    return {**counts, "attempts": attempts, "cost": cost, "seconds": seconds}


def _scored(view: CellView, provenance: Path) -> CellView:
    """Add the score of a finished cell."""
    run = load_run(provenance, RowData.SUMS)
    answered = len(run.rows) - run.failed
    return replace(
        view, answered=answered, failed=run.failed, finished=True, metric_values=run.metric_values
    )


# --- files ----------------------------------------------------------------------------------------

Key = tuple[str, str]
"""Model and dataset, as in a journal."""


class _Journal:
    """A journal, and the folders of its cells.

    It may contain calls of other sweeps, and of cells whose identity is not read yet.
    """

    def __init__(self, path: Path) -> None:
        self.tail = JournalTail(path)
        self.folders: set[Path] = set()
        self.calls: dict[Key, list[_Call]] = {}
        self.restarts = 0  # number of reads from the start, after the file was replaced

    def is_of(self, predictions: Path) -> bool:
        return any(predictions.is_relative_to(folder) for folder in self.folders)

    def read(self) -> str | None:
        """Read new records; return an error message, or None."""
        if self.tail.is_another():
            self.calls = {}
            self.restarts += 1
        try:
            for record in self.tail.records():
                call = _Call.of(record)
                if call is not None:
                    key = str(record["model"]), str(record.get("dataset"))
                    self.calls.setdefault(key, []).append(call)
        except (ValueError, OSError) as error:
            return str(error)
        return None


def _files_of(place: SweepFiles) -> tuple[list[Path], list[Path], list[Path]]:
    """Return identities, journals and locks of a place, each file once."""
    identities: list[Path] = []
    journals, locks = [*place.journals], [lock_path(path) for path in place.journals]
    for folder, folders, names in os.walk(place.folder):
        folders[:] = [inner for inner in folders if inner != MORE_SAMPLES]
        for name in sorted(names):
            path = Path(folder, name)
            # VLMEvalKit links files of a run's folder into the model's: one run, two paths.
            if name.endswith(IDENTITY) and not path.is_symlink():
                identities.append(path)
            elif name.endswith(JOURNAL) and path not in journals:
                journals.append(path)
            elif name.endswith(_LOCKS) and path not in locks:
                locks.append(path)
    return identities, journals, locks


def planned_rows(tables: CellBuilder, question: Question, limit: int | None) -> int | None:
    """Return the number of rows that a model will be asked; None without a table."""
    try:
        return len(list(tables.task(question).queries)[:limit])
    except (OSError, ValueError):
        return None
