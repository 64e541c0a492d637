"""Marks on an image, drawn and checked: None if a person could not recognise them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from training.vp_questions.images import Pixels
from training.vp_questions.plan import NEED_OUTLINES
from vlmeval_findit.boxes import Corners
from vlmeval_findit.marks import ARROW_SHAFT, Polygon, Region, Shape, Style, draw_marks

Cover = npt.NDArray[np.bool_]  # Height x width: the pixels of a mark

# Least pixels between a marked box and the border of the image, so that its line is visible
INSET = 3

_APART = 3  # Least pixels between two marks, so that they are not read as one

# Distance between two colours that is noticed: 0 to 765, weighted as eyes are
_VISIBLE_DISTANCE = 200
_TINT_DISTANCE = 100  # The same if the image shines through
_LEAST_VISIBLE = 0.6  # Least share of the mark, and of its surroundings, that must differ
_TINTED_BY = 40  # Least difference, of 255, of a tint's channel from the others

# Least pixels of a mark: a smaller mark looks like a part of the object.
_LEAST_COVERED = {Shape.POINT: 100}
_LEAST_LONG = 16  # Least length of a scribble in pixels; it must also be four times its width
_LEAST_WITHIN = 0.95  # Least share of a mark in the middle of an object that lies in its box

_AROUND = (Shape.BOX, Shape.OVAL, Shape.CONTOUR)


class MarkedImage(NamedTuple):
    """An image with marks: the colour of the first, and pixels and region of every mark."""

    pixels: Pixels
    colour: str
    covers: tuple[Cover, ...]
    regions: tuple[Region, ...]


def region_of(box: Corners, outlines: tuple[Polygon, ...], width: int, height: int) -> Region:
    """Return the region to mark: an object's box, a little inside the image, and its outlines."""
    x1 = max(box[0], INSET)
    y1 = max(box[1], INSET)
    x2 = min(box[2], width - 1 - INSET)
    y2 = min(box[3], height - 1 - INSET)
    return Region((x1, y1, max(x2 - x1, 0.0), max(y2 - y1, 0.0)), outlines)


class Hidden(Enum):
    """Largest share of an object's box that a mark in its middle may cover."""

    SOME = 0.35
    LITTLE = 0.13  # So that the object can be named


@dataclass
class Marker:
    """Draws marks of one style on an image."""

    _pixels: Pixels
    _regions: Sequence[Region]  # All that could be marked
    _style: Style
    _hidden: Hidden  # How much of an object may be covered
    _covers: dict[int, Cover | None] = field(default_factory=dict)

    def marked(self, places: Sequence[int], colours: Sequence[str]) -> MarkedImage | None:
        """Return the image with marks on the regions; None if a mark cannot be recognised."""
        covers = [cover for cover in map(self._cover, places) if cover is not None]
        if len(covers) < len(places) or not _apart(covers):
            return None
        regions = tuple(self._regions[i] for i in places)
        drawn = draw_marks(self._pixels, regions, self._style, colours)
        if drawn.notes:
            return None
        first = drawn.colours_used[0]
        named = [first] if len(places) == 1 else colours
        both = zip(covers, named, strict=True)
        shows = all(self._is_visible(drawn.pixels, cover, colour) for cover, colour in both)
        return MarkedImage(drawn.pixels, first, tuple(covers), regions) if shows else None

    def _cover(self, place: int) -> Cover | None:
        """Return the pixels of a mark; None if it is not suitable for its region."""
        if place not in self._covers:
            height, width, _ = self._pixels.shape
            region = self._regions[place]
            cover: Cover | None = None
            if _is_suitable(region, self._style, width, height, self._hidden):
                cover = _cover(region, self._style, width, height)
            self._covers[place] = cover
        return self._covers[place]

    def _is_visible(self, after: Pixels, cover: Cover, colour: str) -> bool:
        """Return whether a mark differs from the pixels under it and around it."""
        mark = after[cover]
        if self._style.shape is Shape.MASK:
            before = self._pixels[cover]
            # A red tint on something red is not recognised.
            tinted = _is_tinted(mark, colour) and not _is_tinted(before, colour)
            tells = tinted or self._style.variant != "plain"
            return tells and _share(mark, before, _TINT_DISTANCE) >= _LEAST_VISIBLE
        around = self._pixels[_wider(cover) & ~cover]
        main = np.median(mark, axis=0).astype(np.uint8)
        return (
            _share(mark, self._pixels[cover], _VISIBLE_DISTANCE) >= _LEAST_VISIBLE
            and _share(main, around, _VISIBLE_DISTANCE) >= _LEAST_VISIBLE
        )


