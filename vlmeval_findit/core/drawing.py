"""What a report shows of one answer: plain records that every benchmark can fill."""

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
    LENIENT = "lenient"  # Only lenient parsing finds it: in no score
    IGNORED = "ignored"  # An object that does not count
    UNCOUNTED = "not counted"  # A box that finds an ignored object
    OPTION = "option"  # A possible answer


class DrawnBox(NamedTuple):
    """A box (x1, y1, x2, y2) in pixels of the original image, or a point (no extent)."""

    role: Role
    box: tuple[float, ...]
    label: str = ""
    value: float | None = 0.0  # Overlap, 0 to 1; None: not compared


class DrawnLine(NamedTuple):
    """A line of text, such as what was right or what was answered."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class DrawnImage:
    """An image of the scene with its boxes."""

    path: str  # Below the image folder
    width: int  # Pixels; 0: not known
    height: int
    number: int = 0  # Place among the query's frames, from 0
    boxes: tuple[DrawnBox, ...] = ()
    name: str = ""  # Images with a name belong side by side


@dataclass(frozen=True, slots=True)
class Drawing:
    """One answer: images with boxes, reference images (``support``), lines of text."""

    images: tuple[DrawnImage, ...]
    support: tuple[str, ...] = ()
    lines: tuple[DrawnLine, ...] = ()


class Curve(NamedTuple):
    """Precision, recall and F1 in percent, per threshold."""

    thresholds: tuple[float, ...]
    precision: tuple[float, ...]
    recall: tuple[float, ...]
    f1: tuple[float, ...]
