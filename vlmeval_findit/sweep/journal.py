"""Finished calls, one JSON line a call: appended, never changed, the single source of all results.

A line is written with one system call as soon as its reply is there, so a killed process loses
nothing that it had received; what the operating system holds is made to last (``fsync``) at most a
second later.  A line that was torn by a crash is cut off when the journal is opened again, one that
was spoilt is left out.  When the disk is full, a reserve beside the journal is given up, so that
the replies that were on their way can still be kept; then the run stops.

One process at a time writes a journal (:class:`..core.lock.Lock`).  Where the lock is lost all the
same, or somebody else wrote, nothing is written over: further replies go to a file beside the
journal, which the next process that opens it takes in.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .journal_errors import DiskFullError, JournalError, full_disk, lock_of_a_sweep
from .journal_lines import Record, kept, lines, problem_of

log = logging.getLogger(__name__)

RESERVE = 1 << 20
"""Bytes that are kept free for the replies that are on their way when the disk is full."""

SYNC_SECONDS = 1.0
"""At most so long what was appended is only in the operating system's hands."""


class NotOursError(JournalError):
    """Somebody else writes the journal, or took it away; every reply is kept in ``kept``."""

    def __init__(self, path: Path, kept: Path) -> None:
        super().__init__(
            f"{path}: something else writes this journal too, or took it away, so this run stops. "
            f"Every reply is kept in {kept}: run again to go on."
        )


@dataclass(frozen=True, slots=True)
class _Line:
    """Where a record lies in the file; ``confidences``: it was asked for with them."""

    start: int
    length: int
    failed: bool
    confidences: bool

    @classmethod
    def of(cls, record: Record, start: int, length: int) -> _Line:
        return cls(start, length, bool(record["error"]), bool(record.get("confidences")))


