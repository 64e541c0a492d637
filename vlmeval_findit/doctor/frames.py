"""What numbers refer to: per axis an affine map from shares of the image to the numbers said.

``x`` is a share of the image's width (0 left, 1 right), ``y`` of its height; a :class:`Frame` says
by image what a model that means (x, y) writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..boxes.spaces import Space, reference

Floats = NDArray[np.float64]

# From the sizes of pictures, (2, n) of widths and heights in pixels, to their frame.
FrameOf = Callable[[Floats], "Frame"]


class Frame(NamedTuple):
    """u = scale[0] * x + offset[0], v = scale[1] * y + offset[1]; both (2, n)."""

    scale: Floats  # The size that numbers refer to; negative: mirrored
    offset: Floats
    turned: bool = False  # u follows y and v follows x

    def of(self, rows: NDArray[np.intp]) -> Frame:
        """The frame of some of the pictures, in the order given."""
        return Frame(self.scale[:, rows], self.offset[:, rows], self.turned)

    def bent(self, how: Bend) -> Frame:
        """The frame where a point c is said at ½ + offset + scale (c − ½)."""
        if how is UNBENT:
            return self
        axes = [1, 0] if self.turned else [0, 1]
        scale, start = how.scale[axes, None], how.at_origin[axes, None]
        return Frame(self.scale * scale, self.offset + self.scale * start, self.turned)


# A scale beside 1 and an offset in shares of the picture that weak models have, too.
SMALL_SCALE, SMALL_OFFSET = 0.05, 0.015


@dataclass(frozen=True)
class Bend:
    """A point c of the image is said where ½ + offset + scale (c − ½) belongs; all (2,) of x, y.

    Sides scale likewise. ``shift`` and ``size`` are a model's habits in any frame. Errors are by
    image.
    """

    scale: Floats
    offset: Floats
    shift: Floats  # boxes are moved, by shares of the object's side
    size: Floats  # the logarithm of how much too large sides are
    scale_error: Floats
    offset_error: Floats

    @property
    def at_origin(self) -> Floats:
        """(2,): where the corner (0, 0) of the picture is said, in shares of the picture."""
        corner: Floats = 0.5 + self.offset - self.scale / 2
        return corner

    @property
    def at_origin_error(self) -> Floats:
        """(2,): its standard error; offset in the middle and scale are nearly independent."""
        error: Floats = np.hypot(self.offset_error, self.scale_error / 2)
        return error

    @property
    def is_small(self) -> bool:
        """A few per cent, or drawn to the middle of the picture as weak models draw."""
        offset = np.abs(self.offset)
        either = np.minimum(offset, np.abs(self.at_origin))
        if (np.abs(self.scale - 1) < SMALL_SCALE).all() and (either < SMALL_OFFSET).all():
            return True
        # Few pictures do not tell the middle better than by two standard errors.
        middle = np.maximum(0.01, 0.15 * (1 - self.scale)) + 2 * np.nan_to_num(self.offset_error)
        return bool(((self.scale > 0.75) & (self.scale < 1) & (offset < middle)).all())


def scaled(scale: float) -> Bend:
    """About the corner (0, 0), alike on both axes."""
    both, none, nan = np.full(2, scale), np.zeros(2), np.full(2, np.nan)
    return Bend(both, (both - 1) / 2, none, none, nan, nan)


UNBENT = scaled(1.0)


def of_space(space: Space) -> FrameOf:
    """The frame of a coordinate space that the score knows."""

    def frame(sizes: Floats) -> Frame:
        found = [reference(space, int(w), int(h)) for w, h in sizes.T.tolist()]
        both = np.array(found, float).reshape(-1, 4).T
        return Frame(both[:2], both[2:])

    return frame


def cropped(side: float) -> FrameOf:
    """The square in the middle of the picture, of ``side``."""

    def frame(sizes: Floats) -> Frame:
        edge = sizes.min(0)
        return Frame(sizes * side / edge, (edge - sizes) / 2 * side / edge)

    return frame


def seen_turned(size: FrameOf, far: tuple[bool, bool], turned: bool = False) -> FrameOf:
    """Mirror the image as sent, or turn it by a quarter.

    ``far`` says which of u and v count from the far edge: both at 180 degrees; clockwise, u counts
    from the bottom.
    """

    def frame(sizes: Floats) -> Frame:
        scale, back = size(sizes[::-1] if turned else sizes).scale, np.array(far)[:, None]
        return Frame(np.where(back, -scale, scale), np.where(back, scale, 0), turned)

    return frame
