"""A limit in US dollars that all who share it keep to.

What an attempt costs is known only after it.  So one begins when, if it and all in flight cost as
much as the dearest one so far, the limit would still hold; until the first cost is known, one goes
alone.  The limit is passed only where an attempt is dearer than every one before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock


class SpendingError(Exception):
    """A call that was not made for the sake of the limit."""


class Budget:
    """What may be spent, and what was; runs in several threads may share it.

    Args:
        limit: in US dollars; infinite: only count.
    """

    def __init__(self, limit: float = math.inf) -> None:
        self.limit = limit
        self.spent = 0.0
        self.refused = 0
        self.committed = 0.0
        self._watchers: list[Callable[[], None]] = []
        self._dearest: float | None = None
        self._in_flight = 0
        self._unknown = False
        self._lock = Lock()

    @property
    def exhausted(self) -> bool:
        """Whether a call was refused."""
        return self.refused > 0

    def begin(self) -> bool:
        """Count an attempt that begins now; False: it has to wait for what others cost.

        Raises:
            SpendingError: it would pass the limit.
        """
        with self._lock:
            fits = self._fits()
            if not fits and self._in_flight == 0:
                self.refused += 1
                raise SpendingError(self._why())
            self._in_flight += fits
            return fits

    def take_back(self) -> None:
        """Count no attempt: none began after all."""
        with self._lock:
            self._in_flight -= 1

    def end(self, cost: float | None) -> None:
        """Count what an attempt turned out to cost (None: nobody says it)."""
        with self._lock:
            self._in_flight -= 1
            self._unknown = self._unknown or cost is None
            if cost:
                self.spent += cost
                self._dearest = max(self._dearest or 0.0, cost)
        if not math.isinf(self.limit):
            for watcher in list(self._watchers):
                watcher()

    @contextmanager
    def watched_by(self, watcher: Callable[[], None]) -> Iterator[None]:
        """Call back, in any thread, when an attempt has ended: another may begin."""
        self._watchers.append(watcher)
        try:
            yield
        finally:
            self._watchers.remove(watcher)

    @property
    def dearest(self) -> float:
        """US dollars of the dearest call so far; 0 before the first."""
        return self._dearest or 0.0

    def commit(self, at_most: float | None) -> None:
        """Spend what a whole batch costs at most (None: not known), or refuse it.

        Raises:
            SpendingError: it could pass the limit, and nothing of it may be sent.
        """
        with self._lock:
            if math.isinf(self.limit):
                return
            if at_most is None:
                self.refused += 1
                raise SpendingError("what a batch costs is not known beforehand: no limit")
            if self.committed + at_most > self.limit * (1 + 1e-9):
                self.refused += 1
                raise SpendingError(
                    f"a batch that costs up to ${at_most:.4f} could pass the limit of "
                    f"${self.limit:g} (${self.committed:.4f} may be spent by others)"
                )
            self.committed += at_most

    def _fits(self) -> bool:
        if math.isinf(self.limit):
            return True
        if self._unknown:
            return False
        if self._dearest is None:
            return self._in_flight == 0 and self.limit > 0
        # Costs are decimal fractions: a sum of them may be a hair too large.
        return self.spent + (self._in_flight + 1) * self._dearest <= self.limit * (1 + 1e-9)

    def _why(self) -> str:
        if self._unknown:
            return "the service does not say what calls cost, so no limit can be kept"
        return f"the next call could pass the limit of ${self.limit:g} (${self.spent:.4f} spent)"
