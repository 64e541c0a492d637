"""What is odd in annotations: reported, and left as it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...boxes.representation import Corners
from .query import Query


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something in the annotations that is reported and left as it is."""

    index: int
    what: str
    box: Corners


_MARGIN = 0.01
"""Pixels by which rounding alone puts a box out of its image."""


def oddities(queries: Iterable[Query]) -> list[Oddity]:
    """Boxes with swapped corners, without area, or out of their image (by 0.01 pixels or more)."""
    found = []
    for query in queries:
        width, height = query.width + _MARGIN, query.height + _MARGIN
        for box in query.truth.boxes:
            x1, y1, x2, y2 = box
            what = []
            if x1 > x2 or y1 > y2:
                what.append("swapped corners")
            elif x1 == x2 or y1 == y2:
                what.append("no area")
            if min(box) < -_MARGIN or max(x1, x2) > width or max(y1, y2) > height:
                what.append("out of the image")
            found += [Oddity(query.index, w, box) for w in what]
    return found
