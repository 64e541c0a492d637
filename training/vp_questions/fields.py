"""Fields of a picture, by which a question asks where something is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from vlmeval_findit.boxes.representation import Corners


class Fields(Enum):
    """Into how many equal fields a picture is divided, across and down alike."""

    FOUR = 2
    NINE = 3


class Field(NamedTuple):
    """A field: its place from the left and from the top, counted from 0."""

    across: int
    down: int


NAMES: Mapping[Fields, Mapping[Field, str]] = {
    Fields.FOUR: {
        Field(0, 0): "top left",
        Field(1, 0): "top right",
        Field(0, 1): "bottom left",
        Field(1, 1): "bottom right",
    },
    Fields.NINE: {
        Field(0, 0): "top left",
        Field(1, 0): "top centre",
        Field(2, 0): "top right",
        Field(0, 1): "centre left",
        Field(1, 1): "centre",
        Field(2, 1): "centre right",
        Field(0, 2): "bottom left",
        Field(1, 2): "bottom centre",
        Field(2, 2): "bottom right",
    },
}

_MARGIN = 0.06
"""Of a picture's side: so far from the borders of its field must a centre be."""

_LEAST_INSIDE = 0.6
"""Of a box's area: so much must lie in the field of its centre."""


def field_of(box: Corners, width: int, height: int, fields: Fields) -> str | None:
    """The field that a box lies in; None where somebody might doubt it.

    >>> field_of((10, 10, 30, 30), 100, 100, Fields.FOUR)
    'top left'
    >>> field_of((10, 35, 30, 55), 100, 100, Fields.FOUR) is None  # its centre is at 45 %
    True

    Args:
        box: (x1, y1, x2, y2) in pixels of the image.
        width: of the picture, in pixels.
        height: likewise.
        fields: how many there are.
    """
    across, down = _place(box[0], box[2], width, fields), _place(box[1], box[3], height, fields)
    if across is None or down is None:
        return None
    inside = _inside(box[0], box[2], width, fields, across)
    inside *= _inside(box[1], box[3], height, fields, down)
    return NAMES[fields][Field(across, down)] if inside >= _LEAST_INSIDE else None


def _place(first: float, last: float, side: int, fields: Fields) -> int | None:
    """The place of a centre along one side; None near a border between fields."""
    centre = (first + last) / 2 / side
    if not 0.0 <= centre < 1.0:
        return None
    borders = (number / fields.value for number in range(1, fields.value))
    near = any(abs(centre - border) < _MARGIN for border in borders)
    return None if near else int(centre * fields.value)


def _inside(first: float, last: float, side: int, fields: Fields, place: int) -> float:
    """The part of a stretch that lies in a field."""
    begin, end = side * place / fields.value, side * (place + 1) / fields.value
    return max(min(last, end) - max(first, begin), 0.0) / max(last - first, 1e-9)
