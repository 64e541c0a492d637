""":class:`Backend`, which answers calls, and the backends of models in this process.

A backend pulls few items ahead and finishes begun items, so a sweep can stop at any point
without losing a paid reply. Exceptions become failed answers.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Annotated, Any, Generic, NamedTuple, Protocol, TypeVar

from ..core.validation import Config, Count, Expected, Number, Seconds
from ..protocol.call_results import (
    Batch,
    CallResult,
    Cancellable,
    CancelledError,
    ModelClient,
    StopReason,
    error_line,
    in_thread,
)
from .calls import Call
from .cancel import CancelToken
from .plan import WorkItem
from .retry_scheduler import FinishedItem, Scheduler

log = logging.getLogger(__name__)

T = TypeVar("T")
Result = TypeVar("Result")
Loader = Callable[[], ModelClient]
"""Loads a model. Must be picklable: another process may call it."""


@dataclass(frozen=True, slots=True)
class CallOptions(Config):
    """Options of calls; no answer depends on them."""

    threads: Count = 8  # concurrent calls to an API, or to each endpoint
    timeout: Seconds = 600.0  # per attempt
    batch_size: Count = 8  # most calls of one variant that a local model gets together
    variants: Count = 32  # most calls over one image that a local model gets together
    poll: Seconds = 60.0  # longest interval between two looks at a batch
    # on Ray
    replicas: Annotated[int, Expected("at least 0 (as many as fit)", strict=True, ge=0)] = 0
    cpus: Number = 1.0  # of each replica
    gpus: Number = 0.0  # of each replica


class WorkResult(NamedTuple):
    """Calls that were answered together."""

    calls: tuple[Call, ...]
    answers: tuple[CallResult, ...]


class Backend(Protocol):
    """Answers calls: a model in this process, HTTP servers, a batch service, Ray."""

    def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        """Yield every call of the items with its answer; fewer once a stop was requested.

        Items are pulled on the loop's thread, one at a time and a bounded number ahead; iterating
        them again yields the unanswered items. A failed call is an answer with an error. After a
        stop request nothing new begins and calls at servers are awaited; after an interruption
        (``cancel.now``) it ends at once.
        """


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also inside a running loop (notebooks)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def image_name(item: WorkItem) -> str:
    """Name the content of an item's images; empty if there is none, or several."""
    names = {call.image_sha256 for call in item.calls}
    return "+".join(names.pop()) if len(names) == 1 else ""


def batch_of(item: WorkItem) -> Batch:
    """Return an item as plain values."""
    return Batch(
        messages=tuple(call.message for call in item.calls),
        variants=tuple(call.cell.variant for call in item.calls),
        shares_images=item.shares_images,
        logprobs=item.calls[0].cell.logprobs,
        seeds=tuple(seed for call in item.calls if (seed := call.seed) is not None),
    )


def single_calls(items: Iterable[WorkItem]) -> Iterator[WorkItem]:
    """Split items, so that each call can be stored once it is answered."""
    return (WorkItem((call,), item.shares_images) for item in items for call in item.calls)


def answers_of(client: ModelClient, batch: Batch) -> tuple[CallResult, ...]:
    """Return one answer per message; an exception fails them all."""
    count = len(batch.messages)
    try:
        answers = tuple(client.ask(batch))
        if len(answers) == count and all(isinstance(answer, CallResult) for answer in answers):
            return answers
        why = f"not {count} answers to {count} messages"
    except (Exception, SystemExit) as error:
        why = error_line(error)
    return (CallResult("", error=why),) * count


def answers_in_turn(
    client: ModelClient, batch: Batch, is_stopped: Callable[[], bool]
) -> Iterator[tuple[CallResult, ...]]:
    """Yield the answers that a model gives together; fewer after a stop.

    A :class:`.Cancellable` model is stopped while it generates: that costs nothing, and may take
    minutes.
    """
    if isinstance(client, Cancellable):
        client.cancelled_by(is_stopped)
    together = client.answers_together(shares_images=batch.shares_images)
    with suppress(CancelledError):
        for part in [batch] if together else batch.single():
            if is_stopped():
                return
            yield answers_of(client, part)


def not_loaded(item: WorkItem, error: BaseException) -> WorkResult:
    """Return the result that ends the run of a model that cannot be loaded."""
    log.debug("a model cannot be loaded", exc_info=error)
    answer = CallResult("", error=error_line(error), stop=StopReason.NOT_LOADED)
    return WorkResult(item.calls, (answer,) * len(item.calls))


