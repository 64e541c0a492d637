"""PNG files with the same bytes everywhere: uncompressed, since zlib versions differ."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]  # height x width x 3, RGB

_LONGEST_BLOCK = 0xFFFF


def png(pixels: Pixels) -> bytes:
    """Encode pixels as a PNG with 8 bits per channel."""
    height, width, _ = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    # Each line begins with its filter (0: none).
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    parts = [b"\x89PNG\r\n\x1a\n"]
    for name, data in ((b"IHDR", header), (b"IDAT", _stored(lines)), (b"IEND", b"")):
        parts += [struct.pack(">I", len(data)), name, data]
        parts.append(struct.pack(">I", zlib.crc32(name + data)))
    return b"".join(parts)


def _stored(data: bytes) -> bytes:
    """Make a zlib stream of stored blocks (RFC 1950, RFC 1951)."""
    out = [b"\x78\x01"]
    for first in range(0, len(data), _LONGEST_BLOCK):
        block = data[first : first + _LONGEST_BLOCK]
        last = first + _LONGEST_BLOCK >= len(data)
        out += [struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF), block]
    out.append(struct.pack(">I", zlib.adler32(data)))
    return b"".join(out)
