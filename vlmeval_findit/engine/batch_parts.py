"""What an executor of batches packs requests into, and how it waits."""

from __future__ import annotations

import time
from tempfile import TemporaryFile
from typing import BinaryIO

from .cancel import CancelToken

_LOOK_UP = 0.1
"""Seconds after which one who waits looks whether the run is to stop."""


class AskedToStopError(Exception):
    """Somebody asked to stop while we waited."""


class Packing:
    """The requests of one batch, in a file that goes with it."""

    def __init__(self) -> None:
        self.file: BinaryIO = TemporaryFile()  # noqa: SIM115 (closed where it is submitted)
        self.keys: list[str] = []
        self.size = 0
        self.at_most: float | None = 0.0

    def add(self, key: str, line: bytes, before: bytes) -> None:
        self.keys.append(key)
        self.size += self.file.write(before) + self.file.write(line)

    def cost(self, at_most: float | None) -> None:
        known = self.at_most is not None and at_most is not None
        self.at_most = (self.at_most or 0.0) + (at_most or 0.0) if known else None


class Rests:
    """Waits that get longer: a second, two, four, up to ``poll``."""

    def __init__(self, poll: float, stop: CancelToken) -> None:
        self._poll = poll
        self._stop = stop
        self._next = 1.0

    def rest(self) -> None:
        """Wait.

        Raises:
            AskedToStopError: somebody asked to stop meanwhile.
        """
        until = time.monotonic() + min(self._next, self._poll)
        self._next *= 2
        while (left := until - time.monotonic()) > 0 or self._stop.requested:
            if self._stop.requested:
                raise AskedToStopError
            time.sleep(min(left, _LOOK_UP))
