"""The upright box of a shape: polygons, turned boxes, circles and ellipses."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...boxes import Corners
from ...storage import Size

# What the ledger says of each turned box, and where turned ones and outlines look the same
ROTATED = "rotated boxes that became the upright boxes around them"
OUTLINES = "outlines and turned boxes that became the upright boxes around them"


def around_centre(cx: float, cy: float, w: float, h: float) -> Corners:
    """Return the corners of a box about (cx, cy).

    >>> around_centre(50, 50, 20, 10)
    (40.0, 45.0, 60.0, 55.0)
    """
    return (cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2)


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


def around_turned_corner(sides: Sequence[float], angle: float, size: Size) -> Corners:
    """Return the upright box around (x, y, w, h) in percent, turned about its upper left corner.

    ``size`` is (width, height) of the image: percent of it are not equal across and down.

    >>> around_turned_corner((50, 50, 20, 10), 90, (100, 200))
    (30.0, 50.0, 50.0, 60.0)
    """
    x, y, w, h = sides
    width, height = size
    cosine = math.cos(math.radians(angle))
    sine = math.sin(math.radians(angle))
    points = []
    for right, down in ((0.0, 0.0), (w, 0.0), (0.0, h), (w, h)):
        across = right * width
        along = down * height
        points.append(
            (
                round(x + (across * cosine - along * sine) / width, 9),
                round(y + (across * sine + along * cosine) / height, 9),
            )
        )
    return around_points(points)


def around_ellipse(x: float, y: float, rx: float, ry: float, angle: float = 0.0) -> Corners:
    """Return the upright box around an ellipse about (x, y), turned by degrees.

    >>> around_ellipse(100, 100, 20, 10), [round(n) for n in around_ellipse(100, 100, 20, 10, 90)]
    ((80, 90, 120, 110), [90, 80, 110, 120])
    """
    across, down = rx, ry
    if angle % 180:
        cosine = math.cos(math.radians(angle))
        sine = math.sin(math.radians(angle))
        across = math.hypot(rx * cosine, ry * sine)
        down = math.hypot(rx * sine, ry * cosine)
    return (x - across, y - down, x + across, y + down)
