"""Writing a journal.

The lines of calls that came home together are written with one system call as soon as they are
there, so a killed process loses nothing that it had received; what the operating system holds is
made to last (``fsync``) at most a second later.  A line that was torn by a crash is cut off when
the journal is opened again, one that was spoilt is left out.  When the disk is full, a reserve
beside the journal is given up, so that the replies that were on their way can still be kept; then
the run stops.

One run at a time writes a journal (:class:`...core.lock.Lock`).  Its processes, under torchrun, all
append to it: whole lines at its end, one process at a time.  So nothing is written over where the
lock is lost all the same, either: then the run stops.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ...core.files import remove_left_behind, replacing
from ...core.lock import Lock, Watch
from .errors import DiskFullError, JournalError, full_disk, lock_of_a_sweep, lock_path
from .lines import Line, Record, as_line, line_of, stored
from .lookup import JournalView
from .reading import check_journal, pack, packed_path, unpack

log = logging.getLogger(__name__)

RESERVE = 1 << 20
"""Bytes that are kept free for the replies that are on their way when the disk is full."""

SYNC_SECONDS = 1.0
"""At most so long what was appended is only in the operating system's hands."""

PACKED_FROM = 64 << 20
"""Bytes of lines from which on a journal is compressed when its run is complete."""


class NotOursError(JournalError):
    """Another run writes the journal, or took it away; every reply is in it."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: something else writes this journal too, or took it away, so this run stops. "
            "Every reply is kept in it: run again to go on."
        )


class Journal(JournalView):
    """The finished calls of one file, and more of them.

    Args:
        path: the file; made where it is not there.
        reserve: bytes to hold back for a full disk.
        watch: what has been watching its lock.
        shared: another process of this run has the lock, and made the file.

    Raises:
        JournalError: another run has it open, or it is no journal: then nothing is written.
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
        try:
            check_journal(path)
        except JournalError as error:
            raise JournalError(
                f"{error}: nothing is written to it. Name another journal."
            ) from None
        self._lock: Lock | None = None
        self._file, self._synced, self._dirty = -1, time.monotonic(), False
        self._reserve = path.with_name(f"{path.name}.reserve")
        if not shared:
            self._lock = lock_of_a_sweep(lock_path(path), watch)
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

        Raises:
            DiskFullError: no room; they are kept all the same where the reserve had room.
            NotOursError: another run writes the journal; they are kept all the same.
        """
        made = [(line_of(record, 0, len(raw)), raw) for record, raw in map(stored, records)]
        if made:
            self._append(made)

    def note(self, event: Mapping[str, Any]) -> None:
        """Keep something that is no call's, as :meth:`append` does; the disk holds it then."""
        raw = as_line({"event": dict(event)})
        self._append([(Line(0, len(raw), ""), raw)])
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
        """Compress a large journal whose run is complete: the last thing that is done with it.

        Where there is no room for it, it stays as it is.
        """
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
        """Whether nobody took our lock, or the file away."""
        with suppress(OSError):
            there = os.path.samestat(os.fstat(self._file), os.stat(self.path))
            return there and (self._lock is None or self._lock.held())
        return False

    def _append(self, made: Sequence[tuple[Line, bytes]]) -> None:
        whole, full = b"".join(raw for _, raw in made), False
        with _alone(self._file):
            if os.fstat(self._file).st_size > self._end:
                self._read_others()
            while not self._write(whole):
                if not self._give_up_reserve():
                    lost = sum(bool(line.key and not line.failed) for line, _ in made)
                    raise DiskFullError(self.path, lost)
                full = True
            if os.lseek(self._file, 0, os.SEEK_CUR) == self._end + len(whole):
                for line, _ in made:
                    self._note(line._replace(start=self._end))
                    self._end += line.length
            else:  # on a disk without locks
                self._read_others()
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
        """Cut the file where its last whole line ends, and end that line."""
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
    """Have a plain file in place of a compressed one, to go on with."""
    packed, real = packed_path(path), Path(os.path.realpath(path))
    remove_left_behind(real)
    if real.exists() or not packed.exists():
        return
    with replacing(real) as temporary, temporary.open("wb") as f:
        unpack(packed, f)
    packed.unlink()
