"""What two queries must not share to be independent: the picture, or the video of a frame."""

from __future__ import annotations

import re


def source_of(frame: str) -> str:
    """The video that a frame is of: its path without the frame's number.

    >>> source_of("000005/rgb/00003.png"), source_of("qyrH8GUlgC4_f008606.jpg")
    ('000005/rgb', 'qyrH8GUlgC4')
    """
    return re.sub(r"[_/]f?\d+\.\w+$", "", frame)
