"""What a mark points at (a box and the object's outlines), and masks as COCO's run lengths.

pycocotools, which could decode masks, is optional and accepts truncated text and runs of another
size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

MaskArray = npt.NDArray[np.uint8]  # Height x width, 0 or 1


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
        return tuple(self._unpacked().tolist())

    def _unpacked(self) -> npt.NDArray[np.int64]:
        """Unpack the counts, without remembering them."""
        counts = _unpacked(self.packed)
        pixels = int(counts.sum())
        # Runs of less than nothing, or of more than the image, can add up to it, too.
        if ((counts < 0) | (counts > self.height * self.width)).any():
            raise RLEError("not run lengths of COCO: a run is not within the image")
        if pixels != self.height * self.width:
            raise RLEError(
                f"the runs of a mask come to {pixels} pixels, "
                f"its size to {self.width} x {self.height}"
            )
        return counts

    def mask(self) -> MaskArray:
        """Decode to height x width, 1 inside."""
        inside = np.zeros(len(self.counts), dtype=np.uint8)
        inside[1::2] = 1
        columns = np.repeat(inside, self.counts).reshape(self.width, self.height)
        return np.ascontiguousarray(columns.T)

    @property
    def extent(self) -> tuple[float, float, float, float] | None:
        """The box (x1, y1, x2, y2) around its pixels; None: it has none.

        >>> PackedMask(2, 3, "123").extent
        (0.0, 0.0, 2.0, 2.0)
        """
        return self._extent

    @cached_property
    def _extent(self) -> tuple[float, float, float, float] | None:
        changes = np.cumsum(self._unpacked())
        starts = changes[0:-1:2]
        ends = changes[1::2]
        filled = starts < ends
        starts = starts[filled]
        ends = ends[filled]
        if not len(starts):
            return None
        first = starts // self.height
        last = (ends - 1) // self.height
        if (first != last).any():
            top = 0
            bottom = self.height
        else:
            top = int((starts % self.height).min())
            bottom = int(((ends - 1) % self.height).max()) + 1
        return (float(first.min()), float(top), float(last.max()) + 1, float(bottom))

    def covers(self, x: float, y: float) -> bool:
        """Return whether the pixel at (x, y) is in the mask.

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
    if not inside.size:
        return PackedMask(height, width, "")
    changes = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    runs = np.diff(changes, prepend=0, append=inside.size)
    if inside[0]:
        runs = np.insert(runs, 0, 0)
    return PackedMask(height, width, packed_runs(runs))


def rle_of(coco: Mapping[str, Any]) -> PackedMask:
    """Parse ``{"size": [height, width], "counts": …}`` with numbers or COCO's compressed text.

    Raises:
        RLEError: they cannot be read.
    """
    try:
        height, width = (_whole(side, "side", _LONGEST_SIDE) for side in coco["size"])
        counts = coco["counts"]
        if isinstance(counts, bytes):
            counts = counts.decode("ascii")
        if not isinstance(counts, str):
            runs = [_whole(run, "run length", height * width) for run in counts]
            counts = packed_runs(np.array(runs, np.int64))
    except KeyError as error:
        raise RLEError(f"a mask of run lengths without {error}") from None
    except (TypeError, ValueError) as error:
        raise RLEError(f"not run lengths of COCO: {error}") from None
    result = PackedMask(height, width, counts)
    _ = result.extent  # Refuses what is invalid
    return result


# In pixels: more than any image has
_LONGEST_SIDE = 2**31 - 1


def _whole(value: Any, what: str, most: int) -> int:
    """Return a whole number from 0 to the most, or raise a ValueError."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= most or value % 1:
        raise ValueError(f"{str(value)[:20]} is no {what}")
    return int(value)


def packed_runs(runs: npt.NDArray[np.int64]) -> str:
    """Pack the runs of a mask; see :class:`PackedMask`.

    >>> packed_runs(np.array([3, 3, 2, 4]))
    '3321'
    """
    return pack_several(runs, np.array([len(runs)]))[0]


def pack_several(runs: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> list[str]:
    """Pack the runs of several masks, one behind the other; ``lengths`` says how many each has.

    >>> pack_several(np.array([3, 3, 2, 4, 1, 2, 3]), np.array([4, 3]))
    ['3321', '123']
    """
    values = runs.astype(np.int64)
    ends = np.cumsum(lengths)
    within = np.arange(len(runs)) - np.repeat(ends - lengths, lengths)
    later = np.flatnonzero(within > 2)
    values[later] -= runs[later - 2]
    groups: list[npt.NDArray[np.uint8]] = []  # Letters of five bits each, the lowest first
    written: list[npt.NDArray[np.bool_]] = []  # Which values have this letter
    more = np.ones(len(values), bool)
    while more.any():
        bits = values & 31
        values = values >> 5
        written.append(more)
        more = more & (values != np.where(bits & 16, -1, 0))
        groups.append((48 + bits + 32 * more).astype(np.uint8))
    if not groups:
        return ["" for _ in lengths]
    written_letters = np.stack(written, axis=1)
    letters = np.stack(groups, axis=1)[written_letters].tobytes().decode("ascii")
    letter_ends = np.concatenate(([0], np.cumsum(written_letters.sum(axis=1))))
    places = letter_ends[np.concatenate(([0], ends))].tolist()
    return [letters[here:there] for here, there in pairwise(places)]


def _unpacked(text: str) -> npt.NDArray[np.int64]:
    codes = np.array([*map(ord, text)], np.int64) - 48
    wrong = np.flatnonzero((codes < 0) | (codes > 63))
    if len(wrong):
        raise RLEError(f"not run lengths of COCO: {text[wrong[0]]!r} packs none")
    if not len(codes):
        return codes
    lasts = np.flatnonzero(codes & 32 == 0)
    if not len(lasts) or lasts[-1] != len(codes) - 1:
        raise RLEError("not run lengths of COCO: the text breaks off")
    firsts = np.concatenate(([0], lasts[:-1] + 1))
    lengths = lasts - firsts + 1
    if lengths.max() > _MOST_LETTERS:
        raise RLEError("not run lengths of COCO: a run is longer than any image")
    place = np.arange(len(codes)) - np.repeat(firsts, lengths)
    values = np.add.reduceat((codes & 31) << (5 * place), firsts)
    # The highest bit of the last group is the sign.
    values -= np.where(codes[lasts] & 16, 1 << (5 * lengths), 0)
    values[1::2] = np.cumsum(values[1::2])
    values[2::2] = np.cumsum(values[2::2])
    return values


# Letters of a run: five bits each, of a whole number of 64
_MOST_LETTERS = 12


# --- regions --------------------------------------------------------------------------------------

Polygon = tuple[float, ...]  # (x1, y1, x2, y2, …) in pixels; closed


@dataclass(frozen=True, slots=True)
class Region:
    """What a mark points at, in pixels of its image."""

    box: tuple[float, float, float, float]  # (x, y, w, h) from the upper left corner
    outlines: tuple[Polygon, ...] = ()  # (): unknown