class Journal:
    """The finished calls of one file.  Only one process at a time opens it.

    Args:
        path: the file; made where it is not there.
        reserve: bytes to hold back for a full disk.

    Raises:
        JournalError: another process has it open, or it is no journal: then nothing is written.
        OSError: it cannot be opened or made.
    """

    def __init__(self, path: Path, reserve: int = RESERVE) -> None:
        self.path = path
        problem = problem_of(path)
        if problem:
            raise JournalError(f"{path} {problem}: nothing is written to it. Name another journal.")
        self._lock = lock_of_a_sweep(path.with_name(f"{path.name}.lock"))
        self._beside = path.with_name(f"{path.name}.{self._lock.token}.jsonl")
        self._lines: dict[str, _Line] = {}
        self._before: dict[str, list[_Line]] = {}
        self._synced, self._dirty = time.monotonic(), False
        with ExitStack() as undo:
            undo.callback(self._lock.release)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            undo.callback(os.close, self._file)
            self._end = self._read()
            self._hold(reserve)
            undo.callback(self._give_up_reserve)
            self._take_in()
            undo.pop_all()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *stopped: object) -> None:
        self.close()

    def __contains__(self, key: str) -> bool:
        """Whether a call is answered; a failed one is not."""
        line = self._lines.get(key)
        return line is not None and not line.failed

    def __len__(self) -> int:
        """How many calls are answered."""
        return sum(not line.failed for line in self._lines.values())

    def __getitem__(self, key: str) -> dict[str, Any]:
        """The record of a call: its answer, or the last of its failures.

        Raises:
            KeyError: it was never made.
        """
        return self._record(self._lines[key])

    def _record(self, line: _Line) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(os.pread(self._file, line.length, line.start))
        record.pop("crc32", None)
        return record

    def get(self, key: str) -> dict[str, Any] | None:
        """The record of a call, or None where it was never made."""
        return self[key] if key in self._lines else None

    def serves(self, key: str, *, confidences: bool) -> bool:
        """Whether a call is answered as it is wanted: with ``confidences`` only if the answer was
        asked for with them, whether or not they could be had.
        """
        return key in self and (not confidences or self._lines[key].confidences)

    def is_news(self, record: Record) -> bool:
        """Whether a record from elsewhere says more of its call than is known here."""
        asked = bool(record.get("confidences")) and not record["error"]
        return not self.serves(record["key"], confidences=asked)

    def replies(self, key: str) -> list[str]:
        """The texts of all answers that stood for a call, one after the other."""
        lines = [*self._before.get(key, ()), *([self._lines[key]] if key in self else [])]
        return [self._record(line)["reply"] for line in lines]

    def answers_of(self, model: str, dataset: str) -> Iterator[dict[str, Any]]:
        """The answers to calls that a model got first for a dataset; every record is read."""
        for line in self._lines.values():
            record = {} if line.failed else self._record(line)
            if (record.get("model"), record.get("dataset")) == (model, dataset):
                yield record

    def append(self, records: Iterable[Record]) -> None:
        """Keep the records of calls that were finished together: all of them or none.

        Raises:
            DiskFullError: no room; they are kept all the same where the reserve had room.
            NotOursError: somebody else writes the journal; they are kept beside it.
        """
        made = [kept(record) for record in records]
        if not made:
            return
        whole = b"".join(line for _, line in made)
        if not self._ours():
            self._write_beside(whole)
            raise NotOursError(self.path, self._beside)
        full = False
        while (start := self._write(whole)) is None:
            if not self._give_up_reserve():
                raise DiskFullError(self.path, sum(not record.get("error") for record, _ in made))
            full = True
        alone = start == self._end
        for record, line in made:
            self._note(record["key"], _Line.of(record, start, len(line)))
            start += len(line)
        self._end, self._dirty = start, True
        if time.monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()
        if full:
            raise DiskFullError(self.path, 0)
        if not alone:
            raise NotOursError(self.path, self.path)

    def sync(self) -> None:
        """Have the disk hold what was appended."""
        if self._dirty:
            try:
                os.fsync(self._file)
            except OSError as error:
                # Some file systems find out only now.
                raise full_disk(error, self.path) from None
        self._synced, self._dirty = time.monotonic(), False

    def close(self) -> None:
        """Sync, give back the reserve, let others open it."""
        try:
            self.sync()
        finally:
            self._give_up_reserve()
            os.close(self._file)
            self._lock.release()

    # --- the file ---------------------------------------------------------------------------------

    @property
    def _reserve(self) -> Path:
        return self.path.with_name(f"{self.path.name}.reserve")

    def _ours(self) -> bool:
        """Whether nobody else wrote the file, took it away, or took our lock."""
        there = os.fstat(self._file)
        return there.st_size == self._end and there.st_nlink > 0 and self._lock.held()

    def _write(self, data: bytes) -> int | None:
        """Where the data was written, behind all that is there; None where it does not fit."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            # Of data that does not fit nothing stays, unless it is not ours alone.
            if os.fstat(self._file).st_size == self._end + len(data) - len(left):
                os.ftruncate(self._file, self._end)
            full_disk(error, self.path)
            return None
        return os.lseek(self._file, 0, os.SEEK_CUR) - len(data)

    def _write_beside(self, data: bytes) -> None:
        """Keep data in a file of our own, and see that nobody took that in before it was there."""
        while True:
            with self._beside.open("ab") as f:
                f.write(data)
                f.flush()
                os.fsync(f.fileno())
                written = os.fstat(f.fileno())
            try:
                if os.path.samestat(written, self._beside.stat()):
                    return
            except FileNotFoundError:
                continue

    def _take_in(self) -> None:
        """Take in what processes kept beside the journal that had lost it."""
        for side in _beside(self.path):
            # Whoever still writes there sees by the name that it is too late.
            taken = side.with_name(side.name.removesuffix(".taken") + ".taken")
            side.replace(taken)
            new = 0
            for record in _records(taken):
                if self.is_news(record):
                    self.append([record])
                    new += 1
            self.sync()
            taken.unlink()
            log.warning("%s: %d replies taken in from %s", self.path, new, side.name)

    def _hold(self, size: int) -> None:
        """Take the reserve; a disk without room for it is found out by the first reply."""
        try:
            with self._reserve.open("wb") as f:
                f.write(bytes(size))
        except OSError as error:
            log.warning("%s: no reserve for a full disk (%s)", self.path, error)
            self._reserve.unlink(missing_ok=True)

    def _give_up_reserve(self) -> bool:
        """Make its room free; False where it was free already."""
        there = self._reserve.exists()
        self._reserve.unlink(missing_ok=True)
        return there

    def _note(self, key: str, line: _Line) -> None:
        """Remember where a call's record is: its first answer, else its last failure.

        An answer that was asked for with log-probabilities takes the place of one that was not.
        """
        known = self._lines.get(key)
        if known is None or known.failed:
            self._lines[key] = line
        elif line.confidences and not line.failed and not known.confidences:
            self._before.setdefault(key, []).append(known)
            self._lines[key] = line

    def _read(self) -> int:
        """Index the file and cut off a torn end; returns where the file ends."""
        end = 0
        spoilt: list[int] = []
        with os.fdopen(os.dup(self._file), "rb") as f:
            f.seek(0)
            for line in lines(f):
                if line.record is not None:
                    at = _Line.of(line.record, line.start, line.length)
                    self._note(line.record["key"], at)
                elif line.ended:
                    spoilt.append(line.start)
                else:
                    break
                end += line.length
        if spoilt:
            log.warning(
                "%s: %d lines are no records, or not what was written, and are left out; "
                "the first is at byte %d",
                self.path,
                len(spoilt),
                spoilt[0],
            )
        return self._repaired(end)

    def _repaired(self, end: int) -> int:
        """Cut the file where its last whole line ends, and end that line."""
        size = os.fstat(self._file).st_size
        if size > end:
            log.warning("%s: %d bytes of a torn record cut off", self.path, size - end)
            os.ftruncate(self._file, end)
        if end and os.pread(self._file, 1, end - 1) != b"\n":
            end += os.write(self._file, b"\n")
        return end


def _beside(path: Path) -> list[Path]:
    """What processes kept beside a journal; what was half taken in comes before what is new."""
    name = re.compile(re.escape(path.name) + r"\.[0-9a-f]{32}\.jsonl(\.taken)?")
    if not path.parent.is_dir():
        return []
    found = (p for p in path.parent.iterdir() if name.fullmatch(p.name))
    return sorted(found, reverse=True)


def is_whole(path: Path) -> bool:
    """Whether a journal is all in one file, and ends with a whole line."""
    with path.open("rb") as f:
        size = f.seek(0, os.SEEK_END)
        f.seek(max(0, size - 1))
        return f.read() == b"\n" and not _beside(path)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as f:
        for line in lines(f):
            if line.record is not None:
                yield line.record


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a journal that may be in use, in order; what is torn or spoilt is left out.

    Raises:
        JournalError: it is no journal.
    """
    problem = problem_of(path)
    if problem:
        raise JournalError(f"{path} {problem}")
    for part in (path, *_beside(path)):
        yield from _records(part)
