"""The structure of JPEG files: segments with what decoders must know, and pixels."""

from __future__ import annotations

import re

_BEGIN = b"\xff\xd8"
_END = b"\xff\xd9"
_SCAN = 0xDA  # the pixels of a scan follow this segment

# Segments before the pixels of a baseline file: frame, tables, restarts, APP0 to APP15, a comment
_BEFORE_PIXELS = frozenset({0xC0, 0xC1, 0xC4, 0xDB, 0xDD, *range(0xE0, 0xF0), 0xFE})

# Pixels have no other byte behind FF than 00 and restart markers.
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7]")


def without_pixels(file: memoryview) -> bytes | None:
    """Return a whole baseline JPEG of one scan without its pixels; None for any other file.

    Decoders refuse this head for the same reasons as the file: any bits are pixels to them. They
    read it in a fraction of the time.
    """
    pixels = _start_of_pixels(file)
    if pixels is None:
        return None
    marker = _MARKER.search(file, pixels)
    if marker is None or marker[0] != _END:
        return None
    return bytes(file[:pixels]) + _END


def _start_of_pixels(file: memoryview) -> int | None:
    """Return where the pixels begin; None if anything unusual stands before them."""
    if file[:2] != _BEGIN:
        return None
    at = 2
    while len(file) >= at + 4 and file[at] == 0xFF:
        kind = file[at + 1]
        after = at + 2 + int.from_bytes(file[at + 2 : at + 4], "big")
        if kind == _SCAN:
            return after
        if kind not in _BEFORE_PIXELS:
            return None
        at = after
    return None
