"""Boxes on pictures that a viewer turns: from what an annotator saw back to stored pixels.

A camera stores pixels as its sensor lies and says in EXIF how to turn them.  Some annotation tools
show the picture turned, some as it is stored; models are sent, and tables count, the stored pixels.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ...boxes.representation import Corners
from ...core.image_files import Size


class Drawn(Enum):
    """On which picture boxes were drawn: as it is stored, or as a viewer turns it."""

    STORED = "stored"
    TURNED = "turned"


class _Turn(NamedTuple):
    """How a viewer makes its picture of the stored one: in this order."""

    transposes: bool = False
    mirrors: bool = False
    flips: bool = False


_TURNS = {
    1: _Turn(),
    2: _Turn(mirrors=True),
    3: _Turn(mirrors=True, flips=True),
    4: _Turn(flips=True),
    5: _Turn(transposes=True),
    6: _Turn(transposes=True, mirrors=True),
    7: _Turn(transposes=True, mirrors=True, flips=True),
    8: _Turn(transposes=True, flips=True),
}
"""By the EXIF orientation.  Mirrored is left for right, flipped is top for bottom."""


def turned_size(size: Size, orientation: int) -> Size:
    """The size (w, h) at which a viewer shows a stored picture of this size."""
    return (size[1], size[0]) if _TURNS[orientation].transposes else size


def to_stored(box: Corners, orientation: int, size: Size) -> Corners:
    """A box on the turned picture as it lies on the stored one; ``size`` is the stored (w, h).

    >>> to_stored((30, 0, 50, 10), 6, (100, 50))
    (0, 0, 10, 20)
    """
    turn = _TURNS[orientation]
    plain = _mirrored(box, turn, turned_size(size, orientation))
    return _transposed(plain) if turn.transposes else plain


def mask_to_stored(mask: NDArray[Any], orientation: int) -> NDArray[Any]:
    """A mask (height, width) of the turned picture as it lies on the stored one.

    >>> import numpy as np
    >>> mask_to_stored(np.array([[1, 2, 3], [4, 5, 6]]), 6).tolist()
    [[3, 6], [2, 5], [1, 4]]
    """
    turn = _TURNS[orientation]
    plain = mask[:: -1 if turn.flips else 1, :: -1 if turn.mirrors else 1]
    return plain.T if turn.transposes else plain


def _transposed(box: Corners) -> Corners:
    x1, y1, x2, y2 = box
    return (y1, x1, y2, x2)


def _mirrored(box: Corners, turn: _Turn, size: Size) -> Corners:
    """Mirroring undoes itself.  A box whose corners are swapped stays one."""
    x1, y1, x2, y2 = box
    if turn.mirrors:
        x1, x2 = size[0] - x2, size[0] - x1
    if turn.flips:
        y1, y2 = size[1] - y2, size[1] - y1
    return (x1, y1, x2, y2)
