"""Writing a journal: whatever is killed or full, no reply that was received is lost.

One run at a time writes it (:class:`...core.lock.Lock`).  Its processes, under torchrun, append
whole lines in turn, so nothing is written over where the lock is lost: then the run stops.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ...core.files import is_disk_full, remove_left_behind, replacing
from ...core.lock import Lock, Watch
from .lines import Record, as_line
from .view import JournalError, JournalView, check_journal, pack, packed_path, unpack

log = logging.getLogger(__name__)

RESERVE = 1 << 20  # bytes given up on a full disk, to keep the replies that are on their way
SYNC_SECONDS = 1.0  # at most so long what was appended is only in the operating system's hands
ONE_SWEEP = "two sweeps cannot write the same files at a time"
PACKED_FROM = 64 << 20  # bytes of lines from which on the journal of a complete run is compressed


class DiskFullError(JournalError):
    """No room for more: what was finished is kept, as far as ``lost`` does not say otherwise."""

    errno = errno.ENOSPC

    def __init__(self, path: Path, lost: int) -> None:
        what = f"{lost} replies could not be kept" if lost else "every reply is kept"
        super().__init__(
            f"{path}: the disk is full; {what}. Free some space and run again: "
            "finished calls are not repeated."
        )
        self.path = path
        self.lost = lost


class NotOursError(JournalError):
    """Another run writes the journal, or took it away; every reply is in it."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: something else writes this journal too, or took it away, so this run stops. "
            "Every reply is kept in it: run again to go on."
        )


class Journal(JournalView):
    """The finished calls of one file, which is made where it is not there, and more of them.

    Args:
        shared: another process of this run has the lock, and made the file.

    Raises:
        LockedError: another run has it open.
        JournalError: it is no journal: then nothing is written.
        OSError: it cannot be opened or made.
    """

    def __init__(
        self,
        path: Path,
        reserve: int = RESERVE,
        watch: Watch | None = None,
        *,
        shared: bool = False,
    ) -> None:
        check_journal(path)
        self._file, self._synced, self._dirty = -1, time.monotonic(), False
        self._reserve = path.with_name(f"{path.name}.reserve")
        self._lock: Lock | None = None
        if not shared:
            self._lock = Lock(lock_path(path), ONE_SWEEP, watch)
        try:
            if not shared:
                _unpack(path)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            self._open(path, path.open("rb"))
            if not shared:
                self._cut_torn_end()
                self._hold(reserve)
        except BaseException:
            self._release()
            raise

    def append(self, records: Iterable[Record]) -> None:
        """Keep the records of calls that were finished together: all of them or none.

        One system call writes them at once, so a killed process loses nothing that it received.

        Raises:
            DiskFullError: no room; they are kept all the same where the reserve had room.
            NotOursError: another run writes the journal; they are kept all the same.
        """
        made = list(records)
        if not made:
            return
        whole, full = b"".join(map(as_line, made)), False
        with _alone(self._file):
            if os.fstat(self._file).st_size > self._end:
                self._read_others()
            while not self._write(whole):
                if not self._give_up_reserve():
                    lost = sum("key" in one and not one["error"] for one in made)
                    raise DiskFullError(self.path, lost)
                full = True
            self._read()
        self._dirty = True
        if time.monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()
        if full:
            raise DiskFullError(self.path, 0)
        if not self._is_ours():
            if os.fstat(self._file).st_nlink == 0:
                with self.path.open("ab") as f:
                    f.write(whole)
            raise NotOursError(self.path)

    def note(self, event: Mapping[str, Any]) -> None:
        """Keep something that is no call's, as :meth:`append` does; the disk holds it then."""
        self.append([{"event": dict(event)}])
        self.sync()

    def catch_up(self) -> None:
        """See what other processes of this run appended."""
        with _alone(self._file):
            self._read_others()

    def sync(self) -> None:
        """Have the disk hold what was appended."""
        if self._dirty:
            try:
                os.fsync(self._file)
            except OSError as error:
                # Some file systems find out only now.
                raise full_disk(error, self.path) from None
        self._synced, self._dirty = time.monotonic(), False

    def pack(self) -> None:
        """Compress a large journal at the end of a complete run, where there is room for it."""
        if self._end < PACKED_FROM or not self._is_ours():
            return
        real = Path(os.path.realpath(self.path))
        try:
            self.sync()
            with replacing(packed_path(self.path)) as temporary:
                shutil.copymode(real, temporary)
                with real.open("rb") as source, temporary.open("wb") as target:
                    pack(source, target)
            real.unlink()
        except OSError as error:
            log.warning("%s: could not be compressed (%s)", self.path, error)

    def close(self) -> None:
        """Sync, give back the reserve, let others open it."""
        try:
            self.sync()
        finally:
            self._release()

    # --- the file ---------------------------------------------------------------------------------

    def _release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            super().close()
        if self._lock is not None:
            self._give_up_reserve()
            self._lock.release()

    def _is_ours(self) -> bool:
        with suppress(OSError):
            there = os.path.samestat(os.fstat(self._file), os.stat(self.path))
            return there and (self._lock is None or self._lock.held())
        return False

    def _read_others(self) -> None:
        """Index what others appended, and end a line that one of them did not."""
        self._read()
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            self._end = size + os.write(self._file, b"\n")

    def _write(self, data: bytes) -> bool:
        """Write at the end; False where it does not fit: then nothing of it is there."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            # Not where somebody else wrote all the same: that is not ours to cut.
            if os.fstat(self._file).st_size == self._end + len(data) - len(left):
                os.ftruncate(self._file, self._end)
            full_disk(error, self.path)
            return False
        return True

    def _cut_torn_end(self) -> None:
        size = os.fstat(self._file).st_size
        if size > self._end:
            log.warning("%s: %d bytes of a torn record cut off", self.path, size - self._end)
            os.ftruncate(self._file, self._end)
        self._read_others()

    def _hold(self, size: int) -> None:
        # A disk without room for it is found out by the first reply.
        try:
            self._reserve.write_bytes(bytes(size))
        except OSError as error:
            log.warning("%s: no reserve for a full disk (%s)", self.path, error)
            self._reserve.unlink(missing_ok=True)

    def _give_up_reserve(self) -> bool:
        """Make its room free; False where it was free already."""
        there = self._reserve.exists()
        self._reserve.unlink(missing_ok=True)
        return there


@contextmanager
def _alone(file: int) -> Iterator[None]:
    """While no other process of this run writes; on a disk without locks as well as it can."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)


def _unpack(path: Path) -> None:
    packed, real = packed_path(path), Path(os.path.realpath(path))
    remove_left_behind(real)
    if real.exists() or not packed.exists():
        return
    with replacing(real) as temporary, temporary.open("wb") as f:
        unpack(packed, f)
    packed.unlink()


def full_disk(error: OSError, path: Path) -> DiskFullError:
    """The error for a file that found no room; one of another kind is raised."""
    if not is_disk_full(error):
        raise error
    return DiskFullError(path, 0)


def lock_path(journal: Path) -> Path:
    """The file of a journal's lock."""
    return journal.with_name(f"{journal.name}.lock")
