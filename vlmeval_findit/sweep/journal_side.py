"""Replies that are kept beside a journal, by who has not its lock: a worker on another machine, or a
process that lost it.

``calls.jsonl.<token>.jsonl`` has the lines of one writer.  When it is large it is sealed, into
``calls.jsonl.d/<token>-000001.jsonl.zst`` with its ``.keys``.  Whoever has the journal's lock takes
both in (:meth:`.Journal.take_in`); a sealed part gets the next number and is read by nobody.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ..core.files import replacing
from .journal_keys import Line, rows_of, write_keys
from .journal_lines import Record, kept, lines
from .journal_segments import folder_of, write_segment

SYNC_SECONDS = 1.0
"""At most so long what was appended is only in the operating system's hands."""

_KEYS = re.compile(r"([0-9a-f]{32}-\d{6})\.keys")
_SEALED = re.compile(r"[0-9a-f]{32}-(\d{6})\.jsonl\.zst")


def side_path(journal: Path, token: str) -> Path:
    """The file beside a journal of the writer that has a token: 32 hexadecimal digits."""
    return journal.with_name(f"{journal.name}.{token}.jsonl")


def live_sides(journal: Path) -> list[Path]:
    """The files beside a journal; what was half taken in comes before what is new."""
    name = re.compile(re.escape(journal.name) + r"\.[0-9a-f]{32}\.jsonl(\.taken)?")
    if not journal.parent.is_dir():
        return []
    found = (path for path in journal.parent.iterdir() if name.fullmatch(path.name))
    return sorted(found, reverse=True)


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


def is_alone(path: Path) -> bool:
    """Whether a file is the keys of a sealed part that was taken in without them."""
    named = _KEYS.fullmatch(path.name)
    return named is not None and not path.with_name(f"{named[1]}.jsonl.zst").exists()


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
        self._lines: list[tuple[str, Line]] = []
        self._answered: set[str] = set()
        self._end = 0
        with os.fdopen(os.dup(self._file), "rb") as f:
            f.seek(0)
            for line in lines(f):
                if not line.ended:
                    break
                if line.record is not None:
                    self._note(line.record, line.start, line.length)
                self._end += line.length
        os.ftruncate(self._file, self._end)

    def answered(self, key: str) -> bool:
        """Whether a call is answered here, in what is not sealed yet."""
        return key in self._answered

    def append(self, records: Iterable[Record]) -> None:
        """Keep the records of calls that were finished together: all of them or none.

        Raises:
            OSError: there is no room.
        """
        made = [kept(record) for record in records]
        start = self.write(b"".join(line for _, line in made))
        for record, line in made:
            self._note(record, start, len(line))
            start += len(line)
        if time.monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()

    def write(self, data: bytes) -> int:
        """Append whole lines; returns where they begin.

        Raises:
            OSError: there is no room; nothing is written.
        """
        while True:
            start = self._end
            self._write(data)
            if self._is_there():
                return start
            # Somebody took the file in before this was in it.
            os.close(self._file)
            self._open()

    def sync(self) -> None:
        """Have the disk hold what was appended."""
        os.fsync(self._file)
        self._synced = time.monotonic()

    def seal(self, least: int) -> None:
        """Compress what is there, if it has so many bytes, and begin anew.

        A call is no longer known as answered then.

        Raises:
            OSError: there is no room; all is as before.
        """
        if self._end < max(1, least):
            return
        self.sync()
        self._folder.mkdir(exist_ok=True)
        number = 1
        while (path := self._folder / f"{self._token}-{number:06}.jsonl.zst").exists():
            number += 1
        with replacing(path) as temporary:
            made, places = write_segment(temporary, self._file, self._end, (path, number))
            side = SealedSide(path, number)
            write_keys(side.keys, [made], rows_of(self._lines, number, places))
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

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            os.ftruncate(self._file, self._end)
            raise
        self._end += len(data)

    def _note(self, record: Any, start: int, length: int) -> None:
        failed, confidences = bool(record["error"]), bool(record.get("confidences"))
        self._lines.append((record["key"], Line(start, length, failed, confidences)))
        if not failed:
            self._answered.add(record["key"])

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file), os.stat(self.path))
        except FileNotFoundError:
            return False
