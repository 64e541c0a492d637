"""Draw the shapes of marks into a canvas, by a box or by outlines; only letters are antialiased."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from .region import MaskArray

# height x width x 3, RGB; height x width to find the pixels that a mark covers
Canvas = npt.NDArray[np.uint8]
Colour = tuple[int, ...]  # A number per channel of the canvas
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
        return self.x + self.w, self.y + self.h

    @property
    def corners(self) -> tuple[Point, Point, Point, Point]:
        """Clockwise from (x, y)."""
        x2, y2 = self.far
        return (self.x, self.y), (x2, self.y), (x2, y2), (self.x, y2)


# --- box, oval, arrow, point ----------------------------------------------------------------------


def plain_box(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """Draw a rectangle from (x, y) to (x + w, y + h), the stroke centred on it."""
    cv2.rectangle(canvas, (at.x, at.y), at.far, colour, width)


def box_with_squares(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """Draw a box with a filled square at each corner."""
    plain_box(canvas, at, colour, width)
    for corner in at.corners:
        _square(canvas, corner, max(width + 4, 6) // 2, colour)


def box_with_discs(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """Draw a box with a disc at each corner."""
    plain_box(canvas, at, colour, width)
    for corner in at.corners:
        _disc(canvas, corner, max(width, 5), colour)


def oval(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """Draw the ellipse that the box encloses."""
    cv2.ellipse(canvas, at.centre, (at.w // 2, at.h // 2), 0, 0, 360, colour, width)


def round_point(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """Draw a disc at the centre of the box."""
    _disc(canvas, at.centre, 2 * width, colour)


def square_point(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """Draw a square at the centre of the box."""
    _square(canvas, at.centre, 2 * width, colour)


def _square(canvas: Canvas, centre: Point, half: int, colour: Colour) -> None:
    x, y = centre
    cv2.rectangle(canvas, (x - half, y - half), (x + half, y + half), colour, cv2.FILLED)


def _disc(canvas: Canvas, centre: Point, radius: int, colour: Colour) -> None:
    cv2.circle(canvas, centre, radius, colour, cv2.FILLED)


# Lengths in pixels
ARROW_SHAFT = 50
HEAD = 10  # Of the strokes of an open head
SIDE = 20  # Of the sides of a filled head


def open_arrow(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """Draw a shaft, and two strokes at 45 degrees to it with their ends rounded to pixels."""
    tail, tip = _shaft(canvas, at)
    cv2.arrowedLine(canvas, tail, tip, colour, width, tipLength=HEAD / ARROW_SHAFT)


def filled_arrow(canvas: Canvas, at: PixelBox, colour: Colour, width: int) -> None:
    """Draw a shaft, and a triangle over its end with its corners truncated to pixels."""
    tail, tip = _shaft(canvas, at)
    cv2.line(canvas, tail, tip, colour, width)
    angle = math.atan2(tip[1] - tail[1], tip[0] - tail[0])
    head = [tip]
    for turn in (-math.pi / 6, math.pi / 6):
        x = tip[0] - SIDE * math.cos(angle + turn)
        y = tip[1] - SIDE * math.sin(angle + turn)
        head.append((int(x), int(y)))
    cv2.fillPoly(canvas, [np.array(head, dtype=np.int32)], colour)


def _shaft(canvas: Canvas, at: PixelBox) -> tuple[Point, Point]:
    """Find tail and tip, the tip at the middle of a side, the tail outside the box.

    Take the first of left, right, top and bottom where both lie in the image, else left.
    """
    x, y = at.centre
    x2, y2 = at.far
    placements = (
        ((at.x - ARROW_SHAFT, y), (at.x, y)),
        ((x2 + ARROW_SHAFT, y), (x2, y)),
        ((x, at.y - ARROW_SHAFT), (x, at.y)),
        ((x, y2 + ARROW_SHAFT), (x, y2)),
    )
    height, width = canvas.shape[:2]
    for ends in placements:
        if all(0 <= px < width and 0 <= py < height for px, py in ends):
            return ends
    return placements[0]


# --- tags -----------------------------------------------------------------------------------------

FONT = cv2.FONT_HERSHEY_SIMPLEX


class Tag(NamedTuple):
    """The text of a tag and its layout."""

    text: str
    centre: Point
    scale: float
    plate: Point  # Width and height of the text with a margin
    base: Point  # Lower left corner of the text


def digit(box: PixelBox, number: int, width: int) -> Tag:
    """Make a tag with 1, 2, 3 …"""
    return _tag(str(number), box.centre, 0.4 * width, width, margin=10 * width)


def letter(box: PixelBox, number: int, width: int) -> Tag:
    """Make a tag with A, B, C … Z, AA …

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
    """Draw a tag on a rectangle."""
    square_plate(canvas, tag, colour, width)
    _write(canvas, tag, width)


