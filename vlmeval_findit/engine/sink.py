"""Store answers in the journal, and finish the cells that they complete."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol

from ..core.files import is_disk_full
from ..protocol.call_results import NOT_MADE, CallResult, in_thread
from ..scoring.run_score import CellResult
from .backend import WorkResult
from .calls import Call
from .cancel import CancelToken
from .image_check import about_planned_images
from .journal.view import JournalError, Record
from .journal.writer import DiskFullError, Journal, full_disk


class PlannedCalls(NamedTuple):
    """How much there is to do; equal calls count once, except in cells finished before."""

    cells: int
    calls: int
    finished: int  # calls with an answer from before


class Watcher(Protocol):
    """Is told the progress of a sweep, on the loop's thread."""

    def planned(self, model: str, planned: PlannedCalls) -> None:
        """A model's work begins."""

    def answered(self, answers: Sequence[CallResult]) -> None:
        """Calls have ended."""

    def scored(self, result: CellResult) -> None:
        """A cell's files are written."""

    def stopped(self, why: str) -> None:
        """A model must not be called any more; others may follow."""


class ResultSink:
    """Stores the answers of a model's calls, and finishes each cell after its last call.

    Cells are finished one by one in a thread, while calls go on.

    Args:
        waits: per cell, how many calls it waits for.
        finish: writes the files of a cell (None: later).
    """

    def __init__(
        self,
        journal: Journal,
        waits: Iterable[int],
        record: Callable[[Call, CallResult], Record],
        watcher: Watcher,
        finish: Callable[[int], CellResult] | None = None,
    ) -> None:
        self._journal = journal
        self._waits = Counter(dict(enumerate(waits)))
        self._record = record
        self._watcher = watcher
        self._finish = finish
        self._queue: asyncio.Queue[int | None] = asyncio.Queue()  # None: there are no more
        self._finishing: asyncio.Task[None]
        self.complete: list[int] = []  # cells whose calls are all done
        self.results: dict[int, CellResult] = {}  # of finished cells
        self.error: JournalError | None = None  # later answers are still stored where possible
        self.last: CallResult | None = None  # ends the calls of its model

    @property
    def ended(self) -> bool:
        return self.error is not None or self.last is not None or self._finishing.done()

    @asynccontextmanager
    async def open(self, cancel: CancelToken) -> AsyncIterator[None]:
        """Start with the cells that need no call; at the end wait for all complete ones.

        After an interruption, the thread that finishes a cell is abandoned.
        """
        finishing = self._finishing = asyncio.create_task(self._finish_cells())
        try:
            self._completed(at for at, calls in self._waits.items() if not calls)
            yield
        except BaseException:
            while not self._queue.empty():
                self._queue.get_nowait()
            raise
        finally:
            self._queue.put_nowait(None)
            with cancel.ending(finishing):
                await asyncio.wait([finishing])
        if not finishing.cancelled():
            finishing.result()  # raises what a scorer raised

    def store(self, result: WorkResult) -> None:
        """Store answers; calls that did not begin have none."""
        pairs = zip(result.calls, result.answers, strict=True)
        stored = [
            (call, about_planned_images(call, answer))
            for call, answer in pairs
            if answer.stop not in NOT_MADE
        ]
        try:
            if stored:
                self._journal.append(self._record(*pair) for pair in stored)
            self._watcher.answered([answer for _, answer in stored])
            needing = Counter(at for call, _ in stored for at in call.needed_by)
            self._waits.subtract(needing)
            self._completed(at for at in needing if not self._waits[at])
        except JournalError as error:
            self._failed(error)
        except OSError as error:
            self._failed(full_disk(error, self._journal.path))
        last = (answer for answer in result.answers if answer.stop is not None)
        self.last = self.last or next(last, None)

    def _completed(self, cells: Iterable[int]) -> None:
        for at in cells:
            self.complete.append(at)
            self._queue.put_nowait(at)

    async def _finish_cells(self) -> None:
        while (at := await self._queue.get()) is not None and self.error is None:
            if self._finish is None:
                continue
            try:
                self.results[at] = result = await in_thread(self._finish, at)
                self._watcher.scored(result)
            except JournalError as error:
                self._failed(error)
            except Exception as error:
                if not is_disk_full(error):
                    raise
                self._failed(DiskFullError(self._journal.path, 0))

    def _failed(self, error: JournalError) -> None:
        if isinstance(self.error, DiskFullError):
            error = DiskFullError(self.error.path, self.error.lost + error.lost)
        self.error = error if isinstance(error, DiskFullError) else self.error or error
