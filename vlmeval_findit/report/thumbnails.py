"""Shrink images until all of them together fit a budget; they are data addresses."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from ..core.image_files import decode, header

BUDGET = 14_000_000  # Characters that the thumbnails of a page may have together
_SIDES = (960, 640, 480, 384, 320, 256, 192, 144, 112, 80, 56)
_QUALITY = 72
_SAMPLE = 24


class Thumbnail(NamedTuple):
    """A JPEG as a data address, with the size of its original in pixels."""

    address: str
    width: int
    height: int


def thumbnails(paths: Iterable[Path], budget: int = BUDGET) -> dict[Path, Thumbnail]:
    """Return the thumbnails of images; an image that cannot be opened has none.

    The longer side is the largest of a few sides that, by a sample, fit the budget.
    """
    unique = list(dict.fromkeys(paths))
    return thumbnails_of(unique, side_within(unique, budget))


def thumbnails_of(paths: Iterable[Path], side: int) -> dict[Path, Thumbnail]:
    """Return the thumbnails of images, their longer side at most ``side`` pixels."""
    unique = list(dict.fromkeys(paths))
    with ThreadPoolExecutor(2) as pool:
        shrunk = pool.map(_thumbnail, unique, repeat(side))
        pairs = zip(unique, shrunk, strict=True)
        return {path: thumbnail for path, thumbnail in pairs if thumbnail is not None}


def side_within(paths: Sequence[Path], budget: int) -> int:
    """Estimate from a sample the longer side, in pixels, with which images fit a budget."""
    step = max(1, len(paths) // _SAMPLE)
    sample = paths[::step]
    for side in _SIDES[:-1]:
        shrunk = [small for path in sample if (small := _thumbnail(path, side)) is not None]
        if not shrunk:
            break
        if len(paths) * sum(len(small.address) for small in shrunk) / len(shrunk) <= budget:
            return side
    return _SIDES[-1]


def _thumbnail(path: Path, side: int) -> Thumbnail | None:
    try:
        width, height = header(path).size
        # JPEG decoders can leave out detail: scenes of 50 million pixels in a tenth the time.
        small = decode(path, enough=(side, side))
    except OSError:
        return None
    small.thumbnail((side, side))
    out = BytesIO()
    small.save(out, "JPEG", quality=_QUALITY, optimize=True)
    data = base64.b64encode(out.getvalue()).decode("ascii")
    return Thumbnail(f"data:image/jpeg;base64,{data}", width, height)
