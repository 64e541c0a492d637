"""Choose the colour that stands out most from the pixels under a mark."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

import numpy as np
import numpy.typing as npt

from .style import COLOURS, RGB

Lab = npt.NDArray[np.float64]


class Contrast(Enum):
    """How colours are compared."""

    TRUE_LAB = "true Lab"
    # The released code swaps red and blue, in image and palette, so it mostly picks red for blue.
    AS_PUBLISHED = "as published"


def contrasting(under: npt.NDArray[np.uint8], used: Collection[str], contrast: Contrast) -> str:
    """Return the unused colour farthest (CIE 1976) from the most frequent of n x 3 RGB pixels.

    Black if there are no pixels or every colour is used.

    >>> grey = np.full((9, 3), 128, dtype=np.uint8)
    >>> contrasting(grey, (), Contrast.TRUE_LAB), contrasting(grey, (), Contrast.AS_PUBLISHED)
    ('blue', 'red')
    """
    left = [name for name in COLOURS_IN_ORDER if name not in used]
    if not left or not len(under):
        return COLOURS_IN_ORDER[0]
    pixel = lab(_seen(most_frequent(under), contrast))
    far = [float(np.linalg.norm(pixel - lab(_seen(COLOURS[name], contrast)))) for name in left]
    return left[far.index(max(far))]


COLOURS_IN_ORDER = ("black", "blue", "green", "red")  # the first of equally distant ones wins


def most_frequent(pixels: npt.NDArray[np.uint8]) -> RGB:
    """Return the most frequent of n x 3 pixels, the first of equals.

    >>> most_frequent(np.array([[9, 9, 9], [1, 1, 1], [1, 1, 1], [9, 9, 9]], dtype=np.uint8))
    (9, 9, 9)
    """
    numbers = pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    values, first, counts = np.unique(numbers, return_index=True, return_counts=True)
    most = counts == counts.max()
    number = int(values[most][first[most].argmin()])
    return number >> 16, number >> 8 & 255, number & 255


def _seen(colour: RGB, contrast: Contrast) -> RGB:
    red, green, blue = colour
    return (blue, green, red) if contrast is Contrast.AS_PUBLISHED else colour


# Linear sRGB to CIE XYZ under D65 (ITU-R BT.709 primaries)
_TO_XYZ = np.array(
    [
        [0.412453, 0.357580, 0.180423],
        [0.212671, 0.715160, 0.072169],
        [0.019334, 0.119193, 0.950227],
    ]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def lab(colour: RGB) -> Lab:
    """Convert sRGB (0 to 255) to CIE L*, a*, b* under D65.

    >>> lab((255, 0, 0)).round(2).tolist()
    [53.24, 80.09, 67.2]
    """
    value = np.asarray(colour, dtype=np.float64) / 255
    linear = np.where(value > 0.04045, ((value + 0.055) / 1.055) ** 2.4, value / 12.92)
    part = _TO_XYZ @ linear / _WHITE
    x, y, z = np.where(part > 0.008856, np.cbrt(part), 7.787 * part + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
