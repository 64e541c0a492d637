"""Which of several servers is asked next.

A server that fails several times in a row is left out for a while, longer each time; then one call
tries it.  Where all are left out, the one that comes back first is asked: leaving out is for calls
that another server can answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .completion import CallError
from .endpoint import Endpoint

IN_A_ROW = 3
"""Failures after which a server is left out."""

FIRST_REST, LONGEST_REST = 15.0, 600.0
"""Seconds for which it is left out: first, and doubled again and again at most."""

_DAY = 86400.0


@dataclass(slots=True, eq=False)
class Server:
    """One server and how it did.

    ``failures`` are counted in a row; ``rests_until`` and ``asked_until`` (what it asked itself)
    are times of the pool's clock; ``turn`` grows whenever it is asked; ``takes`` is the field that
    it takes a limit of tokens in; ``hopeless`` is the error after which it is not asked again.
    """

    endpoint: Endpoint
    takes: str
    turn: int
    in_flight: int = 0
    failures: int = 0
    rests_until: float = 0.0
    asked_until: float | None = None
    hopeless: CallError | None = None

    def back_at(self, now: float) -> float:
        """When it may be asked again: ``now`` or later."""
        until = max(self.rests_until, self.asked_until or 0.0, now)
        # After its rest one call at a time tries it.
        trying = self.failures >= IN_A_ROW and self.in_flight
        return max(until, now + FIRST_REST) if trying else until


class Pool:
    """The servers of one model; any number of threads may share it.

    Raises:
        ValueError: there is no server.
    """

    def __init__(
        self, endpoints: Sequence[Endpoint], clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not endpoints:
            raise ValueError("no server is named")
        self._servers = [Server(one, one.takes, turn) for turn, one in enumerate(endpoints)]
        self._turn = len(endpoints)
        self._clock = clock
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._servers)

    @property
    def hopeless(self) -> CallError | None:
        """Why no server is worth another call; None where one is."""
        with self._lock:
            errors = [server.hopeless for server in self._servers]
        return None if None in errors else errors[-1]

    @contextmanager
    def server(self, tried: Collection[Server]) -> Iterator[Server]:
        """The server for a call that these have failed, held during the attempt.

        Raises:
            CallError: all are hopeless; or what the attempt raises, which is noted.
        """
        server = self._take(tried)
        try:
            yield server
        except CallError as error:
            self._failed(server, error)
            raise
        else:
            with self._lock:
                server.failures, server.asked_until = 0, None
        finally:
            with self._lock:
                server.in_flight -= 1

    def another(self, tried: Collection[Server]) -> bool:
        """Whether a server that has not failed this call may be asked now."""
        now = self._clock()
        with self._lock:
            return any(
                server.back_at(now) <= now for server in self._alive() if server not in tried
            )

    def wait(self) -> float | None:
        """Seconds that the servers themselves ask to wait; None where one asked for none."""
        with self._lock:
            asked = [server.asked_until for server in self._alive()]
        times = [time for time in asked if time is not None]
        if not times or len(times) < len(asked):
            return None
        return max(min(times) - self._clock(), 0.0)

    def _alive(self) -> list[Server]:
        return [server for server in self._servers if server.hopeless is None]

    def _take(self, tried: Collection[Server]) -> Server:
        now = self._clock()
        with self._lock:
            alive = self._alive()
            if not alive:
                last = self._servers[-1].hopeless
                raise CallError(str(last), last.status if last else 0, hopeless=True)
            # All else being equal, the one that was asked longest ago.
            best = min(alive, key=lambda s: (s.back_at(now), s in tried, s.in_flight, s.turn))
            best.in_flight += 1
            self._turn += 1
            best.turn = self._turn
            return best

    def _failed(self, server: Server, error: CallError) -> None:
        now = self._clock()
        with self._lock:
            if error.hopeless:
                server.hopeless = error
            asked = error.retry_after
            server.asked_until = None if asked is None else now + min(asked, _DAY)
            if not error.transient:
                # It works; this one request is what it does not take.
                server.failures = 0
                return
            server.failures += 1
            beyond = min(server.failures - IN_A_ROW, 10)
            if beyond >= 0:
                server.rests_until = now + min(FIRST_REST * 2**beyond, LONGEST_REST)
