"""Write a journal that never loses a received reply, even if killed or on a full disk.

One run at a time writes it (:class:`...core.Lock`); its processes, under torchrun, append
whole lines in turn. If the lock is lost, nothing is overwritten and the run stops.
"""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ...core import Lock, counted, is_disk_full, locked, too_many_files
from .view import (
    MOST_AT_A_TIME,
    JournalCutError,
    JournalError,
    JournalView,
    Record,
    check_journal,
    encode_record,
)

log = logging.getLogger(__name__)

RESERVE = 1 << 20  # bytes freed on a full disk, for replies in flight
_END_BYTES = 64  # before the end of the file: with the checksum of the last line
SYNC_SECONDS = 1.0  # longest time between append and fsync
# Why a journal or sweep that another process writes is refused
ONE_WRITER = "two sweeps cannot write the same files at a time"


class DiskFullError(JournalError):
    """The disk is full; everything is stored but ``lost`` replies."""

    errno = errno.ENOSPC

    def __init__(self, path: Path, lost: int) -> None:
        what = (
            f"{counted(lost, 'reply', 'replies')} could not be stored"
            if lost
            else "every reply is stored"
        )
        super().__init__(
            f"{path}: the disk is full; {what}. Free some space and run again: "
            "finished calls are not repeated."
        )
        self.path = path
        self.lost = lost


class JournalTakenError(JournalError):
    """Another run writes or removed the journal; every reply is in it."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: another program writes this journal too, or removed it, so this run stops. "
            "Every reply is stored in it: run again to go on."
        )


class UnwrittenError(JournalError):
    """A run's files cannot be written, though calls were made."""

    def __init__(self, path: Path, error: OSError, kept: str = "") -> None:
        why = f"{error.filename or path}: {error.strerror or error}"
        kept = kept or f"every reply is stored in {path}"
        super().__init__(f"{why}; {kept}. Once that is mended, type the same command again")


