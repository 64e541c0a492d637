"""One cell of a sweep that is followed: what came of its calls, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from ..benchmarks import benchmark_of
from ..core.identity import Identity
from ..core.metric import figures
from ..core.question import Question
from ..core.replies import Reply, recorded
from ..core.run_files import RunFiles
from ..core.scored_row import add_up
from ..core.settings import Settings
from ..core.statistics import Interval
from ..engine.tables import Tables
from ..runs.opening import check_replies
from ..runs.score import score_rows
from ..runs.scored_run import RunError, load_run

Stamp = tuple[int, int]
"""Time and size of a file: another one says that it was written again."""


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a file; None where there is none."""
    try:
        there = path.stat()
    except OSError:
        return None
    return there.st_mtime_ns, there.st_size


class State(Enum):
    """What becomes of a sweep."""

    WAITING = "nobody works on it yet"
    RUNNING = "running"
    ENDED = "ended"


class Planned(NamedTuple):
    """A cell that a sweep's file names; ``rows`` None: no table is at hand."""

    model: str
    question: Question
    rows: int | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sweep leaves its files, and what it will ask, as far as its file says so."""

    folder: Path
    journals: tuple[Path, ...] = ()
    planned: tuple[Planned, ...] = ()


@dataclass(frozen=True, slots=True)
class CellView:
    """One model over one question, as it stands.

    ``rows`` are asked (None: not known yet), ``answered`` and ``failed`` are calls that came home;
    ``figures`` are of the rows in ``scored``, with ``bounds`` where the cell is finished.
    """

    model: str
    question: Question
    rows: int | None
    answered: int
    failed: int
    cost: float | None
    seconds: float | None
    finished: bool
    begun: bool
    figures: Mapping[str, float | None] = field(default_factory=dict)
    bounds: Mapping[str, Interval | None] = field(default_factory=dict)
    scored: int = 0

    @classmethod
    def not_begun(cls, cell: Planned) -> CellView:
        """A cell that a sweep will ask."""
        return cls(*cell, 0, 0, None, None, finished=False, begun=False)

    @property
    def left(self) -> int | None:
        """Calls that are still to be made; of a finished cell none, whatever failed."""
        if self.finished:
            return 0
        return None if self.rows is None else max(self.rows - self.answered - self.failed, 0)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A sweep at one moment.

    ``speed`` is calls a second (None: not known yet), ``unread`` bytes of journals that were not
    looked at yet, ``problems`` what cannot be read.
    """

    state: State
    cells: tuple[CellView, ...]
    speed: float | None
    unread: int
    problems: tuple[str, ...]

    @property
    def answered(self) -> int:
        return sum(cell.answered for cell in self.cells)

    @property
    def failed(self) -> int:
        return sum(cell.failed for cell in self.cells)

    @property
    def left(self) -> int:
        """Calls that are known to be left."""
        return sum(cell.left or 0 for cell in self.cells)

    @property
    def cost(self) -> float | None:
        """US dollars, as far as anybody said; None: nobody did."""
        known = [cell.cost for cell in self.cells if cell.cost is not None]
        return sum(known) if known else None

    @property
    def seconds_left(self) -> float | None:
        """How long it takes at this speed."""
        return self.left / self.speed if self.speed and self.left else None


class Call(NamedTuple):
    """One line of a journal: ``reply`` is None where nobody needs it any more."""

    row: int
    answered: bool
    cost: float | None
    seconds: float
    made_by: Mapping[str, Any] | None
    reply: Reply | None

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Call | None:
        """The call of a record; None of one that does not say which row it is of."""
        row = record.get("row")
        if not isinstance(row, int):
            return None
        extra = recorded(record["extra_records"])
        cost, seconds = extra.call.get("cost"), record.get("seconds")
        return cls(
            row,
            not record["error"],
            cost if isinstance(cost, int | float) else None,
            seconds if isinstance(seconds, int | float) else 0.0,
            record.get("made_by"),
            None if record["error"] else Reply(row, str(record["reply"]), extra),
        )


