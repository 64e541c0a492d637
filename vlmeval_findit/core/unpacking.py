"""Unpack files of others: a few kilobytes can become gigabytes, so what comes out is limited."""

from __future__ import annotations

import gzip
import io
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .standing_twice import open_zip

_ALWAYS = 32 << 20  # Bytes that any file may unpack to
_TIMES = 60  # More than repeated rows of annotations and replies are packed
_PART = 1 << 20
_AROUND_SHEETS = 8 << 20  # Bytes of styles, relations and the like


class UnpackedSizeError(ValueError):
    """What comes out of a packed file is too large; the message goes on after its name."""


def most_unpacked(packed: int) -> int:
    """Return how many bytes a file of so many packed ones may unpack to.

    >>> most_unpacked(10) >> 20, most_unpacked(1 << 20) >> 20
    (32, 60)
    """
    return max(_ALWAYS, _TIMES * packed)


def check_unpacked(stated: int, packed: int, what: str) -> None:
    """Raise UnpackedSizeError if a file states that it unpacks to more than it may."""
    if stated > most_unpacked(packed):
        raise UnpackedSizeError(f"it unpacks from {_size(packed)} to {_size(stated)}: {what}")


def gunzip(data: bytes) -> bytes:
    """Unpack gzip, of several members too, in small pieces.

    Raises:
        UnpackedSizeError: it is too large.
        OSError, EOFError, zlib.error: it is damaged.
    """
    most = most_unpacked(len(data))
    unpacked = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as f:
        while part := f.read(_PART):
            unpacked += part
            if len(unpacked) > most:
                packed = _size(len(data))
                raise UnpackedSizeError(f"it unpacks from {packed} to more than {_size(most)}")
    return bytes(unpacked)


@contextmanager
def limited_memory(more: int) -> Iterator[None]:
    """Let this process take so many bytes more in the block, where the system can limit that.

    For decoders of others, which believe what a file says of itself: MemoryError is raised in time.
    Other threads are limited, too, so a block should be short and start no process.
    """
    taken = _taken_memory()
    if taken is None:
        yield
        return
    with _LIMITED:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = taken + more
        if soft != resource.RLIM_INFINITY:
            wanted = min(wanted, soft)
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def take_memory_piecewise() -> None:
    """Let pyarrow, which is not imported yet, ask the system for what it needs, and for no more.

    Else it has a gigabyte in reserve, in which a page of Parquet finds room below every limit.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


_LIMITED = threading.RLock()  # Else a thread would keep the limit of another


def _taken_memory() -> int | None:
    """Return how many bytes of addresses this process has; None where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def check_sheets(f: BinaryIO) -> None:
    """Raise UnpackedSizeError for a workbook that unpacks to more than a table has.

    zipfile reads no more of a member than the archive states, so the stated sizes bind.  Of two
    members of one name it would read the last: see :func:`open_zip`.
    """
    with open_zip(f) as archive:
        members = archive.infolist()
    packed = f.seek(0, io.SEEK_END)
    f.seek(0)
    check_unpacked(sum(member.file_size for member in members), packed, "no sheet of a table")
    for member in members:
        is_table = "sheet" in member.filename.lower() or "shared" in member.filename.lower()
        if not is_table and member.file_size > _AROUND_SHEETS:
            size = _size(member.file_size)
            raise UnpackedSizeError(f"{member.filename} unpacks to {size}: no sheet of a table")


def _size(count: int) -> str:
    if count >= 1 << 30:
        return f"{count / (1 << 30):.1f} GB"
    return f"{count / (1 << 20):.1f} MB"
