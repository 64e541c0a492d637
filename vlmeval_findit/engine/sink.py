"""Make the calls of a plan, store their answers in the journal, and finish complete cells."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple, Protocol

from ..core import Secrets, agreeing, is_disk_full, known_secrets
from ..protocol import NOT_MADE, CallResult, Identity, in_thread, refused_if_it_quotes
from ..scoring import CellResult
from ..storage import ImageChangedError, is_other_file, stored_record
from .backend import Backend, CancelToken, WorkResult
from .calls import Call, Cell, unread
from .journal.view import JournalError
from .journal.writer import DiskFullError, Journal, UnwrittenError
from .plan import Plan


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
        identity: of the run that a cell belongs to.
        finish: writes the files of a cell (None: later).
    """

    def __init__(
        self,
        journal: Journal,
        waits: Iterable[int],
        identity: Callable[[Cell], Identity],
        watcher: Watcher,
        finish: Callable[[int], CellResult] | None = None,
    ) -> None:
        self._journal = journal
        self._waits = Counter(dict(enumerate(waits)))
        self._identity = identity
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

    async def answer(self, plan: Plan, backend: Backend, cancel: CancelToken) -> None:
        """Store the answers of a backend to the calls that are left of a plan."""
        # Other models of the run go on when this model ends.
        token = CancelToken(cancel)
        async with self._finishing_cells(cancel):
            self._fail_unreadable(plan)
            if self.ended or not any(self._waits.values()):
                return
            async with aclosing(backend.answer(plan, token)) as results:
                async for result in results:
                    self.store(result)
                    if self.ended:
                        # Calls in flight are paid for: wait for them, and store them if there is
                        # room.
                        token.request()

    def _fail_unreadable(self, plan: Plan) -> None:
        for call in plan.calls(unreadable=True):
            if plan.is_left(call.key):
                why = next(filter(None, map(unread, call.image_sha256)))
                failed = CallResult("", error=f"an image cannot be read: {why}")
                self.store(WorkResult((call,), (failed,)))

    @asynccontextmanager
    async def _finishing_cells(self, cancel: CancelToken) -> AsyncIterator[None]:
        """Start with the cells that need no call; at the end wait for all complete cells.

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
        secrets = known_secrets()
        stored = [
            (call, refused_if_it_quotes(about_planned_images(call, answer), secrets))
            for call, answer in zip(result.calls, result.answers, strict=True)
            if answer.stop not in NOT_MADE
        ]
        try:
            if stored:
                self._journal.append(
                    record_of(call, answer, self._identity(call.cell), call.cell.logprobs, secrets)
                    for call, answer in stored
                )
            self._watcher.answered([answer for _, answer in stored])
            needing = Counter(at for call, _ in stored for at in call.needed_by)
            self._waits.subtract(needing)
            self._completed(at for at in needing if not self._waits[at])
        except JournalError as error:
            self._failed(error)
        except OSError as error:
            self._failed(self._unwritten(error, len(stored)))
        if self.last is None:
            last = (answer for answer in result.answers if answer.stop is not None)
            self.last = next(last, None)

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
            except OSError as error:
                self._failed(self._unwritten(error))

    def _unwritten(self, error: OSError, lost: int = 0) -> JournalError:
        """Return the error of a file that cannot be written, after calls were made."""
        if is_disk_full(error):
            return DiskFullError(self._journal.path, lost)
        try:
            self._journal.check_kept()
        except JournalError as problem:
            return problem
        kept = agreeing(lost, "a reply is lost", f"{lost:,} replies are lost") if lost else ""
        return UnwrittenError(self._journal.path, error, kept)

    def _failed(self, error: JournalError) -> None:
        if isinstance(self.error, DiskFullError):
            error = DiskFullError(self.error.path, self.error.lost + error.lost)
        self.error = error if isinstance(error, DiskFullError) else self.error or error


# --- what is stored of a call ---------------------------------------------------------------------


def record_of(
    call: Call, answer: CallResult, run: Identity, logprobs: bool, secrets: Secrets
) -> dict[str, Any]:
    """Return the journal's record of a call, without secrets; ``logprobs``: they were requested."""
    cell = call.cell
    extra, error = secrets.scrubbed([stored_record(answer), answer.error])
    return {
        "key": call.key,
        "error": error,
        "logprobs": logprobs,
        "model": cell.model,
        "settings": dict(cell.settings),
        "dataset": cell.variant.name,
        "row": call.row,
        "prompt_sha256": call.prompt_sha256,
        "image_sha256": list(call.image_sha256),
        "reply": answer.text,
        "extra_records": extra,
        "seconds": round(answer.seconds, 6),
        "time": answer.time.as_values(),
        "made_by": run.made_by,
    }


def about_planned_images(call: Call, answer: CallResult) -> CallResult:
    """Return an answer, or a failed one if an image changed between planning and reading it.

    A model that reports the hashes of what it read is taken at its word. Requests over HTTP were
    compared before they were sent. For other models, the files are compared again.
    """
    if answer.error is not None or answer.stop is not None:
        return answer
    record = answer.record
    if record.call:
        return answer
    reported = [str(image.get("sha256") or "") for image in record.images]
    if reported and all(reported):
        pairs = zip(reported, call.image_sha256, strict=False)
        are_planned = [not is_other_file(content, sha256) for sha256, content in pairs]
    else:
        are_planned = list(map(call.cell.prompts.images.is_unchanged, call.images))
    for path, is_planned in zip(call.images, are_planned, strict=False):
        if not is_planned:
            return CallResult("", error=str(ImageChangedError(path)), seconds=answer.seconds)
    return answer
