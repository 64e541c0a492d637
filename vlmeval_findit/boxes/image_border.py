"""Where the boxes of annotations may lie: one rule for files, arguments and trainers."""

from __future__ import annotations

from typing import Any

# Pixels by which a box may leave its image: some tools round it so
BORDER_MARGIN = 1.0
# Rounding alone takes fractions of an image so far above 1.
_LARGEST_FRACTION = 1.5
# A box within the first pixel of so large an image is no object.
_LARGER = 4 * _LARGEST_FRACTION


def leaves_image(box: Any, size: Any) -> Any:
    """Return whether a box leaves its image by more than tools round.

    >>> leaves_image((0, 0, 641, 480), (640, 480)), leaves_image((0, 0, 642, 480), (640, 480))
    (False, True)

    Args:
        box: x1, y1, x2, y2 in pixels: numbers, or arrays of many boxes.
        size: width and height in pixels: likewise.
    """
    x1, y1, x2, y2 = box
    width, height = size
    is_before = (x1 < -BORDER_MARGIN) | (y1 < -BORDER_MARGIN)
    return is_before | (x2 > width + BORDER_MARGIN) | (y2 > height + BORDER_MARGIN)


def is_in_first_pixel(box: Any, size: Any) -> Any:
    """Return whether a box lies within the first pixel of a larger image: it may be of fractions.

    >>> is_in_first_pixel((0.1, 0.2, 0.5, 1.0), (640, 480))
    True

    Args:
        box: as of :func:`leaves_image`.
        size: likewise.
    """
    x1, y1, x2, y2 = box
    width, height = size
    is_within = _is_one(x1) & _is_one(y1) & _is_one(x2) & _is_one(y2)
    return is_within & (width >= _LARGER) & (height >= _LARGER)


def _is_one(number: Any) -> Any:
    return abs(number) <= _LARGEST_FRACTION
