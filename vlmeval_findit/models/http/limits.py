"""How many calls at a time a server takes: found out by asking.

Additive increase, multiplicative decrease (Chiu and Jain, 1989), as TCP shares a line.  What a
server refuses because it is busy halves the number; each round of answers adds one while they come
as fast as before, and slower where it was too much the last time.  Where they take twice as long,
one is given back a round, down to half of the ceiling: that much may also be the pictures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

BUSY = frozenset({429, 503, 529})
"""Statuses that mean too much at once (529 is Anthropic's)."""

LATE, JITTER = 2.0, 0.5
"""How many times as long as usual is late, and seconds that say nothing."""

_NEAR = 1 / 8
"""How fast it grows, of as usual, where the next step is the number that was refused last."""

_DRIFT = 0.05
"""By how much of it the usual time follows a slower one in a round of answers."""


@dataclass(slots=True)
class Limit:
    """The limit of one server; whoever holds it keeps others out.

    ``ceiling`` is never passed; ``most`` is the largest number on their way when one was answered.
    """

    ceiling: float = math.inf
    most: int = 0
    _found: float = math.inf
    _cut_at: float = -math.inf
    _too_many: float = math.inf
    _recent: float | None = None
    _usual: float = math.inf

    @property
    def at_once(self) -> float:
        """Calls that may be on their way: a whole number, at least 1, or infinity."""
        limit = min(self._found, self.ceiling)
        return limit if math.isinf(limit) else max(math.floor(limit), 1)

    @property
    def took(self) -> int:
        """How many the server takes at once, as far as it was tried; 0: it answered nothing."""
        return int(min(self.at_once, self.most))

    def answered(self, seconds: float, in_flight: int) -> None:
        """An answer came after so long, with so many calls on their way, this one among them."""
        self.most = max(self.most, in_flight)
        share = 1 / min(self.at_once, max(in_flight, 1))
        before = seconds if self._recent is None else self._recent
        self._recent = before + (seconds - before) * share
        self._usual = min(self._usual * (1 + _DRIFT * share), self._recent)
        now = min(self._found, self.ceiling)
        if self._recent > LATE * self._usual + JITTER:
            if math.isfinite(self.ceiling):
                self._found = max(now - share, min(now, self.ceiling / 2))
        elif math.isfinite(self._found) and 2 * in_flight >= self.at_once:
            near = self._too_many - 1 <= now < self._too_many
            self._found = min(now + share * (_NEAR if near else 1), max(self.ceiling, 1.0))

    def refused(self, began: float, now: float, in_flight: int) -> None:
        """The server had too much with so many on their way; times are of one clock.

        What was sent before the last cut says nothing of it.
        """
        if began >= self._cut_at:
            self._too_many = max(min(self.at_once, in_flight), 2.0)
            self._found = max(self._too_many / 2, 1.0)
            self._cut_at = now
