"""Look for garbage rarely, where very many objects are made that stay."""

from __future__ import annotations

import gc
from contextlib import ContextDecorator
from threading import Lock

# New objects between two looks for garbage: a few hundred calls, or some thousand boxes
_OBJECTS = 50_000


class _RareCollections(ContextDecorator):
    """Collects garbage rarely, and not in what is there already, while anybody is inside.

    The last one puts the process's thresholds back. Also a decorator of functions.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._usual = gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._usual = gc.get_threshold()
                gc.freeze()
                gc.set_threshold(_OBJECTS, *self._usual[1:])

    def __exit__(self, *stopped: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                gc.set_threshold(*self._usual)
                gc.unfreeze()


RARE_COLLECTIONS = _RareCollections()  # Of this process
