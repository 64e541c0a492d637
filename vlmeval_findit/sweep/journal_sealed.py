"""What is sealed of a journal, for the process that writes it: looked up by key, and added to.

A segment is there when it has its name; only then does an empty file take the journal's place.
Whoever is killed between the two leaves the same lines twice (:func:`.journal_reading.snapshot`
sees that).
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from io import BytesIO
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..core.files import left_behind, replacing
from .journal_errors import JournalError
from .journal_keys import (
    MERGED,
    Keys,
    Line,
    SpoiltKeysError,
    key_bytes,
    keys_files,
    keys_path,
    merge_keys,
    row_of,
    rows_of,
    write_keys,
    write_renumbered,
)
from .journal_lines import Record, lines
from .journal_segments import (
    Frame,
    Segment,
    folder_of,
    frames,
    lines_at,
    path_of,
    segment_at,
    segments_of,
    write_segment,
)
from .journal_side import SealedSide, is_alone

log = logging.getLogger(__name__)

_KEPT = 16 << 20
"""Bytes of lines that are kept of frames that were read: cells over the same pictures have their
answers in the same frames."""


class Sealed:
    """The segments of a journal.  Only who has the lock of the journal opens them.

    Args:
        journal: the journal.

    Raises:
        OSError: they cannot be read, or their files of keys not be written.
    """

    def __init__(self, journal: Path) -> None:
        self._folder = folder_of(journal)
        self._segments = segments_of(journal)
        self._keys: list[Keys] = []
        self._frames: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._kept = 0
        numbers = [one.number for one in self._segments]
        if numbers != list(range(1, len(numbers) + 1)):
            log.warning("%s: segments are missing; there are %s", self._folder, numbers)
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if left_behind(path) is not None or is_alone(path):
                    path.unlink()
        try:
            self._cover()
        except BaseException:
            self.close()
            raise

    def __bool__(self) -> bool:
        return bool(self._segments)

    @property
    def last(self) -> Segment | None:
        return self._segments[-1] if self._segments else None

    def close(self) -> None:
        for keys in self._keys:
            keys.close()

    def lines(self, key: str) -> list[Line]:
        """The lines of a call, in their order."""
        wanted = key_bytes(key) if self._keys else None
        if wanted is None:
            return []
        try:
            return [line for keys in self._keys for line in keys.lines(wanted)]
        except SpoiltKeysError as error:
            self._rebuild(error)
            return self.lines(key)

    def raw(self, line: Line) -> bytes:
        """A line as it was written.

        Raises:
            JournalError: its frame is spoilt.
        """
        frame = self._frame(line)
        return frame[line.start : line.start + line.length]

    def noted(self) -> Iterator[tuple[str, Line]]:
        """All keys and lines that may have stood; in no order that says anything."""
        for keys in self._keys:
            for key, line in keys.all_lines():
                yield key.hex(), line

    def records(self) -> Iterator[tuple[Line, dict[str, Any]]]:
        """Every record and where it lies, in order."""
        for segment in self._segments:
            for frame in frames(segment):
                yield from _records(segment, frame)

    def add(self, file: int, size: int, noted: Iterable[tuple[str, Line]]) -> None:
        """Seal the first ``size`` bytes of an open journal, whose records are ``noted``.

        Raises:
            OSError: there is no room; nothing is sealed.
        """
        number = self._segments[-1].number + 1 if self._segments else 1
        path = path_of(self._folder, number)
        self._folder.mkdir(exist_ok=True)
        with replacing(path) as temporary:
            made, places = write_segment(temporary, file, size, (path, number))
            rows = rows_of(noted, number, places)
            keys = Keys(write_keys(keys_path(self._folder, [made]), [made], rows), [made])
        _sync_folder(self._folder)
        self._segments.append(made)
        self._keys.append(keys)

    def adopt(self, side: SealedSide) -> None:
        """Make what was sealed beside the journal its next segment.

        Raises:
            OSError: there is no room for its keys; the segment is there all the same.
        """
        number = self._segments[-1].number + 1 if self._segments else 1
        before = segment_at(side.path, side.number)
        path = path_of(self._folder, number)
        # From now on it is part of the journal: whoever is killed here has its keys made again.
        side.path.rename(path)
        made = before._replace(number=number, path=path)
        self._segments.append(made)
        where = keys_path(self._folder, [made])
        try:
            old = Keys(side.keys, [before])
            try:
                write_renumbered(where, made, old)
            finally:
                old.close()
        except (SpoiltKeysError, FileNotFoundError):
            write_keys(where, [made], _rows(made))
        side.keys.unlink(missing_ok=True)
        self._keys.append(Keys(where, [made]))
        _sync_folder(self._folder)

    def tidy(self) -> None:
        """Make one of files of keys where there are several of one size.

        Raises:
            OSError: there is no room; all are as good as before.
        """
        while len(last := self._keys[-MERGED:]) == MERGED and len({k.span for k in last}) == 1:
            covered = self._segments[-sum(keys.span for keys in last) :]
            try:
                merged = Keys(merge_keys(keys_path(self._folder, covered), covered, last), covered)
            except SpoiltKeysError as error:
                self._rebuild(error)
                return
            self._keys[-MERGED:] = [merged]
            for keys in last:
                keys.close()
                keys.path.unlink(missing_ok=True)

    # --- what is read -----------------------------------------------------------------------------

    def _frame(self, line: Line) -> bytes:
        at = line.segment, line.frame
        if at in self._frames:
            self._frames.move_to_end(at)
            return self._frames[at]
        path = path_of(self._folder, line.segment)
        read = lines_at(path, line.frame, line.frame_length)
        if read is None:
            raise self._spoilt(line)
        self._frames[at] = read
        self._kept += len(read)
        while self._kept > _KEPT:
            self._kept -= len(self._frames.popitem(last=False)[1])
        return read

    def _spoilt(self, line: Line) -> JournalError:
        """The error for a frame that is not what was written; the next start leaves it out."""
        first = 0
        for keys in self._keys:
            first += keys.span
            if self._segments[first - 1].number >= line.segment:
                keys.path.unlink(missing_ok=True)
                break
        return JournalError(
            f"{path_of(self._folder, line.segment)} is spoilt at byte {line.frame}. Run again: the "
            "answers in that place are left out then, and asked for again; or put a good copy there"
        )

    def _cover(self) -> None:
        """Open files of keys for all segments; where there is none that fits, make it."""
        there = keys_files(self._folder)
        at = 0
        while at < len(self._segments):
            keys = self._keys_from(at, there)
            self._keys.append(keys)
            at += keys.span
        known = {keys.path for keys in self._keys}
        for ends in there.values():
            for _, path in ends:
                if path not in known:
                    path.unlink(missing_ok=True)

    def _keys_from(self, at: int, there: dict[int, list[tuple[int, Path]]]) -> Keys:
        numbers = list(map(attrgetter("number"), self._segments))
        for last, path in there.get(numbers[at], ()):
            covered = self._segments[at : bisect_right(numbers, last)]
            try:
                return Keys(path, covered)
            except SpoiltKeysError:
                log.warning("%s does not fit its segments and is made again", path)
        alone = self._segments[at : at + 1]
        path = keys_path(self._folder, alone)
        return Keys(write_keys(path, alone, _rows(alone[0])), alone)

    def _rebuild(self, error: SpoiltKeysError) -> None:
        path = Path(str(error))
        log.warning("%s is spoilt and is made again", path)
        self.close()
        self._keys = []
        path.unlink(missing_ok=True)
        self._cover()


def _rows(segment: Segment) -> bytes:
    """The rows of a segment, made of its lines."""
    found = (one for frame in frames(segment) for one in _records(segment, frame))
    return b"".join(row_of(bytes.fromhex(record["key"]), line) for line, record in found)


def _records(segment: Segment, frame: Frame) -> Iterator[tuple[Line, dict[str, Any]]]:
    for line in lines(BytesIO(frame.lines)):
        if line.record is not None:
            where = line_of(line.record, line.start, line.length)
            yield _within(where, segment.number, frame), line.record


def _within(line: Line, segment: int, frame: Frame) -> Line:
    """A line by its place in the lines of a frame."""
    return line._replace(segment=segment, frame=frame.start, frame_length=frame.length)


def line_of(record: Record, start: int, length: int) -> Line:
    """Where a record lies."""
    return Line(start, length, bool(record["error"]), bool(record.get("confidences")))


def _sync_folder(folder: Path) -> None:
    """Have the disk hold the names in a folder."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
