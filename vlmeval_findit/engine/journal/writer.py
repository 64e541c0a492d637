"""Finished calls, one JSON line a call: appended, never changed, the single source of all results.

When the file has ``SEGMENT`` bytes, its lines are sealed: compressed and indexed beside it
(:mod:`.segments`, :mod:`.keys`), and an empty file takes its place.  So opening a
journal reads the lines of the file and not those of its segments.

A line is written with one system call as soon as its reply is there, so a killed process loses
nothing that it had received; what the operating system holds is made to last (``fsync``) at most a
second later.  A line that was torn by a crash is cut off when the journal is opened again, one that
was spoilt is left out.  When the disk is full, a reserve beside the journal is given up, so that
the replies that were on their way can still be kept; then the run stops.

One process at a time writes a journal (:class:`...core.lock.Lock`).  Where the lock is lost all the
same, or somebody else wrote, nothing is written over: further replies go to a file beside the
journal, which the next process that opens it takes in.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ...core.files import remove_left_behind, replacing
from ...core.lock import Watch
from .errors import DiskFullError, JournalError, full_disk, lock_of_a_sweep, lock_path
from .keys import line_of
from .lines import Record, kept
from .lookup import Lookup
from .plain import PlainLines
from .reading import has_sides, is_sealed, plain_records, problem_of
from .sealed import Sealed
from .segments import segments_of
from .side import (
    SYNC_SECONDS,
    SealedSide,
    Side,
    live_sides,
    sealed_sides,
    side_path,
)

log = logging.getLogger(__name__)

RESERVE = 1 << 20
"""Bytes that are kept free for the replies that are on their way when the disk is full."""

SEGMENT = 64 << 20
"""Bytes of lines after which a journal is sealed; a smaller one has no segments."""


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

    _sealed: Sealed

    def __init__(self, path: Path, reserve: int = RESERVE, watch: Watch | None = None) -> None:
        self.path = path
        problem = problem_of(path)
        if problem:
            raise JournalError(f"{path} {problem}: nothing is written to it. Name another journal.")
        self._lock = lock_of_a_sweep(lock_path(path), watch)
        self._beside = side_path(path, self._lock.token)
        self._synced, self._dirty, self._seal_at = time.monotonic(), False, SEGMENT
        with ExitStack() as undo:
            undo.callback(self._lock.release)
            remove_left_behind(Path(os.path.realpath(path)))
            if not path.exists() and segments_of(path):
                log.warning("%s is not there, but its segments are, and are read", path)
            self._file = self._opened()
            undo.callback(lambda: os.close(self._file))
            super().__init__(Sealed(path), PlainLines(self._file))
            undo.callback(self._sealed.close)
            self._end = self._read()
            self._hold(reserve)
            undo.callback(self._give_up_reserve)
            if has_sides(path):
                log.warning("%s: what was kept beside it is taken in", path)
                self.take_in()
            self._seal_when_large()
            undo.pop_all()

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
            self._plain.note(record["key"], line_of(record, start, len(line)))
            start += len(line)
        self._end, self._dirty = start, True
        if time.monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()
        if full:
            raise DiskFullError(self.path, 0)
        if not self._is_there():
            # Somebody sealed the journal, or took it away, in the middle of the write.
            self._write_beside(whole)
            raise NotOursError(self.path, self._beside)
        if not alone:
            raise NotOursError(self.path, self.path)
        self._seal_when_large()

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
            self._sealed.close()
            self._lock.release()

    # --- the file ---------------------------------------------------------------------------------

    @property
    def _reserve(self) -> Path:
        return self.path.with_name(f"{self.path.name}.reserve")

    def _ours(self) -> bool:
        """Whether nobody else wrote the file, took it away, or took our lock."""
        there = os.fstat(self._file)
        return there.st_size == self._end and there.st_nlink > 0 and self._lock.held()

    def _is_there(self) -> bool:
        """Whether the file that is open still is the one that has the name."""
        try:
            there = os.stat(self.path)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == self._name

    def _opened(self) -> int:
        how = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        file = os.open(self.path, how, 0o666)
        there = os.fstat(file)
        self._name = there.st_dev, there.st_ino
        return file

    def _seal_when_large(self) -> None:
        """Compress the lines of the file once they are enough, and begin a new one.

        Where there is no room for it the file grows on: nothing is lost, and it is tried again.
        """
        if self._end < self._seal_at or not self._end or not self._ours():
            return
        self._seal_at = self._end + SEGMENT
        try:
            self.sync()
            self._seal()
            self._sealed.tidy()
        except OSError as error:
            log.warning("%s: could not be sealed (%s)", self.path, error)

    def _seal(self) -> None:
        with self._begun_anew(self._end):
            self._sealed.add(self._file, self._end, self._plain.noted())
            if not (self._ours() and self._is_there()):
                raise OSError("something else writes it")

    @contextmanager
    def _begun_anew(self, sealed: int) -> Iterator[None]:
        """Have an empty file in place of this one, whose first bytes are sealed within the block.

        The old one is not cut: who reads it reads it to its end.
        """
        real = Path(os.path.realpath(self.path))
        with replacing(real) as empty:  # made first: it needs room too
            shutil.copymode(real, empty)
            yield
        old, self._file = self._file, self._opened()
        try:
            # Somebody may have written the old one until the moment when it was replaced.
            if more := os.pread(old, os.fstat(old).st_size - sealed, sealed):
                self._write_beside(more)
        finally:
            os.close(old)
        self._plain = PlainLines(self._file)
        self._end, self._seal_at = os.fstat(self._file).st_size, SEGMENT

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
        """Keep lines in a file of our own, and see that nobody took that in before they were there.

        Raises:
            OSError: there is no room.
        """
        side = Side(self.path, self._lock.token)
        try:
            side.write(data)
        finally:
            side.close()

    def take_in(self) -> None:
        """Take in what others kept beside the journal.

        What they sealed becomes segments as it is; of the rest, what is news is appended.

        Raises:
            JournalError: somebody else writes the journal, or there is no room; what was not taken
                in is where it was.
            OSError: of another kind than a full disk.
        """
        try:
            self._adopt(sealed_sides(self.path))
            for side in live_sides(self.path):
                self._append_news(side)
        except OSError as error:
            raise full_disk(error, self.path) from None

    def _adopt(self, sealed: Sequence[SealedSide]) -> None:
        if sealed and not self._ours():
            raise NotOursError(self.path, self._beside)
        if sealed and self._end:
            # First its own lines: who follows the journal finds them in the next segment.
            self.sync()
            self._seal()
        for side in sealed:
            self._sealed.adopt(side)
            self._sealed.tidy()

    def _append_news(self, side: Path) -> None:
        # Whoever still writes there sees by the name that it is too late.
        taken = side.with_name(side.name.removesuffix(".taken") + ".taken")
        side.replace(taken)
        for record in plain_records(taken):
            if self.is_news(record):
                self.append([record])
        self.sync()
        taken.unlink()

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

    def _read(self) -> int:
        """Index the file and cut off a torn end; returns where the file ends."""
        self._drop_what_is_sealed()
        end, spoilt = self._plain.index()
        if spoilt:
            log.warning(
                "%s: %d lines are no records, or not what was written, and are left out; "
                "the first is at byte %d",
                self.path,
                len(spoilt),
                spoilt[0],
            )
        return self._repaired(end)

    def _drop_what_is_sealed(self) -> None:
        """Begin a new file where a process was killed just before it did."""
        last = self._sealed.last
        with os.fdopen(os.dup(self._file), "rb") as f:
            if last is None or not is_sealed(f, last):
                return
        with self._begun_anew(last.size):
            pass

    def _repaired(self, end: int) -> int:
        """Cut the file where its last whole line ends, and end that line."""
        size = os.fstat(self._file).st_size
        if size > end:
            log.warning("%s: %d bytes of a torn record cut off", self.path, size - end)
            os.ftruncate(self._file, end)
        if end and os.pread(self._file, 1, end - 1) != b"\n":
            end += os.write(self._file, b"\n")
        return end
