"""Finished calls, one JSON line a call: appended, never changed, the single source of all results.

The lines of calls that came home together are written with one system call as soon as they are
there, so a killed process loses nothing that it had received; what the operating system holds is
made to last (``fsync``) at most a second later.  A line that was torn by a crash is cut off when
the journal is opened again, one that was spoilt is left out.  When the disk is full, a reserve
beside the journal is given up, so that the replies that were on their way can still be kept; then
the run stops.

One process at a time writes a journal (:class:`...core.lock.Lock`).  Where the lock is lost all the
same, or somebody else wrote, nothing is written over: further replies go to a file beside the
journal (:mod:`.shards`), which the next process that opens it merges into it.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.files import remove_left_behind, replacing
from ...core.lock import Watch
from .errors import DiskFullError, JournalError, full_disk, lock_of_a_sweep, lock_path
from .lines import Line, Record, as_line, line_of, stored
from .lookup import Lookup
from .packed import pack, packed_path, unpack
from .reading import problem_of, records_of
from .shards import append_to_shard, shards_of, take, write_whole

log = logging.getLogger(__name__)

RESERVE = 1 << 20
"""Bytes that are kept free for the replies that are on their way when the disk is full."""

SYNC_SECONDS = 1.0
"""At most so long what was appended is only in the operating system's hands."""

PACKED_FROM = 64 << 20
"""Bytes of lines from which on a journal is compressed when its run is complete."""


class NotOursError(JournalError):
    """Somebody else writes the journal, or took it away; every reply is kept in ``kept``."""

    def __init__(self, path: Path, kept: Path) -> None:
        super().__init__(
            f"{path}: something else writes this journal too, or took it away, so this run stops. "
            f"Every reply is kept in {kept}: run again to go on."
        )


