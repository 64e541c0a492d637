"""Cancelling a run: the first Ctrl-C or SIGTERM waits for calls at servers, the second does not.

Nothing polls: a callback wakes the waiting loop. A local model ends between two tokens. The second
signal raises KeyboardInterrupt, delayed only where replies are being stored.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..protocol.call_results import CancelledError

log = logging.getLogger(__name__)


class CancelToken:
    """Whether a run should stop, and how soon; a token made of ``run`` stops with it."""

    def __init__(self, run: CancelToken | None = None) -> None:
        self._run: CancelToken = self if run is None else run._run
        self._requested = self._now = self._shielded = False
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
    def ending(self, dataset: asyncio.Future[Any], *, early: bool = False) -> Iterator[None]:
        """Cancel a task of this loop on an interruption, or ``early``, when a stop is requested."""
        loop = asyncio.get_running_loop()

        def end() -> None:
            if self.now or early:
                loop.call_soon_threadsafe(dataset.cancel)

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
        before, self._run._shielded = self._run._shielded, shielded
        try:
            yield
        finally:
            self._run._shielded = before


@contextmanager
def cancelled_by_signals(on_first: Callable[[str], None] = log.warning) -> Iterator[CancelToken]:
    """Yield a token that the first Ctrl-C or SIGTERM requests to stop, and the second interrupts.

    ``on_first`` takes a text on the first signal, inside the signal handler.
    """
    cancel = CancelToken()

    def handle(number: int, frame: object) -> None:
        if cancel.requested:
            cancel.interrupt()
        else:
            cancel.request()
            on_first(
                "stopping: answers of servers are awaited and stored, replies being generated\n"
                "here are not (Ctrl-C again: stop at once)"
            )

    # Not handlers of the loop, which would wait while a model blocks the loop.
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {
            number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)
        }
    try:
        yield cancel
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
