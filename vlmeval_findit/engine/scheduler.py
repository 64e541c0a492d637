"""Which item goes to which server next: no clock, no threads, no network.

Whoever runs it asks for what begins (:meth:`Scheduler.next`, until there is nothing), says what
came of it (:meth:`Scheduler.ended`), and comes back at :meth:`Scheduler.wake_at`.

All items over an image go to one server, found by rendezvous hashing, so that what its prefix cache
keeps of the image is there; the first goes alone, its siblings when it is home.  A server without
work takes images that nobody has begun from the one with most of them, and at the end a part of one
that is begun.  A server that fails is left out, and what waits for it goes to others; the run gives
up where all are lost.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from itertools import chain, count, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

from .backlog import Backlog, Group, Item
from .outcome import Outcome, Policy
from .overflow import Overflow
from .server import Limit, Server

_AHEAD = 8
"""Rounds of items, of all limits together, to look through for an image of a server's own."""

_REFUSALS_HERE = 3
"""Refusals of an item after which another server is asked, if there is one."""

_LARGEST_GROUP = 512
"""Items over one image that are looked at together: more are several groups."""

_NO_POLICY = Policy()


class Assignment(NamedTuple):
    """An item that goes to a server now."""

    item: Item
    server: Server
    group: Group | None
    """The siblings that wait until it is home; None: none do."""

    began: float

    @property
    def first(self) -> bool:
        """Whether it is the first over its image there, and siblings wait for it."""
        return self.group is not None


class Finished(NamedTuple):
    """An item that goes nowhere any more; ``reason`` says why it has no answer."""

    item: Item
    outcome: Outcome
    reason: str


