"""A mask thinned to lines one pixel wide."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .rle import Mask

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
"""Pixels by their index in a picture that has been laid out as one row."""


def thinned(mask: Mask) -> Mask:
    """The skeleton of a mask (height x width, 0 or 1) after Zhang and Suen (1984).

    In turn two steps delete, all at once, the pixels with two to six neighbours inside that follow
    each other around the pixel, and with the conditions of the step; until neither deletes any.

    >>> thinned(np.ones((3, 7), dtype=np.uint8))[1].tolist()
    [0, 1, 1, 1, 1, 0, 0]
    """
    padded = np.pad(mask.astype(bool), 1)
    inside, width = padded.ravel(), padded.shape[1]
    # p2 above the pixel, then clockwise up to p9.
    around = np.array([-width, 1 - width, 1, 1 + width, width, width - 1, -1, -1 - width])
    edge = _edge(padded)
    idle = 0
    step = 0
    while idle < 2:
        near = np.packbits(inside[edge[:, None] + around], axis=1).ravel()
        gone = edge[_DELETED[step][near]]
        inside[gone] = False
        # Only a pixel at the edge can be deleted; what lay behind the deleted ones is there now.
        edge = np.unique(np.concatenate([edge, (gone[:, None] + around).ravel()]))
        edge = edge[inside[edge]]
        idle = 0 if len(gone) else idle + 1
        step = 1 - step
    return padded[1:-1, 1:-1].astype(np.uint8)


def _edge(padded: Flags) -> Places:
    """The pixels inside with a neighbour outside."""
    height, width = padded.shape
    behind = np.ones((height - 2, width - 2), dtype=bool)
    for dy in range(3):
        for dx in range(3):
            behind &= padded[dy : height - 2 + dy, dx : width - 2 + dx]
    at_edge = padded.copy()
    at_edge[1:-1, 1:-1] &= ~behind
    return np.flatnonzero(at_edge)


def _deleted(near: Flags, step: int) -> Flags:
    """Which of n pixels a step deletes, by their neighbours (n x 8)."""
    neighbours = near.sum(axis=1)
    entries = (~near & np.roll(near, -1, axis=1)).sum(axis=1)
    above, right, below, left = near[:, ::2].T
    if step == 0:
        open_sides = ~(above & right & below) & ~(right & below & left)
    else:
        open_sides = ~(above & right & left) & ~(above & below & left)
    found: Flags = (neighbours >= 2) & (neighbours <= 6) & (entries == 1) & open_sides
    return found


_NEIGHBOURS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(bool)
_DELETED = [_deleted(_NEIGHBOURS, step) for step in (0, 1)]
"""By step: whether a pixel goes, by its neighbours packed into a byte."""