class LocalBackend:
    """One model in this process, loaded with the first item.

    It runs on the thread of the loop, as CUDA's device and torch's grad mode belong to a thread.
    """

    def __init__(self, load: Loader) -> None:
        self._load = cache(load)

    async def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        with suppress(CancelledError):
            for item in items:
                if cancel.requested:
                    return
                try:
                    with cancel.exposed():
                        client = self._load()
                except (Exception, SystemExit) as error:
                    yield not_loaded(item, error)
                    return
                calls = iter(item.calls)
                answered = answers_in_turn(client, batch_of(item), lambda: cancel.requested)
                while True:
                    with cancel.exposed():
                        answers = next(answered, ())
                    if not answers:
                        break
                    yield WorkResult(tuple(islice(calls, len(answers))), answers)
                    await asyncio.sleep(0)  # let other tasks of the loop run


class ThreadedBackend:
    """One model that is safe to call from several threads, such as VLMEvalKit's API models.

    A call that hangs when everything is given up is left in its thread.
    """

    def __init__(self, load: Loader, threads: int) -> None:
        self._load = cache(load)
        self._threads = threads

    async def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        singles = single_calls(items)
        running = dict[asyncio.Task[Any], WorkItem]()
        waiting = asyncio.create_task(asyncio.Event().wait())  # until an interruption
        try:
            with suppress(CancelledError), cancel.ending(waiting):
                while not waiting.done():
                    for item in islice(singles, self._threads - len(running)):
                        if cancel.requested:
                            break
                        try:
                            with cancel.exposed():
                                client = self._load()
                        except (Exception, SystemExit) as error:
                            yield not_loaded(item, error)
                            return
                        task = asyncio.create_task(in_thread(answers_of, client, batch_of(item)))
                        running[task] = item
                    if not running:
                        return
                    tasks = {*running, waiting}
                    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    for task in done - {waiting}:
                        yield WorkResult(running.pop(task).calls, task.result())
        finally:
            for task in (waiting, *running):
                task.cancel()


class LostCallError(RuntimeError):
    """A fault of this program ended a call; all other answers are stored."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(
            f"a fault of this program ended a call: {error_line(error)}. Other answers are "
            "stored: run again to go on, with --verbose for a report of the fault"
        )


class ScheduledRun(ABC, Generic[Result]):
    """The loop around a scheduler: its assignments are tasks, until it is done or cancelled.

    An exception that leaves a task is a fault: nothing more begins then, calls in flight are waited
    for, as they are paid, and a :class:`LostCallError` ends the run.
    """

    def __init__(self, scheduler: Scheduler, cancel: CancelToken) -> None:
        self._scheduler = scheduler
        self._cancel = cancel
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls: set[asyncio.Task[None]] = set()  # of these, those that ask
        self._fault: BaseException | None = None
        self._is_over = False  # tasks are cancelled now

    @abstractmethod
    def _begin(self) -> bool:
        """Begin what may begin; False if only :meth:`_wake` can say when more may."""

    @abstractmethod
    def _result(self, finished: FinishedItem) -> Result | None:
        """Return the result of an item that needs no server any more; None if it has none."""

    async def results(self) -> AsyncGenerator[list[Result], None]:
        """Yield results as they come; at the end running tasks are cancelled and waited for.

        Raises LostCallError, after all results, if a task ended with an exception.
        """
        try:
            with self._cancel.on_request(self._stop):
                while not self._cancel.now:
                    self._woken.clear()
                    may_begin = self._fault is None and self._begin()
                    if finished := self._finished():
                        yield finished
                        continue
                    if self._fault is not None and not self._calls:
                        raise LostCallError(self._fault) from self._fault
                    if self._fault is None and self._scheduler.done:
                        return
                    wake_at = self._scheduler.wake_at(self._loop.time()) if may_begin else None
                    with suppress(TimeoutError):
                        async with asyncio.timeout_at(wake_at):
                            await self._woken.wait()
                if finished := self._finished():
                    yield finished
        finally:
            self._is_over = True
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _finished(self) -> list[Result]:
        finished, self._scheduler.finished = self._scheduler.finished, []
        results = []
        for item in finished:
            try:
                result = self._result(item)
            except Exception as error:
                self._fault = self._fault or error
                continue
            if result is not None:
                results.append(result)
        return results

    def _go(self, coroutine: Coroutine[None, None, None], *, calls: bool) -> None:
        """Run a task; whether it ``calls`` a model, and so is waited for."""
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)  # the loop itself holds tasks weakly
        if calls:
            self._calls.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._calls.discard(task)
        error = asyncio.CancelledError("not by us") if task.cancelled() else task.exception()
        if not self._is_over:
            self._fault = self._fault or error
        self._woken.set()

    def _stop(self) -> None:
        """Take notice, in any thread, that a stop is requested."""
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(self._woken.set)
