"""Read and follow a journal without a lock while others may write it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from ...core.files import open_regular
from .records import RecordState, decode, is_journal, key_and_state

log = logging.getLogger(__name__)

AT_A_TIME = 8 << 20  # bytes per look, unless one line is longer


class JournalError(ValueError):
    """A journal cannot be used."""

    lost = 0  # replies that could not be stored


class JournalView:
    """The finished calls of a journal by key, and its events, as of when it was opened.

    Of several records of a call its first answer counts, else its last failure; an answer with
    log-probabilities replaces one without. One thread may append while another reads.

    Raises:
        FileNotFoundError: there is none.
        JournalError: it is no journal.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        check_journal(path)
        self._open(path)

    def _open(self, path: Path) -> None:
        self.path = path
        self._lines = open_regular(path)
        # Start, length and state in one number each: a million calls take 200 MB.
        self._index: dict[str, int] = {}
        self._events: list[dict[str, Any]] = []
        self._end = 0
        self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *stopped: object) -> None:
        self.close()

    def close(self) -> None:
        self._lines.close()

    def __contains__(self, key: str) -> bool:
        """Return whether a call has an answer; a failure does not count."""
        return self._state(key) > RecordState.FAILED

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the record of a call: its answer, else its last failure, else None."""
        if (place := self._index.get(key)) is None:
            return None
        return decode(os.pread(self._lines.fileno(), place >> 2 & _LENGTH, place >> 34))

    def serves(self, key: str, *, logprobs: bool) -> bool:
        """Return whether a call is answered, with log-probabilities if they are requested."""
        return self._state(key) > logprobs

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield all records in order, replaced ones too."""
        for start, line in self._lines_from(0):
            if start >= self._end:
                return
            if (record := decode(line)) is not None and "key" in record:
                yield record

    def events(self) -> Iterator[dict[str, Any]]:
        yield from (dict(event) for event in self._events)

    def _state(self, key: str) -> int:
        """Return the :class:`.RecordState` of a call, -1 if unknown."""
        place = self._index.get(key)
        return -1 if place is None else place & 3

    def _lines_from(self, start: int) -> Iterator[tuple[int, bytes]]:
        """Yield starts and lines; a fresh buffer, as an old one may hold what was cut off."""
        with os.fdopen(os.dup(self._lines.fileno()), "rb") as f:
            f.seek(start)
            for line in f:
                yield start, line
                start += len(line)

    def _read(self) -> None:
        damaged = []
        for start, line in self._lines_from(self._end):
            head = key_and_state(line)
            if head is None and not line.endswith(b"\n"):
                break  # torn
            self._end = start + len(line)
            if head is None:
                damaged.append(start)
                continue
            key, state = head
            if not key:
                self._events.append((decode(line) or {})["event"])
            elif state > (before := self._state(key)) or state == before == RecordState.FAILED:
                self._index[key] = start << 34 | len(line) << 2 | state
        if damaged:
            what = "lines are no records, or not what was written, and are left out"
            log.warning(
                "%s: %d %s; the first is at byte %d", self.path, len(damaged), what, damaged[0]
            )


_LENGTH = (1 << 32) - 1
"""Mask of a line's length: a reply has up to 64 MiB, six times as much with JSON's escapes."""


def check_journal(path: Path) -> None:
    """Raise JournalError for a file that is no journal; a missing one is fine."""
    if not path.exists():
        return
    if not path.is_file():
        raise JournalError(f"{path} is no regular file. Name another journal.")
    with path.open("rb") as f:
        if not is_journal(f):
            raise JournalError(
                f"{path} does not begin with a record of a journal of this version. Name another."
            )


class JournalTail:
    """What was added to a journal since the last look, ``left`` bytes short of its end.

    The journal may not exist yet.
    """

    def __init__(self, path: Path, at_a_time: int = AT_A_TIME) -> None:
        self.path = path
        self.left = 0
        self._at_a_time = at_a_time
        self._read = 0  # bytes
        self._file: tuple[int, int] | None = None  # device and inode of the file that was read

    def is_another(self) -> bool:
        """Return whether the journal was replaced or truncated; the next look starts over."""
        try:
            stat = self.path.stat()
        except OSError:
            return False
        goes_on = self._file == (stat.st_dev, stat.st_ino) and stat.st_size >= self._read
        if goes_on or not self._read:
            return False
        self._read = 0
        return True

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the new complete records; JournalError if the file is no journal."""
        if not self._read:
            check_journal(self.path)
        try:
            f = open_regular(self.path)
        except FileNotFoundError:
            return
        with f:
            stat = os.fstat(f.fileno())
            self._file, end = (stat.st_dev, stat.st_ino), self._read + self._at_a_time
            f.seek(self._read)
            while self._read < end and (line := f.readline()).endswith(b"\n"):
                self._read += len(line)
                if (record := decode(line)) is not None and "key" in record:
                    yield record
            self.left = max(stat.st_size - self._read, 0)
