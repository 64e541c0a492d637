"""What numbers refer to: per axis an affine map from shares of the picture to the numbers said.

``x`` below is a place along the picture's width as a share of it (0 left, 1 right), ``y`` the same
along its height.  A :class:`Frame` says for every picture what a model that means (x, y) writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..boxes.spaces import Space, reference_size

Floats = NDArray[np.float64]

FrameOf = Callable[[Floats], "Frame"]
"""From the sizes of pictures, (2, n) of widths and heights in pixels, to their frame."""

Size = tuple[float, float]
"""(width, height)."""


class Frame(NamedTuple):
    """u = scale[0] * x + offset[0], v = scale[1] * y + offset[1]; both (2, n).

    ``scale`` is the size that the numbers refer to, negative along an axis that is mirrored.
    ``turned``: u follows y and v follows x.
    """

    scale: Floats
    offset: Floats
    turned: bool = False

    def of(self, rows: NDArray[np.intp]) -> Frame:
        """The frame of some of the pictures, in the order given."""
        return Frame(self.scale[:, rows], self.offset[:, rows], self.turned)

    def bent(self, scale: Floats, shift: Floats) -> Frame:
        """The frame where a point c is said at ½ + shift + scale (c − ½); both (2,) of x and y."""
        if self.turned:
            scale, shift = scale[::-1], shift[::-1]
        start = (0.5 + shift - scale / 2)[:, None]
        offset = self.offset + self.scale * start
        return Frame(self.scale * scale[:, None], offset, self.turned)


def sized(size: Callable[[int, int], Size]) -> FrameOf:
    """A frame without offset, from the size that numbers refer to for a picture's."""

    def frame(sizes: Floats) -> Frame:
        pairs = [(int(w), int(h)) for w, h in sizes.T.tolist()]
        known = {pair: size(*pair) for pair in set(pairs)}
        return _plain(np.array([known[pair] for pair in pairs], float).reshape(-1, 2).T)

    return frame


def constant(width: float, height: float) -> FrameOf:
    """Numbers refer to one size, whatever the picture's."""

    return lambda sizes: _plain(np.array([[width], [height]]) + np.zeros_like(sizes))


def of_space(space: Space) -> FrameOf:
    """The frame of a coordinate space that the score knows."""
    return sized(lambda w, h: reference_size(space, w, h))


def at_most(side: float) -> FrameOf:
    """Pixels of the picture shrunk to a longer side of at most ``side``."""
    return lambda sizes: _scaled(sizes, np.minimum(1, side / sizes.max(0)))


def longer(side: float) -> FrameOf:
    """Pixels of the picture scaled to a longer side of exactly ``side``."""
    return lambda sizes: _scaled(sizes, side / sizes.max(0))


def squared(side: float, fit: Callable[[Floats], Floats]) -> FrameOf:
    """The picture in the middle of a square of ``side``.

    ``fit`` chooses which edge of a picture fills the square: the longer one where it is padded, the
    shorter one where it is cropped.
    """

    def frame(sizes: Floats) -> Frame:
        edge = fit(sizes)
        return Frame(sizes * side / edge, (edge - sizes) / 2 * side / edge)

    return frame


def longer_edge(sizes: Floats) -> Floats:
    """The longer edge of every picture, in pixels."""
    edge: Floats = sizes.max(0)
    return edge


def shorter_edge(sizes: Floats) -> Floats:
    """The shorter edge of every picture, in pixels."""
    edge: Floats = sizes.min(0)
    return edge


def twice(size: FrameOf) -> FrameOf:
    """Numbers scaled to a size by one who takes them for pixels, when they were scaled already."""
    return lambda sizes: _plain(size(sizes).scale ** 2 / sizes)


def backwards(size: FrameOf) -> FrameOf:
    """Numbers scaled the wrong way: divided where they had to be multiplied."""
    return lambda sizes: _plain(sizes**2 / size(sizes).scale)


def axes_exchanged(size: FrameOf) -> FrameOf:
    """Width and height exchanged where numbers were scaled to the picture."""

    def frame(sizes: Floats) -> Frame:
        return _plain(size(sizes).scale * sizes / sizes[::-1])

    return frame


def sizes_exchanged(size: FrameOf) -> FrameOf:
    """Width and height exchanged in the size that numbers refer to."""
    return lambda sizes: _plain(size(sizes).scale[::-1])


Backwards = tuple[bool, bool]
"""Which of the two numbers of a point count from the far edge of the picture."""


def mirrored(size: FrameOf, backwards: Backwards) -> FrameOf:
    """The picture as sent is mirrored; along both axes it is turned by 180 degrees."""
    return lambda sizes: _counted(size(sizes), backwards, turned=False)


def quarter_turned(size: FrameOf, backwards: Backwards) -> FrameOf:
    """The picture as sent is turned by 90 degrees; clockwise, u counts from its bottom edge."""
    return lambda sizes: _counted(size(sizes[::-1]), backwards, turned=True)


def tiles(width: int, height: int) -> Size:
    """OpenAI's older sizing: within 2048 x 2048 pixels, then a shorter side of at most 768."""
    scale = min(1, 2048 / max(width, height))
    scale *= min(1, 768 / (min(width, height) * scale))
    return width * scale, height * scale


def _plain(scale: Floats) -> Frame:
    return Frame(scale, np.zeros_like(scale))


def _scaled(sizes: Floats, by: Floats) -> Frame:
    return _plain(sizes * by)


def _counted(plain: Frame, backwards: Backwards, turned: bool) -> Frame:
    far = np.array(backwards)[:, None]
    scale = np.where(far, -plain.scale, plain.scale)
    return Frame(scale, np.where(far, plain.scale, 0) + plain.offset, turned)
