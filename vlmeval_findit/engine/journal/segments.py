"""The sealed parts of a journal: files of lines that are written once and never changed.

``calls.jsonl.d/000001.jsonl.zst`` is a row of zstd frames, each some whole lines that can be read
without the others, and behind them a closing that tools skip: how many bytes the frames have and
the lines in them, and the SHA-256 of the lines.  So ``zstd -dc`` reads a segment, and a torn one is
known from a whole one without reading it.  What is spoilt is found out by the checksum of its frame
when that is read.  The compressor is the one of Python 3.14 (``compression.zstd``).
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import struct
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

from .lines import MAX_LINE

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

log = logging.getLogger(__name__)

FRAME = 32 << 10
"""Bytes of lines in a frame: few, as one line of another cell costs all of them; in smaller ones
what the lines have in common is said too often."""

LARGEST = MAX_LINE
"""Bytes of lines that a frame may have: that is one long line, else they are ``FRAME``."""

_OPTIONS: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
_MAGIC = struct.pack("<I", 0xFD2FB528)
_SKIPPED = 0x184D2A50
_CLOSING = struct.Struct("<II8sQQ32s")
_NAME = re.compile(r"(\d{6,})\.jsonl\.zst")
_PIECE = 8 << 10


class Segment(NamedTuple):
    """One sealed part: its frames end at byte ``end``, ``size`` bytes of lines are in them, whose
    SHA-256 is ``sha256``.  Of a damaged one they are what can still be read.
    """

    number: int
    path: Path
    end: int
    size: int
    sha256: str


class Frame(NamedTuple):
    """Lines that are compressed together: ``length`` bytes of the file from ``start`` on."""

    start: int
    length: int
    lines: bytes


def folder_of(journal: Path) -> Path:
    """Where the segments of a journal are: beside the file itself, whatever links to it."""
    real = Path(os.path.realpath(journal))
    return real.with_name(f"{real.name}.d")


def path_of(folder: Path, number: int) -> Path:
    """The file of a segment."""
    return folder / f"{number:06}.jsonl.zst"


def segments_of(journal: Path) -> list[Segment]:
    """The segments of a journal in order; none where it has none."""
    try:
        names = os.listdir(folder_of(journal))
    except (FileNotFoundError, NotADirectoryError):
        return []
    numbers = sorted(int(found[1]) for found in map(_NAME.fullmatch, names) if found)
    return [segment_at(path_of(folder_of(journal), number), number) for number in numbers]


def segment_at(path: Path, number: int) -> Segment:
    """What a file of frames holds, by what it says at its end.

    Raises:
        OSError: it cannot be read.
    """
    there = path.stat()
    return _read(path, number, (there.st_ino, there.st_size, there.st_mtime_ns))


@lru_cache(1 << 16)
def _read(path: Path, number: int, stamp: tuple[int, int, int]) -> Segment:
    """A segment by its closing, else by all that can be read of it."""
    size = stamp[1]
    with path.open("rb") as f:
        f.seek(max(0, size - _CLOSING.size))
        said = f.read()
    if len(said) == _CLOSING.size:
        skipped, length, form, end, lines, sha256 = _CLOSING.unpack(said)
        ours = (skipped, length, form) == (_SKIPPED, _CLOSING.size - 8, b"journal1")
        if ours and end == size - _CLOSING.size:
            return Segment(number, path, end, lines, sha256.hex())
    log.warning("%s: its end is torn; what can be read is read", path)
    found, lines = hashlib.sha256(), 0
    for frame in frames(Segment(number, path, size, 0, "")):
        found.update(frame.lines)
        lines += len(frame.lines)
    return Segment(number, path, size, lines, found.hexdigest())


def frames(segment: Segment, start: int = 0) -> Iterator[Frame]:
    """The frames of a segment, from one of them on; spoilt ones are left out, with a warning."""
    with segment.path.open("rb") as f:
        while start < segment.end:
            found = _frame(f, start)
            if found is None:
                beyond = _next_frame(f, start + 1, segment.end)
                log.warning(
                    "%s: %d bytes are spoilt and left out, from byte %d on",
                    segment.path,
                    beyond - start,
                    start,
                )
                start = beyond
            else:
                yield found
                start += found.length


def _frame(f: BinaryIO, start: int) -> Frame | None:
    """The frame at a byte; None where it is none, or not what was written.

    No more is unpacked than its header says, and nothing where that is more than we write: zeros
    without end are a few bytes of a file that others made.
    """
    f.seek(start)
    data = f.read(_PIECE)
    unpacker, read, lines = zstd.ZstdDecompressor(), 0, bytearray()
    try:
        size = zstd.get_frame_info(data).decompressed_size
        if size is None or size > LARGEST:
            return None
        while not unpacker.eof:
            if unpacker.needs_input and not data:
                return None
            read += len(data)
            lines += unpacker.decompress(data, size + 1 - len(lines))
            if len(lines) > size:
                return None
            data = f.read(_PIECE) if unpacker.needs_input else b""
    except zstd.ZstdError:
        return None
    return Frame(start, read - len(unpacker.unused_data), bytes(lines))


def _next_frame(f: BinaryIO, start: int, end: int) -> int:
    """Where the next frame may begin; the end where none does."""
    f.seek(start)
    before = b""
    while start < end and (data := f.read(1 << 20)):
        at = (before + data).find(_MAGIC)
        if at >= 0:
            return min(start - len(before) + at, end)
        start, before = start + len(data), data[-3:]
    return end


def lines_at(path: Path, start: int, length: int) -> bytes | None:
    """The lines of one frame; None where it is not what was written."""
    with path.open("rb") as f:
        found = _frame(f, start)
    return found.lines if found is not None and found.length == length else None


class Place(NamedTuple):
    """Where a frame lies: its lines began at byte ``lines`` of the journal, and it is ``length``
    bytes of the segment from ``start`` on.
    """

    lines: int
    start: int
    length: int


def write_segment(
    temporary: Path, file: int, size: int, segment: tuple[Path, int]
) -> tuple[Segment, list[Place]]:
    """Compress the lines of an open file.

    Args:
        temporary: where the segment is written; it is on the disk afterwards.
        file: what is compressed; it ends with a whole line.
        size: so many bytes of it.
        segment: the path and the number that the segment gets.

    Raises:
        OSError: there is no room for it.
    """
    whole, places, end, at = hashlib.sha256(), [], 0, 0
    with temporary.open("wb") as f:
        for lines in _pieces(file, size):
            frame = zstd.compress(lines, options=_OPTIONS)
            f.write(frame)
            whole.update(lines)
            places.append(Place(at, end, len(frame)))
            at, end = at + len(lines), end + len(frame)
        length = _CLOSING.size - 8
        f.write(_CLOSING.pack(_SKIPPED, length, b"journal1", end, at, whole.digest()))
        f.flush()
        os.fsync(f.fileno())
    path, number = segment
    return Segment(number, path, end, at, whole.hexdigest()), places


def _pieces(file: int, size: int) -> Iterator[bytes]:
    """Whole lines of a file, about ``FRAME`` bytes at a time."""
    start = 0
    while start < size:
        piece = os.pread(file, min(FRAME, size - start), start)
        whole = piece.rfind(b"\n") + 1
        if not whole:
            long = bytearray(piece)
            while not whole:  # one long line
                more = os.pread(file, min(1 << 20, size - start - len(long)), start + len(long))
                if not more:
                    raise ValueError("a journal is sealed whose last line has no end")
                at = more.find(b"\n") + 1
                whole = len(long) + at if at else 0
                long += more
            piece = bytes(long)
        yield piece[:whole]
        start += whole
