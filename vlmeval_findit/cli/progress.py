"""Progress of sweeps and downloads: bars on a terminal; elsewhere lines about a sweep."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from .options import is_quiet

_LINE_EVERY = 10.0
"""Seconds between lines without a terminal."""


@dataclass(slots=True)
class ProgressCounts:
    """Counts of the model at work; failures, tokens and capacities of the whole sweep."""

    model: str = ""
    cells: int = 0
    cells_done: int = 0
    calls: int = 0
    calls_done: int = 0
    calls_before: int = 0
    failures: int = 0
    started: float = 0.0
    tokens: Counter[str] = field(default_factory=Counter)
    capacity: dict[str, Mapping[str, int]] = field(default_factory=dict)

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

    def summary(self) -> Iterator[str]:
        """Yield the numbers of tokens, and the most concurrent calls of each server."""
        tokens = self.tokens
        if tokens["prompt"]:
            parts = [
                (tokens["cached"], "from a cache"),
                (tokens["cache_write"], "written to a cache"),
            ]
            cached = " and ".join(f"{count:,} {what}" for count, what in parts if count)
            which = f", of which {cached}" if cached else ""
            out = tokens["completion"] or tokens["reply"]
            yield f"tokens: {tokens['prompt']:,} in{which}; {out:,} out"
        for model, servers in self.capacity.items():
            counts = ", ".join(f"{name} {count}" for name, count in servers.items())
            yield f"{model}: concurrent calls at most: {counts}"


class SweepProgress:
    """Shows a sweep (:class:`..engine.answering.Watcher`)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.state = ProgressCounts()
        self._clock = clock
        self._last_line = 0.0
        console = Console(stderr=True)
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(20),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not console.is_terminal or is_quiet(),
        )
        self._prints_lines = not (console.is_terminal or is_quiet())
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

    def model_finished(self, model: str, servers: Mapping[str, int]) -> None:
        if servers:
            self.state.capacity[model] = servers

    def print_summary(self) -> None:
        """Print tokens and capacities once the sweep is over."""
        for line in self.state.summary():
            print(line, file=sys.stderr)

    def _show(self, now: bool = False) -> None:
        state = self.state
        note = f"cells {state.cells_done}/{state.cells}, failed {state.failures}"
        self.bars.update(self._tasks[state.model], note=note)
        clock = self._clock()
        if self._prints_lines and (now or clock - self._last_line >= _LINE_EVERY):
            self._last_line = clock
            print(state.line(clock), file=sys.stderr, flush=True)


class StageBar:
    """Shows a stage of the demonstration while it lasts, on a terminal (a Watcher, too).

    Other output is not redirected.

    Args:
        text: the stage.
        cells: models x formats that are asked about the same queries; 0: not counted.
    """

    def __init__(self, text: str, cells: int = 0) -> None:
        self._cells = cells
        # Passed explicitly: sys.stderr may be redirected to a log during calls.
        console = Console(file=sys.stderr)
        self.bar = Progress(
            TextColumn("   {task.description}"),
            BarColumn(20),
            TextColumn("{task.fields[count]}"),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
            disable=not console.is_terminal or is_quiet(),
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self.bar.add_task(text, total=None, count="")

    def __enter__(self) -> StageBar:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def stopping(self, _: str) -> None:
        """Show that a signal was received."""
        self.bar.update(self._task, description="stopping")

    def planned(self, model: str, planned: PlannedCalls) -> None:
        total = round(self._cells * planned.calls / max(planned.cells, 1))
        self.bar.update(self._task, description=f"asking {model}", total=total)
        self._advance(planned.finished)

    def answered(self, answers: Sequence[Answer]) -> None:
        self._advance(len(answers))

    def scored(self, result: CellResult) -> None: ...

    def model_finished(self, model: str, servers: Mapping[str, int]) -> None: ...

    def _advance(self, count: int) -> None:
        (task,) = self.bar.tasks
        done = int(task.completed) + count
        self.bar.update(self._task, completed=done, count=f"{done:,} of {task.total:,.0f} answers")


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
