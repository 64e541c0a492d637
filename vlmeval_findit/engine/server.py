"""One server as a scheduler sees it: how many calls it takes at a time, and whether it is up."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from .backlog import Backlog
from .outcome import Policy

_LATE, _JITTER = 2.0, 0.5
"""How many times as long as usual is late, and seconds that say nothing."""

_CAREFUL = 1 / 8
"""Growth for a round of answers, of the usual one, next to the number that was refused last."""

_DRIFT = 0.05
"""Share by which the usual time follows a slower one in a round of answers."""


@dataclass(slots=True)
class Limit:
    """Calls that a server takes at a time: additive increase, multiplicative decrease, as TCP.

    ``ceiling`` is never passed, ``at_once`` is what it is now, ``most`` the largest number in
    flight when one was answered.
    """

    ceiling: int
    at_once: int = 0
    most: int = 0
    _found: float = 0.0
    _too_many: float = math.inf
    _recent: float = 0.0
    _usual: float = math.inf

    def __post_init__(self) -> None:
        self.at_once = self.ceiling
        self._found = float(self.ceiling)

    @property
    def capacity(self) -> int:
        """How many it was seen to take; 0: it answered nothing."""
        return min(self.at_once, self.most)

    def answered(self, seconds: float, in_flight: int) -> None:
        """Grow by one for a round of answers; where they are late, shrink down to half the ceiling.

        More than half is not given back: large images are slow too.
        """
        self.most = max(self.most, in_flight)
        share = 1 / min(self.at_once, max(in_flight, 1))
        before = self._recent or seconds
        self._recent = before + (seconds - before) * share
        self._usual = min(self._usual * (1 + _DRIFT * share), self._recent)
        if self._recent > _LATE * self._usual + _JITTER:
            self._set(max(self._found - share, min(self._found, self.ceiling / 2)))
        elif self._found < self.ceiling and 2 * in_flight >= self.at_once:
            near = self._too_many - 1 <= self._found < self._too_many
            self._set(self._found + share * (_CAREFUL if near else 1))

    def cut(self, share: float, in_flight: int) -> None:
        """Lower it, where this share of the last calls was refused."""
        self._too_many = max(min(self.at_once, in_flight), 2)
        self._set(self._too_many * (1 - share / 2))

    def _set(self, found: float) -> None:
        self._found = min(max(found, 1.0), self.ceiling)
        self.at_once = math.floor(self._found)


@dataclass(slots=True, eq=False)
class Server:
    """A server: its limit, its circuit breaker, and the items that wait for it."""

    name: str
    limit: Limit
    policy: Policy
    backlog: Backlog
    in_flight: int = 0
    firsts: int = 0
    """Of those in flight, the first ones over an image whose siblings wait for them."""

    first_seconds: float = 0.0
    later_seconds: float = 0.0
    """How long the first call over an image takes, and the others; 0: not known."""

    silent_since: float = 0.0
    """Since when nothing came home, where calls are in flight."""

    on_trial: bool = False
    """The breaker is open; from ``back_at`` on, one call tells whether the server is back."""

    back_at: float = 0.0
    lost: str = ""
    """Why it is not asked again; empty: it is."""

    reason: str = ""
    """What it failed with last."""

    _window: deque[bool] = field(default_factory=deque)
    _failures: int = 0
    _rests: int = 0
    _denials: int = 0
    _denied_at: float = -math.inf
    _cut_at: float = -math.inf
    _down_since: float | None = None
    _spoke: bool = False
    _answers: int = 0

    @property
    def seconds(self) -> float:
        """How long most calls take; 0: not known."""
        return self.later_seconds or self.first_seconds

    @property
    def is_up(self) -> bool:
        """Whether it is worth an item."""
        return not self.lost and not self.on_trial

    def has_room(self, now: float) -> bool:
        """Whether it takes another call now."""
        most = 1 if self.on_trial else self.limit.at_once
        return self.in_flight < most and now >= self.back_at and not self.lost

    def is_given_up(self, now: float) -> bool:
        """Whether nobody should wait for it: lost, down for too long, or asks for too long."""
        patience = self.policy.patience if self._spoke else self.policy.first_patience
        down = self._down_since is not None and now - self._down_since >= patience
        return bool(self.lost) or down or self.back_at - now > self.policy.longest_wait

    # --- what came home ---------------------------------------------------------------------------

    def answered(self, began: float, now: float, *, first: bool) -> None:
        """Note an answer to a call that was in flight until now."""
        self._remember(refused=False)
        self._denials = 0
        self.works(began)
        seconds = now - began
        if first:
            self.first_seconds += (seconds - self.first_seconds) / (8 if self.first_seconds else 1)
        else:
            self.later_seconds += (seconds - self.later_seconds) / (8 if self.later_seconds else 1)
            self.first_seconds = self.first_seconds or seconds
            self.limit.answered(seconds, self.in_flight + 1)
        self._answers += 1
        if self._answers % self.policy.window == 0:
            self._rests = max(self._rests - 1, 0)

    def works(self, began: float) -> None:
        """Note that it does, whether or not it takes a request."""
        self._close(began)
        if not self.on_trial:
            self._down_since = None

    def refused(self, began: float, now: float, retry_after: float | None) -> None:
        """Lower the limit where many of the last calls were refused; pause where most were.

        What was sent before the last cut says nothing of it.
        """
        self._close(began)
        if began < self._cut_at:
            return
        self._remember(refused=True)
        refusals, known = sum(self._window), len(self._window)
        is_chance = refusals <= self.policy.tolerated * known + 2
        if known < min(self.limit.at_once, 8) or is_chance:
            return
        share = refusals / known
        self.limit.cut(share, self.in_flight + 1)
        self._cut_at = now
        self._window.clear()
        if share > 0.5:
            self._open(now, retry_after or self._rest())

    def failed(self, began: float, now: float, jitter: float) -> bool:
        """Note a failure; whether the breaker opens, for a time that is spread by ``jitter``.

        A call that was on its way when it opened says nothing more.
        """
        if began < self.back_at:
            return False
        self._failures += 1
        if not self.on_trial and self._failures < self.policy.failures:
            return False
        self._open(now, self._rest() * jitter)
        return True

    def denied(self, began: float, now: float) -> bool:
        """Note a denial; whether it was the last: calls that flew together are denied together."""
        if began >= self._denied_at:
            self._denials += 1
            self._denied_at = now
        return self._denials >= self.policy.denials

    def _remember(self, *, refused: bool) -> None:
        self._window.append(refused)
        if len(self._window) > self.policy.window:
            self._window.popleft()

    def _rest(self) -> float:
        first, longest = self.policy.rest
        return min(first * 2.0 ** min(self._rests, 16), longest)

    def _open(self, now: float, seconds: float) -> None:
        """Leave it out for a time."""
        self.back_at, self.on_trial = now + seconds, True
        self._rests += 1
        if self._down_since is None:
            self._down_since = now

    def _close(self, began: float) -> None:
        """Close the breaker, unless the call was on its way when it opened."""
        self._spoke = True
        if began >= self.back_at:
            self._failures, self.on_trial = 0, False

    # --- what to begin ----------------------------------------------------------------------------

    def seconds_by(self, now: float) -> float:
        """How long most calls take: at least as long as it has been silent."""
        return max(self.seconds, now - self.silent_since if self.in_flight else 0.0)

    def last_home(self, now: float) -> float:
        """Seconds until the last call over the images that are begun here would come home."""
        rounds = (self.backlog.begun_items + len(self.backlog.again)) / self.limit.at_once
        return max(self.back_at - now, 0.0) + (rounds + 1) * self.seconds_by(now)

    def begins_image(self, siblings: float) -> bool:
        """Whether the next call should be the first over another image, of so many siblings each.

        Where ``f`` images are begun a second, ``f * (first + siblings * later)`` calls are in
        flight, and ``f * first`` of them are first ones: no more, but twice as many where nothing
        else can be asked.  The siblings that may go should last for as long as a first call takes.
        """
        backlog, limit = self.backlog, self.limit.at_once
        if backlog.open_images >= max(self.policy.open_images * limit, 2):
            return False
        ratio = min(self.seconds / self.first_seconds, 1.0) if self.first_seconds else 1.0
        firsts = math.ceil(limit / (1 + siblings * ratio))
        if not backlog.ready:
            return self.firsts < 2 * firsts
        return self.firsts < firsts and backlog.ready.items_left < limit / (ratio or 1.0)
