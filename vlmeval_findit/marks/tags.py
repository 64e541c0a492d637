"""Tags: a digit or a letter in white on a plate in the mark's colour, at the middle of a box.

The plate has hard edges, the text is anti-aliased.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import cv2

from .geometry import Canvas, Colour, PixelBox, Point
from .strokes import disc

FONT = cv2.FONT_HERSHEY_SIMPLEX


class Tag(NamedTuple):
    """What stands on a tag, where its middle is, and how both grow with the line's width."""

    text: str
    centre: Point
    scale: Callable[[int], float]
    margin: Callable[[int], int]
    shift: Callable[[int], int]


def digit(box: PixelBox, number: int) -> Tag:
    """1, 2, 3 …"""
    return Tag(str(number), box.centre, lambda t: 0.4 * t, lambda t: 10 * t, lambda t: 0)


def letter(box: PixelBox, number: int) -> Tag:
    """A, B, C … Z, AA …

    >>> [letter(PixelBox(0, 0, 9, 9), number).text for number in (1, 26, 27, 703)]
    ['A', 'Z', 'AA', 'AAA']
    """
    text = ""
    while number:
        number, place = divmod(number - 1, 26)
        text = chr(ord("A") + place) + text
    return Tag(text, box.centre, lambda t: max(0.4 * t, 0.5), lambda t: 15, lambda t: t // 2)


def square_tag(canvas: Canvas, tag: Tag, colour: Colour, width: int) -> None:
    """On a rectangle that just holds the text and its margin."""
    square_plate(canvas, tag, colour, width)
    _write(canvas, tag, width)


def round_tag(canvas: Canvas, tag: Tag, colour: Colour, width: int) -> None:
    """On a disc as wide as the rectangle's longer side."""
    disc(canvas, tag.centre, max(_plate(tag, width)) // 2, colour)
    _write(canvas, tag, width)


def square_plate(canvas: Canvas, tag: Tag, colour: Colour, width: int) -> None:
    """The plate alone; one that would begin left of the picture or above it begins at its edge."""
    (x, y), size = tag.centre, _plate(tag, width)
    x1, y1 = max(0, x - size[0] // 2), max(0, y - size[1] // 2)
    cv2.rectangle(canvas, (x1, y1), (x1 + size[0], y1 + size[1]), colour, cv2.FILLED)


def _plate(tag: Tag, width: int) -> Point:
    """Width and height of the rectangle."""
    text_width, text_height = _text_size(tag, width)
    margin = tag.margin(width)
    return text_width + margin, text_height + margin


def _write(canvas: Canvas, tag: Tag, width: int) -> None:
    (x, y), (text_width, text_height) = tag.centre, _text_size(tag, width)
    shift = tag.shift(width)
    left, base = x - text_width // 2 + shift, y + text_height // 2 + shift
    white = (255, 255, 255)
    text = tag.text
    cv2.putText(canvas, text, (left, base), FONT, tag.scale(width), white, width, cv2.LINE_AA)


def _text_size(tag: Tag, width: int) -> Point:
    (text_width, text_height), _ = cv2.getTextSize(tag.text, FONT, tag.scale(width), width)
    return text_width, text_height