def lies_under(box: Corners, mark: Cover, target: Corners) -> bool:
    """Return whether an object's box overlaps a mark or the box of the marked object."""
    x1, y1, x2, y2 = box
    if min(x2, target[2]) > max(x1, target[0]) and min(y2, target[3]) > max(y1, target[1]):
        return True
    first_x = max(int(x1), 0)
    first_y = max(int(y1), 0)
    return bool(mark[first_y : int(np.ceil(y2)), first_x : int(np.ceil(x2))].any())


@lru_cache(maxsize=1 << 16)
def _is_suitable(region: Region, style: Style, width: int, height: int, hidden: Hidden) -> bool:
    """Return whether a mark has room, is large enough, and leaves its object visible."""
    if style.shape in NEED_OUTLINES and not region.outlines:
        return False
    if not _has_room(region, style, width, height):
        return False
    cover = _cover(region, style, width, height)
    size = int(cover.sum())
    if size <= _LEAST_COVERED.get(style.shape, 0):
        return False
    if style.shape is Shape.SCRIBBLE:
        rows = np.flatnonzero(cover.any(axis=1))
        columns = np.flatnonzero(cover.any(axis=0))
        long = max(rows[-1] - rows[0], columns[-1] - columns[0]) + 1
        return bool(long >= max(_LEAST_LONG, 4 * style.width))
    if style.shape not in (Shape.TAG, Shape.POINT):
        return True
    x, y, w, h = (int(value) for value in region.box)
    within = int(cover[y : y + h + 1, x : x + w + 1].sum())
    return within >= _LEAST_WITHIN * size and size <= hidden.value * w * h


def _cover(region: Region, style: Style, width: int, height: int) -> Cover:
    """Return the pixels of a mark: where red changes a black image."""
    canvas = np.zeros((height, width, 3), dtype=np.uint8)
    red, green, blue = np.moveaxis(draw_marks(canvas, [region], style, "red").pixels, 2, 0)
    cover: Cover = (red | green | blue) > 0
    return cover


def _has_room(region: Region, style: Style, width: int, height: int) -> bool:
    x, y, w, h = region.box
    if style.shape in _AROUND and min(w, h) < 5 * style.width:
        return False
    if style.shape is not Shape.ARROW:
        return True
    return (
        x >= ARROW_SHAFT
        or y >= ARROW_SHAFT
        or width - x - w > ARROW_SHAFT
        or height - y - h > ARROW_SHAFT
    )


def _apart(covers: Sequence[Cover]) -> bool:
    return not any((_wider(cover) & other).any() for cover, other in combinations(covers, 2))


def _wider(cover: Cover) -> Cover:
    kernel = np.ones((2 * _APART + 1, 2 * _APART + 1), np.uint8)
    wider: Cover = cv2.dilate(cover.astype(np.uint8), kernel).astype(bool)
    return wider


def _share(a: Pixels, b: Pixels, far: int) -> float:
    """Return the share of pixels (n x 3) that are far from others.

    Computed in integers, which are the same on every machine.
    """
    difference = a.astype(np.int64) - b.astype(np.int64)
    distances = (difference * difference) @ np.array([2, 4, 3])
    return float((distances >= far * far).mean()) if distances.size else 1.0


def _is_tinted(mark: Pixels, colour: str) -> bool:
    """Return whether see-through pixels (n x 3) have their colour; black has none."""
    if colour not in _CHANNEL:
        return False
    mean = mark.mean(axis=0)
    others = np.delete(mean, _CHANNEL[colour])
    return bool(mean[_CHANNEL[colour]] - others.max() >= _TINTED_BY)


_CHANNEL = {"red": 0, "green": 1, "blue": 2}
