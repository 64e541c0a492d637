"""How a run is stopped: Ctrl-C or SIGTERM once, and what is on its way from servers still comes
home; twice, and that is given up too.  A model on this machine ends between two tokens.

Whoever makes calls asks a :class:`Stopping` before each.  The second signal is a KeyboardInterrupt
in the main thread, which a model that works there cannot hold up.  Who has replies to bring home
first says so (:meth:`Stopping.shielded`), is woken instead, and is interrupted when it is done.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

log = logging.getLogger(__name__)


class Stopping:
    """Whether a run should stop, and how soon.

    Args:
        above: a run that this one is part of, and stops with.
    """

    def __init__(self, above: Stopping | None = None) -> None:
        self._above = above
        self._asked = False
        self._now = False
        self._wake: list[Callable[[], None]] = []

    def set(self) -> None:
        """Begin no further call."""
        self._asked = True

    def is_set(self) -> bool:
        """Whether no further call should begin."""
        return self._asked or (self._above is not None and self._above.is_set())

    @property
    def now(self) -> bool:
        """Whether calls on their way should be given up too."""
        return self._now if self._above is None else self._above.now

    def interrupt(self) -> None:
        """Give up what is on its way; a signal handler calls this.

        Raises:
            KeyboardInterrupt: nobody is shielded from it.
        """
        self._asked = self._now = True
        if not self._wake:
            raise KeyboardInterrupt
        for wake in self._wake:
            wake()

    @contextmanager
    def shielded(self, wake: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Let an interruption wait until this is done.

        Args:
            wake: called from a signal handler, so it must neither wait nor take a lock.

        Raises:
            KeyboardInterrupt: there was one meanwhile, and nobody further out is shielded.
        """
        if self._above is not None:
            with self._above.shielded(wake):
                yield
            return
        self._wake.append(wake)
        try:
            yield
        finally:
            self._wake.remove(wake)
        if self._now and not self._wake:
            raise KeyboardInterrupt


@contextmanager
def stopped_by_signals(told: Callable[[str], None] = log.warning) -> Iterator[Stopping]:
    """What Ctrl-C and SIGTERM set, the first time, and interrupt, the second.

    Args:
        told: takes one line when the first signal comes; it is called from the signal's handler.
    """
    stopping = Stopping()

    def handle(number: int, frame: object) -> None:
        if stopping.is_set():
            stopping.interrupt()
        else:
            stopping.set()
            told(
                "stopping; calls on their way to servers are still kept, what is being generated "
                "here is not (again: stop at once)"
            )

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {
            number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)
        }
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
