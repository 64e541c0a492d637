"""Where the labels of points are written in a picture, so that none hides another or a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_LETTER = 7.0  # Width of a letter, in pixels, of text of 12 pixels
_LINE = 14.0  # Height of a line
_POINT = 7.0  # Half the width of a point
_GAP = 3.0  # Between a point and its label


class LabelPlace(NamedTuple):
    """Where a label is written: its distance to its point in pixels, and how it is aligned."""

    dx: float
    dy: float
    align: str


class _Area(NamedTuple):
    """A rectangle of a picture, in pixels from its top left corner."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Area) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def place_labels(
    points: Sequence[tuple[float, float]], labels: Sequence[str], size: tuple[float, float]
) -> list[LabelPlace | None]:
    """Place a label right of its point, left of it, above or below it; None: it has no room.

    Args:
        points: the pixels (x, y) of points, from the top left corner.
        labels: a text for each point; the first have the choice.
        size: width and height of the picture in pixels.

    >>> place_labels([(50, 50), (60, 50)], ["left", "right"], (200, 100))
    [LabelPlace(dx=-10.0, dy=0.0, align='right'), LabelPlace(dx=10.0, dy=0.0, align='left')]
    """
    taken = [_area_of_point(point) for point in points]
    picture = _Area(0, 0, *size)
    places = []
    for at, ((x, y), label) in enumerate(zip(points, labels, strict=True)):
        others = [area for other, area in enumerate(taken) if other != at]
        place = None
        for candidate in _CANDIDATES:
            area = _area_of_label(x + candidate.dx, y + candidate.dy, candidate.align, label)
            inside = area.left >= picture.left and area.right <= picture.right
            inside = inside and area.top >= picture.top and area.bottom <= picture.bottom
            if inside and not any(area.meets(other) for other in others):
                place = candidate
                taken.append(area)
                break
        places.append(place)
    return places


_ASIDE = _POINT + _GAP
_ABOVE = _ASIDE + _LINE / 2
_CANDIDATES = (
    LabelPlace(_ASIDE, 0.0, "left"),
    LabelPlace(-_ASIDE, 0.0, "right"),
    LabelPlace(0.0, -_ABOVE, "center"),
    LabelPlace(0.0, _ABOVE, "center"),
    LabelPlace(_GAP, -_ABOVE, "left"),
    LabelPlace(_GAP, _ABOVE, "left"),
)


def _area_of_point(point: tuple[float, float]) -> _Area:
    x, y = point
    return _Area(x - _POINT, y - _POINT, x + _POINT, y + _POINT)


def _area_of_label(x: float, y: float, align: str, label: str) -> _Area:
    width = _LETTER * len(label)
    left = {"left": x, "right": x - width, "center": x - width / 2}[align]
    return _Area(left, y - _LINE / 2, left + width, y + _LINE / 2)
