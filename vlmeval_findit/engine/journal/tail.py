"""Following a journal that somebody else writes: every line once, and no more than some at a time.

What is shown while a sweep runs is no result: checksums are left to whoever opens the journal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .lines import MAX_LINE, plain_record
from .reading import check_journal, open_lines

AT_A_TIME = 8 << 20
"""Bytes that one look reads at most, but for a single longer line, and of a compressed journal."""


class JournalTail:
    """What was added to a journal since the last look; ``left`` are the bytes behind it then.

    Args:
        path: the journal; it need not be there yet.
        at_a_time: bytes of one look.
    """

    def __init__(self, path: Path, at_a_time: int = AT_A_TIME) -> None:
        self.path = path
        self.left = 0
        self._at_a_time = at_a_time
        self._read = 0  # bytes
        self._file: tuple[int, int] | None = None  # that they were in
        self._whole = False  # a compressed journal was read to its end

    def is_another(self) -> bool:
        """Whether the journal is not the one that was read: it was replaced, or cut.

        The next look begins at its beginning then, and what was seen of it counts no more.
        """
        try:
            there = self.path.stat()
        except OSError:
            return False  # it may have been compressed: the lines are the same
        goes_on = self._file == (there.st_dev, there.st_ino) and there.st_size >= self._read
        if goes_on or not self._read:
            return False
        self._read, self._whole = 0, False
        return True

    def records(self) -> Iterator[dict[str, Any]]:
        """The whole lines that are new.

        Raises:
            JournalError: the file is no journal.
        """
        compressed = not self.path.exists()
        if compressed and self._whole:
            return
        if not self._read:
            check_journal(self.path)
        try:
            f = open_lines(self.path)
        except FileNotFoundError:
            return
        with f:
            there = os.fstat(f.fileno())
            self._file, self._whole = (there.st_dev, there.st_ino), compressed
            enough = there.st_size if compressed else self._read + self._at_a_time
            f.seek(self._read)
            while self._read < enough and (raw := f.readline(MAX_LINE)).endswith(b"\n"):
                self._read += len(raw)
                if record := plain_record(raw):
                    yield record
            self.left = max(there.st_size - self._read, 0)
