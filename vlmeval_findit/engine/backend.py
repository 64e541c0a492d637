"""What a backend is: it answers calls until it is cancelled.

A backend pulls few items ahead and finishes begun items, so a sweep can stop at any point
without losing a paid reply. Exceptions become failed answers.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple, Protocol, TypeVar

from ..core import Config, Count, Expected, Number, Seconds, error_line
from ..protocol import CallResult, CancelledError, ModelClient, StopReason
from .calls import Call
from .plan import WorkItem
from .retry_scheduler import FinishedItem, Scheduler

log = logging.getLogger(__name__)

T = TypeVar("T")
Result = TypeVar("Result")

# Loads a model. Must be picklable: another process may call it.
Loader = Callable[[], ModelClient]


@dataclass(frozen=True, slots=True)
class CallOptions(Config):
    """Options of calls; no answer depends on them."""

    threads: Count = 8  # concurrent calls to an API, or to each endpoint
    timeout: Seconds = 600.0  # per attempt
    # Most queries that a model here answers at once, if it states none; None: the machine decides
    batch_size: Count | None = None
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


def not_loaded(item: WorkItem, error: BaseException) -> WorkResult:
    """Return the result that ends the run of a model that cannot be loaded."""
    log.debug("a model cannot be loaded", exc_info=error)
    answer = CallResult("", error=error_line(error), stop=StopReason.NOT_LOADED)
    return WorkResult(item.calls, (answer,) * len(item.calls))


# --- cancelling -----------------------------------------------------------------------------------


class CancelToken:
    """Whether a run should stop, and how soon; a token made of ``run`` stops with it."""

    def __init__(self, run: CancelToken | None = None) -> None:
        self._run: CancelToken = self if run is None else run._run
        self._requested = False
        self._now = False
        self._shielded = False
        self._callbacks: list[Callable[[], None]] = []

    @property
    def requested(self) -> bool:
        return self._requested or self._run._requested

    @property
    def now(self) -> bool:
        """Whether calls in flight should be given up too."""
        return self._run._now

    def request(self) -> None:
        self._requested = True
        for callback in list(self._callbacks):
            callback()

    def interrupt(self) -> None:
        """Give up calls in flight in the whole run; raise KeyboardInterrupt if not shielded."""
        self._run._now = True
        self._run.request()
        if not self._run._shielded:
            raise KeyboardInterrupt

    @contextmanager
    def on_request(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call back when a stop is requested, and again on an interruption.

        ``callback`` is called at once if a stop was already requested, else perhaps from a signal
        handler or another thread: use ``loop.call_soon_threadsafe(event.set)`` or the like.
        """
        tokens = {self, self._run}
        for token in tokens:
            token._callbacks.append(callback)
        try:
            if self.requested:
                callback()
            yield
        finally:
            for token in tokens:
                token._callbacks.remove(callback)

    @contextmanager
    def ending(self, task: asyncio.Future[Any], *, early: bool = False) -> Iterator[None]:
        """Cancel a task of this loop on an interruption, or ``early``, when a stop is requested."""
        loop = asyncio.get_running_loop()

        def end() -> None:
            if self.now or early:
                loop.call_soon_threadsafe(task.cancel)

        with self.on_request(end):
            yield

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Delay an interruption, with its KeyboardInterrupt, until this is done."""
        with self._shield(True):
            yield
        if self.now and not self._run._shielded:
            raise KeyboardInterrupt

    @contextmanager
    def exposed(self) -> Iterator[None]:
        """Let an interruption through, inside a shield, as CancelledError."""
        try:
            with self._shield(False):
                if self.now:
                    raise CancelledError
                yield
        except KeyboardInterrupt:
            if self.now:
                raise CancelledError from None
            raise

    @contextmanager
    def _shield(self, shielded: bool) -> Iterator[None]:
        before = self._run._shielded
        self._run._shielded = shielded
        try:
            yield
        finally:
            self._run._shielded = before


# --- the loop around a scheduler ------------------------------------------------------------------


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
        finished = self._scheduler.finished
        self._scheduler.finished = []
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