class Cell:
    """What is known of one cell, added to look by look.

    Args:
        predictions: its prediction file.
        identity: what it is.
        question: what is asked.
    """

    def __init__(self, predictions: Path, identity: Identity, question: Question) -> None:
        self.predictions, self.identity, self.question = predictions, identity, question
        self._done: _Done | None = None
        self.forget()

    def forget(self) -> None:
        """Count the calls anew: the journal is another."""
        self._answered: dict[int, float | None] = {}  # seconds of the answer
        self._new: list[Reply] = []
        self._sums: dict[str, float] = {}
        self._cost: float | None = None
        self._seconds, self._made, self._scored = 0.0, 0, 0

    def take(self, call: Call) -> bool:
        """Take in a call; whether it is one of this cell, and news.

        A line is there twice that was kept beside the journal and taken in.
        """
        asked, made_by = self.identity.rows, call.made_by
        if asked is not None and call.row not in self._rows:
            return False
        if made_by is not None and not self.identity.has_made(made_by):
            return False
        before = self._answered.get(call.row)
        if before is not None and before == call.seconds and call.answered:
            return False
        if call.cost is not None:
            self._cost = (self._cost or 0.0) + call.cost
        self._seconds += call.seconds
        self._made += 1
        if call.reply is not None and before is None:
            self._new.append(call.reply)
        self._answered[call.row] = call.seconds if call.answered else before
        return True

    @property
    def identity(self) -> Identity:
        return self._identity

    @identity.setter
    def identity(self, identity: Identity) -> None:
        self._identity, self._rows = identity, frozenset(identity.rows or ())

    def score(self, tables: Tables) -> None:
        """Look for the finished score; without one add what is new to that of the rows so far."""
        provenance = RunFiles(self.predictions).provenance
        stamp = stamp_of(provenance)
        if stamp is None:
            self._done = None
        elif self._done is None or self._done.stamp != stamp:
            self._done = _done(provenance, stamp)
        replies, self._new = self._new, []
        if self._done is None and replies:
            self._score_new(replies, tables)

    def _score_new(self, replies: list[Reply], tables: Tables) -> None:
        benchmark = benchmark_of(self.question)
        if benchmark.at_a_time is None:
            # It wants the replies of a run together, and may take its time over them.
            return
        who, chosen = self.identity.model, self.identity.chosen
        try:
            task = benchmark.for_model(tables.task(self.question), who, chosen)
            forced = Settings(force=True)
            made = score_rows(check_replies(who, task, replies, forced, self.identity))
        except (OSError, ValueError):
            # No table is at hand, or no space is known: the score of the whole run will say so.
            return
        self._sums = add_up((self._sums, made.sums))
        self._scored += len(made.rows)

    def view(self) -> CellView:
        """The cell as it stands."""
        done = self._done
        answered = sum(seconds is not None for seconds in self._answered.values())
        metrics = benchmark_of(self.question).metrics
        so_far = figures(metrics, self._sums) if self._scored else {}
        return CellView(
            model=self.identity.model,
            question=self.question,
            rows=None if self.identity.rows is None else len(self.identity.rows),
            answered=done.rows - done.failed if done else answered,
            failed=done.failed if done else len(self._answered) - answered,
            cost=self._cost,
            seconds=self._seconds / self._made if self._made else None,
            finished=done is not None,
            begun=True,
            figures=done.figures if done else so_far,
            bounds=done.bounds if done else {},
            scored=done.rows if done else self._scored,
        )


@dataclass(frozen=True, slots=True)
class _Done:
    """A finished score: of which file, and what it says."""

    stamp: Stamp
    rows: int
    failed: int
    figures: Mapping[str, float | None]
    bounds: Mapping[str, Interval | None]


def _done(provenance: Path, stamp: Stamp) -> _Done | None:
    """A finished score; None where its files are just being written."""
    # It brings scipy.
    from ..runs.intervals import intervals

    try:
        run = load_run(provenance)
        bounds = intervals(run) if run.rows else {}
    except (RunError, OSError, ValueError):
        return None
    return _Done(stamp, len(run.rows), run.failed, run.figures, bounds)
