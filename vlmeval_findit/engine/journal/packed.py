"""A journal whose run is complete, compressed: ``calls.jsonl.zst`` in place of ``calls.jsonl``.

One zstd frame that says how many bytes of lines are in it, as ``zstd calls.jsonl`` makes it too.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import BinaryIO

from ...core.files import open_regular
from .errors import JournalError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

log = logging.getLogger(__name__)

_PIECE = 1 << 20
_HEADER = 18


def packed_path(journal: Path) -> Path:
    """Where a journal is compressed: beside the file itself, whatever links to it."""
    real = Path(os.path.realpath(journal))
    return real.with_name(f"{real.name}.zst")


def pack(source: BinaryIO, target: BinaryIO) -> None:
    """Compress a file, and have the disk hold it.

    Raises:
        OSError: there is no room.
    """
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.checksum_flag: 1})
    packer.set_pledged_input_size(os.fstat(source.fileno()).st_size)
    while piece := source.read(_PIECE):
        target.write(packer.compress(piece))
    target.write(packer.flush())
    sync(target)


def unpack(path: Path, target: BinaryIO) -> None:
    """Write what a compressed journal has, up to where it is spoilt, and have the disk hold it.

    No more is unpacked than the file says, and nothing for which there is no room: zeros without
    end are a few bytes of a file that others made.

    Raises:
        JournalError: it does not say how much, or too much.
        OSError: it cannot be read, or there is no room.
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
                piece = unpacker.decompress(data, min(_PIECE, size))
                size -= target.write(piece)
        except zstd.ZstdError as error:
            log.warning("%s is spoilt (%s): %d bytes of lines are lost", path, error, size)
    sync(target)


def sync(f: BinaryIO) -> None:
    """Have the disk hold what was written."""
    f.flush()
    os.fsync(f.fileno())
