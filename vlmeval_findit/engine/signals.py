"""Stop on Ctrl-C and SIGTERM."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .backend import CancelToken

log = logging.getLogger(__name__)


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
                "stopping: waits for calls that servers are answering, and stores their answers;\n"
                "a model here stops amid its reply (Ctrl-C again: stop at once)"
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
