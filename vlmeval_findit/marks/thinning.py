"""A mask thinned to lines one pixel wide."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .rle import Mask

Inside = npt.NDArray[np.bool_]


def thinned(mask: Mask) -> Mask:
    """The skeleton of a mask (height x width, 0 or 1) after Zhang and Suen (1984).

    In turn two steps delete, all at once, the pixels with two to six neighbours inside that follow
    each other around the pixel, and with the two conditions of the step; until neither deletes any.

    >>> thinned(np.ones((3, 7), dtype=np.uint8))[1].tolist()
    [0, 1, 1, 1, 1, 1, 0]
    """
    inside = np.pad(mask.astype(bool), 1)
    before = -1
    while before != (before := int(inside.sum())):
        for step in (0, 1):
            inside[1:-1, 1:-1] &= ~_deleted(inside, step)
    return inside[1:-1, 1:-1].astype(np.uint8)


def _deleted(inside: Inside, step: int) -> Inside:
    height, width = inside.shape
    # p2 above the pixel, then clockwise up to p9.
    around = [
        inside[1 + dy : height - 1 + dy, 1 + dx : width - 1 + dx]
        for dy, dx in ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
    ]
    neighbours = sum(one.astype(np.uint8) for one in around)
    entries = sum(
        (~one & after).astype(np.uint8)
        for one, after in zip(around, [*around[1:], around[0]], strict=True)
    )
    p2, p4, p6, p8 = around[::2]
    open_sides = (
        ~(p2 & p4 & p6) & ~(p4 & p6 & p8) if step == 0 else ~(p2 & p4 & p8) & ~(p2 & p6 & p8)
    )
    return inside[1:-1, 1:-1] & (neighbours >= 2) & (neighbours <= 6) & (entries == 1) & open_sides
