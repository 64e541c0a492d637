"""The loop around a scheduler: its assignments are tasks, until it is done or cancelled."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Coroutine
from contextlib import suppress
from typing import Generic, TypeVar

from .cancel import CancelToken
from .scheduler import FinishedItem, Scheduler

Result = TypeVar("Result")


class ScheduledRun(ABC, Generic[Result]):
    """Runs what a scheduler assigns in the running event loop."""

    def __init__(self, scheduler: Scheduler, cancel: CancelToken) -> None:
        self._scheduler = scheduler
        self._cancel = cancel
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    def _begin(self) -> bool:
        """Begin what may begin; False if only :meth:`_wake` can say when more may."""

    @abstractmethod
    def _result(self, finished: FinishedItem) -> Result | None:
        """Return the result of an item that needs no server any more; None if it has none."""

    async def results(self) -> AsyncGenerator[list[Result], None]:
        """Yield results as they come; at the end running tasks are cancelled and waited for."""
        try:
            with self._cancel.on_request(self._stop):
                while not self._cancel.now:
                    self._woken.clear()
                    may_begin = self._begin()
                    if home := self._finished():
                        yield home
                    elif self._scheduler.done:
                        return
                    else:
                        now = self._loop.time()
                        wake_at = self._scheduler.wake_at(now) if may_begin else None
                        with suppress(TimeoutError):
                            async with asyncio.timeout_at(wake_at):
                                await self._woken.wait()
                if home := self._finished():
                    yield home
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _finished(self) -> list[Result]:
        finished, self._scheduler.finished = self._scheduler.finished, []
        return [result for item in finished if (result := self._result(item)) is not None]

    def _go(self, coroutine: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)  # the loop itself holds tasks weakly
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._woken.set()

    def _stop(self) -> None:
        """Take notice, in any thread, that a stop is requested."""
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(self._woken.set)
