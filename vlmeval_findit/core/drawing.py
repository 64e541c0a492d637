"""What a report shows of one answer: plain records that every benchmark can fill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple


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


Outline = tuple[float, ...]  # A closed line: x, y of each vertex


class DrawnBox(NamedTuple):
    """A box (x1, y1, x2, y2) in pixels of the original image, or a point (no extent)."""

    role: Role
    box: tuple[float, ...]
    label: str = ""
    value: float | None = 0.0  # Overlap, 0 to 1; None: not compared
    # Drawn instead of the box; an outline inside another is a hole
    outlines: tuple[Outline, ...] = ()


def region(
    role: Role, outlines: Sequence[Outline], label: str = "", value: float | None = 0.0
) -> DrawnBox:
    """Make a region of polygons, in pixels of the original image.

    >>> region(Role.TRUTH, [(10, 20, 40, 20, 40, 60)]).box
    (10, 20, 40, 60)

    Raises:
        ValueError: a polygon of fewer than three vertices, or none.
    """
    if not outlines or any(len(each) < 6 or len(each) % 2 for each in outlines):
        raise ValueError(
            f"a region is polygons (x, y, x, y, …) of three and more: {outlines!r:.80}"
        )
    xs, ys = ([n for each in outlines for n in each[at::2]] for at in (0, 1))
    box = min(xs), min(ys), max(xs), max(ys)
    return DrawnBox(role, box, label, value, tuple(map(tuple, outlines)))


def outlines_of(mask: Any) -> tuple[Outline, ...]:
    """Return the outlines of a mask (height x width; not 0 is inside), corners cut.

    >>> import numpy as np
    >>> [sorted(line) for line in outlines_of(np.array([[0, 1], [0, 0]]))]
    [[0.0, 0.5, 0.5, 1.0, 1.0, 1.5, 1.5, 2.0]]
    """
    import numpy as np
    from contourpy import contour_generator

    inside = np.pad(np.asarray(mask) != 0, 1).astype(float)
    # A pixel's middle is half a pixel from its corner; the padding is one pixel.
    lines = [np.array(line, float) - 0.5 for line in contour_generator(z=inside).lines(0.5)]
    return tuple(tuple(line[:-1].ravel().tolist()) for line in lines)


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
