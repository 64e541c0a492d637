"""The time of a server, shared by the calls that it answers at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...protocol.replies import CallTime


@dataclass(slots=True)
class TakenTime:
    """What a call took, once it has ended: its seconds, and its share of the server's."""

    seconds: float = 0.0
    share: float = 0.0

    def call_time(self, gpus: int) -> CallTime:
        """Return it as a time, of a server on so many GPUs (0: none, or elsewhere)."""
        gpu_seconds = round(gpus * self.share, 6) if gpus else None
        return CallTime(round(self.seconds, 6), gpu_seconds)


class SharedTime:
    """Shares the time of a server: at each moment, equally among the calls in flight there.

    So the shares of all calls add up to the time in which any was in flight, failed calls too.

    >>> clock = iter([0.0, 2.0, 6.0, 7.0])
    >>> shared = SharedTime(lambda: next(clock))
    >>> with shared.call() as first:  # 0 to 7
    ...     with shared.call() as second:  # 2 to 6
    ...         pass
    >>> first, second
    (TakenTime(seconds=7.0, share=5.0), TakenTime(seconds=4.0, share=2.0))
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._now = 0.0  # when a call began or ended last
        self._in_flight = 0
        self._share = 0.0  # of a call that would have been in flight always

    @contextmanager
    def call(self) -> Iterator[TakenTime]:
        """Count a call as in flight; what it took is known afterwards."""
        self._go_on()
        began, before = self._now, self._share
        self._in_flight += 1
        taken = TakenTime()
        try:
            yield taken
        finally:
            self._go_on()
            self._in_flight -= 1
            taken.seconds = self._now - began
            taken.share = self._share - before

    def _go_on(self) -> None:
        now = self._clock()
        if self._in_flight:
            self._share += (now - self._now) / self._in_flight
        self._now = now
