"""Run something again and again while other work goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(action: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call ``action`` in a thread, every so many seconds, until the block ends."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.wait(seconds):
            action()

    thread = threading.Thread(target=repeat, name="repeated", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
