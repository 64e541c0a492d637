"""Following a journal that somebody else writes: every line once, and no more than some at a time.

What is shown while a sweep runs is no result: checksums are left to whoever opens the journal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .journal_errors import JournalError
from .journal_lines import MAX_LINE, plain_record, problem_of

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
        self._read = 0
        self._file: tuple[int, int] | None = None
        self.left = 0

    def is_another(self) -> bool:
        """Whether the file is not the one that was read: it was replaced, or cut.

        The next look begins at its beginning then, and what was seen of it counts no more.
        """
        try:
            there = self.path.stat()
        except OSError:
            return False
        known, now = self._file, (there.st_dev, there.st_ino)
        other = known is not None and (known != now or there.st_size < self._read)
        if other:
            self._read, self._file = 0, None
        return other

    def records(self) -> Iterator[dict[str, Any]]:
        """The whole lines that are new; ``left`` are the bytes behind them then.

        Raises:
            JournalError: the file is no journal.
        """
        if self._read == 0 and (problem := problem_of(self.path)):
            raise JournalError(f"{self.path} {problem}")
        try:
            f = self.path.open("rb")
        except FileNotFoundError:
            return
        with f:
            there = os.fstat(f.fileno())
            self._file = (there.st_dev, there.st_ino)
            f.seek(self._read)
            until = self._read + self._at_a_time
            while self._read < until and (line := f.readline(MAX_LINE)).endswith(b"\n"):
                self._read += len(line)
                record = plain_record(line)
                if record is not None:
                    yield record
            self.left = max(there.st_size - self._read, 0)