def round_tag(canvas: Canvas, tag: Tag, colour: Colour, width: int) -> None:
    """Draw a tag on a disc as wide as the plate's longer side."""
    _disc(canvas, tag.centre, max(tag.plate) // 2, colour)
    _write(canvas, tag, width)


def square_plate(canvas: Canvas, tag: Tag, colour: Colour, width: int) -> None:
    """Draw a plate without text, moved into the image where it begins left of it or above it."""
    x, y = tag.centre
    w, h = tag.plate
    x1 = max(0, x - w // 2)
    y1 = max(0, y - h // 2)
    cv2.rectangle(canvas, (x1, y1), (x1 + w, y1 + h), colour, cv2.FILLED)


def _write(canvas: Canvas, tag: Tag, width: int) -> None:
    white = (255, 255, 255)
    cv2.putText(canvas, tag.text, tag.base, FONT, tag.scale, white, width, cv2.LINE_AA)


# --- masks and contours ---------------------------------------------------------------------------


def filled(outline: Points, size: tuple[int, ...]) -> MaskArray:
    """Return height x width, 1 inside the outline and on it."""
    mask = np.zeros(size, dtype=np.uint8)
    cv2.fillPoly(mask, [outline], 1)
    return mask


def outlined_mask(canvas: Canvas, outline: Points, colour: Colour, width: int) -> None:
    """Draw the outline, then blend the filling over it."""
    tight_contour(canvas, outline, colour, width)
    plain_mask(canvas, outline, colour, width)


def plain_mask(canvas: Canvas, outline: Points, colour: Colour, width: int) -> None:
    """Blend the filling, without an outline."""
    inside = filled(outline, canvas.shape[:2]).view(np.bool_)
    values = np.arange(256, dtype=np.uint16)
    for place, part in enumerate(colour):
        total = values + (part + (255 - part) // 2)
        half = total >> 1
        blended = (half + (total & half & 1)).astype(np.uint8)
        channel = canvas[..., place]
        channel[inside] = blended[channel[inside]]


def tight_contour(canvas: Canvas, outline: Points, colour: Colour, width: int) -> None:
    """Draw the outline."""
    cv2.polylines(canvas, [outline], True, colour, width)


SCALE = 1.2
SMOOTHING = 0.1  # Sum of squared distances (pixels) between spline and vertices
SAMPLES = 10  # Points per vertex


def loose_contour(canvas: Canvas, outline: Points, colour: Colour, width: int) -> None:
    """Draw a smooth line at some distance from the outline.

    The vertices are scaled about their mean and clipped to the image. The last is replaced by the
    first, as a closed spline needs. Triangles, and outlines with equal neighbours, stay
    unsmoothed.
    """
    centre = outline.mean(axis=0)
    height, across = canvas.shape[:2]
    line = np.clip(centre + (outline - centre) * SCALE, 0, (across - 1, height - 1))
    if len(line) > 3:
        ring = np.vstack([line[:-1], line[:1]])
        has_equal = (ring[1:] == ring[:-1]).all(axis=1).any()
        line = line[:-1] if has_equal else _smooth(ring)
    tight_contour(canvas, line.astype(np.int32), colour, width)


def _smooth(ring: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    from scipy.interpolate import splev, splprep

    with warnings.catch_warnings():
        # splprep warns that so little smoothing needs many knots.
        warnings.simplefilter("ignore", RuntimeWarning)
        spline, _ = splprep(ring.T, s=SMOOTHING, per=True)
    return np.array(splev(np.linspace(0, 1, SAMPLES * len(ring)), spline)).T
