"""A sweep that is followed while it runs: what its files say, look by look.

Nothing is asked of the process that writes them, and nothing is written: identities say what is
asked, the journal what came of it, provenances which cells are scored, locks whether somebody works
on it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .. import benchmarks
from ..core.identity import IdentityError, read_identity
from ..core.lock import is_held
from ..core.question import Question, QuestionError
from ..engine.journal.view import JournalTail
from ..engine.journal.writer import lock_path
from ..engine.tables import Tables
from .live_cells import Call, Cell, CellView, Place, Snapshot, Stamp, State, stamp_of

IDENTITY = "_identity.json"
JOURNAL = "calls.jsonl"
_LOCKS = (".sweep.lock", f"{JOURNAL}.lock")

SPEED_OVER = 120.0
"""Seconds over which calls are counted for their speed."""


class Followed:
    """The sweeps in some places; every call of :meth:`look` reads what is new.

    Args:
        places: where they leave their files.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = tuple(places)
        self._cells: dict[Path, Cell] = {}
        self._stamps: dict[Path, Stamp] = {}
        self._journals: dict[Path, _Followed] = {}
        self._tables = Tables(skip_missing=None)
        self._speeds: deque[tuple[float, int]] = deque()
        self._was_running = False
        self._problems: dict[Path, str] = {}

    def look(self, now: float) -> Snapshot:
        """How it stands.

        Args:
            now: seconds of a clock that never goes back.
        """
        found = [(place, *_files_of(place)) for place in self._places]
        # First of all: what is written before the lock is let go is read then.
        running = any(is_held(lock) for *_, locks in found for lock in locks)
        for place, identities, journals, _ in found:
            for path in identities:
                self._identity(path)
            for path in journals:
                folder = place.folder if path in place.journals else path.parent
                self._journals.setdefault(path, _Followed(path)).folders.add(folder)
        for path, journal in self._journals.items():
            self._say(path, journal.read(self._cells.values()))
        for cell in self._cells.values():
            cell.score(self._tables)
        cells = tuple(self._views())
        unread = sum(journal.tail.left for journal in self._journals.values())
        state, speed = self._state(running, cells), self._speed(now, unread)
        problems = tuple(self._problems.values())
        return Snapshot(state, cells, speed if running else None, unread, problems)

    def _state(self, running: bool, cells: Sequence[CellView]) -> State:
        if running:
            self._was_running = True
            return State.RUNNING
        begun = [cell for cell in cells if cell.begun]
        over = begun and all(cell.finished for cell in begun)
        return State.ENDED if self._was_running or over else State.WAITING

    def _speed(self, now: float, unread: int) -> float | None:
        """Calls a second, of those that were made since somebody looks."""
        if unread:
            self._speeds.clear()
            return None
        self._speeds.append((now, sum(journal.calls for journal in self._journals.values())))
        while len(self._speeds) > 2 and now - self._speeds[1][0] >= SPEED_OVER:
            self._speeds.popleft()
        (start, before), (end, after) = self._speeds[0], self._speeds[-1]
        return (after - before) / (end - start) if end > start else None

    def _identity(self, path: Path) -> None:
        stamp = stamp_of(path)
        if stamp is None or self._stamps.get(path) == stamp:
            return
        self._stamps[path] = stamp
        predictions = path.with_name(f"{path.name.removesuffix(IDENTITY)}.json")
        try:
            identity = read_identity(predictions)
            question = benchmarks.parse(identity.dataset) if identity else None
        except (IdentityError, QuestionError, OSError) as error:
            self._say(path, str(error))
            return
        self._say(path, None)
        if identity is None or question is None:
            return
        if path in self._cells:
            self._cells[path].identity = identity
            return
        self._cells[path] = cell = Cell(predictions, identity, question)
        for journal in self._journals.values():
            journal.catch_up(cell)

    def _say(self, path: Path, problem: str | None) -> None:
        if problem is None:
            self._problems.pop(path, None)
        else:
            self._problems[path] = problem

    def _views(self) -> Iterator[CellView]:
        begun = set()
        for cell in sorted(self._cells.values(), key=_order):
            begun.add((cell.predictions.parent, cell.identity.model, cell.question))
            yield cell.view()
        for place in self._places:
            for one in place.planned:
                if (place.folder / one.model, one.model, one.question) not in begun:
                    yield CellView.not_begun(one)


def _order(cell: Cell) -> tuple[object, ...]:
    question = cell.question
    return cell.identity.model, question.column, question.format_place, question.name


Key = tuple[str, str]
"""Model and dataset, as a journal has them."""


class _Followed:
    """One journal, and the folders whose cells it is of.

    Calls of cells that nobody knows yet are kept: an identity may be written between two looks, and
    a journal may hold what other sweeps asked.
    """

    def __init__(self, path: Path) -> None:
        self.tail = JournalTail(path)
        self.folders: set[Path] = set()
        self.calls = 0
        self._early: dict[Key, list[Call]] = {}
        self._own: dict[Key, list[Cell]] = {}

    def read(self, cells: Iterable[Cell]) -> str | None:
        """Hand what is new to its cells; says what is wrong with the file, if anything is."""
        self._own = {}
        for cell in cells:
            if any(cell.predictions.is_relative_to(folder) for folder in self.folders):
                self._own.setdefault(_key(cell), []).append(cell)
        if self.tail.is_another():
            self._early, self.calls = {}, 0
            for own in self._own.values():
                for cell in own:
                    cell.forget()
        try:
            for record in self.tail.records():
                call = Call.of(record)
                if call is not None:
                    self._hand((str(record["model"]), str(record.get("dataset"))), call)
        except (ValueError, OSError) as error:
            return str(error)
        return None

    def _hand(self, key: Key, call: Call) -> None:
        if key not in self._own:
            # Without its reply: of those there may be gigabytes.
            self._early.setdefault(key, []).append(call._replace(reply=None))
        else:
            # Every one of them must hear of it.
            taken = [cell.take(call) for cell in self._own[key]]
            self.calls += any(taken)

    def catch_up(self, cell: Cell) -> None:
        """Hand a new cell what was said of it before it was known."""
        if any(cell.predictions.is_relative_to(folder) for folder in self.folders):
            for call in self._early.get(_key(cell), ()):
                self.calls += cell.take(call)


def _key(cell: Cell) -> Key:
    return cell.identity.model, cell.question.name


def _files_of(place: Place) -> tuple[list[Path], list[Path], list[Path]]:
    """Identities, journals and locks of a place, each file once."""
    identities: list[Path] = []
    journals, locks = [*place.journals], [lock_path(path) for path in place.journals]
    for folder, _, names in os.walk(place.folder):
        for name in sorted(names):
            path = Path(folder, name)
            # VLMEvalKit links files of a run's folder into the model's: one run, two paths.
            if name.endswith(IDENTITY) and not path.is_symlink():
                identities.append(path)
            elif name.removesuffix(".zst").endswith(JOURNAL):
                journal = path.with_name(name.removesuffix(".zst"))
                journals += [journal] if journal not in journals else []
            elif name.endswith(_LOCKS) and path not in locks:
                locks.append(path)
    return identities, journals, locks


def planned_rows(tables: Tables, question: Question, limit: int | None) -> int | None:
    """How many rows a model will be asked, as far as a table is at hand."""
    try:
        return len(list(tables.task(question).queries)[:limit])
    except (OSError, ValueError):
        return None
