"""Finished calls, one JSON line a call: appended, never changed, the single source of all results.

A line is written with one system call as soon as its reply is there, so a killed process loses
nothing that it had received; what the operating system holds is made to last (``fsync``) at most a
second later.  A line that was torn by a crash is cut off when the journal is opened again.  When
the disk is full, a reserve beside the journal is given up, so that the replies that were on their
way can still be kept; then the run stops.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

RESERVE = 1 << 20
"""Bytes that are kept free for the replies that are on their way when the disk is full."""

SYNC_SECONDS = 1.0
"""At most so long what was appended is only in the operating system's hands."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

Record = Mapping[str, Any]
"""One line; ``key`` names the call, ``error`` is None for an answer."""


class JournalError(ValueError):
    """A journal that cannot be used; the message says why."""


class DiskFullError(JournalError):
    """No room for more: what was finished is kept, as far as ``lost`` does not say otherwise."""

    def __init__(self, path: Path, lost: int) -> None:
        what = f"{lost} replies could not be kept" if lost else "every reply is kept"
        super().__init__(
            f"{path}: the disk is full; {what}. Free some space and run again: "
            "finished calls are not repeated."
        )
        self.path = path
        self.lost = lost


def full_disk(error: OSError, path: Path) -> DiskFullError:
    """The error for a file that found no room.

    Raises:
        OSError: the given one, where it is of another kind.
    """
    if error.errno not in _FULL:
        raise error
    return DiskFullError(path, 0)


class Lock:
    """An exclusive lock that goes with its process, however that ends.

    Raises:
        JournalError: another process has it; the message says which.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._file, 200, 0).decode("utf-8", "replace").strip()
            os.close(self._file)
            raise JournalError(
                f"{path} is held by {holder or 'another process'}: "
                "two sweeps cannot write the same files at a time"
            ) from None
        self._sign()

    def _sign(self) -> None:
        """Say who holds it; a full disk does not keep anybody from holding it."""
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        except OSError as error:
            log.debug("the lock is not signed: %s", error)

    def release(self) -> None:
        """Let go; the file stays, because removing it would let two processes hold it."""
        os.close(self._file)


@dataclass(frozen=True, slots=True)
class _Line:
    """Where a record lies in the file."""

    start: int
    length: int
    failed: bool


class Journal:
    """The finished calls of one file.  Only one process at a time opens it.

    Args:
        path: the file; made where it is not there.
        reserve: bytes to hold back for a full disk.

    Raises:
        JournalError: another process has it open.
        OSError: it cannot be opened or made.
    """

    def __init__(self, path: Path, reserve: int = RESERVE) -> None:
        self.path = path
        self._lock = Lock(path.with_name(f"{path.name}.lock"))
        self._lines: dict[str, _Line] = {}
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self._end = self._read()
            self._hold(reserve)
        except BaseException:
            self._lock.release()
            raise
        self._synced = time.monotonic()
        self._dirty = False

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
        line = self._lines[key]
        record: dict[str, Any] = json.loads(os.pread(self._file, line.length, line.start))
        return record

    def get(self, key: str) -> dict[str, Any] | None:
        """The record of a call, or None where it was never made."""
        return self[key] if key in self._lines else None

    def append(self, records: Iterable[Record]) -> None:
        """Keep the records of calls that were finished together: all of them or none.

        Raises:
            DiskFullError: no room; they are kept all the same where the reserve had room.
        """
        lines = [(record, _as_line(record)) for record in records]
        whole = b"".join(line for _, line in lines)
        full = False
        while not self._write(whole):
            if not self._give_up_reserve():
                raise DiskFullError(self.path, sum(not record.get("error") for record, _ in lines))
            full = True
        for record, line in lines:
            self._note(record, _Line(self._end, len(line), bool(record.get("error"))))
            self._end += len(line)
        self._dirty = True
        if time.monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()
        if full:
            raise DiskFullError(self.path, 0)

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

    def _write(self, data: bytes) -> bool:
        """Whether the data was written at the end; of data that does not fit nothing stays."""
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(self._file, data[written:], self._end + written)
        except OSError as error:
            os.ftruncate(self._file, self._end)
            if error.errno not in _FULL:
                raise
            return False
        return True

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

    def _note(self, record: Record, line: _Line) -> None:
        """Remember where a call's record is: its first answer, else its last failure."""
        known = self._lines.get(record["key"])
        if known is None or known.failed:
            self._lines[record["key"]] = line

    def _read(self) -> int:
        """Index the file and cut off a torn end; returns where the file ends."""
        end = 0
        with os.fdopen(os.dup(self._file), "rb") as f:
            for raw in f:
                record = _record(raw)
                if record is not None:
                    self._note(record, _Line(end, len(raw), bool(record.get("error"))))
                elif raw.endswith(b"\n"):
                    log.warning("%s: the line at byte %d is no record; left out", self.path, end)
                else:
                    break
                end += len(raw)
        return self._repaired(end)

    def _repaired(self, end: int) -> int:
        """Cut the file where its last whole line ends, and end that line."""
        size = os.fstat(self._file).st_size
        if size > end:
            log.warning("%s: %d bytes of a torn record cut off", self.path, size - end)
            os.ftruncate(self._file, end)
        if end and os.pread(self._file, 1, end - 1) != b"\n":
            end += os.pwrite(self._file, b"\n", end)
        return end


def _as_line(record: Record) -> bytes:
    # Half a surrogate pair, which a model may say, is no UTF-8: as \udXXX it stays what it was.
    return json.dumps(record, ensure_ascii=True).encode("ascii") + b"\n"


def _record(raw: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(record, dict) and isinstance(record.get("key"), str)
    return record if whole else None


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a journal that may be in use, in order; what is torn is left out."""
    with path.open("rb") as f:
        for raw in f:
            record = _record(raw)
            if record is not None:
                yield record
