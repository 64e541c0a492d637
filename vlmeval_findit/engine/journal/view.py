"""Read and follow a journal without a lock while others may write it.

The large journal of a complete run is compressed, as ``zstd calls.jsonl`` does it.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Self

from ...core.files import open_regular
from .index import Index
from .lines import MAX_LINE, Line, State, is_journal, lines, plain_record

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

log = logging.getLogger(__name__)

AT_A_TIME = 8 << 20  # bytes per look, unless one line is longer or the journal is compressed
_PIECE = 1 << 20


class JournalError(ValueError):
    """A journal cannot be used."""

    lost = 0  # replies that could not be stored


class JournalView:
    """The finished calls of a journal by key, and its events, as of when it was opened.

    Raises:
        FileNotFoundError: there is none.
        JournalError: it is no journal.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        check_journal(path)
        self._open(path, open_lines(path))

    def _open(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._lines = file
        self._index = Index()
        self._events: list[Line] = []
        self._end = 0
        self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *stopped: object) -> None:
        self.close()

    def close(self) -> None:
        self._lines.close()

    def __contains__(self, key: str) -> bool:
        """Whether a call has an answer; a failure does not count."""
        return self._index.state(key) > State.FAILED

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the record of a call: its answer, else its last failure, else None."""
        if (line := self._index.line(key)) is None:
            return None
        return _whole(self._raw(line))

    def serves(self, key: str, *, confidences: bool) -> bool:
        """Whether a call is answered, with log-probabilities if they are wanted."""
        return self._index.state(key) > confidences

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield all records in order, replaced ones too."""
        with os.fdopen(os.dup(self._lines.fileno()), "rb") as f:
            for line, raw in lines(f):
                if line.start < self._end and line.key:
                    yield _whole(raw)

    def events(self) -> Iterator[dict[str, Any]]:
        yield from (_whole(self._raw(line))["event"] for line in self._events)

    def _raw(self, line: Line) -> bytes:
        return os.pread(self._lines.fileno(), line.length, line.start)

    def _read(self) -> None:
        spoilt = []
        # A fresh buffer: an old one may hold what has been cut off since.
        with os.fdopen(os.dup(self._lines.fileno()), "rb") as f:
            for line, _ in lines(f, self._end):
                self._end = line.start + line.length
                if line.key is None:
                    spoilt.append(line.start)
                elif line.key:
                    self._index.note(line)
                else:
                    self._events.append(line)
        if spoilt:
            what = "lines are no records, or not what was written, and are left out"
            log.warning(
                "%s: %d %s; the first is at byte %d", self.path, len(spoilt), what, spoilt[0]
            )


def _whole(raw: bytes) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(raw)
    record.pop("crc32", None)
    return record


def check_journal(path: Path) -> None:
    """Raise JournalError for a file that is no journal; a missing one is fine."""
    segments = path.with_name(f"{path.name}.d")
    if any(segments.glob("*.jsonl.zst")):
        raise JournalError(
            f"{path} goes on in {segments}, as version 0.2 kept large journals. Make one file of "
            f"both: zstd -dc {segments}/*.zst | cat - {path} > {path}.whole && "
            f"mv {path}.whole {path} && rm -r {segments}"
        )
    if not path.exists():
        return
    if not path.is_file():
        raise JournalError(f"{path} is no regular file. Name another journal.")
    with path.open("rb") as f:
        if not is_journal(f):
            raise JournalError(f"{path} does not begin with a record of a journal. Name another.")


def open_lines(path: Path) -> BinaryIO:
    """Open the file of a journal; of a compressed one, a nameless copy. Raises OSError."""
    packed = packed_path(path)
    if path.exists() or not packed.exists():
        return open_regular(path)
    copy: BinaryIO = TemporaryFile()  # noqa: SIM115, the caller closes it
    try:
        unpack(packed, copy)
    except FileNotFoundError:
        return open_regular(path)  # unpacked at this moment
    copy.seek(0)
    return copy


class JournalTail:
    """What was added to a journal since the last look, ``left`` bytes short of its end.

    The journal may not exist yet. Checksums are not verified.
    """

    def __init__(self, path: Path, at_a_time: int = AT_A_TIME) -> None:
        self.path = path
        self.left = 0
        self._at_a_time = at_a_time
        self._read = 0  # bytes
        self._file: tuple[int, int] | None = None  # device and inode of the file that was read
        self._whole = False  # a compressed journal was read to its end

    def is_another(self) -> bool:
        """Whether the journal was replaced or truncated; the next look starts over."""
        try:
            there = self.path.stat()
        except OSError:
            return False  # perhaps compressed: the lines are the same
        goes_on = self._file == (there.st_dev, there.st_ino) and there.st_size >= self._read
        if goes_on or not self._read:
            return False
        self._read, self._whole = 0, False
        return True

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the new complete records; JournalError if the file is no journal."""
        compressed = not self.path.exists()
        if compressed and self._whole:
            return
        if not self._read:
            check_journal(self.path)
        try:
            f = open_lines(self.path)
        except FileNotFoundError:
            return
        with f:
            there = os.fstat(f.fileno())
            self._file, self._whole = (there.st_dev, there.st_ino), compressed
            enough = there.st_size if compressed else self._read + self._at_a_time
            f.seek(self._read)
            while self._read < enough and (raw := f.readline(MAX_LINE)).endswith(b"\n"):
                self._read += len(raw)
                if record := plain_record(raw):
                    yield record
            self.left = max(there.st_size - self._read, 0)


def packed_path(journal: Path) -> Path:
    """Return where a journal is compressed: beside the real file, behind links."""
    real = Path(os.path.realpath(journal))
    return real.with_name(f"{real.name}.zst")


def pack(source: BinaryIO, target: BinaryIO) -> None:
    """Compress a file and sync it to disk."""
    with zstd.open(target, "wb", options={zstd.CompressionParameter.checksum_flag: 1}) as packer:
        shutil.copyfileobj(source, packer, _PIECE)
    target.flush()
    os.fsync(target.fileno())


def unpack(path: Path, target: BinaryIO) -> None:
    """Decompress a journal up to where it is damaged; JournalError if nothing could be read."""
    with open_regular(path) as packed, zstd.open(packed) as lines_in:
        try:
            while data := lines_in.read1(_PIECE):
                target.write(data)
        except (zstd.ZstdError, EOFError) as error:
            if isinstance(error, zstd.ZstdError) and not target.tell():
                raise JournalError(f"{path}: {error}. See yourself: zstd -d {path}") from None
            log.warning("%s is spoilt (%s): what follows is lost", path, error)
    target.flush()
    os.fsync(target.fileno())