class Scheduler:
    """Deals items out to servers; whoever owns it takes :attr:`finished` away.

    Args:
        items: the content hash of each item's images, and its value; pulled as servers need them,
            best in the order of images.
        servers: the largest number of calls that each takes at a time.
        policy: how servers are dealt with.
        seed: of the jitter of waits.
    """

    def __init__(
        self,
        items: Iterator[tuple[str, Any]],
        servers: Mapping[str, int],
        policy: Policy = _NO_POLICY,
        seed: int | None = None,
    ) -> None:
        self.policy = policy
        self.servers: dict[str, Server] = {}
        self.finished: list[Finished] = []
        self.in_flight = 0
        self.given_up = ""
        """Why nothing more begins (empty: it may)."""
        self.servers_may_come = False
        """Whether to wait where no server is left."""
        self._coming = _groups(items)
        self._next = next(self._coming, None)
        self._random = random.Random(seed)
        self._number = count()
        self._turn = 0
        self._waiting: list[tuple[float, int, Item, Server]] = []
        self._homeless = Backlog()
        self._siblings = 0.0
        self._outcome = Outcome.FAILED  # of what waits when it gives up
        for name, limit in servers.items():
            self.add_server(name, limit)

    # --- servers ----------------------------------------------------------------------------------

    def add_server(self, name: str, limit: int) -> None:
        """Ask one more server from now on."""
        server = Server(name, Limit(max(limit, 1)), self.policy, self._homeless)
        self.servers[name] = server
        self._homeless = Backlog()

    def remove_server(self, name: str, now: float, reason: str = "it was removed") -> None:
        """Ask a server nothing more; what is in flight there still comes home."""
        server = self.servers.pop(name)
        server.lost = server.lost or reason
        self._move_all(server, now)
        self._end_if_lost(now)

    @property
    def capacity(self) -> dict[str, int]:
        """By server, how many calls at once it was seen to take."""
        return {s.name: s.limit.capacity for s in self.servers.values() if s.limit.capacity}

    def _ranked(self, image: str, now: float, without: Server | None = None) -> list[Server]:
        """Servers in the order in which they are asked about an image: the up ones, or all."""
        alive = [s for s in self.servers.values() if not s.lost and s is not without]
        there = [s for s in alive if s.is_up] or alive
        if not image:
            return sorted(there, key=lambda s: (s.in_flight + len(s.backlog)) / s.limit.at_once)
        return sorted(there, key=lambda s: _weight(s.name, image), reverse=True)

    def _backlog(self, image: str, now: float) -> Backlog:
        """Where the items over an image belong."""
        ranked = self._ranked(image, now)
        return ranked[0].backlog if ranked else self._homeless

    def _move_all(self, server: Server, now: float) -> None:
        """Give what waits at a server to others, if any is up, or it is lost."""
        others = [s for s in self.servers.values() if s is not server and s.is_up]
        if not others and not server.lost:
            return
        again, groups = server.backlog.give_all()
        for group in groups:
            self._backlog(group.image, now).new.add(group)
        for item in again:
            self._backlog(item.image, now).again.append(item)

    def _end_if_lost(self, now: float) -> None:
        """Give up where nobody should wait for any server."""
        if self.servers_may_come or self.given_up:
            return
        if all(server.is_given_up(now) for server in self.servers.values()):
            reasons = [s.lost or s.reason for s in self.servers.values()]
            self.give_up(next(filter(None, reasons), "no server is left"), Outcome.HOPELESS)

    # --- what begins ------------------------------------------------------------------------------

    def next(self, now: float) -> Assignment | None:
        """Begin an item; None: nothing may begin before something comes home, or before
        :meth:`wake_at`.
        """
        while self._waiting and self._waiting[0][0] <= now:
            _, _, item, server = heapq.heappop(self._waiting)
            backlog = server.backlog if server.is_up else self._backlog(item.image, now)
            backlog.again.append(item)
        free = [server for server in self.servers.values() if server.has_room(now)]
        if not free:
            self._end_if_lost(now)
            return None
        servers = list(self.servers.values())
        overflow = Overflow(
            servers, self._siblings, now, is_end=self._next is None and self.in_flight > 0
        )
        self._turn += 1  # no server is always the first to be served
        turn = self._turn % len(free)
        free = [one for one in free[turn:] + free[:turn] if not overflow.is_too_slow(one)]
        for server in free:
            if not server.backlog.new and server.begins_image(self._siblings):
                self._look_ahead(server, now)
                overflow.adopt_image(server)
            if (begun := self._begin(server)) is not None:
                return self._assignment(server, *begun, now)
        for server in free:
            if overflow.help_out(server) and (begun := self._begin(server)) is not None:
                return self._assignment(server, *begun, now)
        return None

    def _assignment(
        self, server: Server, item: Item, group: Group | None, now: float
    ) -> Assignment:
        if not server.in_flight:
            server.silent_since = now
        server.in_flight += 1
        server.firsts += group is not None
        self.in_flight += 1
        return Assignment(item, server, group, now)

    def _begin(self, server: Server) -> tuple[Item, Group | None] | None:
        backlog, hold = server.backlog, self.policy.hold_siblings
        if backlog.again:
            return backlog.again.popleft(), None
        if backlog.new and server.begins_image(self._siblings):
            return backlog.begin(hold_siblings=hold)
        if backlog.ready:
            return backlog.next_ready(), None
        return None

    def _look_ahead(self, hungry: Server, now: float) -> None:
        """Pull items until this server has an image to begin, or too many wait for others."""
        servers = self.servers.values()
        room = _AHEAD * sum(server.limit.at_once for server in servers)
        room -= sum(server.backlog.new.items_left for server in servers)
        while (group := self._next) is not None and room > 0 and not hungry.backlog.new:
            room -= len(group.items)
            self._siblings += (len(group.items) - 1 - self._siblings) / 16
            self._backlog(group.image, now).new.add(group)
            self._next = next(self._coming, None)

    # --- what came home ---------------------------------------------------------------------------

    def ended(
        self,
        assignment: Assignment,
        outcome: Outcome,
        now: float,
        reason: str = "",
        *,
        retry_after: float | None = None,
        remaining: Any = None,
    ) -> None:
        """Note what came of an item.

        Args:
            assignment: what :meth:`next` began.
            outcome: what came of it.
            now: when.
            reason: why there is no answer.
            retry_after: seconds that the server asks to wait with this item.
            remaining: the value from now on, where a part of the item was answered.
        """
        item, server, group, _ = assignment
        server.in_flight -= 1
        server.silent_since = now
        server.firsts -= group is not None
        self.in_flight -= 1
        was_on_trial = server.on_trial
        if remaining is not None:
            item.value = remaining
        if group is not None:
            server.backlog.first_is_home(group, answered=outcome is Outcome.ANSWERED)
        if outcome is not Outcome.ANSWERED:
            item.reason = server.reason = reason
        self._judge(assignment, outcome, now, retry_after)
        if server.is_given_up(now):
            self._end_if_lost(now)
        if outcome in (Outcome.ANSWERED, Outcome.INVALID):
            self.finished.append(Finished(item, outcome, reason))
        elif self.given_up:
            self._finish(item, self._outcome)
        else:
            self._again(item, server, outcome, now, retry_after, is_patient=was_on_trial)

    def _judge(
        self, assignment: Assignment, outcome: Outcome, now: float, retry_after: float | None
    ) -> None:
        """Note at a server what came of a call; what waits there goes to others if it is out."""
        _, server, _, began = assignment
        match outcome:
            case Outcome.ANSWERED:
                server.answered(began, now, first=assignment.first)
            case Outcome.INVALID:
                server.works(began)
            case Outcome.REFUSED:
                server.refused(began, now, retry_after)
            case Outcome.FAILED:
                if server.failed(began, now, self._random.uniform(0.8, 1.2)):
                    self._move_all(server, now)
            case Outcome.DENIED | Outcome.HOPELESS:
                if outcome is Outcome.HOPELESS or server.denied(began, now):
                    server.lost = server.lost or server.reason or outcome.value
                    self._move_all(server, now)

    def _again(
        self,
        item: Item,
        server: Server,
        outcome: Outcome,
        now: float,
        retry_after: float | None,
        *,
        is_patient: bool,
    ) -> None:
        """Let an item without an answer wait for its next attempt, or finish it."""
        refused = outcome is Outcome.REFUSED
        if refused or is_patient or server.lost:
            item.refusals += 1
            tries, most = item.refusals, self.policy.refusals
        else:
            item.attempts += 1
            tries, most = item.attempts, max(self.policy.attempts, len(self.servers))
        is_too_long = (retry_after or 0.0) > self.policy.longest_wait
        stays = refused and server.is_up and item.refusals < _REFUSALS_HERE
        if is_too_long or not stays:
            item.failed_at.add(server.name)
        others = self._ranked(item.image, now, without=server)
        untried = [other for other in others if other.name not in item.failed_at]
        ends_here = is_too_long or outcome in (Outcome.DENIED, Outcome.HOPELESS)
        if tries >= most or (ends_here and not untried):
            self._finish(item, outcome)
            return
        where, wait = server, self._wait(tries, retry_after)
        if server.name in item.failed_at:
            where = (untried or others or [server])[0]
            if not untried:
                item.failed_at.clear()
            elif where.is_up:
                wait = self._random.uniform(0.0, 0.05)
        heapq.heappush(self._waiting, (now + wait, next(self._number), item, where))

    def _wait(self, tries: int, retry_after: float | None) -> float:
        """Seconds before an item goes to a server again, spread so that not all come together."""
        if retry_after:
            return retry_after + self._random.uniform(0.0, 0.1 * retry_after + 0.05)
        first, longest = self.policy.backoff
        return min(first * 2.0 ** (tries - 1), longest) * self._random.uniform(0.5, 1.0)

    def _finish(self, item: Item, outcome: Outcome) -> None:
        self.finished.append(Finished(item, outcome, item.reason or self.given_up))

    def give_up(self, reason: str, outcome: Outcome = Outcome.FAILED) -> None:
        """Begin nothing more: what waits is finished, what was not looked at is left alone."""
        self.given_up, self._outcome = self.given_up or reason, outcome
        items = [item for _, _, item, _ in self._waiting]
        groups = [self._next] if self._next is not None else []
        for backlog in (self._homeless, *(server.backlog for server in self.servers.values())):
            again, begun = backlog.give_all()
            items += again
            groups += begun
        self._waiting.clear()
        self._next, self._coming = None, iter(())
        for item in chain(items, *(group.items for group in groups)):
            self._finish(item, outcome)

    # --- the end ----------------------------------------------------------------------------------

    @property
    def left(self) -> int:
        """Items that wait, of those that were looked at."""
        queued = sum(len(server.backlog) for server in self.servers.values())
        return queued + len(self._waiting) + len(self._homeless)

    @property
    def done(self) -> bool:
        """Whether nothing is in flight and nothing waits."""
        return not self.in_flight and self._next is None and not self.left

    def wake_at(self, now: float) -> float | None:
        """When something may begin though nothing comes home; None: never."""
        times = [self._waiting[0][0]] if self._waiting else []
        times += (s.back_at for s in self.servers.values() if s.back_at > now and not s.lost)
        if self._next is None and any(s.has_room(now) for s in self.servers.values()):
            times += self._late_at(now)
        return min(times, default=None)

    def _late_at(self, now: float) -> Iterator[float]:
        """When to see whether a silent server is late with what waits there, so that others help.

        Each time is as far ahead as the silence has lasted, so that there are few.
        """
        servers = self.servers.values()
        usual = min((server.seconds for server in servers if server.seconds), default=1.0)
        for server in servers:
            if server.in_flight and server.backlog.begun_items:
                yield now + max(now - server.silent_since, usual)


def _groups(items: Iterator[tuple[str, Any]]) -> Iterator[Group]:
    """Neighbours over one image together; those without images alone."""
    for image, same in groupby(items, itemgetter(0)):
        most = _LARGEST_GROUP if image else 1
        while some := deque(Item(image, value) for _, value in islice(same, most)):
            yield Group(image, some)


def _weight(server: str, image: str) -> bytes:
    """The number of a server for an image: the highest goes first (rendezvous hashing)."""
    return blake2b(f"{server}\0{image}".encode(), digest_size=8).digest()
