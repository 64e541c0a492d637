"""Replies that are kept beside a journal, by who has not its lock: a worker on another machine, or
a process that lost it.

``calls.jsonl.<token>.jsonl`` has the lines of one writer.  When it is large it is sealed, into
``calls.jsonl.d/<token>-000001.jsonl.zst`` with its ``.keys``.  Whoever has the journal's lock takes
both in (:meth:`.Journal.take_in`); a sealed part gets the next number and is read by nobody.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Container, Iterable
from pathlib import Path
from typing import NamedTuple

from ...core.files import replacing
from .keys import line_of, rows_within, write_keys
from .lines import Record, kept
from .plain import PlainLines
from .segments import folder_of, write_segment

SYNC_SECONDS = 1.0
"""At most so long what was appended is only in the operating system's hands."""

_SEALED = re.compile(r"[0-9a-f]{32}-(\d{6})\.jsonl\.zst")


def side_path(journal: Path, token: str) -> Path:
    """The file beside a journal of the writer that has a token: 32 hexadecimal digits."""
    return journal.with_name(f"{journal.name}.{token}.jsonl")


def live_sides(journal: Path) -> list[Path]:
    """The files beside a journal; what was half taken in comes before what is new of its writer."""
    name = re.compile(re.escape(journal.name) + r"\.[0-9a-f]{32}\.jsonl(\.taken)?")
    if not journal.parent.is_dir():
        return []
    found = (path for path in journal.parent.iterdir() if name.fullmatch(path.name))
    return sorted(
        found, key=lambda path: (path.name.removesuffix(".taken"), path.suffix == ".jsonl")
    )


class SealedSide(NamedTuple):
    """What was sealed beside a journal, and its file of keys, which need not be there."""

    path: Path
    number: int

    @property
    def keys(self) -> Path:
        return self.path.with_name(self.path.name.replace(".jsonl.zst", ".keys"))


def sealed_sides(journal: Path) -> list[SealedSide]:
    """What was sealed beside a journal, in the order of each writer."""
    try:
        names = sorted(os.listdir(folder_of(journal)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    named = ((name, _SEALED.fullmatch(name)) for name in names)
    return [SealedSide(folder_of(journal) / name, int(of[1])) for name, of in named if of]


def is_alone(path: Path, known: Container[Path]) -> bool:
    """Whether a file is one of keys, but neither among those that are known nor of a sealed part
    that is still to be taken in.
    """
    if path.suffix != ".keys" or path in known:
        return False
    return not path.with_name(path.name.replace(".keys", ".jsonl.zst")).exists()


class Side:
    """The lines of one writer beside a journal.  There is one process at a time with a token.

    What is there already of the same token goes on; a torn end is cut off.

    Args:
        journal: beside which journal.
        token: names the writer: 32 hexadecimal digits.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, journal: Path, token: str) -> None:
        self.path = side_path(journal, token)
        self._folder = folder_of(journal)
        self._token = token
        self._synced = time.monotonic()
        self._open()

    def _open(self) -> None:
        how = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self.path, how, 0o666)
        self._plain = PlainLines(self._file)
        self._end = self._plain.index().end
        self._safe = self._end
        os.ftruncate(self._file, self._end)

    def answered(self, key: str) -> bool:
        """Whether a call is answered here, in what is not sealed yet."""
        return any(not line.failed for line in self._plain.lines(key))

    def append(self, records: Iterable[Record]) -> None:
        """Keep the records of calls that were finished together: all of them or none.

        Raises:
            OSError: there is no room.
        """
        made = [kept(record) for record in records]
        start = self.write(b"".join(line for _, line in made))
        for record, line in made:
            self._plain.note(record["key"], line_of(record, start, len(line)))
            start += len(line)
        if time.monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()

    def write(self, data: bytes) -> int:
        """Append whole lines; returns where they begin.

        Raises:
            OSError: there is no room; nothing is written.
        """
        start, left = self._end, memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            os.ftruncate(self._file, start)
            raise
        self._end += len(data)
        return start

    def sync(self) -> None:
        """Have the disk hold what was appended, and see that nobody took the file in before that
        was in it.

        Raises:
            OSError: there is no room.
        """
        os.fsync(self._file)
        while not self._is_there():
            late = os.pread(self._file, self._end - self._safe, self._safe)
            os.close(self._file)
            self._open()
            self.write(late)
            os.fsync(self._file)
            self._plain.index()
        self._synced, self._safe = time.monotonic(), self._end

    def seal(self, least: int) -> None:
        """Compress what is there, if it has so many bytes, and begin anew.

        A call is no longer known as answered then.

        Raises:
            OSError: there is no room; all is as before.
        """
        if self._end < max(1, least):
            return
        self.sync()
        if os.fstat(self._file).st_size != self._end:
            # A worker that was given up for dead still wrote: no line is where it was noted.
            os.close(self._file)
            self._open()
        self._folder.mkdir(exist_ok=True)
        number = 1
        while (path := self._folder / f"{self._token}-{number:06}.jsonl.zst").exists():
            number += 1
        with replacing(path) as temporary:
            made, places = write_segment(temporary, self._file, self._end, (path, number))
            side = SealedSide(path, number)
            write_keys(side.keys, [made], rows_within(self._plain.noted(), number, places))
        # Whoever is killed here leaves the same lines twice.
        self.path.unlink(missing_ok=True)
        os.close(self._file)
        self._open()

    def close(self) -> None:
        """Sync it; a file without a line is gone."""
        self.sync()
        os.close(self._file)
        if not self._end:
            self.path.unlink(missing_ok=True)

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file), os.stat(self.path))
        except FileNotFoundError:
            return False
