"""Marks on a picture, drawn and looked at: None where a person would not see which they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from ...boxes.representation import Corners
from ...marks.region import Polygon, Region
from ...marks.render import draw_marks
from ...marks.strokes import SHAFT
from ...marks.style import Shape, Style
from .annotated import Pixels

Cover = npt.NDArray[np.bool_]
"""height x width: where a mark was drawn."""

INSET = 3
"""Pixels from the border of a picture: so far inside lie boxes whose line is to be seen."""

_APART = 3
"""Pixels between two marks, so that nobody takes them for one."""

_SEEN_BY = 80
"""Of 255 in any channel: by so much does a pixel change that one notices."""
_LEAST_SEEN = 0.6
"""Of what is drawn."""
_LEAST_COVERED = {Shape.SCRIBBLE: 40, Shape.POINT: 100}
"""Pixels: a smaller one is taken for a part of the object."""
_MOST_HIDDEN = 0.5
"""Of an object, where a mark lies in its middle."""
_LEAST_WITHIN = 0.95
"""Of a mark that lies in the middle of an object."""
_TINTED_BY = 25
"""Of 255: by so much is a channel above the others where a see-through tint has its colour."""

_IN_THE_MIDDLE = (Shape.TAG, Shape.POINT, Shape.SCRIBBLE)
_AROUND = (Shape.BOX, Shape.OVAL, Shape.CONTOUR)


class Marked(NamedTuple):
    """A picture with marks: the colour of the first, and what every mark covers."""

    pixels: Pixels
    colour: str
    covers: tuple[Cover, ...]


def region_of(box: Corners, outlines: tuple[Polygon, ...], width: int, height: int) -> Region:
    """Where an object is marked: its box, a little inside the picture, and its outlines."""
    x1, y1 = max(box[0], INSET), max(box[1], INSET)
    x2, y2 = min(box[2], width - 1 - INSET), min(box[3], height - 1 - INSET)
    return Region((x1, y1, max(x2 - x1, 0.0), max(y2 - y1, 0.0)), outlines)


def marked(
    pixels: Pixels, regions: Sequence[Region], style: Style, colours: Sequence[str]
) -> Marked | None:
    """A picture with a mark on every region, if all can be seen and told apart.

    Args:
        pixels: the picture.
        regions: what is marked.
        style: of all marks.
        colours: one a region.
    """
    height, width, _ = pixels.shape
    if not all(_has_room(region, style, width, height) for region in regions):
        return None
    covers = tuple(_cover(pixels, region, style) for region in regions)
    fit = all(_fits(*one, style) for one in zip(covers, regions, strict=True))
    if not fit or not _apart(covers):
        return None
    drawn = draw_marks(pixels, regions, style, colours)
    if drawn.notes:
        return None
    if not all(_is_seen(pixels, drawn.pixels, cover) for cover in covers):
        return None
    first = drawn.colours_used[0]
    if (style.shape, style.variant) == (Shape.MASK, "plain"):
        named = [first] if len(regions) == 1 else colours
        if not all(map(_is_tinted, [drawn.pixels] * len(covers), covers, named)):
            return None
    return Marked(drawn.pixels, first, covers)


def lies_under(box: Corners, mark: Cover, target: Corners) -> bool:
    """Whether an object has a part of a mark, or of the box of what is marked, in its own box."""
    x1, y1, x2, y2 = box
    if min(x2, target[2]) > max(x1, target[0]) and min(y2, target[3]) > max(y1, target[1]):
        return True
    first_x, first_y = max(int(x1), 0), max(int(y1), 0)
    return bool(mark[first_y : int(np.ceil(y2)), first_x : int(np.ceil(x2))].any())


def _has_room(region: Region, style: Style, width: int, height: int) -> bool:
    x, y, w, h = region.box
    if style.shape in _AROUND and min(w, h) < 5 * style.width:
        return False
    if style.shape is not Shape.ARROW:
        return True
    return x >= SHAFT or y >= SHAFT or width - x - w > SHAFT or height - y - h > SHAFT


def _cover(pixels: Pixels, region: Region, style: Style) -> Cover:
    """What a mark covers, of the picture and of its negative: one of them differs from the mark."""
    cover: Cover = np.zeros(pixels.shape[:2], dtype=bool)
    for one in (pixels, 255 - pixels):
        cover |= (draw_marks(one, [region], style, "red").pixels != one).any(axis=2)
    return cover


def _fits(cover: Cover, region: Region, style: Style) -> bool:
    """A mark in the middle of an object must lie on it and leave it to be recognised."""
    if not cover.any():
        return False
    if style.shape not in _IN_THE_MIDDLE:
        return True
    x, y, w, h = (int(value) for value in region.box)
    size = int(cover.sum())
    if size < _LEAST_COVERED.get(style.shape, 0):
        return False
    within = int(cover[y : y + h + 1, x : x + w + 1].sum())
    return within >= _LEAST_WITHIN * size and size <= _MOST_HIDDEN * w * h


def _apart(covers: Sequence[Cover]) -> bool:
    kernel = np.ones((2 * _APART + 1, 2 * _APART + 1), np.uint8)
    near = [cv2.dilate(cover.astype(np.uint8), kernel).astype(bool) for cover in covers]
    return not any(
        (near[i] & covers[j]).any() for i in range(len(covers)) for j in range(i + 1, len(covers))
    )


def _is_seen(before: Pixels, after: Pixels, cover: Cover) -> bool:
    change = np.abs(after[cover].astype(np.int16) - before[cover].astype(np.int16)).max(axis=1)
    return float((change >= _SEEN_BY).mean()) >= _LEAST_SEEN


def _is_tinted(after: Pixels, cover: Cover, colour: str) -> bool:
    """Whether a see-through tint has its colour where it lies; a black one has none."""
    if colour not in _CHANNEL:
        return False
    mean = after[cover].mean(axis=0)
    own = mean[_CHANNEL[colour]]
    return bool(own - np.delete(mean, _CHANNEL[colour]).max() >= _TINTED_BY)


_CHANNEL = {"red": 0, "green": 1, "blue": 2}
