"""Which of several servers is asked next.

All calls over a picture go to one server (:mod:`...core.routing`), so that what it keeps of the
picture is there; each server has its own limit of calls at a time (:mod:`.limits`), and a call
waits for room where no other server has much of it.

A server that fails several times in a row is left out for a while, longer each time; then one call
tries it.  Where all are left out, the one that comes back first is asked: leaving out is for calls
that another server can answer.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from ...core.routing import Place, home, spill
from .completion import REFUSED, CallError
from .endpoint import Endpoint
from .holding import Holding
from .limits import BUSY, Limit
from .refusals import Refusals

IN_A_ROW = 3
"""Failures after which a server is left out."""

FIRST_REST, LONGEST_REST = 15.0, 600.0
"""Seconds for which it is left out: first, and doubled again and again at most."""

_DAY = 86400.0

_LOOK_UP = 0.1
"""Seconds after which a call that waits for room looks whether the run is to stop."""


class Caller(NamedTuple):
    """Who asks: the call, the same over its attempts, and what kind it is of.

    Whether one kind is answered says nothing of the other.
    """

    call: Hashable = None
    kind: str = ""


_NOBODY = Caller()


@dataclass(slots=True, eq=False)
class Server:
    """One server and how it did.

    ``failures`` are counted in a row; ``rests_until`` and ``asked_until`` (what it asked itself)
    are times of the pool's clock; ``turn`` grows whenever it is asked; ``takes`` is the field that
    it takes a limit of tokens in; ``hopeless`` is the error after which it is not asked again;
    ``refusals`` are those of :data:`.completion.REFUSED` in a row, the last ``refused_at``;
    ``alike`` are those of its first calls by the kind of them, ``holding`` whether it holds replies
    to a format; ``name`` is its own among the servers of its pool.
    """

    endpoint: Endpoint
    takes: str
    turn: int
    name: str
    limit: Limit = field(default_factory=Limit)
    in_flight: int = 0
    failures: int = 0
    rests_until: float = 0.0
    asked_at: float = 0.0
    asked_until: float | None = None
    hopeless: CallError | None = None
    refusals: int = 0
    refused_at: float = -math.inf
    alike: defaultdict[str, Refusals] = field(default_factory=lambda: defaultdict(Refusals))
    holding: Holding = field(default_factory=Holding)

    @property
    def is_full(self) -> bool:
        return self.in_flight >= self.limit.at_once

    def place(self, now: float) -> Place:
        """As whoever orders calls sees it."""
        limit = 1.0 if self.failures >= IN_A_ROW else self.limit.at_once
        return Place(self.name, limit, self.back_at(now) <= now)

    def back_at(self, now: float) -> float:
        """When it may be asked again: ``now`` or later."""
        until = max(self.rests_until, self.asked_until or 0.0, now)
        # After its rest one call at a time tries it.
        trying = self.failures >= IN_A_ROW and self.in_flight
        return max(until, now + FIRST_REST) if trying else until


class Pool:
    """The servers of one model; any number of threads may share it.

    Args:
        endpoints: where they are.
        clock: in seconds.
        stopping: whether nobody should wait for room any more.

    Raises:
        ValueError: there is no server.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        clock: Callable[[], float] = time.monotonic,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        if not endpoints:
            raise ValueError("no server is named")
        self._servers = [
            Server(one, one.takes, turn, name)
            for turn, (one, name) in enumerate(zip(endpoints, _names(endpoints), strict=True))
        ]
        self._turn = len(endpoints)
        self._clock = clock
        self._stopping = stopping
        self._lock = threading.Condition()

    def __len__(self) -> int:
        return len(self._servers)

    def expect(self, calls: int) -> None:
        """So many calls will come at a time: each server takes its share at most."""
        with self._lock:
            for server in self._servers:
                server.limit.ceiling = max(math.ceil(calls / len(self._servers)), 1)

    def places(self) -> list[Place]:
        """The servers that are worth a call; where none is, all."""
        now = self._clock()
        with self._lock:
            return [server.place(now) for server in self._alive() or self._servers]

    @property
    def took(self) -> Mapping[str, int]:
        """By the names of servers that answered, how many calls at once each takes."""
        with self._lock:
            return {one.name: one.limit.took for one in self._servers if one.limit.took}

    @property
    def hopeless(self) -> CallError | None:
        """Why no server is worth another call; None where one is."""
        with self._lock:
            errors = [server.hopeless for server in self._servers]
        return None if None in errors else errors[-1]

    @contextmanager
    def server(
        self,
        tried: Collection[Server],
        picture: str = "",
        place: str = "",
        caller: Caller = _NOBODY,
    ) -> Iterator[Server]:
        """The server for a call that these have failed, held during the attempt.

        Args:
            tried: servers that failed this call.
            picture: a name of the content of its images (empty: it has none).
            place: the name of the server that should answer, if it can (empty: the picture's).
            caller: whose the attempt is.

        Raises:
            CallError: all are hopeless, or the run is to stop and none has room; or what the
                attempt raises, which is noted.
        """
        server = self._take(tried, picture, place)
        began = self._clock()
        try:
            yield server
        except CallError as error:
            self._failed(server, error, began, caller)
            raise
        else:
            self._answered(server, began, caller)
        finally:
            with self._lock:
                server.in_flight -= 1
                self._lock.notify_all()

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

    def _take(self, tried: Collection[Server], picture: str, place: str) -> Server:
        with self._lock:
            while (server := self._next(tried, picture, place)) is None:
                if self._stopping():
                    raise CallError("not asked: the run is to stop")
                self._lock.wait(_LOOK_UP)
            server.in_flight += 1
            self._turn += 1
            server.turn = self._turn
            return server

    def _next(self, tried: Collection[Server], picture: str, place: str) -> Server | None:
        """The server for a call; None where it has to wait for room."""
        now, alive = self._clock(), self._alive()
        if not alive:
            last = self._servers[-1].hopeless
            assert last is not None
            raise last.of_another()
        ready = [one for one in alive if one.back_at(now) <= now and one not in tried]
        meant = next((one for one in ready if one.name == place and not one.is_full), None)
        if meant is not None:
            return meant
        if picture and ready:
            places = [one.place(now) for one in ready]
            busy = Counter({one.name: one.in_flight for one in ready})
            found = home(picture, places, busy) or spill(picture, places, busy)
            return next((one for one in ready if found and one.name == found.name), None)

        def order(one: Server) -> tuple[float, bool, bool, int, int]:
            # All else being equal, the one that was asked longest ago.
            return one.back_at(now), one in tried, one.is_full, one.in_flight, one.turn

        best = min(alive, key=order)
        return None if best.is_full else best

    def _answered(self, server: Server, began: float, caller: Caller) -> None:
        now = self._clock()
        with self._lock:
            server.alike[caller.kind].answer()
            server.failures = server.refusals = 0
            server.limit.answered(now - began, server.in_flight)
            if began >= server.asked_at:
                server.asked_until = None

    def _failed(self, server: Server, error: CallError, began: float, caller: Caller) -> None:
        now = self._clock()
        with self._lock:
            server.alike[caller.kind].add(error, caller.call, began, now)
            if error.hopeless and self._was_last_refusal(server, error, began):
                server.hopeless = error
            asked = error.retry_after
            server.asked_at = now
            server.asked_until = None if asked is None else now + min(asked, _DAY)
            if not error.transient:
                # It works; this one request is what it does not take.
                server.failures = 0
                return
            if error.status in BUSY:
                server.limit.refused(began, now, server.in_flight)
            if error.status == _TOO_MANY and server.in_flight > 1:
                # It works, and has enough to do.
                return
            server.failures += 1
            beyond = min(server.failures - IN_A_ROW, 10)
            if beyond >= 0:
                server.rests_until = now + min(FIRST_REST * 2**beyond, LONGEST_REST)

    def _was_last_refusal(self, server: Server, error: CallError, began: float) -> bool:
        """Whether a server is not worth another call: a gateway may refuse for a moment only.

        Calls that were on their way together are refused together: they count once.
        """
        if error.status not in REFUSED:
            return True
        if began >= server.refused_at:
            server.refusals += 1
            server.refused_at = self._clock()
        return server.refusals >= IN_A_ROW


_TOO_MANY = 429


def _names(endpoints: Sequence[Endpoint]) -> list[str]:
    """A name for each, and the same ones whoever lists them in whatever order."""
    seen: Counter[str] = Counter()
    names = []
    for endpoint in endpoints:
        seen[endpoint.name] += 1
        count = seen[endpoint.name]
        names.append(endpoint.name if count == 1 else f"{endpoint.name} ({count})")
    return names
