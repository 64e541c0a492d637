"""Boxes of the release: (x, y, w, h) in some sources, (x1, y1, x2, y2) in others, and none says so.

Per source that reading counts in which every box lies inside its picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from ....core.image_files import Size
from ....core.table_files import TableError

SLACK = 1.0
"""Pixels by which a box may leave its picture: numbers are rounded."""

LEAST = 1.0
"""Pixels of a box's sides, at least: fractions of a picture are no pixels."""


class Reading(Enum):
    """What four numbers are; of two that fit all boxes of a source the first counts, COCO's."""

    XYWH = "xywh"
    XYXY = "xyxy"


class Quad(NamedTuple):
    """The four numbers of a box as they stand, its picture's size, and where they stand."""

    numbers: tuple[float, ...]
    size: Size
    where: str


Box = tuple[float, float, float, float]


def as_xywh(numbers: Sequence[float], reading: Reading) -> Box:
    """A box as (x, y, w, h).

    >>> as_xywh((10, 20, 30, 60), Reading.XYXY)
    (10, 20, 20, 40)
    """
    x, y, a, b = numbers
    return (x, y, a, b) if reading is Reading.XYWH else (x, y, a - x, b - y)


def fits(quad: Quad, reading: Reading) -> bool:
    """Whether a box lies inside its picture."""
    (x, y, w, h), (width, height) = as_xywh(quad.numbers, reading), quad.size
    return (
        min(x, y) >= -SLACK
        and min(w, h) >= LEAST
        and x + w <= width + SLACK
        and y + h <= height + SLACK
    )


class Found(NamedTuple):
    """The reading of a source's boxes, and whether the other would have done as well."""

    reading: Reading
    either: bool


def reading_of(source: str, quads: Iterable[Quad]) -> Found:
    """The reading in which every box of a source lies inside its picture.

    Raises:
        TableError: there is none; the message counts, and names the first box, of the better one.
    """
    given = list(quads)
    outside = {one: [quad for quad in given if not fits(quad, one)] for one in Reading}
    good = [reading for reading, bad in outside.items() if not bad]
    if good:
        return Found(good[0], len(good) == len(Reading))
    better = min(outside, key=lambda reading: len(outside[reading]))
    first, counts = outside[better][0], {one.value: len(bad) for one, bad in outside.items()}
    raise TableError(
        f"{first.where}, column meta_bbox: {list(first.numbers)} is no box of a picture of "
        f"{first.size[0]}x{first.size[1]}, read as {better.value}; of {len(given)} boxes of "
        f"{source} {counts['xywh']} do not fit as xywh, {counts['xyxy']} as xyxy"
    )
