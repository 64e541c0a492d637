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


@dataclass(frozen=True)
class PackedMask:
    """A mask as tables hold it: COCO's compressed run lengths, unpacked on first use.

    The text (``maskApi.c`` of cocoapi) has a character per five bits, lowest first: 48 + bits, + 32
    if more follow. From the fourth run on it holds the difference to the run two before.

    >>> PackedMask(3, 4, "3321").counts, PackedMask(2, 3, "123").mask().tolist()
    ((3, 3, 2, 4), [[0, 1, 0], [1, 0, 0]])
    """

    height: int
    width: int
    packed: str

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Return numbers of pixels outside, inside, outside, … by columns from the upper left.

        Raises:
            RLEError: the text is invalid, or of a mask of another size.
        """
        counts = _unpacked(self.packed)
        if sum(counts) != self.height * self.width:
            raise RLEError(
                f"the runs of a mask come to {sum(counts)} pixels, "
                f"its size to {self.width} x {self.height}"
            )
        return counts

    def mask(self) -> Mask:
        """Decode to height x width, 1 inside."""
        inside = np.zeros(len(self.counts), dtype=np.uint8)
        inside[1::2] = 1
        columns = np.repeat(inside, self.counts).reshape(self.width, self.height)
        return np.ascontiguousarray(columns.T)

    def covers(self, x: float, y: float) -> bool:
        """Tell whether the pixel at (x, y) is in the mask.

        >>> PackedMask(2, 3, "123").covers(1.9, 0), PackedMask(2, 3, "123").covers(2, 0)
        (True, False)
        """
        counts = self.counts
        if not (0 <= x < self.width and 0 <= y < self.height):
            return False
        place = math.floor(x) * self.height + math.floor(y)
        return bool(np.searchsorted(np.cumsum(counts), place, side="right") % 2)


def packed_mask(mask: npt.NDArray[Any]) -> PackedMask:
    """Pack a mask (height x width); nonzero is inside.

    >>> packed_mask(np.array([[0, 1, 0], [1, 0, 0]])).packed
    '123'
    """
    height, width = mask.shape
    inside = (mask != 0).T.ravel()
    ends = [*(np.flatnonzero(inside[1:] != inside[:-1]) + 1).tolist(), inside.size]
    counts = [end - begin for begin, end in pairwise([0, *ends])] if inside.size else []
    if inside.size and inside[0]:
        counts.insert(0, 0)
    return PackedMask(height, width, _packed(counts))


def rle_of(coco: Mapping[str, Any]) -> PackedMask:
    """Parse ``{"size": [height, width], "counts": …}`` with numbers or COCO's compressed text.

    Raises:
        RLEError: they cannot be read.
    """
    try:
        height, width = (int(side) for side in coco["size"])
        counts = coco["counts"]
        if isinstance(counts, bytes):
            counts = counts.decode("ascii")
        if not isinstance(counts, str):
            counts = _packed([int(run) for run in counts])
    except KeyError as error:
        raise RLEError(f"a mask of run lengths has no {error}") from None
    except (TypeError, ValueError) as error:
        raise RLEError(f"no run lengths of COCO: {error}") from None
    result = PackedMask(height, width, counts)
    _ = result.counts  # refuses what is invalid
    return result


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


def _unpacked(text: str) -> tuple[int, ...]:
    runs: list[int] = []
    value = shift = 0
    for letter in text:
        bits = ord(letter) - 48
        if not 0 <= bits < 64:
            raise RLEError(f"no run lengths of COCO: {letter!r} packs none")
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            # The highest bit of the last group is the sign.
            value -= (1 << shift) if bits & 16 else 0
            runs.append(value + runs[-2] if len(runs) > 2 else value)
            value = shift = 0
    if shift:
        raise RLEError("no run lengths of COCO: the text breaks off")
    return tuple(runs)


# --- regions --------------------------------------------------------------------------------------

Polygon = tuple[float, ...]  # x1, y1, x2, y2, … in pixels; closed


@dataclass(frozen=True, slots=True)
class Region:
    """What a mark points at, in pixels of its image."""

    box: tuple[float, float, float, float]  # (x, y, w, h) from the upper left corner
    outlines: tuple[Polygon, ...] = ()  # (): unknown
