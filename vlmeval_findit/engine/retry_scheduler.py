"""Decides which item goes to which server next; has no clock, threads or network.

All items over an image go to one server (rendezvous hashing) for its prefix cache: the first alone,
then its siblings. Idle and healthy servers take items from busy and failing ones.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import count, groupby, islice
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from .server_state import (
    LONGEST_WAIT,
    CallOutcome,
    ImageGroup,
    QueuedItem,
    ServerPolicy,
    ServerState,
)

_AHEAD = 8  # rounds of items, over all limits, to pull ahead for an image of a server
_REFUSALS_HERE = 3  # refusals of an item after which another server is tried
_LARGEST_GROUP = 512  # items over one image handled together; larger groups are split


class Assignment(NamedTuple):
    """An item that goes to a server now."""

    item: QueuedItem
    server: ServerState
    group: ImageGroup | None  # siblings that wait for it
    began: float

    @property
    def first(self) -> bool:
        return self.group is not None


class _Waiting(NamedTuple):
    """An item that goes to a server again, in the order of time."""

    at: float
    number: int  # different for all, so that comparing ends here
    item: QueuedItem
    server: ServerState


class FinishedItem(NamedTuple):
    """An item that needs no server any more; ``reason`` says why it has no answer."""

    item: QueuedItem
    outcome: CallOutcome
    reason: str


class Scheduler:
    """Assigns items to servers.

    Call :meth:`next` until it returns None, report each outcome (:meth:`ended`), take
    :attr:`finished`, and come back at :meth:`wake_at`.

    Args:
        items: content hash of the images, and value; pulled as needed, best ordered by image.
        servers: the most calls that each takes at a time.
    """

    def __init__(
        self,
        items: Iterator[tuple[str, Any]],
        servers: Mapping[str, int],
        policy: ServerPolicy | None = None,
        seed: int | None = None,
    ) -> None:
        self.policy = policy or ServerPolicy()
        self.servers: dict[str, ServerState] = {}
        self.finished: list[FinishedItem] = []
        self.in_flight = 0
        self.given_up = ""  # why nothing more begins
        self.servers_may_come = False  # wait even if no server is left
        self._groups_left = _groups(items)
        self._next = next(self._groups_left, None)
        self._random = random.Random(seed)
        self._number = count()
        self._turn = 0
        self._waiting: list[_Waiting] = []
        self._homeless: list[ImageGroup] = []
        self._siblings = 0.0  # running mean of an image's later items
        self._outcome = CallOutcome.FAILED  # of waiting items after giving up
        for name, limit in servers.items():
            self.add_server(name, limit)

    def add_server(self, name: str, limit: int, endpoint: Any = None) -> None:
        """Send items to another server; assignments have its ``endpoint``."""
        self.servers[name] = ServerState(name, max(limit, 1), self.policy, endpoint)
        homeless = self._homeless
        self._homeless = []
        self._place(homeless)

    def remove_server(self, name: str, now: float, reason: str = "it was removed") -> None:
        """Send a server nothing more; calls in flight may still finish."""
        server = self.servers.pop(name)
        server.lost = server.lost or reason
        self._move_all(server)
        self._end_if_lost(now)

    @property
    def capacity(self) -> dict[str, int]:
        return {s.name: s.capacity for s in self.servers.values() if s.capacity}

    def _ranked(self, image: str, without: ServerState | None = None) -> list[ServerState]:
        """Order the servers that are up, or else all, for an image."""
        alive = [s for s in self.servers.values() if not s.lost and s is not without]
        candidates = [s for s in alive if s.is_up] or alive
        if not image:
            return sorted(candidates, key=lambda s: (s.in_flight + s.waiting) / s.at_once)
        return sorted(candidates, key=lambda s: _weight(s.name, image), reverse=True)

    def _place(self, groups: Iterable[ImageGroup]) -> None:
        for group in groups:
            if ranked := self._ranked(group.image):
                ranked[0].new.add(group)
            else:
                self._homeless.append(group)

    def _move_all(self, server: ServerState) -> None:
        if server.lost or any(s.is_up for s in self.servers.values() if s is not server):
            self._place(server.release_all())

    def _end_if_lost(self, now: float) -> None:
        if self.servers_may_come or self.given_up:
            return
        if all(server.is_given_up(now) for server in self.servers.values()):
            reasons = [s.lost or s.reason for s in self.servers.values()]
            self.give_up(next(filter(None, reasons), "no server is left"), CallOutcome.HOPELESS)

    def next(self, now: float) -> Assignment | None:
        """Begin an item; None if none may begin before another ends or :meth:`wake_at`."""
        while self._waiting and self._waiting[0].at <= now:
            waiting = heapq.heappop(self._waiting)
            if waiting.server.is_up:
                waiting.server.again.append(waiting.item)
            else:
                self._place([ImageGroup(waiting.item.image, deque([waiting.item]))])
        free = [server for server in self.servers.values() if server.has_room(now)]
        if not free:
            self._end_if_lost(now)
            return None
        slow = self._too_slow(now)
        self._turn += 1  # round robin
        turn = self._turn % len(free)
        free = [server for server in free[turn:] + free[:turn] if server not in slow]
        for server in free:
            begun = self._begin(server, slow, now)
            if begun is not None:
                return self._assignment(server, *begun, now)
        for server in free:
            moved = self._take_over(server, slow, now)
            if moved and (begun := self._begin(server, slow, now)) is not None:
                return self._assignment(server, *begun, now)
        return None

    def _assignment(
        self, server: ServerState, item: QueuedItem, group: ImageGroup | None, now: float
    ) -> Assignment:
        if not server.in_flight:
            server.silent_since = now
        server.in_flight += 1
        server.firsts += group is not None
        self.in_flight += 1
        return Assignment(item, server, group, now)

    def _begin(
        self, server: ServerState, slow: set[ServerState], now: float
    ) -> tuple[QueuedItem, ImageGroup | None] | None:
        wants_image = server.wants_image(self._siblings)
        if wants_image and not server.new:
            self._pull_ahead(server)
            if not server.new and not server.on_trial:
                self._adopt_image(server, slow, now)
        if server.again:
            return server.again.popleft(), None
        if wants_image and server.new:
            return server.begin_image()
        return (server.next_ready(), None) if server.ready else None

    def _pull_ahead(self, server: ServerState) -> None:
        """Pull items until this server has a new image, or too many wait for others."""
        servers = self.servers.values()
        room = _AHEAD * sum(s.at_once for s in servers) - sum(s.new.items_left for s in servers)
        while (group := self._next) is not None and room > 0 and not server.new:
            room -= len(group.items)
            self._siblings += (len(group.items) - 1 - self._siblings) / 16
            self._place([group])
            self._next = next(self._groups_left, None)

    def _adopt_image(self, server: ServerState, slow: set[ServerState], now: float) -> None:
        """Take a new image from the server with the longest queue, if that is behind."""
        other = max(self.servers.values(), key=lambda s: s.new.items_left)
        is_behind = (
            other.new.items_left > 2 * other.at_once
            or other in slow
            or not other.has_room(now)
            or not other.wants_image(self._siblings)
        )
        if is_behind and other.new:
            server.new.add(other.new.take(last=True))

    def _take_over(self, server: ServerState, slow: set[ServerState], now: float) -> bool:
        """Take items that another server cannot do, or does late; False if there were none."""
        others = [s for s in self.servers.values() if s is not server and s.waiting]
        if not others:
            return False
        if server.on_trial:  # one item tests it
            other = max(others, key=attrgetter("waiting"))
            if other.again:
                server.again.append(other.again.pop())
            elif other.new:
                server.again += other.new.take_part(1).items
            return bool(server.again)
        other = max(others, key=lambda s: s.seconds_left(now))
        is_out = not other.is_up or other in slow
        if is_out and other.again and server.name not in other.again[-1].failed_at:
            server.again.append(other.again.pop())
            return True
        # The image has to be read again, which must be worth it.
        reading = 2 * (server.first_seconds or other.first_seconds)
        has_new = any(s.new for s in self.servers.values())
        is_late = not has_new and 0 < reading < other.seconds_left(now)
        most = other.begun if is_out else (other.begun - server.begun) // 2
        if most < 1 or not (is_out or is_late):
            return False
        server.new.add((other.reading or other.ready).take_part(most))
        return True

    def _too_slow(self, now: float) -> set[ServerState]:
        """Near the end, return servers slower than the fast ones would need for everything."""
        if self._next is not None or not self.in_flight:
            return set()
        seconds = {s: s.seconds_by(now) for s in self.servers.values()}
        known = [s for s in seconds if s.seconds and s.is_up]
        fastest = min((seconds[s] for s in known), default=0.0)
        fast = [s for s in known if seconds[s] <= 2 * fastest]
        if not fast or len(fast) == len(seconds):
            return set()
        rate = sum(s.at_once / seconds[s] for s in fast)
        left = sum(s.waiting for s in self.servers.values()) / rate
        left += max(s.first_seconds for s in fast)
        others = seconds.keys() - fast
        return {s for s in others if not s.on_trial and seconds[s] > 2 * left}

    def ended(
        self,
        assignment: Assignment,
        outcome: CallOutcome,
        now: float,
        reason: str = "",
        *,
        retry_after: float | None = None,
        remaining: Any = None,
        unreached: bool = False,
    ) -> None:
        """Record the outcome of an item.

        The server asks to wait ``retry_after`` seconds with it; ``remaining`` is its new value if a
        part was answered; ``unreached``: no connection to the server could be made.
        """
        item = assignment.item
        server = assignment.server
        was_on_trial = server.on_trial
        if remaining is not None:
            item.value = remaining
        if outcome is not CallOutcome.ANSWERED:
            item.reason = server.reason = reason
        self.in_flight -= 1
        server.take_back(assignment.group, now, answered=outcome is CallOutcome.ANSWERED)
        self._tell_server(assignment, outcome, now, reason, retry_after, unreached)
        if server.is_given_up(now):
            self._end_if_lost(now)

        if outcome in (CallOutcome.ANSWERED, CallOutcome.INVALID):
            self.finished.append(FinishedItem(item, outcome, reason))
            return
        if self.given_up:
            self._finish(item, self._outcome)
            return
        # What a server refuses as too much, or fails while it is down, is not the item's fault.
        if outcome is CallOutcome.REFUSED or was_on_trial or server.lost:
            item.refusals += 1
            tries = item.refusals
            most = self.policy.refusals
        else:
            item.attempts += 1
            tries = item.attempts
            most = max(self.policy.attempts, len(self.servers))
        self._note_failed_at(item, server, outcome, retry_after)
        if tries >= most or self._is_hopeless(item, server, outcome, retry_after):
            self._finish(item, outcome)
        else:
            self._put_back(item, server, now, self._wait(tries, retry_after))

    def _tell_server(
        self,
        assignment: Assignment,
        outcome: CallOutcome,
        now: float,
        reason: str,
        retry_after: float | None,
        unreached: bool,
    ) -> None:
        """Adapt a server's limit and breaker to an outcome; move its items if it goes down."""
        server = assignment.server
        began = assignment.began
        match outcome:
            case CallOutcome.ANSWERED:
                server.answered(began, now, first=assignment.first)
            case CallOutcome.INVALID:
                server.works(began)
            case CallOutcome.REFUSED:
                server.refused(began, now, retry_after)
            case CallOutcome.FAILED:
                jitter = self._random.uniform(0.8, 1.2)
                if server.failed(began, now, jitter, unreached=unreached):
                    self._move_all(server)
            case CallOutcome.DENIED | CallOutcome.HOPELESS:
                if outcome is CallOutcome.HOPELESS or server.denied(began, now):
                    server.lost = server.lost or reason or outcome.value
                    self._move_all(server)

    def _note_failed_at(
        self,
        item: QueuedItem,
        server: ServerState,
        outcome: CallOutcome,
        retry_after: float | None,
    ) -> None:
        """Note that another server should try an item next.

        A server that only has too much to do gets a few more chances.
        """
        is_busy = outcome is CallOutcome.REFUSED and server.is_up and not _is_too_long(retry_after)
        if not (is_busy and item.refusals < _REFUSALS_HERE):
            item.failed_at.add(server.name)

    def _is_hopeless(
        self,
        item: QueuedItem,
        server: ServerState,
        outcome: CallOutcome,
        retry_after: float | None,
    ) -> bool:
        """Return whether this server will not answer an item soon, and no other is left to try."""
        ends_here = outcome in (CallOutcome.DENIED, CallOutcome.HOPELESS)
        return (ends_here or _is_too_long(retry_after)) and not self._untried(item, server)

    def _put_back(self, item: QueuedItem, server: ServerState, now: float, wait: float) -> None:
        """Have an item asked again after a wait, where it has not failed yet."""
        next_server = server
        if server.name in item.failed_at:
            untried = self._untried(item, server)
            if untried:
                next_server = untried[0]
                if next_server.is_up:
                    wait = self._random.uniform(0.0, 0.05)
            else:
                others = self._ranked(item.image, without=server)
                next_server = others[0] if others else server
                item.failed_at.clear()
        heapq.heappush(self._waiting, _Waiting(now + wait, next(self._number), item, next_server))

    def _untried(self, item: QueuedItem, server: ServerState) -> list[ServerState]:
        """Return the other servers at which an item has not failed, best first."""
        others = self._ranked(item.image, without=server)
        return [other for other in others if other.name not in item.failed_at]

    def _wait(self, tries: int, retry_after: float | None) -> float:
        if retry_after:
            return retry_after + self._random.uniform(0.0, 0.1 * retry_after + 0.05)
        first, longest = self.policy.backoff
        return min(first * 2.0 ** (tries - 1), longest) * self._random.uniform(0.5, 1.0)

    def _finish(self, item: QueuedItem, outcome: CallOutcome) -> None:
        self.finished.append(FinishedItem(item, outcome, item.reason or self.given_up))

    def give_up(self, reason: str, outcome: CallOutcome = CallOutcome.FAILED) -> None:
        """Begin nothing more: finish what waits; items not pulled yet stay untouched."""
        self.given_up = self.given_up or reason
        self._outcome = outcome
        items = [waiting.item for waiting in self._waiting]
        groups = list(self._homeless)
        if self._next is not None:
            groups.append(self._next)
        for server in self.servers.values():
            groups += server.release_all()
        for group in groups:
            items += group.items
        self._waiting.clear()
        self._homeless.clear()
        self._next = None
        self._groups_left = iter(())
        for item in items:
            self._finish(item, outcome)

    @property
    def left(self) -> int:
        queued = sum(server.waiting for server in self.servers.values())
        return queued + len(self._waiting) + sum(len(group.items) for group in self._homeless)

    @property
    def done(self) -> bool:
        return not self.in_flight and self._next is None and not self.left

    def wake_at(self, now: float) -> float | None:
        """Return when to call :meth:`next` even if nothing ends; None: never."""
        servers = self.servers.values()
        times = [self._waiting[0].at] if self._waiting else []
        times += (s.back_at for s in servers if s.back_at > now and not s.lost)
        if self._next is None and any(s.has_room(now) for s in servers):
            # A silent server may be late, so that others should help; doubling intervals keep the
            # checks few.
            usual = min((s.seconds for s in servers if s.seconds), default=1.0)
            late = (s for s in servers if s.in_flight and s.begun)
            times += (now + max(now - s.silent_since, usual) for s in late)
        return min(times, default=None)


def _groups(items: Iterator[tuple[str, Any]]) -> Iterator[ImageGroup]:
    for image, same in groupby(items, itemgetter(0)):
        most = _LARGEST_GROUP if image else 1
        while some := deque(QueuedItem(image, value) for _, value in islice(same, most)):
            yield ImageGroup(image, some)


def _is_too_long(retry_after: float | None) -> bool:
    return (retry_after or 0.0) > LONGEST_WAIT


def _weight(server: str, image: str) -> bytes:
    """Return the rendezvous hash of a server for an image; the highest wins."""
    return blake2b(f"{server}\0{image}".encode(), digest_size=8).digest()
