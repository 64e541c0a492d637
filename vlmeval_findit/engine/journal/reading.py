"""Reading a journal that somebody else may write, without a lock.

When its run is complete a large one is compressed: ``calls.jsonl.zst`` in place of ``calls.jsonl``,
one zstd frame that says how many bytes of lines are in it, as ``zstd calls.jsonl`` makes it too.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from ...core.files import open_regular
from .errors import JournalError
from .lines import is_journal, lines, record_in

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

log = logging.getLogger(__name__)

_PIECE = 1 << 20
_HEADER = 18


def check_journal(path: Path) -> None:
    """Refuse a file that is no journal; one that is not there may become one.

    Raises:
        JournalError: it says why.
    """
    segments, problem = path.with_name(f"{path.name}.d"), ""
    if any(segments.glob("*.jsonl.zst")):
        problem = (
            f"goes on in {segments}, as version 0.2 kept large journals. Make one file of both: "
            f"zstd -dc {segments}/*.zst | cat - {path} > {path}.whole && mv {path}.whole {path} "
            f"&& rm -r {segments}"
        )
    elif path.exists():
        if not path.is_file():
            problem = "is no regular file"
        else:
            with path.open("rb") as f:
                if not is_journal(f):
                    problem = "does not begin with a record of a journal"
    if problem:
        raise JournalError(f"{path} {problem}")


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a journal that may be in use, in order; what is torn or spoilt is left out.

    Raises:
        JournalError: it is no journal.
        FileNotFoundError: there is none.
    """
    check_journal(path)
    with open_lines(path) as f:
        yield from filter(None, (record_in(raw) for _, raw in lines(f)))


def open_lines(path: Path) -> BinaryIO:
    """The file of a journal; of a compressed one a nameless copy as it was.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read, or is no regular file.
    """
    packed = packed_path(path)
    if path.exists() or not packed.exists():
        return open_regular(path)
    copy: BinaryIO = TemporaryFile()  # noqa: SIM115, closed by who reads
    try:
        unpack(packed, copy)
    except FileNotFoundError:
        return open_regular(path)  # it was unpacked at this moment
    copy.seek(0)
    return copy


# --- compressed -----------------------------------------------------------------------------------


def packed_path(journal: Path) -> Path:
    """Where a journal is compressed: beside the file itself, whatever links to it."""
    real = Path(os.path.realpath(journal))
    return real.with_name(f"{real.name}.zst")


def pack(source: BinaryIO, target: BinaryIO) -> None:
    """Compress a file, and have the disk hold it."""
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.checksum_flag: 1})
    packer.set_pledged_input_size(os.fstat(source.fileno()).st_size)
    while piece := source.read(_PIECE):
        target.write(packer.compress(piece))
    target.write(packer.flush())
    _sync(target)


def unpack(path: Path, target: BinaryIO) -> None:
    """Write what a compressed journal has, up to where it is spoilt, and have the disk hold it.

    No more is unpacked than the file says, and nothing for which there is no room: zeros without
    end are a few bytes of a file that others made.

    Raises:
        JournalError: it does not say how much, or too much.
    """
    with open_regular(path) as packed:
        try:
            size = zstd.get_frame_info(packed.read(_HEADER)).decompressed_size
        except zstd.ZstdError:
            size = None
        disk = os.fstatvfs(target.fileno())
        if size is None or size > disk.f_bavail * disk.f_frsize:
            raise JournalError(
                f"{path}: {'it is not known' if size is None else 'the disk has no room for'} "
                f"what is in it. See yourself: zstd -d {path}"
            )
        packed.seek(0)
        unpacker = zstd.ZstdDecompressor()
        try:
            while size > 0 and not unpacker.eof:
                data = packed.read(_PIECE) if unpacker.needs_input else b""
                if unpacker.needs_input and not data:
                    raise zstd.ZstdError("its end is missing")
                size -= target.write(unpacker.decompress(data, min(_PIECE, size)))
        except zstd.ZstdError as error:
            log.warning("%s is spoilt (%s): %d bytes of lines are lost", path, error, size)
    _sync(target)


def _sync(f: BinaryIO) -> None:
    f.flush()
    os.fsync(f.fileno())
