"""The shapes of marks: strokes and tags, which need a box only, and what follows outlines.

Hard edges but for letters; each draws into its canvas.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from .region import Polygon
from .rle import RLE, Mask

Canvas = npt.NDArray[np.uint8]
"""height x width x 3, RGB; or height x width, where pixels under a mark are collected."""
Colour = tuple[int, ...]  # as many numbers as the canvas has channels
Points = npt.NDArray[np.int32]  # n x 2: x, y

Point = tuple[int, int]


class PixelBox(NamedTuple):
    """A box in whole pixels."""

    x: int
    y: int
    w: int
    h: int

    @property
    def centre(self) -> Point:
        return self.x + self.w // 2, self.y + self.h // 2

    @property
    def far(self) -> Point:
        """The corner opposite to (x, y)."""
        return self.x + self.w, self.y + self.h

    @property
    def corners(self) -> tuple[Point, Point, Point, Point]:
        """Clockwise from (x, y)."""
        x2, y2 = self.far
        return (self.x, self.y), (x2, self.y), (x2, y2), (self.x, y2)


def pixel_box(box: tuple[float, ...]) -> PixelBox:
    """Truncate x, y, w and h towards zero.

    >>> pixel_box((-0.5, 2.9, 10.9, 4.0))
    PixelBox(x=0, y=2, w=10, h=4)
    """
    return PixelBox(*(int(value) for value in box))


def pixel_points(polygon: Polygon) -> Points:
    """The vertices of a polygon, truncated towards zero."""
    return np.asarray(polygon, dtype=np.float64).astype(np.int32).reshape(-1, 2)


# --- box, oval, arrow, point ----------------------------------------------------------------------


def plain_box(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """A rectangle from (x, y) to (x + w, y + h), the stroke centred on it."""
    cv2.rectangle(canvas, (at.x, at.y), at.far, colour, width)


def box_with_squares(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """With a filled square around each corner."""
    plain_box(canvas, at, colour, width)
    half = max(width + 4, 6) // 2
    for corner in at.corners:
        square(canvas, corner, half, colour)


def box_with_discs(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """With a disc around each corner."""
    plain_box(canvas, at, colour, width)
    for corner in at.corners:
        disc(canvas, corner, max(width, 5), colour)


def oval(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """The ellipse that fills the box."""
    cv2.ellipse(canvas, at.centre, (at.w // 2, at.h // 2), 0, 0, 360, colour, width)


def square(canvas: Canvas, centre: Point, half: int, colour: Colour) -> None:
    """Filled, 2 ``half`` + 1 pixels wide."""
    (x, y) = centre
    cv2.rectangle(canvas, (x - half, y - half), (x + half, y + half), colour, cv2.FILLED)


def disc(canvas: Canvas, centre: Point, radius: int, colour: Colour) -> None:
    """Filled."""
    cv2.circle(canvas, centre, radius, colour, cv2.FILLED)


def round_point(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """A disc at the centre."""
    disc(canvas, at.centre, 2 * width, colour)


def square_point(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """A square at the centre."""
    square(canvas, at.centre, 2 * width, colour)


SHAFT = 50
HEAD = 10  # length of the two strokes of an open head
SIDE = 20  # length of the sides of a filled head


def open_arrow(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """A shaft, and two strokes at 45 degrees to it; their ends are rounded to pixels."""
    tail, tip = _shaft(canvas, at)
    cv2.arrowedLine(canvas, tail, tip, colour, width, tipLength=HEAD / SHAFT)


def filled_arrow(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """A shaft up to the tip, and a triangle over its end; its corners are truncated to pixels."""
    tail, tip = _shaft(canvas, at)
    cv2.line(canvas, tail, tip, colour, width)
    angle = math.atan2(tip[1] - tail[1], tip[0] - tail[0])
    head = [tip]
    for turn in (-math.pi / 6, math.pi / 6):
        x, y = tip[0] - SIDE * math.cos(angle + turn), tip[1] - SIDE * math.sin(angle + turn)
        head.append((int(x), int(y)))
    cv2.fillPoly(canvas, [np.array(head, dtype=np.int32)], colour)


def _shaft(canvas: Canvas, at: PixelBox) -> tuple[Point, Point]:
    """Tail and tip: the tip at the middle of a side, the tail 50 pixels outside of the box.

    The first side at which both lie in the picture: left, right, top, bottom; else left.
    """
    x, y = at.centre
    x2, y2 = at.far
    ways = (
        ((at.x - SHAFT, y), (at.x, y)),
        ((x2 + SHAFT, y), (x2, y)),
        ((x, at.y - SHAFT), (x, at.y)),
        ((x, y2 + SHAFT), (x, y2)),
    )
    height, width = canvas.shape[:2]
    return next(
        (way for way in ways if all(0 <= px < width and 0 <= py < height for px, py in way)),
        ways[0],
    )


# --- tags -----------------------------------------------------------------------------------------

FONT = cv2.FONT_HERSHEY_SIMPLEX


class Tag(NamedTuple):
    """What stands on a tag, where, and how large the tag is."""

    text: str
    centre: Point
    scale: float
    plate: Point  # width and height: those of the text, and a margin
    base: Point  # where the text begins


def digit(box: PixelBox, number: int, width: int) -> Tag:
    """1, 2, 3 …"""
    return _tag(str(number), box.centre, 0.4 * width, width, margin=10 * width)


def letter(box: PixelBox, number: int, width: int) -> Tag:
    """Tag with A, B, C … Z, AA …

    >>> [letter(PixelBox(0, 0, 9, 9), number, 4).text for number in (1, 26, 27, 703)]
    ['A', 'Z', 'AA', 'AAA']
    """
    text = ""
    while number:
        number, place = divmod(number - 1, 26)
        text = chr(ord("A") + place) + text
    return _tag(text, box.centre, max(0.4 * width, 0.5), width, margin=15, shift=width // 2)


def _tag(text: str, centre: Point, scale: float, width: int, margin: int, shift: int = 0) -> Tag:
    (w, h), _ = cv2.getTextSize(text, FONT, scale, width)
    base = centre[0] - w // 2 + shift, centre[1] + h // 2 + shift
    return Tag(text, centre, scale, (w + margin, h + margin), base)


def square_tag(canvas: Canvas, tag: Tag, colour: Colour, width: int) -> None:
    """On a rectangle that just holds the text and its margin."""
    square_plate(canvas, tag, colour, width)
    _write(canvas, tag, width)


def round_tag(canvas: Canvas, tag: Tag, colour: Colour, width: int) -> None:
    """On a disc as wide as the rectangle's longer side."""
    disc(canvas, tag.centre, max(tag.plate) // 2, colour)
    _write(canvas, tag, width)


def square_plate(canvas: Canvas, tag: Tag, colour: Colour, width: int) -> None:
    """The plate alone; one that would begin left of the picture or above it begins at its edge."""
    (x, y), (w, h) = tag.centre, tag.plate
    x1, y1 = max(0, x - w // 2), max(0, y - h // 2)
    cv2.rectangle(canvas, (x1, y1), (x1 + w, y1 + h), colour, cv2.FILLED)


def _write(canvas: Canvas, tag: Tag, width: int) -> None:
    white = (255, 255, 255)
    cv2.putText(canvas, tag.text, tag.base, FONT, tag.scale, white, width, cv2.LINE_AA)


# --- masks and contours ---------------------------------------------------------------------------


class Area(NamedTuple):
    """A piece of a mask or contour: its closed outlines, and its pixels where those are given."""

    outlines: Sequence[Points]
    given: Mask | None = None

    def filled(self, size: tuple[int, ...]) -> Mask:
        """height x width, 1 inside the outlines and on them."""
        if self.given is not None:
            return self.given
        mask = np.zeros(size, dtype=np.uint8)
        cv2.fillPoly(mask, self.outlines, 1)
        return mask


def of_rle(rle: RLE) -> Area:
    """All that an RLE covers, with an outline around each of its parts; holes get none."""
    mask = rle.mask()
    found, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    return Area([_ring(outline.reshape(-1, 2)) for outline in found], mask)


def of_box(box: PixelBox) -> Area:
    """The box as an area, for want of an outline."""
    return Area([_ring(np.array(box.corners, dtype=np.int32))])


def _ring(outline: Points) -> Points:
    # Loose contours give up the last vertex.
    return np.vstack([outline, outline[:1]])


def outlined_mask(canvas: Canvas, area: Area, colour: Colour, width: int) -> None:
    """A stroke around it, then the filling over both."""
    tight_contour(canvas, area, colour, width)
    _blend(canvas, area, colour)


def plain_mask(canvas: Canvas, area: Area, colour: Colour, width: int) -> None:
    """The filling alone; opaque where the pixels themselves are given."""
    if area.given is not None:
        canvas[area.given.view(np.bool_)] = colour
    else:
        _blend(canvas, area, colour)


def _blend(canvas: Canvas, area: Area, colour: Colour) -> None:
    inside = area.filled(canvas.shape[:2]).view(np.bool_)
    values = np.arange(256, dtype=np.uint16)
    for place, part in enumerate(colour):
        total = values + (part + (255 - part) // 2)
        half = total >> 1
        blended = (half + (total & half & 1)).astype(np.uint8)
        channel = canvas[..., place]
        channel[inside] = blended[channel[inside]]


def under_mask(canvas: Canvas, area: Area, colour: Colour, width: int) -> None:
    """What contrast looks at: the stroke, or the pixels themselves where they are given."""
    if area.given is not None:
        canvas[area.given.view(np.bool_)] = colour
    else:
        tight_contour(canvas, area, colour, width)


def tight_contour(canvas: Canvas, area: Area, colour: Colour, width: int) -> None:
    """The outline itself."""
    cv2.polylines(canvas, area.outlines, True, colour, width)


def loose_contour(canvas: Canvas, area: Area, colour: Colour, width: int) -> None:
    """A smooth line at some distance around it."""
    size = canvas.shape[1], canvas.shape[0]
    tight_contour(canvas, Area([loosened(one, size) for one in area.outlines]), colour, width)


Floats = npt.NDArray[np.float64]

SCALE = 1.2
SMOOTHING = 0.1  # sum of squared distances (pixels) that the spline may keep from the vertices
SAMPLES = 10  # points on the line for every vertex


def loosened(outline: Points, size: tuple[int, int]) -> Points:
    """The closed line to draw around an outline (n x 2), in a picture of (width, height).

    The vertices are scaled about their mean and clipped to the picture.  A closed spline needs
    three of them besides the last, which it replaces with the first; a triangle, and an outline
    whose neighbours fall together, are left unsmoothed.
    """
    centre = outline.mean(axis=0)
    scaled = centre + (outline - centre) * SCALE
    clipped: Floats = np.clip(scaled, 0, np.array(size) - 1)
    if len(clipped) <= 3:
        return clipped.astype(np.int32)
    ring = np.vstack([clipped[:-1], clipped[:1]])
    if (ring[1:] == ring[:-1]).all(axis=1).any():
        return clipped[:-1].astype(np.int32)
    return _smooth(ring).astype(np.int32)


def _smooth(ring: Floats) -> Floats:
    from scipy.interpolate import splev, splprep

    with warnings.catch_warnings():
        # That so little smoothing needs many knots is known.
        warnings.simplefilter("ignore", RuntimeWarning)
        spline, _ = splprep(ring.T, s=SMOOTHING, per=True)
    return np.array(splev(np.linspace(0, 1, SAMPLES * len(ring)), spline)).T