class Journal(Lookup):
    """The finished calls of one file.  Only one process at a time opens it; who only wants to look
    something up opens a :class:`.lookup.JournalView`.

    Args:
        path: the file; made where it is not there.
        reserve: bytes to hold back for a full disk.
        watch: what has been watching its lock.

    Raises:
        JournalError: another process has it open, or it is no journal: then nothing is written.
        OSError: it cannot be opened or made.
    """

    def __init__(self, path: Path, reserve: int = RESERVE, watch: Watch | None = None) -> None:
        super().__init__(path)
        if problem := problem_of(path):
            raise JournalError(f"{path} {problem}: nothing is written to it. Name another journal.")
        self._lock = lock_of_a_sweep(lock_path(path), watch)
        self._file, self._synced, self._dirty = -1, time.monotonic(), False
        try:
            remove_left_behind(Path(os.path.realpath(path)))
            self._unpack()
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            self._end = self._repaired(self._read(path.open("rb")))
            self._hold(reserve)
            self._merge_shards()
        except BaseException:
            self._release()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *stopped: object) -> None:
        self.close()

    def append(self, records: Iterable[Record]) -> None:
        """Keep the records of calls that were finished together: all of them or none.

        Raises:
            DiskFullError: no room; they are kept all the same where the reserve had room.
            NotOursError: somebody else writes the journal; they are kept beside it.
        """
        made = [(line_of(record, 0, len(raw)), raw) for record, raw in map(stored, records)]
        if made:
            self._append(made)

    def note(self, event: Mapping[str, Any]) -> None:
        """Keep something that is no call's; the disk holds it then, and all that was appended.

        Raises:
            DiskFullError: no room.
            NotOursError: somebody else writes the journal.
        """
        raw = as_line({"event": dict(event)})
        self._append([(Line(0, len(raw), ""), raw)])
        self.sync()

    def sync(self) -> None:
        """Have the disk hold what was appended."""
        if self._dirty:
            try:
                os.fsync(self._file)
            except OSError as error:
                # Some file systems find out only now.
                raise full_disk(error, self.path) from None
        self._synced, self._dirty = time.monotonic(), False

    def merge_shards(self) -> None:
        """Append what others kept beside the journal, as far as it is news.

        Raises:
            JournalError: somebody else writes the journal, or there is no room; what was not
                appended is where it was.
            OSError: of another kind than a full disk.
        """
        try:
            self._merge_shards()
        except OSError as error:
            raise full_disk(error, self.path) from None

    def pack(self) -> None:
        """Compress a large journal whose run is complete: the last thing that is done with it.

        Where there is no room for it, it stays as it is.
        """
        if self._end < PACKED_FROM or not self._ours():
            return
        try:
            self.sync()
            with replacing(packed_path(self.path)) as temporary:
                real = Path(os.path.realpath(self.path))
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

    @property
    def _reserve(self) -> Path:
        return self.path.with_name(f"{self.path.name}.reserve")

    def _release(self) -> None:
        self._give_up_reserve()
        for f in self._files:
            f.close()
        if self._file >= 0:
            os.close(self._file)
        self._lock.release()

    def _ours(self) -> bool:
        """Whether nobody else wrote the file, took it away, or took our lock."""
        there = os.fstat(self._file)
        return there.st_size == self._end and there.st_nlink > 0 and self._lock.held()

    def _is_there(self) -> bool:
        """Whether the file that is open still is the one that has the name."""
        try:
            return os.path.samestat(os.fstat(self._file), os.stat(self.path))
        except OSError:
            return False

    def _append(self, made: Sequence[tuple[Line, bytes]]) -> None:
        whole = b"".join(raw for _, raw in made)
        if not self._ours():
            raise NotOursError(self.path, append_to_shard(self.path, self._lock.token, whole))
        full = False
        while not self._write(whole):
            if not self._give_up_reserve():
                raise DiskFullError(self.path, sum(bool(a.key and not a.failed) for a, _ in made))
            full = True
        start = os.lseek(self._file, 0, os.SEEK_CUR) - len(whole)
        alone = start == self._end
        for line, _ in made:
            self._note(line._replace(start=start))
            start += line.length
        self._end, self._dirty = start, True
        if time.monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()
        if full:
            raise DiskFullError(self.path, 0)
        if not self._is_there():
            # Somebody took the journal away in the middle of the write.
            raise NotOursError(self.path, append_to_shard(self.path, self._lock.token, whole))
        if not alone:
            raise NotOursError(self.path, self.path)

    def _write(self, data: bytes) -> bool:
        """Write behind all that is there; False where it does not fit."""
        try:
            write_whole(self._file, data)
        except OSError as error:
            full_disk(error, self.path)
            return False
        return True

    def _merge_shards(self) -> None:
        for shard in shards_of(self.path):
            log.warning("%s: what was kept beside it is merged into it", self.path)
            taken = take(shard)
            with taken.open("rb") as f:
                for record in filter(self._is_news, records_of(f)):
                    self.append([record])
            self.sync()
            taken.unlink()

    def _is_news(self, record: Record) -> bool:
        """Whether a record from elsewhere says more of its call than is known here."""
        asked = bool(record.get("confidences")) and not record["error"]
        return not self.serves(record["key"], confidences=asked)

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

    def _unpack(self) -> None:
        """Have a plain file in place of a compressed one, to go on with."""
        packed, real = packed_path(self.path), Path(os.path.realpath(self.path))
        if real.exists() or not packed.exists():
            return
        with replacing(real) as temporary, temporary.open("wb") as f:
            unpack(packed, f)
        packed.unlink()

    def _repaired(self, end: int) -> int:
        """Cut the file where its last whole line ends, and end that line."""
        size = os.fstat(self._file).st_size
        if size > end:
            log.warning("%s: %d bytes of a torn record cut off", self.path, size - end)
            os.ftruncate(self._file, end)
        if end and os.pread(self._file, 1, end - 1) != b"\n":
            end += os.write(self._file, b"\n")
        return end
