"""Progress of sweeps and downloads: bars on a terminal; elsewhere lines about a sweep."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from ..core import duration, repeated
from ..engine import PlannedCalls
from ..protocol import CallResult
from ..scoring import CellResult
from .command_base import is_quiet, print_note, say

_SILENT = 2.0
"""Seconds before progress of an import is shown."""

_LINE_EVERY = 10.0
"""Seconds between lines without a terminal."""


class SweepProgress:
    """Shows a sweep (:class:`..engine.answering.Watcher`).

    While it is entered, a thread prints the line also when nothing ends: a server may refuse
    everything for minutes.

    Args:
        lines: whether lines are printed, also without a terminal, and bars stay at the end.
        every: most seconds between two lines.
    """

    def __init__(self, lines: bool = True, every: float = _LINE_EVERY) -> None:
        # Passed explicitly: the demonstration redirects sys.stderr to a log during calls.
        console = Console(file=sys.stderr)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(20),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=not lines,
            disable=not console.is_terminal or is_quiet(),
        )
        self._names_stops = lines
        self._prints_lines = lines and not (console.is_terminal or is_quiet())
        self._tasks: dict[str, TaskID] = {}
        self._tokens = Counter[str]()
        self._failures = self._cells = self._calls = 0  # Of the sweep, of the model at work
        self._every = every
        self._last_line = 0.0
        self._model = ""
        self._planned: PlannedCalls | None = None
        self._lock = threading.RLock()
        self._thread = ExitStack()

    def __enter__(self) -> SweepProgress:
        self._bars.start()
        self._starting = self._bars.add_task("starting", total=None, note="")
        if self._prints_lines:
            self._thread.enter_context(repeated(self._go_on, min(self._every, 1.0)))
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.close()
        self._bars.stop()

    def planned(self, model: str, planned: PlannedCalls) -> None:
        with self._lock:
            self._plan(model, planned)
            self._show(planned, now=True)

    def _plan(self, model: str, planned: PlannedCalls) -> None:
        self._bars.update(self._starting, visible=False)
        self._model = model
        self._planned = planned
        self._began = time.monotonic()
        self._cells = 0
        self._calls = planned.finished
        if model not in self._tasks:
            self._tasks[model] = self._bars.add_task(model, total=0, note="")
        # A search plans each of its stages: the bar of a model covers all of them.
        (before,) = (task.total or 0 for task in self._bars.tasks if task.id == self._tasks[model])
        total = before + planned.calls
        self._bars.update(self._tasks[model], total=total, advance=planned.finished)

    def answered(self, answers: Sequence[CallResult]) -> None:
        with self._lock:
            self._calls += len(answers)
            self._failures += sum(answer.error is not None for answer in answers)
            for answer in answers:
                self._tokens.update(answer.record.tokens)
            self._bars.advance(self._tasks[self._model], len(answers))
            if self._planned is not None:
                self._show(self._planned)

    def scored(self, result: CellResult) -> None:
        with self._lock:
            self._cells += 1
            if self._planned is not None:
                self._show(self._planned, now=self._cells == self._planned.cells)

    def stopped(self, why: str) -> None:
        if self._names_stops:
            print_note(f"error: {why}")

    def _go_on(self) -> None:
        """Print the line if it is due, while calls are left."""
        with self._lock:
            if self._planned is not None and self._calls < self._planned.calls:
                self._show(self._planned)

    def print_tokens(self) -> None:
        """Print the tokens of the whole sweep."""
        tokens = self._tokens
        if tokens["prompt"]:
            cached = f", {tokens['cached']:,} of them from a cache" if tokens["cached"] else ""
            out = tokens["completion"] or tokens["reply"]
            say(f"tokens: {tokens['prompt']:,} in{cached}; {out:,} out", file=sys.stderr)

    def _show(self, planned: PlannedCalls, now: bool = False) -> None:
        clock = time.monotonic()
        cells = f"cells {self._cells}/{planned.cells}"
        note = f"{cells}, failed {self._failures}"
        self._bars.update(self._tasks[self._model], note=note)
        if not self._prints_lines or not (now or clock - self._last_line >= self._every):
            return
        self._last_line = clock
        made = self._calls - planned.finished
        rate = made / max(clock - self._began, 1e-9)
        left = duration((planned.calls - self._calls) / rate if made else None)
        say(
            f"{self._model}  {cells}  calls {self._calls}/{planned.calls}  {rate:.1f}/s  "
            f"left {left}  failed {self._failures}",
            file=sys.stderr,
            flush=True,
        )


class CountProgress:
    """Shows how much of an import was read: a count on a terminal, lines elsewhere.

    Nothing is shown in the first two seconds.
    """

    def __init__(self) -> None:
        console = Console(file=sys.stderr)
        self._is_quiet = is_quiet()
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(20),
            TextColumn("{task.completed:,}"),
            console=console,
            transient=True,
            disable=not console.is_terminal or self._is_quiet,
        )
        self._is_terminal = console.is_terminal
        self._tasks: dict[str, TaskID] = {}
        self._counts = Counter[str]()
        self._began = self._last_line = time.monotonic()
        self._lock = threading.Lock()

    def __enter__(self) -> CountProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def count(self, what: str, more: int) -> None:
        """Count what was read; may be called from many threads."""
        with self._lock:
            self._counts[what] += more
            clock = time.monotonic()
            if self._is_quiet or clock - self._began < _SILENT:
                return
            if self._is_terminal:
                self._advance(what)
            elif clock - self._last_line >= _LINE_EVERY:
                self._last_line = clock
                say(f"{what} {self._counts[what]:,}", file=sys.stderr, flush=True)

    def _advance(self, what: str) -> None:
        if not self._tasks:
            self._bars.start()
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=None)
        self._bars.update(self._tasks[what], completed=self._counts[what])


class DownloadProgress:
    """Counts bytes and files; may be called from many threads.

    The number of bytes is known for archives; for single files it is estimated from those that
    arrived, and before the first from the usual size.
    """

    def __init__(self, bar: Progress, what: str, files: int, typical: int) -> None:
        self._bar = bar
        self._lock = threading.Lock()
        self._files = files
        self._typical = typical
        self._done = self._bytes = self._announced = 0
        self._task = bar.add_task(what, total=files * typical, files=f"0/{files}")

    def got(self, count: int) -> None:
        """Count bytes that arrived."""
        self._show(got=count)

    def expect(self, remaining: int) -> None:
        """Set the remaining bytes of an archive."""
        self._show(remaining=remaining)

    def finished(self, name: str) -> None:
        """Count a file that arrived, or failed for good."""
        self._show(done=1)

    def _show(self, got: int = 0, done: int = 0, remaining: int | None = None) -> None:
        with self._lock:
            self._bytes += got
            self._done += done
            if remaining is not None:
                self._announced = self._bytes + remaining
            mean = self._bytes / self._done if self._done else self._typical
            estimate = self._bytes + (self._files - self._done) * mean
            total = max(self._bytes, self._announced or estimate)
            files = f"{self._done}/{self._files}"
            self._bar.update(self._task, completed=self._bytes, total=total, files=files)


@contextmanager
def download_progress(what: str, files: int, typical: int) -> Iterator[DownloadProgress]:
    """Show a bar on a terminal; ``typical`` is the usual size of a file in bytes."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[files]}"),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    console = Console()
    silent = is_quiet() or not console.is_terminal
    with Progress(*columns, console=console, disable=silent) as bar:
        yield DownloadProgress(bar, what, files, typical)
