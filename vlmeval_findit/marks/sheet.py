"""A sheet that shows every mark of the grid on one object: a row a variant, a column a colour."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from .geometry import pixel_box
from .grid import WIDTHS, grid
from .region import Region
from .render import draw_marks
from .style import COLOURS, CONTRAST, DEFAULT_WIDTH, STYLES, Shape, Style

Picture = npt.NDArray[np.uint8]

CELL = (132, 116)
"""Width and height of one mark's part of the sheet, in pixels: the largest tag fits."""
OBJECT_AT = (75, 58)
"""Where the middle of the object stands in it: with room for an arrow from the left."""
OBJECT_SIZE = 48
"""The longer side of the object at most, in pixels; larger ones are scaled down before marking."""

_GAP, _GROUP_GAP, _MARGIN = 3, 14, 16
_NAMES_WIDTH, _HEAD = 236, 84
_PAPER, _INK, _PALE = (255, 255, 255), (30, 30, 30), (110, 110, 110)


class Subject(NamedTuple):
    """What is marked again and again: a small picture and its object."""

    pixels: Picture
    region: Region


def subject(pixels: Picture, region: Region) -> Subject:
    """The part of a picture around an object, at the size of a cell; grey where it has none.

    Raises:
        ValueError: the box has no area in the picture.
    """
    box = pixel_box(region.box)
    height, width = pixels.shape[:2]
    if not (box.w and box.h and box.x < width and box.y < height and min(box.far) > 0):
        raise ValueError(f"a picture of {width} x {height} shows nothing of the box {region.box}")
    scale = min(1.0, OBJECT_SIZE / max(box.w, box.h))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA) if scale < 1 else pixels
    x, y = (round(middle * scale) for middle in box.centre)
    left, top = x - OBJECT_AT[0], y - OBJECT_AT[1]
    cell = np.full((CELL[1], CELL[0], 3), 200, dtype=np.uint8)
    x1, y1, x2, y2 = max(0, left), max(0, top), left + CELL[0], top + CELL[1]
    shown = small[y1:y2, x1:x2]
    at_x, at_y = x1 - left, y1 - top
    cell[at_y : at_y + shown.shape[0], at_x : at_x + shown.shape[1]] = shown
    return Subject(cell, _moved(region, scale, left, top))


def _moved(region: Region, scale: float, left: int, top: int) -> Region:
    """A region of polygons on the part of the picture that is shown."""
    x, y, w, h = region.box
    polygons = region.outlines if isinstance(region.outlines, tuple) else ()
    return Region(
        (x * scale - left, y * scale - top, w * scale, h * scale),
        tuple(
            tuple(
                value * scale - (top if place % 2 else left) for place, value in enumerate(polygon)
            )
            for polygon in polygons
        ),
    )


def sheet(shown: Subject) -> Picture:
    """All marks of the grid (height x width x 3, RGB), with their names."""
    colours = (*COLOURS, CONTRAST)
    rows = [(shape, variant) for shape, variants in STYLES.items() for variant in variants]
    group = len(WIDTHS) * (CELL[0] + _GAP) - _GAP
    width = _MARGIN + _NAMES_WIDTH + len(colours) * (group + _GROUP_GAP) - _GROUP_GAP + _MARGIN
    height = _MARGIN + _HEAD + len(rows) * (CELL[1] + _GAP) + _MARGIN
    paper = np.full((height, width, 3), _PAPER, dtype=np.uint8)
    _write(paper, (_MARGIN, _MARGIN + 30), f"{len(grid())} marks", _INK, 1.1, 2)
    for place, colour in enumerate(colours):
        x = _MARGIN + _NAMES_WIDTH + place * (group + _GROUP_GAP)
        _head(paper, x, group, colour)
        for row, (shape, variant) in enumerate(rows):
            y = _MARGIN + _HEAD + row * (CELL[1] + _GAP)
            if not place:
                _name(paper, y, shape, variant)
            _marks(paper, (x, y), shown, (shape, variant), colour)
    return paper


def _marks(
    paper: Picture, at: tuple[int, int], shown: Subject, what: tuple[Shape, str], colour: str
) -> None:
    """One variant in one colour: a cell a width; one cell where the width does not show."""
    x, y = at
    shape, variant = what
    has_width = STYLES[shape][variant].has_width
    for width in WIDTHS if has_width else (DEFAULT_WIDTH,):
        drawn = draw_marks(shown.pixels, [shown.region], Style(shape, variant, width), colour)
        paper[y : y + CELL[1], x : x + CELL[0]] = drawn.pixels
        x += CELL[0] + _GAP
    if not has_width:
        _write(paper, (x + 12, y + CELL[1] // 2 + 10), "has no line", _PALE, 0.9, 1)


def _head(paper: Picture, x: int, width: int, colour: str) -> None:
    """A colour over its columns, and the widths of lines below."""
    base = _MARGIN + 30
    _write(paper, (x, base), colour, _INK, 1.1, 2)
    if colour in COLOURS:
        cv2.rectangle(paper, (x, base + 9), (x + width - 1, base + 13), COLOURS[colour], cv2.FILLED)
    else:
        for place, one in enumerate(COLOURS.values()):
            x1, x2 = (x + width * end // len(COLOURS) for end in (place, place + 1))
            cv2.rectangle(paper, (x1, base + 9), (x2 - 1, base + 13), one, cv2.FILLED)
    for place, line in enumerate(WIDTHS):
        text = f"{line} px"
        _write(paper, (x + place * (CELL[0] + _GAP) + 4, base + 42), text, _PALE, 0.8, 1)


def _name(paper: Picture, y: int, shape: Shape, variant: str) -> None:
    base = y + CELL[1] // 2 + (0 if variant else 10)
    _write(paper, (_MARGIN, base), shape.value, _INK, 1.1, 2)
    _write(paper, (_MARGIN, base + 34), variant, _PALE, 0.9, 1)


def _write(
    paper: Picture, at: tuple[int, int], text: str, ink: tuple[int, ...], size: float, width: int
) -> None:
    cv2.putText(paper, text, at, cv2.FONT_HERSHEY_SIMPLEX, size, ink, width, cv2.LINE_AA)