class Journal(JournalView):
    """The finished calls of one file, which is created if needed, and more of them.

    Args:
        shared: another process of this run has the lock, and created the file.
        has_others: other processes of this run append, too.

    Raises:
        LockedError: another run has it open.
        JournalError: it is no journal; nothing is written.
        OSError: it cannot be opened or created.
    """

    def __init__(
        self,
        path: Path,
        reserve: int = RESERVE,
        *,
        shared: bool = False,
        has_others: bool = False,
    ) -> None:
        check_journal(path)
        self._file = -1
        self._synced = time.monotonic()
        self._dirty = False
        self._is_unsure = False
        self._end_seen = b""  # what stood before the end
        self._is_cut = False
        self._stored_again = 0  # bytes, of a removed journal
        self._has_others = shared or has_others
        self._reserve = path.with_name(f"{path.name}.reserve")
        self._lock: Lock | None = None
        if not shared:
            self._lock = Lock(lock_path(path), ONE_WRITER)
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            self._open(path)
            if not shared:
                self._cut_torn_end()
                self._reserve_room(reserve)
            self._see_end()
        except BaseException:
            self._release()
            raise

    def append(self, records: Iterable[Record]) -> None:
        """Append records with one system call: all of them or none.

        Raises:
            DiskFullError: no room; they are stored anyway if the reserve had room.
            JournalTakenError: another run writes or removed the journal; they are stored anyway.
            JournalCutError: earlier replies are gone; these are stored.
            UnwrittenError: it was removed, and cannot be stored again.
        """
        new = list(records)
        if not new:
            return
        lines = b"".join(map(encode_record, new))
        full = False
        with self._appending():
            self._look_for_cuts()
            if self._is_cut:
                self._end_line()
            elif os.fstat(self._file).st_size > self._end:
                self._read_others()
            while not self._write(lines):
                if not self._free_reserve():
                    lost = sum("key" in record and not record["error"] for record in new)
                    raise DiskFullError(self.path, lost)
                full = True
            if not self._is_cut:
                self._read()
                self._see_end()
        self._dirty = True
        if time.monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()
        if full:
            raise DiskFullError(self.path, 0)
        self.check_kept()
        if self._is_taken():
            raise JournalTakenError(self.path)

    def check_kept(self) -> None:
        """Raise an error if another program removed the journal, or cut it off.

        A removed one is stored again, with all that it had.

        Raises:
            JournalTakenError: it was removed.
            JournalCutError: earlier replies are gone.
            UnwrittenError: it was removed, and cannot be stored again.
        """
        self._look_for_cuts()
        if self._is_cut:
            raise JournalCutError(self.path)
        if not self._is_removed():
            return
        try:
            self._store_again()
        except OSError as error:
            kept = "it was removed, and the replies in it are lost"
            raise UnwrittenError(self.path, error, kept) from None
        raise JournalTakenError(self.path)

    def _is_removed(self) -> bool:
        if self._stored_again:
            return True
        try:
            os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # of the disk, which tells nothing
            return False
        return os.fstat(self._file).st_nlink == 0

    def _store_again(self) -> None:
        """Store what was not yet stored again: as long as it is open, its content is there."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab", buffering=0) as f:
            while data := os.pread(self._file, MOST_AT_A_TIME, self._stored_again):
                whole = data[: data.rfind(b"\n") + 1] or data
                f.write(whole)
                self._stored_again += len(whole)
            os.fsync(f.fileno())

    def _see_end(self) -> None:
        """Remember what stands before the end, by which a cut is noticed."""
        size = min(self._end, _END_BYTES)
        self._end_seen = os.pread(self._file, size, self._end - size)

    def _look_for_cuts(self) -> None:
        size = len(self._end_seen)
        if os.pread(self._file, size, self._end - size) != self._end_seen:
            self._is_cut = True

    def note(self, event: Mapping[str, Any]) -> None:
        """Append an event and sync it; raises as :meth:`append` does."""
        self.append([{"event": dict(event)}])
        self.sync()

    def catch_up(self) -> None:
        """Index what other processes of this run appended."""
        with self._appending():
            self._read_others()
            self._see_end()

    def sync(self) -> None:
        if self._dirty:
            try:
                os.fsync(self._file)
            except OSError as error:
                # Some file systems report a full disk only now.
                raise full_disk(error, self.path) from None
        self._synced = time.monotonic()
        self._dirty = False

    def close(self) -> None:
        """Sync, free the reserve, release the lock; a closed journal stays as it is."""
        if self._file < 0:
            return
        try:
            self.sync()
        finally:
            self._release()

    def _release(self) -> None:
        # Forgotten first: the number may be another file's next, and the lock another run's.
        file = self._file
        self._file = -1
        lock = self._lock
        self._lock = None
        if file >= 0:
            os.close(file)
            super().close()
        if lock is not None:
            self._free_reserve()
            lock.release()

    def _appending(self) -> AbstractContextManager[None]:
        """Let the processes of this run append in turn; one alone needs no lease for that."""
        lease = self.path.with_name(f"{self.path.name}.lease") if self._has_others else None
        return locked(self._file, self.path, wait=True, lease=lease)

    def _is_taken(self) -> bool:
        """Return whether another run writes or removed the journal.

        Where that cannot be told (too many open files, a disk that does not answer), a warning says
        so, once: nothing shows another run, and the reply is stored.
        """
        try:
            is_same = os.path.samestat(os.fstat(self._file), os.stat(self.path))
            return not is_same or (self._lock is not None and not self._lock.held())
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError as error:
            if not self._is_unsure:
                why = too_many_files(error) or error.strerror or str(error)
                log.warning("%s: whether another run writes it cannot be told (%s)", self.path, why)
            self._is_unsure = True
            return False

    def _read_others(self) -> None:
        """Index what others appended; end an unterminated last line."""
        self._read()
        self._end = self._end_line() or self._end

    def _end_line(self) -> int:
        """End an unterminated last line; return where it ends then, 0 if there was none."""
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            return size + os.write(self._file, b"\n")
        return 0

    def _write(self, data: bytes) -> bool:
        """Append; return False, with nothing written, if it does not fit."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            # Truncate only if nobody else wrote meanwhile.
            if os.fstat(self._file).st_size == self._end + len(data) - len(left):
                os.ftruncate(self._file, self._end)
            full_disk(error, self.path)
            return False
        return True

    def _cut_torn_end(self) -> None:
        size = os.fstat(self._file).st_size
        if size > self._end:
            log.warning(
                "%s: %d bytes of an incomplete record were cut off", self.path, size - self._end
            )
            os.ftruncate(self._file, self._end)
        self._read_others()

    def _reserve_room(self, size: int) -> None:
        # On a full disk the first reply finds out.
        try:
            self._reserve.write_bytes(bytes(size))
        except OSError as error:
            log.warning("%s: no space could be reserved for a full disk (%s)", self.path, error)
            self._reserve.unlink(missing_ok=True)

    def _free_reserve(self) -> bool:
        """Free its room; False if it was free already."""
        try:
            self._reserve.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True


def full_disk(error: OSError, path: Path) -> DiskFullError:
    """Return the error for a full disk; raise any other."""
    if not is_disk_full(error):
        raise error
    return DiskFullError(path, 0)


def lock_path(journal: Path) -> Path:
    """Return the path of a journal's lock file."""
    return journal.with_name(f"{journal.name}.lock")
