"""Frames: affine maps per axis from shares of the image (0 left or top, 1) to a reply's numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..boxes.spaces import Space, reference

Floats = NDArray[np.float64]

# From (2, n) widths and heights of images in pixels to their frame
FrameOf = Callable[[Floats], "Frame"]


class Frame(NamedTuple):
    """u = scale[0] * x + offset[0], v = scale[1] * y + offset[1] for n images."""

    scale: Floats  # (2, n) the size that numbers refer to; negative: mirrored
    offset: Floats  # (2, n)
    turned: bool = False  # u follows y and v follows x

    def of(self, rows: NDArray[np.intp]) -> Frame:
        """Select images."""
        return Frame(self.scale[:, rows], self.offset[:, rows], self.turned)

    def bent(self, how: Bend) -> Frame:
        if how is UNBENT:
            return self
        axes = [1, 0] if self.turned else [0, 1]
        scale, start = how.scale[axes, None], how.at_origin[axes, None]
        return Frame(self.scale * scale, self.offset + self.scale * start, self.turned)


# Deviations of scale, and offsets in shares of the image, that weak models have, too
SMALL_SCALE, SMALL_OFFSET = 0.05, 0.015


@dataclass(frozen=True)
class Bend:
    """A map of a point c to ½ + offset + scale (c − ½), by axis in shares of the image; all (2,).

    ``shift`` and ``size`` are a model's habits in any frame.
    """

    scale: Floats
    offset: Floats  # of the middle
    shift: Floats  # of boxes, in shares of the object's side
    size: Floats  # logarithm of the ratio of sides to the object's
    scale_error: Floats  # standard errors, clustered by image
    offset_error: Floats

    @property
    def at_origin(self) -> Floats:
        """Return the offset of the corner (0, 0)."""
        corner: Floats = 0.5 + self.offset - self.scale / 2
        return corner

    @property
    def at_origin_error(self) -> Floats:
        # The offset of the middle and the scale are nearly independent.
        error: Floats = np.hypot(self.offset_error, self.scale_error / 2)
        return error

    @property
    def is_small(self) -> bool:
        """Tell whether it is a few per cent, or weak models' drift to the middle."""
        offset = np.abs(self.offset)
        either = np.minimum(offset, np.abs(self.at_origin))
        if (np.abs(self.scale - 1) < SMALL_SCALE).all() and (either < SMALL_OFFSET).all():
            return True
        # The offset is only known up to two standard errors.
        middle = np.maximum(0.01, 0.15 * (1 - self.scale)) + 2 * np.nan_to_num(self.offset_error)
        return bool(((self.scale > 0.75) & (self.scale < 1) & (offset < middle)).all())


def scaled(scale: float) -> Bend:
    """Scale both axes about the corner (0, 0)."""
    both, none, nan = np.full(2, scale), np.zeros(2), np.full(2, np.nan)
    return Bend(both, (both - 1) / 2, none, none, nan, nan)


UNBENT = scaled(1.0)


def of_space(space: Space) -> FrameOf:
    """Make the frame of one of the score's coordinate spaces."""

    def frame(sizes: Floats) -> Frame:
        found = [reference(space, int(w), int(h)) for w, h in sizes.T.tolist()]
        both = np.array(found, float).reshape(-1, 4).T
        return Frame(both[:2], both[2:])

    return frame


def cropped(side: float) -> FrameOf:
    """Make the frame of the square in the image's middle, with sides of ``side``."""

    def frame(sizes: Floats) -> Frame:
        edge = sizes.min(0)
        return Frame(sizes * side / edge, (edge - sizes) / 2 * side / edge)

    return frame


def seen_turned(size: FrameOf, far: tuple[bool, bool], turned: bool = False) -> FrameOf:
    """Make the frame of an image that is mirrored, or turned by 90 degrees.

    ``far`` tells for u and v whether they count from the far edge: both at 180 degrees; u, from the
    bottom, if turned clockwise.
    """

    def frame(sizes: Floats) -> Frame:
        scale, back = size(sizes[::-1] if turned else sizes).scale, np.array(far)[:, None]
        return Frame(np.where(back, -scale, scale), np.where(back, scale, 0), turned)

    return frame
