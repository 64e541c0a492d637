"""Marks that need a box only: box, oval, arrow, point.  Hard edges; each draws into its canvas."""

from __future__ import annotations

import math

import cv2
import numpy as np

from .geometry import Canvas, Colour, PixelBox, Point


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
HEAD = 10
"""Length of the two strokes of an open head."""
SIDE = 20
"""Length of the sides of a filled head."""


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
