"""Which line of which segment is of which call: sorted files of keys beside the segments.

``calls.jsonl.d/000001-000004.keys`` has the calls of four segments, a row each, sorted by key, in
blocks that carry a checksum.  In memory is only where each block begins: a call is found with one
read.  The files follow from the segments and may be deleted.  Four of one size become one, so that
even of a thousand segments few are looked into.

Ours because of where a journal may lie: SQLite in WAL mode and lmdb want the memory of one machine
and locks of its operating system, which network disks do not have or grant to everybody.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ...core.files import replacing
from .lines import Record
from .segments import Place, Segment

MERGED = 4
"""So many files that span equally many segments become one."""

_ROW = struct.Struct("<32sIQIII")
_ROWS = np.dtype(
    [("key", "S32"), ("segment", "<u4"), ("frame", "<u8")]
    + [(name, "<u4") for name in ("length", "start", "line")]
)
_BLOCK = 64
_AT_A_TIME = 1 << 16
"""Rows that are sorted at a time when files become one."""

_FAILED, _CONFIDENCES = 1 << 31, 1 << 30
_END = struct.Struct("<8sQ32sI")
_FORM = b"keys 1\0\0"
_NAME = re.compile(r"(\d{6,})-(\d{6,})\.keys")


class Line(NamedTuple):
    """Where a record lies: ``length`` bytes from ``start`` on, in the journal itself (or in a file
    beside it, where ``segment`` is negative) or in the lines of a frame of a segment;
    ``confidences``: it was asked for with them.
    """

    start: int
    length: int
    failed: bool
    confidences: bool
    segment: int = 0
    frame: int = 0
    frame_length: int = 0


def line_of(record: Record, start: int, length: int) -> Line:
    """Where a record lies."""
    return Line(start, length, bool(record["error"]), bool(record.get("confidences")))


def standing(lines: Iterable[Line]) -> list[Line]:
    """Those of a call's lines that stood for it, one after the other; the last stands.

    That is its first answer, else its last failure.  An answer that was asked for with
    log-probabilities takes the place of one that was not.
    """
    stood: list[Line] = []
    for line in lines:
        if not stood or stood[-1].failed:
            stood = [line]
        elif line.confidences and not line.failed and not stood[-1].confidences:
            stood.append(line)
    return stood


def rows_within(
    noted: Iterable[tuple[str, Line]], number: int, places: Sequence[Place]
) -> bytearray:
    """The rows of lines that were compressed.

    Args:
        noted: keys, and lines as they lay before, those of a call in their order.
        number: of their segment.
        places: where its frames lie.
    """
    begins, rows = [place.lines for place in places], bytearray()
    for key, line in noted:
        place = places[bisect_right(begins, line.start) - 1]
        if (wanted := bytes_of(key)) is not None:
            start, frame, length = line.start - place.lines, place.start, place.length
            there = line._replace(start=start, segment=number, frame=frame, frame_length=length)
            rows += row_of(wanted, there)
    return rows


def bytes_of(key: str) -> bytes | None:
    """The bytes of a key; None where it is none."""
    try:
        wanted = bytes.fromhex(key)
    except ValueError:
        return None
    return wanted if len(wanted) == 32 else None


def row_of(key: bytes, line: Line) -> bytes:
    """One row of a file of keys."""
    flags = _FAILED * line.failed | _CONFIDENCES * line.confidences
    where = line.segment, line.frame, line.frame_length, line.start, line.length | flags
    return _ROW.pack(key, *where)


def _line(row: bytes) -> Line:
    _, segment, frame, frame_length, start, line = _ROW.unpack(row)
    length = line & (_CONFIDENCES - 1)
    flags = bool(line & _FAILED), bool(line & _CONFIDENCES)
    return Line(start, length, *flags, segment, frame, frame_length)


class SpoiltKeysError(Exception):
    """A file of keys is not what was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path


