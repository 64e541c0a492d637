"""Upright boxes around points and around turned boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...boxes import Corners

# What the ledger says of each turned box
ROTATED = "rotated boxes that became the upright boxes around them"


def around_points(points: Sequence[Sequence[float]]) -> Corners:
    """Return the upright box around points (x, y).

    >>> around_points([(3, 9), (1, 4), (2, 5)])
    (1, 4, 3, 9)
    """
    xs = [point[0] for point in points]
    ys = [point[1] for point in points]
    return (min(xs), min(ys), max(xs), max(ys))


def around_turned(corners: Corners, angle: float) -> Corners:
    """Return the upright box around a box that is turned about its centre by degrees.

    >>> [round(number, 6) for number in around_turned((20, 30, 80, 40), 90.0)]
    [45.0, 5.0, 55.0, 65.0]
    """
    if angle % 360 == 0:
        return corners
    x1, y1, x2, y2 = corners
    radians = math.radians(angle)
    cosine = abs(math.cos(radians))
    sine = abs(math.sin(radians))
    width = (x2 - x1) * cosine + (y2 - y1) * sine
    height = (x2 - x1) * sine + (y2 - y1) * cosine
    x = (x1 + x2) / 2
    y = (y1 + y2) / 2
    return (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
