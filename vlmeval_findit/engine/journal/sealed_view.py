"""What is sealed of a journal, looked up by key; nothing is written.

Who writes the journal may seal more and merge files of keys meanwhile: what was opened stays
readable, as segments never change and a file of keys that is gone is still open here.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from io import BytesIO
from operator import attrgetter
from pathlib import Path
from typing import Any

from .errors import JournalError
from .keys import (
    Keys,
    Line,
    SpoiltKeysError,
    bytes_of,
    keys_files,
    keys_in_memory,
    line_of,
    row_of,
)
from .lines import lines
from .segments import Frame, Segment, folder_of, frames, lines_at

log = logging.getLogger(__name__)

_KEPT = 16 << 20
"""Bytes of lines that are kept of frames that were read: cells over the same pictures have their
answers in the same frames."""


class SealedView:
    """The segments of a journal.  Where files of keys are missing, keys are kept in memory.

    Args:
        journal: the journal.
        segments: its segments.

    Raises:
        OSError: they cannot be read.
    """

    def __init__(self, journal: Path, segments: Sequence[Segment]) -> None:
        self._folder = folder_of(journal)
        self._segments = list(segments)
        self._keys: list[Keys] = []
        self._frames: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._kept = 0
        numbers = [one.number for one in self._segments]
        if numbers != list(range(1, len(numbers) + 1)):
            log.warning("%s: segments are missing; there are %s", self._folder, numbers)
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
        wanted = bytes_of(key) if self._keys else None
        if wanted is None:
            return []
        try:
            return [line for keys in self._keys for line in keys.lines(wanted)]
        except SpoiltKeysError as error:
            self._replace(error)
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

    # --- frames -----------------------------------------------------------------------------------

    def _frame(self, line: Line) -> bytes:
        frame = line.segment, line.frame
        if frame in self._frames:
            self._frames.move_to_end(frame)
            return self._frames[frame]
        at = bisect_left(self._segments, line.segment, key=attrgetter("number"))
        path = self._segments[at].path
        read = lines_at(path, line.frame, line.frame_length)
        if read is None:
            raise JournalError(f"{path} is spoilt at byte {line.frame}. {self._spoilt(line)}")
        self._frames[frame] = read
        self._kept += len(read)
        while self._kept > _KEPT:
            self._kept -= len(self._frames.popitem(last=False)[1])
        return read

    def _spoilt(self, line: Line) -> str:
        """What to do about a frame that is not what was written."""
        return "A sweep asks for the answers in that place again; or put a good copy there"

    # --- files of keys ----------------------------------------------------------------------------

    def _cover(self) -> None:
        """Open files of keys for all segments."""
        while (at := sum(keys.span for keys in self._keys)) < len(self._segments):
            self._keys.append(self._there(at) or self._made(self._segments[at]))

    def _there(self, at: int) -> Keys | None:
        """The file of keys of most segments from one on; None where there is none that fits."""
        numbers = list(map(attrgetter("number"), self._segments))
        tried = None
        while (found := keys_files(self._folder).get(numbers[at], [])) != tried:
            tried = found
            for last, path in found:
                covered = self._segments[at : bisect_right(numbers, last)]
                try:
                    return Keys(path, covered)
                except SpoiltKeysError:
                    log.warning("%s does not fit its segments", path)
                except FileNotFoundError:
                    continue  # it became part of a larger one: look again
        return None

    def _made(self, segment: Segment) -> Keys:
        """The keys of a segment for which there is no file."""
        return keys_in_memory([segment], rows_of(segment))

    def _covered(self) -> Iterator[tuple[Keys, list[Segment]]]:
        """The files of keys, and the segments of each."""
        at = 0
        for keys in self._keys:
            yield keys, self._segments[at : at + keys.span]
            at += keys.span

    def _replace(self, error: SpoiltKeysError) -> None:
        """Make the keys of a spoilt file anew."""
        log.warning("%s is spoilt, its segments are read instead", error)
        found: list[Keys] = []
        for keys, covered in self._covered():
            if keys.path == error.path:
                keys.close()
                found += map(self._made, covered)
            else:
                found.append(keys)
        self._keys = found


def rows_of(segment: Segment) -> bytes:
    """The rows of a segment in a file of keys, made of its lines."""
    found = (one for frame in frames(segment) for one in _records(segment, frame))
    return b"".join(row_of(bytes.fromhex(record["key"]), line) for line, record in found)


def _records(segment: Segment, frame: Frame) -> Iterator[tuple[Line, dict[str, Any]]]:
    for line in lines(BytesIO(frame.lines)):
        if line.record is not None:
            where = line_of(line.record, line.start, line.length)
            place = segment.number, frame.start, frame.length
            yield Line(*where[:4], *place), line.record
