"""What a report shows of one answer: plain records, so that every benchmark can fill them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Role(Enum):
    """What a drawn box or a line of text is."""

    TRUTH = "truth"
    HIT = "hit"
    MISS = "miss"
    WRONG_LABEL = "wrong label"
    SALVAGED = "salvaged"
    """What only a tolerant reader takes from the reply: in no score."""
    IGNORED = "ignored"
    """An object that counts neither way."""
    UNCOUNTED = "not counted"
    """A box that found such an object: neither right nor wrong."""
    OPTION = "option"
    """What could have been answered."""


class DrawnBox(NamedTuple):
    """A box (x1, y1, x2, y2) in pixels of the original picture; without extent it is a point.

    ``value`` is its overlap with what it was held against, 0 to 1; None where that is no question.
    """

    role: Role
    box: tuple[float, ...]
    label: str = ""
    value: float | None = 0.0


class DrawnLine(NamedTuple):
    """A line of text: what was right, what was answered."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class DrawnPicture:
    """A picture of the scene: its path below the image folder, its size in pixels (0: not known).

    ``number`` is its place among the frames of a query, from 0.  Pictures with a ``name`` belong
    side by side and are called by it.
    """

    path: str
    width: int
    height: int
    number: int = 0
    boxes: tuple[DrawnBox, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """One answer: the reference pictures, the pictures with their boxes, lines of text."""

    pictures: tuple[DrawnPicture, ...]
    support: tuple[str, ...] = ()
    lines: tuple[DrawnLine, ...] = ()


class Curve(NamedTuple):
    """Precision, recall and F1 in percent, one value a threshold."""

    thresholds: tuple[float, ...]
    precision: tuple[float, ...]
    recall: tuple[float, ...]
    f1: tuple[float, ...]
