"""Servers on a simulated clock, to run a scheduler against: no network, no waiting."""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from vlmeval_findit.engine import Assignment, CallOutcome, FinishedItem, Scheduler, ServerPolicy


class Reply(NamedTuple):
    """What a server makes of a call, after how many seconds."""

    outcome: CallOutcome
    seconds: float
    retry_after: float | None = None
    reason: str = "no"


class Call(NamedTuple):
    """What a server sees of a call."""

    now: float
    in_flight: int
    number: int
    image_is_known: bool
    random: random.Random


Behaviour = Callable[[Call], Reply]


def answers(seconds: float = 1.0) -> Behaviour:
    return lambda call: Reply(CallOutcome.ANSWERED, seconds)


def fails(outcome: CallOutcome = CallOutcome.FAILED, seconds: float = 0.01) -> Behaviour:
    return lambda call: Reply(outcome, seconds)


def from_time(at: float, then: Behaviour, before: Behaviour | None = None) -> Behaviour:
    before = before or answers()
    return lambda call: (then if call.now >= at else before)(call)


def flaps(period: float) -> Behaviour:
    """Fail in every second period."""
    return lambda call: (fails() if int(call.now / period) % 2 else answers(0.5))(call)


def sometimes(share: float, bad: Behaviour, good: Behaviour | None = None) -> Behaviour:
    return lambda call: (bad if call.random.random() < share else good or answers())(call)


def takes(most: int, seconds: float = 1.0) -> Behaviour:
    """Refuse calls beyond ``most`` at a time."""
    return lambda call: (
        Reply(CallOutcome.REFUSED, 0.01)
        if call.in_flight > most
        else Reply(CallOutcome.ANSWERED, seconds)
    )


def caches(first: float = 1.0, later: float = 0.2) -> Behaviour:
    """Answer faster over images that the server has read."""
    return lambda call: Reply(CallOutcome.ANSWERED, later if call.image_is_known else first)


@dataclass
class Simulation:
    """A run of a scheduler; ``events`` are changed servers, by time."""

    servers: Mapping[str, tuple[int, Behaviour]]
    items: Sequence[tuple[str, int]]
    policy: ServerPolicy = field(default_factory=ServerPolicy)
    seed: int = 0
    events: Mapping[float, Callable[[Scheduler, float], None]] = field(default_factory=dict)
    servers_may_come: bool = False

    def __post_init__(self) -> None:
        self.finished: list[FinishedItem] = []
        self.calls: Counter[str] = Counter()
        self.readings: Counter[str] = Counter()
        self.last_home = 0.0
        self.now = 0.0

    def run(self) -> Simulation:
        limits = {name: limit for name, (limit, _) in self.servers.items()}
        started = {name: limit for name, limit in limits.items() if not name.startswith("later")}
        scheduler = self.scheduler = Scheduler(iter(self.items), started, self.policy, self.seed)
        scheduler.servers_may_come = self.servers_may_come
        rng = random.Random(self.seed)
        events = sorted(self.events)
        flying: list[tuple[float, int, Assignment, Reply]] = []
        known: defaultdict[str, set[str]] = defaultdict(set)
        in_flight: Counter[str] = Counter()
        number = 0
        for _ in range(10**6):
            while (begun := scheduler.next(self.now)) is not None:
                name, image = begun.server.name, begun.item.image
                in_flight[name] += 1
                assert in_flight[name] <= limits[name], "its limit is passed"
                assert name in scheduler.servers, "it was removed"
                seen = Call(self.now, in_flight[name], number, image in known[name], rng)
                self.calls[name] += 1
                self.readings[image] += not seen.image_is_known
                reply = self.servers[name][1](seen)
                heapq.heappush(flying, (self.now + reply.seconds, number, begun, reply))
                number += 1
            self.finished += scheduler.finished
            scheduler.finished.clear()
            if scheduler.done and not events:
                break
            wake = scheduler.wake_at(self.now)
            assert wake is None or wake > self.now, "it is woken for nothing"
            times = [flying[0][0]] if flying else []
            times += [at for at in (wake, *events[:1]) if at is not None]
            assert times, "it waits for nothing"
            self.now = min(times)
            assert self.now < 1e5, "it goes on for ever"
            while events and events[0] <= self.now:
                self.events[events[0]](scheduler, self.now)
                del events[0]
            while flying and flying[0][0] <= self.now:
                _, _, begun, reply = heapq.heappop(flying)
                name = begun.server.name
                in_flight[name] -= 1
                if reply.outcome is CallOutcome.ANSWERED:
                    known[name].add(begun.item.image)
                why = "" if reply.outcome is CallOutcome.ANSWERED else reply.reason
                scheduler.ended(begun, reply.outcome, self.now, why, retry_after=reply.retry_after)
                self.last_home = self.now
        else:
            raise AssertionError("no end in sight")
        assert not flying
        assert scheduler.in_flight == scheduler.left == 0
        return self

    @property
    def outcomes(self) -> Counter[CallOutcome]:
        return Counter(item.outcome for item in self.finished)

    @property
    def values(self) -> list[int]:
        return sorted(finished.item.value for finished in self.finished)


def images(count: int, prompts: int) -> list[tuple[str, int]]:
    """Items over so many images, in order."""
    return [(f"image {at // prompts}", at) for at in range(count * prompts)]


def begin(scheduler: Scheduler, now: float = 0.0) -> Assignment:
    """Return the next assignment, which there must be."""
    assignment = scheduler.next(now)
    assert assignment is not None
    return assignment


def ask(scheduler: Scheduler, outcome: CallOutcome, now: float, reason: str = "no") -> Assignment:
    """Begin an item and end it with an outcome."""
    begun = begin(scheduler, now)
    scheduler.ended(begun, outcome, now, "" if outcome is CallOutcome.ANSWERED else reason)
    return begun
