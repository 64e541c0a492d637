"""What servers without work of their own take over from others."""

from __future__ import annotations

from collections.abc import Sequence

from .server import Server


class Overflow:
    """Work that is better done elsewhere, at one moment."""

    def __init__(
        self, servers: Sequence[Server], siblings: float, now: float, *, is_end: bool
    ) -> None:
        self._servers = servers
        self._siblings = siblings
        self._now = now
        # No further item comes: a slow server should not begin what others end earlier.
        known = [one for one in servers if one.seconds and one.is_up] if is_end else []
        fastest = min((one.seconds_by(now) for one in known), default=0.0)
        self._fast = [one for one in known if one.seconds_by(now) <= 2 * fastest]
        self._seconds = self._seconds_left()

    def _seconds_left(self) -> float:
        """Until the fast servers would have all home that waits; 0: nobody knows."""
        if not self._fast:
            return 0.0
        rate = sum(one.limit.at_once / one.seconds_by(self._now) for one in self._fast)
        left = sum(len(one.backlog) for one in self._servers)
        return left / rate + max(one.first_seconds for one in self._fast)

    def is_too_slow(self, server: Server) -> bool:
        """Whether the fast ones have all home long before this one has answered a call."""
        if server.on_trial or server in self._fast:  # there is nobody faster
            return False
        return 0 < 2 * self._seconds < server.seconds_by(self._now)

    def adopt_image(self, server: Server) -> None:
        """Take an image that nobody has begun from the server with most, if it is behind."""
        if server.backlog.new or server.on_trial:
            return
        other = max(self._servers, key=lambda one: one.backlog.new.items_left)
        is_behind = (
            other.backlog.new.items_left > 2 * other.limit.at_once
            or not other.has_room(self._now)
            or not other.begins_image(self._siblings)
            or self.is_too_slow(other)
        )
        if is_behind and other.backlog.new:
            server.backlog.new.add(other.backlog.new.take_last())

    def help_out(self, server: Server) -> bool:
        """Take over what another server cannot do, or has begun and is late with; whether there
        was any.
        """
        others = [one for one in self._servers if one is not server and len(one.backlog)]
        if not others:
            return False
        own = server.backlog
        if server.on_trial:  # one item shows whether it is back
            backlog = max(others, key=lambda one: len(one.backlog)).backlog
            if backlog.again:
                own.again.append(backlog.again.pop())
            elif backlog.new:
                own.again += backlog.new.take_last(1).items
            return bool(own.again)
        other = max(others, key=lambda one: one.last_home(self._now))
        backlog = other.backlog
        is_out = not other.is_up or self.is_too_slow(other)
        if is_out and backlog.again and server.name not in backlog.again[-1].failed_at:
            own.again.append(backlog.again.pop())
            return True
        # The image is read once more: that should be worth it.
        reading = 2 * (server.first_seconds or other.first_seconds)
        has_new = any(one.backlog.new for one in self._servers)
        is_late = not has_new and 0 < reading < other.last_home(self._now)
        most = backlog.begun_items if is_out else (backlog.begun_items - own.begun_items) // 2
        begun = backlog.reading or backlog.ready
        if not begun or most < 1 or not (is_out or is_late):
            return False
        own.new.add(begun.take_last(most))
        return True
