"""Progress of sweeps and downloads: bars on a terminal; elsewhere lines about a sweep."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

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

from ..core.answers import Answer
from ..core.formatting import duration
from ..core.replies import recorded
from ..engine.sink import PlannedCalls
from ..runs.run_score import CellResult
from .shared_options import is_quiet

_LINE_EVERY = 10.0
"""Seconds between lines without a terminal."""


@dataclass(slots=True)
class ProgressCounts:
    """Counts of the model at work; failures and tokens of the whole sweep."""

    model: str = ""
    cells: int = 0
    cells_done: int = 0
    calls: int = 0
    calls_done: int = 0
    calls_before: int = 0
    failures: int = 0
    started: float = 0.0
    tokens: Counter[str] = field(default_factory=Counter)

    def line(self, now: float) -> str:
        """Return the state in words."""
        calls, seconds = self.calls_done - self.calls_before, max(now - self.started, 1e-9)
        rate = calls / seconds
        left = (self.calls - self.calls_done) / rate if calls else None
        return (
            f"{self.model}  cells {self.cells_done}/{self.cells}  "
            f"calls {self.calls_done}/{self.calls}  {rate:.1f}/s  "
            f"left {duration(left)}  failed {self.failures}"
        )


class SweepProgress:
    """Shows a sweep (:class:`..engine.answering.Watcher`).

    Args:
        lines: whether lines are printed without a terminal, and bars stay at the end.
        clock: seconds.
    """

    def __init__(self, lines: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self.state = ProgressCounts()
        self._clock = clock
        self._last_line = 0.0
        # Passed explicitly: the demonstration redirects sys.stderr to a log during calls.
        console = Console(file=sys.stderr)
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(20),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=not lines,
            disable=not console.is_terminal or is_quiet(),
        )
        self._prints_lines = lines and not (console.is_terminal or is_quiet())
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> SweepProgress:
        self.bars.start()
        self._starting = self.bars.add_task("starting", total=None, note="")
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def planned(self, model: str, planned: PlannedCalls) -> None:
        self.bars.update(self._starting, visible=False)
        self.state = replace(
            self.state,
            model=model,
            cells=planned.cells,
            cells_done=0,
            calls=planned.calls,
            calls_done=planned.finished,
            calls_before=planned.finished,
            started=self._clock(),
        )
        task = self._tasks.get(model)
        if task is None:
            task = self._tasks[model] = self.bars.add_task(model, total=0, note="")
        # A search plans each of its stages: the bar of a model covers all of them.
        (before,) = (each.total or 0 for each in self.bars.tasks if each.id == task)
        self.bars.update(task, total=before + planned.calls, advance=planned.finished)
        self._show(now=True)

    def answered(self, answers: Sequence[Answer]) -> None:
        self.state.calls_done += len(answers)
        self.state.failures += sum(answer.error is not None for answer in answers)
        for answer in answers:
            self.state.tokens.update(recorded(answer.extra).tokens)
        self.bars.advance(self._tasks[self.state.model], len(answers))
        self._show()

    def scored(self, result: CellResult) -> None:
        self.state.cells_done += 1
        self._show(now=self.state.cells_done == self.state.cells)

    def print_tokens(self) -> None:
        """Print the tokens of the whole sweep."""
        tokens = self.state.tokens
        if tokens["prompt"]:
            cached = f", {tokens['cached']:,} of them from a cache" if tokens["cached"] else ""
            out = tokens["completion"] or tokens["reply"]
            print(f"tokens: {tokens['prompt']:,} in{cached}; {out:,} out", file=sys.stderr)

    def _show(self, now: bool = False) -> None:
        state = self.state
        note = f"cells {state.cells_done}/{state.cells}, failed {state.failures}"
        self.bars.update(self._tasks[state.model], note=note)
        clock = self._clock()
        if self._prints_lines and (now or clock - self._last_line >= _LINE_EVERY):
            self._last_line = clock
            print(state.line(clock), file=sys.stderr, flush=True)


class DownloadProgress:
    """Counts bytes and files; may be called from many threads.

    The number of bytes is known for archives; for single files it is estimated from those that
    arrived, and before the first from the usual size.
    """

    def __init__(self, bar: Progress, what: str, files: int, typical: int) -> None:
        self._bar = bar
        self._lock = threading.Lock()
        self._files, self._typical = files, typical
        self._done = self._bytes = self._announced = 0
        self._task = bar.add_task(what, total=files * typical, files=f"0/{files}")

    def got(self, count: int) -> None:
        """Count bytes that arrived."""
        with self._lock:
            self._bytes += count
            self._show()

    def expect(self, remaining: int) -> None:
        """Set the remaining bytes of an archive."""
        with self._lock:
            self._announced = self._bytes + remaining
            self._show()

    def finished(self, name: str) -> None:
        """Count a file that arrived, or failed for good."""
        with self._lock:
            self._done += 1
            self._show()

    def _show(self) -> None:
        mean = self._bytes / self._done if self._done else self._typical
        estimate = self._bytes + (self._files - self._done) * mean
        self._bar.update(
            self._task,
            completed=self._bytes,
            total=max(self._bytes, self._announced or estimate),
            files=f"{self._done}/{self._files}",
        )


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
