"""Following a journal that somebody else writes: every line once, and no more than some at a time.

What is shown while a sweep runs is no result: checksums are left to whoever opens the journal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .errors import JournalError
from .lines import MAX_LINE, plain_record
from .reading import Snapshot, problem_of, snapshot
from .segments import Segment, frames

AT_A_TIME = 8 << 20
"""Bytes that one look reads at most, but for a single longer line."""


class JournalTail:
    """What was added to a journal since the last look.

    Args:
        path: the journal; it need not be there yet.
        at_a_time: bytes of one look.
    """

    def __init__(self, path: Path, at_a_time: int = AT_A_TIME) -> None:
        self.path = path
        self._at_a_time = at_a_time
        self._begin()
        self.left = 0

    def _begin(self) -> None:
        self._sealed: list[Segment] = []  # that were read whole
        self._read = 0  # bytes of lines of what comes behind these
        self._frame = (0, 0)  # of a segment: where its frame begins, and that frame's lines
        self._file: tuple[int, int] | None = None

    def is_another(self) -> bool:
        """Whether the journal is not the one that was read: it was replaced, or cut.

        The next look begins at its beginning then, and what was seen of it counts no more.
        """
        try:
            with snapshot(self.path) as there:
                other = not self._goes_on(there)
        except OSError:
            return False
        if other:
            self._begin()
        return other

    def _goes_on(self, there: Snapshot) -> bool:
        known = len(self._sealed)
        if there.segments[:known] != self._sealed:
            return False
        if len(there.segments) > known:
            return there.segments[known].size >= self._read
        if there.live is None or self._file is None:
            return self._read == 0
        return self._file == _name_of(there.live) and there.live_size >= self._read

    def records(self) -> Iterator[dict[str, Any]]:
        """The whole lines that are new; ``left`` are the bytes behind them then.

        Raises:
            JournalError: the file is no journal.
        """
        if self._read == 0 and (problem := problem_of(self.path)):
            raise JournalError(f"{self.path} {problem}")
        try:
            with snapshot(self.path) as there:
                yield from self._new(there)
        except FileNotFoundError:
            return

    def _new(self, there: Snapshot) -> Iterator[dict[str, Any]]:
        start = left = there.size - sum(one.size for one in self._sealed) - self._read
        for segment in there.segments[len(self._sealed) :]:
            for raw in self._of_segment(segment):
                left -= len(raw)
                yield from _record(raw)
                if start - left >= self._at_a_time:
                    self.left = left
                    return
            left -= segment.size - self._read  # what is spoilt
            self._sealed.append(segment)
            self._read, self._frame, self._file = 0, (0, 0), None
        if there.live is not None:
            self._file = _name_of(there.live)
            there.live.seek(self._read)
            while start - left < self._at_a_time:
                raw = there.live.readline(MAX_LINE)
                if not raw.endswith(b"\n"):
                    break
                self._read += len(raw)
                left -= len(raw)
                yield from _record(raw)
        self.left = max(left, 0)

    def _of_segment(self, segment: Segment) -> Iterator[bytes]:
        """The lines of a segment that were not read."""
        start, begin = self._frame
        for frame in frames(segment, start):
            self._frame = frame.start, begin
            at = max(self._read - begin, 0)
            while at < len(frame.lines):
                end = frame.lines.find(b"\n", at) + 1 or len(frame.lines)
                self._read += end - at
                yield frame.lines[at:end]
                at = end
            begin += len(frame.lines)


def _record(raw: bytes) -> Iterator[dict[str, Any]]:
    record = plain_record(raw)
    if record is not None:
        yield record


def _name_of(file: BinaryIO) -> tuple[int, int]:
    there = os.fstat(file.fileno())
    return there.st_dev, there.st_ino