class Keys:
    """One file of keys, open.

    Args:
        path: the file.
        covered: the segments that it is said to be of.
        content: what would be in the file, where there is none.

    Raises:
        SpoiltKeysError: it is torn, spoilt, or of other segments.
        OSError: it cannot be read.
    """

    def __init__(
        self, path: Path, covered: Sequence[Segment], content: bytes | None = None
    ) -> None:
        self.path = path
        self.span = len(covered)
        self._content = content
        self._file = None if content is not None else path.open("rb", buffering=0)
        try:
            self._rows = self._opened(_of(covered))
        except BaseException:
            self.close()
            raise

    def _read(self, size: int, start: int) -> bytes:
        if self._file is not None:
            return os.pread(self._file.fileno(), size, start)
        return (self._content or b"")[start : start + size]

    def _opened(self, of: bytes) -> int:
        size = len(self._content or b"")
        if self._file is not None:
            size = os.fstat(self._file.fileno()).st_size
        end = self._read(_END.size, max(0, size - _END.size))
        if len(end) < _END.size:
            raise SpoiltKeysError(self.path)
        form, rows, made_of, checksum = _END.unpack(end)
        blocks = -(-rows // _BLOCK)
        begin = rows * _ROW.size
        if (form, made_of, size) != (_FORM, of, begin + blocks * 12 + _END.size):
            raise SpoiltKeysError(self.path)
        directory = self._read(blocks * 12, begin)
        if zlib.crc32(directory) != checksum:
            raise SpoiltKeysError(self.path)
        self._heads = array("Q", directory[: blocks * 8])
        self._sums = array("I", directory[blocks * 8 :])
        return int(rows)

    def __enter__(self) -> Keys:
        return self

    def __exit__(self, *stopped: object) -> None:
        self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def __len__(self) -> int:
        return self._rows

    def lines(self, key: bytes) -> Iterator[Line]:
        """The lines of a call, in their order.

        Raises:
            SpoiltKeysError: what is read is not what was written.
        """
        head = _head(key)
        last = bisect_right(self._heads, head)
        for block in range(max(0, bisect_left(self._heads, head, 0, last) - 1), last):
            rows = self._block(block)
            at = rows.find(key)
            while at >= 0:
                if at % _ROW.size == 0:
                    yield _line(rows[at : at + _ROW.size])
                at = rows.find(key, at + 1)

    def _block(self, block: int, count: int = 1) -> bytes:
        start, end = block * _BLOCK, min((block + count) * _BLOCK, self._rows)
        wanted = (end - start) * _ROW.size
        rows = self._read(wanted, start * _ROW.size)
        step = _BLOCK * _ROW.size
        for number in range(count):
            if zlib.crc32(rows[number * step : (number + 1) * step]) != self._sums[block + number]:
                raise SpoiltKeysError(self.path)
        return rows

    def between(self, low: int, high: int) -> Any:
        """The rows whose keys begin with numbers of a range: an array of them, sorted."""
        first = max(0, bisect_left(self._heads, low) - 1)
        count = bisect_left(self._heads, high) - first
        if count <= 0:
            return np.empty(0, _ROWS)
        rows = np.frombuffer(self._block(first, count), _ROWS)
        heads = _heads(rows)
        return rows[(heads >= np.uint64(low)) & (heads <= np.uint64(high - 1))]

    def all_lines(self) -> Iterator[tuple[bytes, Line]]:
        """Every key and its lines, sorted by key."""
        for block in range(len(self._sums)):
            rows = self._block(block)
            for at in range(0, len(rows), _ROW.size):
                yield rows[at : at + 32], _line(rows[at : at + _ROW.size])


def keys_files(folder: Path) -> dict[int, list[tuple[int, Path]]]:
    """The files of keys in a folder: by their first segment their last ones, the greatest first."""
    found: dict[int, list[tuple[int, Path]]] = {}
    for path in folder.glob("*.keys"):
        if name := _NAME.fullmatch(path.name):
            found.setdefault(int(name[1]), []).append((int(name[2]), path))
    return {first: sorted(ends, reverse=True) for first, ends in found.items()}


def keys_path(folder: Path, covered: Sequence[Segment]) -> Path:
    """The file of keys of some segments of a journal."""
    return folder / f"{covered[0].number:06}-{covered[-1].number:06}.keys"


def write_keys(path: Path, covered: Sequence[Segment], rows: bytes | bytearray) -> Path:
    """Write the file of keys of some segments; ``rows`` of a call are in the order of its lines."""
    return _write(path, covered, len(rows) // _ROW.size, _in_order(rows))


def write_renumbered(path: Path, made: Segment, before: Keys) -> Path:
    """Write the file of keys of a segment that had another number.

    Raises:
        SpoiltKeysError: the one before is not what was written.
        OSError: there is no room.
    """
    rows = before.between(0, 1 << 64).copy()
    rows["segment"] = made.number
    return _write(path, [made], len(rows), [rows])


def keys_in_memory(covered: Sequence[Segment], rows: bytes | bytearray) -> Keys:
    """The keys of some segments, for one who writes no file; ``rows`` as for :func:`write_keys`."""
    file = BytesIO()
    _write_rows(file, len(rows) // _ROW.size, _in_order(rows), _of(covered))
    return Keys(keys_path(covered[0].path.parent, covered), covered, file.getvalue())


def merge_keys(path: Path, covered: Sequence[Segment], files: Sequence[Keys]) -> Path:
    """Make one file of several, which are in the order of their segments.

    Raises:
        SpoiltKeysError: one of them is not what was written.
        OSError: there is no room.
    """
    count = sum(map(len, files))
    ranges = max(1, count // _AT_A_TIME)
    bounds = [(1 << 64) * at // ranges for at in range(ranges + 1)]
    parts = (
        _sorted(np.concatenate([one.between(low, high) for one in files]))
        for low, high in pairwise(bounds)
    )
    return _write(path, covered, count, parts)


def _in_order(rows: bytes | bytearray) -> Iterator[Any]:
    """Rows sorted by key, some at a time: copies of all take more than they do."""
    unsorted = np.frombuffer(rows, _ROWS)
    order = np.argsort(unsorted["key"], kind="stable")
    for start in range(0, len(order), _AT_A_TIME):
        yield unsorted[order[start : start + _AT_A_TIME]]


def _sorted(rows: Any) -> Any:
    return rows[np.argsort(rows["key"], kind="stable")]


def _write(path: Path, covered: Sequence[Segment], count: int, parts: Iterable[Any]) -> Path:
    with replacing(path) as temporary, temporary.open("wb") as f:
        _write_rows(f, count, parts, _of(covered))
        f.flush()
        os.fsync(f.fileno())
    return path


def _write_rows(f: BinaryIO, count: int, parts: Iterable[Any], of: bytes) -> None:
    heads, sums, waiting, written = array("Q"), array("I"), np.empty(0, _ROWS), 0
    for part in parts:
        waiting = np.concatenate([waiting, part])
        written += len(part)
        whole = len(waiting) if written == count else len(waiting) // _BLOCK * _BLOCK
        for start in range(0, whole, _BLOCK):
            block = waiting[start : min(start + _BLOCK, whole)]
            data = block.tobytes()
            heads.append(_head(data[:32]))
            sums.append(zlib.crc32(data))
            f.write(data)
        waiting = waiting[whole:]
    directory = heads.tobytes() + sums.tobytes()
    f.write(directory + _END.pack(_FORM, count, of, zlib.crc32(directory)))


def _of(covered: Sequence[Segment]) -> bytes:
    """A name of the content of segments."""
    parts = [f"{one.number} {one.end} {one.size} {one.sha256}" for one in covered]
    return hashlib.sha256("\n".join(parts).encode()).digest()


def _head(key: bytes) -> int:
    return int.from_bytes(key[:8], "big")


def _heads(rows: Any) -> Any:
    whole = np.ascontiguousarray(rows["key"]).view(">u8")
    return whole.reshape(-1, 4)[:, 0].astype(np.uint64)
