"""Reading a journal that somebody else may write: its segments, then the file itself.

There is one way of it, :func:`snapshot`; no lock is needed.  The file is never cut: when its lines
are sealed, an empty file takes its place, and who has the old one open reads it to its end.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ...core.files import file_sha256, open_regular, sha256_of
from .errors import JournalError
from .lines import lines
from .lines import problem_of as problem_of_file
from .segments import Segment, folder_of, frames, segment_at, segments_of
from .side import live_sides, sealed_sides


class Snapshot(NamedTuple):
    """A journal at one moment: every line once.

    ``live`` is the file with the lines that are in no segment, None where there is none.
    """

    segments: list[Segment]
    live: BufferedReader | None

    @property
    def live_size(self) -> int:
        return os.fstat(self.live.fileno()).st_size if self.live else 0

    @property
    def size(self) -> int:
        """Bytes of lines."""
        return sum(one.size for one in self.segments) + self.live_size


@contextmanager
def snapshot(path: Path) -> Iterator[Snapshot]:
    """The segments of a journal, and the file that goes on where the last of them ends.

    Raises:
        FileNotFoundError: there is neither.
        OSError: it is no regular file.
    """
    with ExitStack() as stack:
        while True:
            segments = segments_of(path)
            try:
                live = stack.enter_context(open_regular(path))
            except FileNotFoundError:
                if not segments:
                    raise
                live = None
            # A segment is there before the file is replaced: if there is none more by now, what
            # was opened is what follows the last of these.
            if len(segments_of(path)) == len(segments):
                break
            stack.close()
        if live and segments and is_sealed(live, segments[-1]):
            live = None
        yield Snapshot(segments, live)


def is_sealed(live: BufferedReader, last: Segment) -> bool:
    """Whether the lines of a file are those of the last segment: its writer was killed, or is just
    about to begin a new file.
    """
    if os.fstat(live.fileno()).st_size != last.size:
        return False
    live.seek(0)
    same = hashlib.file_digest(live, "sha256").hexdigest() == last.sha256
    live.seek(0)
    return same


def problem_of(path: Path) -> str | None:
    """Why a file is no journal and must not be written to; None where it is one, or is not there.

    Behind segments a file may begin with what a crash left of a line.
    """
    if path.is_file() and segments_of(path):
        return None
    return problem_of_file(path)


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a journal that may be in use, in order; what is torn or spoilt is left out.

    Raises:
        JournalError: it is no journal.
    """
    problem = problem_of(path)
    if problem:
        raise JournalError(f"{path} {problem}")
    with snapshot(path) as (segments, live):
        for segment in segments:
            yield from sealed_records(segment)
        if live is not None:
            yield from _records(live)
    for sealed in sealed_sides(path):
        with suppress(FileNotFoundError):  # it was taken in at this moment
            yield from sealed_records(segment_at(sealed.path, sealed.number))
    for side in live_sides(path):
        with suppress(FileNotFoundError):
            yield from plain_records(side)


def sealed_records(segment: Segment) -> Iterator[dict[str, Any]]:
    """The records of a segment."""
    for frame in frames(segment):
        yield from _records(BytesIO(frame.lines))


def plain_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of one file of lines."""
    with path.open("rb") as f:
        yield from _records(f)


def _records(f: BinaryIO) -> Iterator[dict[str, Any]]:
    for line in lines(f):
        if line.record is not None:
            yield line.record


def has_sides(path: Path) -> bool:
    """Whether something is kept beside a journal that it has not taken in."""
    return bool(live_sides(path) or sealed_sides(path))


def is_whole(path: Path) -> bool:
    """Whether nothing is kept beside a journal, and it ends with a whole line."""
    with snapshot(path) as (segments, live):
        if live is None or os.fstat(live.fileno()).st_size == 0:
            return bool(segments) and not has_sides(path)
        live.seek(-1, os.SEEK_END)
        return live.read() == b"\n" and not has_sides(path)


def content_sha256(path: Path) -> str:
    """A hash of what is in a journal; of its segments by the hashes that they carry.

    Raises:
        OSError: it is not there.
    """
    with snapshot(path) as (segments, live):
        if not segments:
            return file_sha256(path)
        rest = hashlib.file_digest(live, "sha256").hexdigest() if live is not None else ""
        return sha256_of(*(one.sha256.encode() for one in segments), rest.encode())


def content_size(path: Path) -> int:
    """The bytes of a journal's lines; 0 where there is none."""
    try:
        with snapshot(path) as there:
            return there.size
    except OSError:
        return 0


def delete(path: Path) -> None:
    """Delete a journal with its segments."""
    shutil.rmtree(folder_of(path), ignore_errors=True)
    path.unlink()
