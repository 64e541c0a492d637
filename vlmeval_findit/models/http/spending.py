"""A limit in US dollars that several threads keep to.

What a call costs is known only after it.  So a call begins when, if it and all calls in flight cost
as much as the dearest one so far, the limit would still hold; until the first cost is known, one
call runs alone.  The limit is passed only where a call is dearer than every one before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class SpendingError(Exception):
    """A call that was not made for the sake of the limit."""


class Charge:
    """What one call turned out to cost, in US dollars; None: the service did not say it."""

    cost: float | None = 0.0


class Budget:
    """What may be spent, and what was.

    Args:
        limit: in US dollars; infinite: only count.
    """

    def __init__(self, limit: float = math.inf) -> None:
        self.limit = limit
        self.spent = 0.0
        self.refused = 0
        self.committed = 0.0
        self._dearest: float | None = None
        self._in_flight = 0
        self._unknown = False
        self._changed = Condition()

    @property
    def exhausted(self) -> bool:
        """Whether a call was refused."""
        return self.refused > 0

    @contextmanager
    def call(self) -> Iterator[Charge]:
        """Around one call: waits until it may begin; set the charge's ``cost`` inside.

        Raises:
            SpendingError: the call would pass the limit.
        """
        self._begin()
        charge = Charge()
        try:
            yield charge
        finally:
            self._end(charge.cost)

    @property
    def dearest(self) -> float:
        """US dollars of the dearest call so far; 0 before the first."""
        return self._dearest or 0.0

    def commit(self, at_most: float | None) -> None:
        """Spend what a whole batch costs at most (None: not known), or refuse it.

        Raises:
            SpendingError: it could pass the limit, and nothing of it may be sent.
        """
        with self._changed:
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

    def _begin(self) -> None:
        with self._changed:
            while not self._fits():
                if self._in_flight == 0:
                    self.refused += 1
                    raise SpendingError(self._why())
                self._changed.wait()
            self._in_flight += 1

    def _fits(self) -> bool:
        if math.isinf(self.limit):
            return True
        if self._unknown:
            return False
        if self._dearest is None:
            return self._in_flight == 0 and self.limit > 0
        # Costs are decimal fractions: a sum of them may be a hair too large.
        return self.spent + (self._in_flight + 1) * self._dearest <= self.limit * (1 + 1e-9)

    def _end(self, cost: float | None) -> None:
        with self._changed:
            self._in_flight -= 1
            self._unknown = self._unknown or cost is None
            if cost:
                self.spent += cost
                self._dearest = max(self._dearest or 0.0, cost)
            self._changed.notify_all()

    def _why(self) -> str:
        if self._unknown:
            return "the service does not say what calls cost, so no limit can be kept"
        return f"the next call could pass the limit of ${self.limit:g} (${self.spent:.4f} spent)"
