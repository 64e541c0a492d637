"""One server as the scheduler sees it: its queue, its concurrency limit, and whether it is up."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

LONGEST_WAIT = 600.0  # longest accepted Retry-After in seconds; beyond it the next run asks again

OPEN_IMAGES = 0.6  # share of the limit: most images begun at a time, as prefix caches are bounded

_DENIALS = 3  # successive denials after which a server is lost; gateways deny for a moment
WINDOW = 32  # calls over which the share of refusals counts
_TOLERATED = 0.1  # tolerated share of refusals: fewer calls do not avoid random refusals

# Seconds a server may be down: long enough to restart a large model; less for a server that
# never replied, whose address is probably wrong.
_PATIENCE = 600.0
_FIRST_PATIENCE = 60.0
UNREACHED_PATIENCE = 5.0  # for one at whose address nothing was ever there

# An answer is late after so many times the usual time, plus seconds of noise.
_LATE = 2.0
_JITTER = 0.5
_DRIFT = 0.05  # share by which the usual time follows slower answers, per round
_CAREFUL = 1 / 8  # slower growth just below the limit that was refused last


class CallOutcome(Enum):
    """The outcome of one attempt."""

    ANSWERED = "there is an answer"
    REFUSED = "too much at once: the same call is accepted later"
    FAILED = "the same call may be answered later, or by another server"
    INVALID = "no server accepts this request"
    DENIED = "key, permission or model: mostly every request to this server is refused"
    HOPELESS = "every request to this server is refused"


@dataclass(frozen=True, slots=True)
class ServerPolicy:
    """How servers are treated; pairs are the first and the longest of doubling seconds."""

    attempts: int = 6  # for a failing item; at least one per server
    refusals: int = 30  # for an item that is refused or tests a server that is down
    backoff: tuple[float, float] = (0.5, 30.0)  # before an item goes to the same server again
    failures: int = 5  # in a row, after which a server rests and others take its items
    rest: tuple[float, float] = (1.0, 60.0)  # then one call tests it; infinity: never
    hold_siblings: bool = True  # an image's first item goes alone, to fill the prefix cache


def policy_of(retry: int) -> ServerPolicy:
    """Return a policy with so many attempts of a call; refusals, no fault of its, may be more."""
    usual = ServerPolicy()
    attempts = max(retry, 1)
    refusals = attempts * usual.refusals // usual.attempts
    return replace(usual, attempts=attempts, refusals=refusals)


@dataclass(slots=True, eq=False)
class QueuedItem:
    """What goes to a server at once."""

    image: str  # hash of its images; empty: none
    value: Any
    attempts: int = 0
    refusals: int = 0
    reason: str = ""  # why the last attempt failed
    failed_at: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class ImageGroup:
    """Items over one image that wait for one server."""

    image: str
    items: deque[QueuedItem]


class ImageGroups(OrderedDict[ImageGroup, None]):
    """An ordered set of groups that counts their items."""

    items_left: int = 0

    def add(self, group: ImageGroup, *, first: bool = False) -> None:
        """Append a group, or put it first; drop it if empty."""
        if group.items:
            self[group] = None
            self.move_to_end(group, last=not first)
            self.items_left += len(group.items)

    def discard(self, group: ImageGroup) -> None:
        del self[group]
        self.items_left -= len(group.items)

    def take(self, *, last: bool = False) -> ImageGroup:
        group, _ = self.popitem(last)
        self.items_left -= len(group.items)
        return group

    def take_part(self, most: int) -> ImageGroup:
        group = self.take(last=True)
        part = deque(group.items.pop() for _ in range(min(most, len(group.items))))
        part.reverse()
        self.add(group)
        return ImageGroup(group.image, part)


@dataclass(slots=True, eq=False)
class ServerState:
    """A server: its queue, its concurrency limit, and its circuit breaker."""

    name: str
    ceiling: int  # most calls at a time
    policy: ServerPolicy
    endpoint: Any = None  # what is asked: an HTTP endpoint, a replica
    at_once: int = 0  # the current limit
    in_flight: int = 0
    firsts: int = 0  # of these, first calls over an image whose siblings wait

    again: deque[QueuedItem] = field(default_factory=deque)  # retries, which go first
    new: ImageGroups = field(default_factory=ImageGroups)  # images not begun
    reading: ImageGroups = field(default_factory=ImageGroups)  # their first call is in flight
    ready: ImageGroups = field(default_factory=ImageGroups)  # begun images, oldest first

    first_seconds: float = 0.0  # duration of an image's first call; 0: unknown
    later_seconds: float = 0.0  # duration of the others
    silent_since: float = 0.0  # since when nothing has ended, if calls are in flight

    on_trial: bool = False  # the breaker is open: from back_at on, one call tests it
    back_at: float = 0.0
    lost: str = ""  # why it is not asked any more
    reason: str = ""  # its last failure

    _most: int = 0  # calls in flight when one was answered
    _limit: float = 0.0
    _too_many: float = math.inf
    _recent: float = 0.0
    _usual: float = math.inf
    _window: deque[bool] = field(default_factory=lambda: deque(maxlen=WINDOW))  # refused
    _cut_at: float = -math.inf
    _failures: int = 0
    _rests: int = 0
    _denials: int = 0
    _denied_at: float = -math.inf
    _down_since: float | None = None
    _spoke: bool = False
    _unreached: bool = False  # its last failure was that no connection could be made
    _answers: int = 0

    def __post_init__(self) -> None:
        self._set_limit(self.ceiling)

    @property
    def is_up(self) -> bool:
        return not self.lost and not self.on_trial

    @property
    def capacity(self) -> int:
        return min(self.at_once, self._most)

    def has_room(self, now: float) -> bool:
        most = 1 if self.on_trial else self.at_once
        return self.in_flight < most and now >= self.back_at and not self.lost

    @property
    def patience(self) -> float:
        """Seconds it may be down."""
        if self._spoke:
            return _PATIENCE
        return UNREACHED_PATIENCE if self._unreached else _FIRST_PATIENCE

    def is_given_up(self, now: float) -> bool:
        """Return whether not to wait: it is lost, down too long, or asks for too long a pause."""
        down = self._down_since is not None and now - self._down_since >= self.patience
        return bool(self.lost) or down or self.back_at - now > LONGEST_WAIT

    def answered(self, began: float, now: float, *, first: bool) -> None:
        self.works(began)
        self._window.append(False)
        self._denials = 0
        seconds = now - began
        if first:
            self.first_seconds = _mean(self.first_seconds, seconds)
        else:
            self.later_seconds = _mean(self.later_seconds, seconds)
            self.first_seconds = self.first_seconds or seconds
            self._grow(seconds, self.in_flight + 1)
        self._answers += 1
        if self._answers % WINDOW == 0:
            self._rests = max(self._rests - 1, 0)

    def works(self, began: float) -> None:
        """Note that it replies, whether or not it takes a request."""
        self._close(began)
        if not self.on_trial:
            self._down_since = None

    def refused(self, began: float, now: float, retry_after: float | None) -> None:
        """Lower the limit if many calls since the last cut were refused; pause if most were."""
        self._close(began)
        if began < self._cut_at:
            return
        self._window.append(True)
        refusals = sum(self._window)
        known = len(self._window)
        if known < min(self.at_once, 8) or refusals <= _TOLERATED * known + 2:
            return
        share = refusals / known
        self._too_many = max(min(self.at_once, self.in_flight + 1), 2)
        self._set_limit(self._too_many * (1 - share / 2))
        self._cut_at = now
        self._window.clear()
        if share > 0.5:
            self._open(now, retry_after or self._rest())

    def failed(self, began: float, now: float, jitter: float, *, unreached: bool = False) -> bool:
        """Note a failure; return whether the breaker opens, for a time scaled by ``jitter``.

        Calls in flight when it opened do not count.
        """
        self._unreached = unreached
        if unreached and self._down_since is None and not self._spoke:
            self._down_since = now
        if began < self.back_at:
            return False
        self._failures += 1
        if not self.on_trial and self._failures < self.policy.failures:
            return False
        self._open(now, self._rest() * jitter)
        return True

    def denied(self, began: float, now: float) -> bool:
        """Note a denial; return whether the server is lost. Concurrent denials count once."""
        if began >= self._denied_at:
            self._denials += 1
            self._denied_at = now
        return self._denials >= _DENIALS

    def _rest(self) -> float:
        first, longest = self.policy.rest
        return min(first * 2.0 ** min(self._rests, 16), longest)

    def _open(self, now: float, seconds: float) -> None:
        self.back_at = now + seconds
        self.on_trial = True
        self._rests += 1
        if self._down_since is None:
            self._down_since = now

    def _close(self, began: float) -> None:
        """Close the breaker, unless the call was in flight when it opened."""
        self._spoke = True
        if began >= self.back_at:
            self._failures = 0
            self.on_trial = False

    # Concurrency limit: additive increase, multiplicative decrease, as in TCP

    def _grow(self, seconds: float, in_flight: int) -> None:
        """Grow by one per round of answers; if they are late, shrink to half the ceiling."""
        self._most = max(self._most, in_flight)
        share = 1 / min(self.at_once, in_flight)
        before = self._recent or seconds
        self._recent = before + (seconds - before) * share
        self._usual = min(self._usual * (1 + _DRIFT * share), self._recent)
        limit = self._limit
        if self._recent > _LATE * self._usual + _JITTER:
            self._set_limit(max(limit - share, min(limit, self.ceiling / 2)))
        elif limit < self.ceiling and 2 * in_flight >= self.at_once:
            near = self._too_many - 1 <= limit < self._too_many
            self._set_limit(limit + share * (_CAREFUL if near else 1))

    def _set_limit(self, limit: float) -> None:
        self._limit = min(max(limit, 1.0), self.ceiling)
        self.at_once = math.floor(self._limit)

    @property
    def waiting(self) -> int:
        return len(self.again) + self.new.items_left + self.begun

    @property
    def begun(self) -> int:
        return self.ready.items_left + self.reading.items_left

    def wants_image(self, siblings: float) -> bool:
        """Return whether to begin another image next, with ``siblings`` later calls each.

        If ``f`` images begin per second, ``f * (first + siblings * later)`` calls are in flight,
        ``f * first`` of them first ones. No more than that may be first ones, or twice as many if
        nothing else can be asked. The waiting siblings should last for the duration of a first
        call.
        """
        if len(self.ready) + len(self.reading) >= max(OPEN_IMAGES * self.at_once, 2):
            return False
        ratio = min(self.seconds / self.first_seconds, 1.0) if self.first_seconds else 1.0
        firsts = math.ceil(self.at_once / (1 + siblings * ratio))
        if not self.ready:
            return self.firsts < 2 * firsts
        return self.firsts < firsts and self.ready.items_left < self.at_once / (ratio or 1.0)

    def begin_image(self) -> tuple[QueuedItem, ImageGroup | None]:
        """Take the first item of the next new image, and its group if siblings wait for it."""
        group = self.new.take()
        item = group.items.popleft()
        if not self.policy.hold_siblings:
            self.ready.add(group, first=True)
            return item, None
        self.reading.add(group)
        return item, group if group.items else None

    def next_ready(self) -> QueuedItem:
        group = next(iter(self.ready))
        self.ready.items_left -= 1
        item = group.items.popleft()
        if not group.items:
            del self.ready[group]
        return item

    def take_back(self, group: ImageGroup | None, now: float, *, answered: bool) -> None:
        """Count a call that has ended, and release the siblings that waited for it.

        If an image's first call got no answer, the next is the first.
        """
        self.in_flight -= 1
        self.silent_since = now
        if group is None:
            return
        self.firsts -= 1
        if group in self.reading:
            self.reading.discard(group)
            if answered:
                self.ready.add(group)
            else:
                self.new.add(group, first=True)

    def release_all(self) -> list[ImageGroup]:
        """Give up all items that wait."""
        groups = [*self.reading, *self.ready, *self.new]
        # New groups, so that a first call that ends later does not release these.
        released = [ImageGroup(group.image, group.items) for group in groups]
        released += [ImageGroup(item.image, deque([item])) for item in self.again]
        self.again = deque()
        self.reading = ImageGroups()
        self.ready = ImageGroups()
        self.new = ImageGroups()
        return released

    @property
    def seconds(self) -> float:
        """Duration of most calls; 0: unknown."""
        return self.later_seconds or self.first_seconds

    def seconds_by(self, now: float) -> float:
        """Return the duration of most calls, at least as long as it has been silent."""
        return max(self.seconds, now - self.silent_since if self.in_flight else 0.0)

    def seconds_left(self, now: float) -> float:
        """Return the seconds until the queue over begun images would be done."""
        rounds = (self.begun + len(self.again)) / self.at_once
        return max(self.back_at - now, 0.0) + (rounds + 1) * self.seconds_by(now)


def _mean(mean: float, seconds: float) -> float:
    return mean + (seconds - mean) / 8 if mean else seconds
