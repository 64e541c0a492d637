"""Draw marks on an image, region by region.

Every OpenCV from 4.8 to 4.x draws the same pixels, except that ovals of one-pixel lines may be a
pixel off before 4.13. OpenCV 5 draws other letters and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from . import shapes
from .region import Region
from .scribble import scribble, scribbles
from .shapes import Canvas, Colour, PixelBox, Points
from .style import COLOURS, CONTRAST, ONLY, Shape, Style, contrasting

if not cv2.__version__.startswith("4."):
    raise RuntimeError(
        f"OpenCV {cv2.__version__} draws other letters than the marks have: "
        "pip install 'opencv-python<5'"
    )


class MarkedImage(NamedTuple):
    """An image with its marks."""

    pixels: npt.NDArray[np.uint8]  # height x width x 3, RGB
    colours_used: tuple[str, ...]  # per piece: a polygon, a part's scribble, or a whole mark
    notes: tuple[str, ...]  # about marks that were not drawn as requested


class Mark(NamedTuple):
    """One region to be marked."""

    number: int  # from 1
    region: Region
    size: tuple[int, ...]  # (height, width) of the image
    width: int  # of lines
    note: Callable[[str], None]

    @property
    def box(self) -> PixelBox:
        """Return the box, truncated to pixels towards zero."""
        return PixelBox(*(int(value) for value in self.region.box))


def _box(mark: Mark) -> list[PixelBox]:
    return [mark.box]


def _digit(mark: Mark) -> list[shapes.Tag]:
    return [shapes.digit(mark.box, mark.number, mark.width)]


def _letter(mark: Mark) -> list[shapes.Tag]:
    return [shapes.letter(mark.box, mark.number, mark.width)]


def _outlines(mark: Mark) -> list[Points]:
    outlines: Sequence[Any] = mark.region.outlines
    if not outlines:
        mark.note(f"mark {mark.number}: no outline is known, its box was used")
        corners = mark.box.corners
        outlines = [[*corners, corners[0]]]  # closed: a loose contour drops the last vertex
    # Truncated towards zero. Overlaps of polygons are drawn twice.
    return [np.array(each, dtype=np.float64).astype(np.int32).reshape(-1, 2) for each in outlines]


def _each_scribble(mark: Mark) -> list[Points]:
    mask = np.zeros(mark.size, dtype=np.uint8)
    for outline in _outlines(mark):
        mask |= shapes.filled(outline, mark.size)
    lines = list(scribbles(mask))
    if not any(len(line) for line in lines):
        mark.note(f"mark {mark.number}: nothing was drawn, no part is large enough for a scribble")
    return lines


Paint = Callable[[Canvas, Any, Colour, int], None]  # canvas, piece, colour, line width

# By variant of :data:`.style.STYLES`: the pieces of a mark, what draws a piece, and what covers the
# pixels that decide its contrasting colour
PAINTERS: Mapping[tuple[Shape, str], tuple[Callable[[Mark], Sequence[Any]], Paint, Paint]] = {
    (Shape.BOX, "square"): (_box, shapes.box_with_squares, shapes.plain_box),
    (Shape.BOX, "round"): (_box, shapes.box_with_discs, shapes.plain_box),
    (Shape.BOX, "none"): (_box, shapes.plain_box, shapes.plain_box),
    (Shape.OVAL, ONLY): (_box, shapes.oval, shapes.oval),
    (Shape.ARROW, "open"): (_box, shapes.open_arrow, shapes.open_arrow),
    (Shape.ARROW, "filled"): (_box, shapes.filled_arrow, shapes.open_arrow),
    (Shape.MASK, "outlined"): (_outlines, shapes.outlined_mask, shapes.tight_contour),
    (Shape.MASK, "plain"): (_outlines, shapes.plain_mask, shapes.tight_contour),
    (Shape.CONTOUR, "tight"): (_outlines, shapes.tight_contour, shapes.tight_contour),
    (Shape.CONTOUR, "loose"): (_outlines, shapes.loose_contour, shapes.tight_contour),
    (Shape.TAG, "digit square"): (_digit, shapes.square_tag, shapes.square_plate),
    (Shape.TAG, "digit round"): (_digit, shapes.round_tag, shapes.square_plate),
    (Shape.TAG, "letter square"): (_letter, shapes.square_tag, shapes.square_plate),
    (Shape.TAG, "letter round"): (_letter, shapes.round_tag, shapes.square_plate),
    (Shape.POINT, "round"): (_box, shapes.round_point, shapes.round_point),
    (Shape.POINT, "square"): (_box, shapes.square_point, shapes.round_point),
    (Shape.SCRIBBLE, ONLY): (_each_scribble, scribble, scribble),
}


def draw_marks(
    pixels: npt.NDArray[np.uint8],
    regions: Sequence[Region],
    style: Style,
    colours: str | Sequence[str],
) -> MarkedImage:
    """Draw a mark of a style on every region, in order, on a copy of an image.

    ``pixels`` are height x width x 3, uint8, RGB. ``colours`` is a name, or a name per region;
    ``"contrast"`` chooses the colour of each mark.

    >>> from .style import default_style
    >>> grey = np.full((60, 80, 3), 128, dtype=np.uint8)
    >>> drawn = draw_marks(grey, [Region((20, 10, 40, 30))], default_style(Shape.BOX), "red")
    >>> drawn.pixels[10, 30].tolist(), drawn.colours_used, grey[10, 30].tolist()
    ([255, 0, 0], ('red',), [128, 128, 128])
    """
    named = [colours] * len(regions) if isinstance(colours, str) else colours
    canvas = np.array(pixels, order="C")
    pieces_of, paint, paint_under = PAINTERS[style.shape, style.variant]
    used, notes = list[str](), list[str]()
    for number, (region, name) in enumerate(zip(regions, named, strict=True), 1):
        mark = Mark(number, region, canvas.shape[:2], style.width, notes.append)
        chosen = None if name == CONTRAST else name
        for piece in pieces_of(mark):
            if chosen is None:
                covered = np.zeros(canvas.shape[:2], dtype=np.uint8)
                paint_under(covered, piece, (1,), style.width)
                chosen = contrasting(canvas[covered.view(np.bool_)], used)
            paint(canvas, piece, COLOURS[chosen], style.width)
            used.append(chosen)
    return MarkedImage(canvas, tuple(used), tuple(notes))
