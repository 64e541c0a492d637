"""What a mark points at (a box and the object's outlines), and masks as COCO's run lengths.

pycocotools, which could decode masks, is optional and accepts truncated text and runs of another
size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.uint8]  # height x width, 0 or 1


class RLEError(ValueError):
    """Invalid run lengths."""


@dataclass(frozen=True, slots=True)
class RLE:
    """Run lengths of a mask.

    Raises:
        RLEError: they do not add up to ``height`` x ``width`` pixels.
    """

    height: int
    width: int
    counts: tuple[int, ...]  # outside, inside, … by columns from the upper left

    def __post_init__(self) -> None:
        if sum(self.counts) != self.height * self.width:
            raise RLEError(
                f"the runs of a mask come to {sum(self.counts)} pixels, "
                f"its size to {self.width} x {self.height}"
            )

    def mask(self) -> Mask:
        """Decode to height x width, 1 inside.

        >>> RLE(2, 3, (1, 2, 3)).mask().tolist()
        [[0, 1, 0], [1, 0, 0]]
        """
        inside = np.zeros(len(self.counts), dtype=np.uint8)
        inside[1::2] = 1
        columns = np.repeat(inside, self.counts).reshape(self.width, self.height)
        return np.ascontiguousarray(columns.T)

    def covers(self, x: float, y: float) -> bool:
        """Tell whether the pixel at (x, y) is in the mask.

        >>> RLE(2, 3, (1, 2, 3)).covers(1.9, 0), RLE(2, 3, (1, 2, 3)).covers(2, 0)
        (True, False)
        """
        if not (0 <= x < self.width and 0 <= y < self.height):
            return False
        place = math.floor(x) * self.height + math.floor(y)
        return bool(np.searchsorted(np.cumsum(self.counts), place, side="right") % 2)


@dataclass(frozen=True)
class PackedMask:
    """A mask as tables hold it: COCO's compressed run lengths, unpacked on first use.

    >>> PackedMask(3, 4, "3321").covers(1, 0)
    True
    """

    height: int
    width: int
    packed: str

    @cached_property
    def runs(self) -> RLE:
        """Unpack the run lengths.

        Raises:
            RLEError: the text is invalid, or of a mask of another size.
        """
        return rle_of({"size": (self.height, self.width), "counts": self.packed})

    def covers(self, x: float, y: float) -> bool:
        return self.runs.covers(x, y)


def packed_mask(mask: npt.NDArray[Any]) -> PackedMask:
    """Pack a mask (height x width); nonzero is inside.

    >>> mask = packed_mask(np.array([[0, 1, 0], [1, 0, 0]]))
    >>> mask.packed, mask.runs.counts
    ('123', (1, 2, 3))
    """
    height, width = mask.shape
    inside = (mask != 0).T.ravel()
    ends = [*(np.flatnonzero(inside[1:] != inside[:-1]) + 1).tolist(), inside.size]
    counts = [end - begin for begin, end in pairwise([0, *ends])] if inside.size else []
    if inside.size and inside[0]:
        counts.insert(0, 0)
    return PackedMask(height, width, _packed(counts))


def rle_of(coco: Mapping[str, Any]) -> RLE:
    """Parse ``{"size": [height, width], "counts": …}`` with numbers or COCO's compressed text.

    The text (``maskApi.c`` of cocoapi) has a character per five bits, lowest first: 48 + bits, + 32
    if more follow. From the fourth run on it holds the difference to the run two before.

    >>> rle_of({"size": [3, 4], "counts": "3321"}).counts
    (3, 3, 2, 4)

    Raises:
        RLEError: they cannot be read.
    """
    try:
        height, width = (int(side) for side in coco["size"])
        counts = coco["counts"]
        if isinstance(counts, bytes):
            counts = counts.decode("ascii")
        runs = _unpacked(counts) if isinstance(counts, str) else [int(run) for run in counts]
    except KeyError as error:
        raise RLEError(f"a mask of run lengths has no {error}") from None
    except (TypeError, ValueError) as error:
        raise RLEError(f"no run lengths of COCO: {error}") from None
    return RLE(height, width, tuple(runs))


def packed_runs(runs: RLE) -> PackedMask:
    """Compress run lengths as tables hold them."""
    return PackedMask(runs.height, runs.width, _packed(runs.counts))


def _packed(counts: Sequence[int]) -> str:
    letters = []
    for at, count in enumerate(counts):
        value, more = count - (counts[at - 2] if at > 2 else 0), True
        while more:
            bits = value & 31
            value >>= 5
            more = value != (-1 if bits & 16 else 0)
            letters.append(chr(48 + (bits | 32 if more else bits)))
    return "".join(letters)


def _unpacked(text: str) -> Sequence[int]:
    runs: list[int] = []
    value = shift = 0
    for letter in text:
        bits = ord(letter) - 48
        if not 0 <= bits < 64:
            raise ValueError(f"{letter!r} packs no run lengths")
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            # The highest bit of the last group is the sign.
            value -= (1 << shift) if bits & 16 else 0
            runs.append(value + runs[-2] if len(runs) > 2 else value)
            value = shift = 0
    if shift:
        raise ValueError("the text breaks off")
    return runs


# --- regions --------------------------------------------------------------------------------------

Polygon = tuple[float, ...]  # x1, y1, x2, y2, … in pixels; closed


@dataclass(frozen=True, slots=True)
class Region:
    """What a mark points at, in pixels of its image."""

    box: tuple[float, float, float, float]  # (x, y, w, h) from the upper left corner
    outlines: tuple[Polygon, ...] = ()  # (): unknown
