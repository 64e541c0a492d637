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
from .style import COLOURS, CONTRAST, ONLY_VARIANT, Shape, Style, contrasting_colour

if not cv2.__version__.startswith("4."):
    raise RuntimeError(
        f"OpenCV {cv2.__version__} draws other letters than the marks have: "
        "pip install 'opencv-python<5'"
    )


class MarkedImage(NamedTuple):
    """An image with its marks."""

    pixels: npt.NDArray[np.uint8]  # Height x width x 3, RGB
    colours_used: tuple[str, ...]  # Per piece: a polygon, a part's scribble, or a whole mark
    notes: tuple[str, ...]  # About marks that were not drawn as requested


class Mark(NamedTuple):
    """One region to be marked."""

    number: int  # From 1
    region: Region
    size: tuple[int, ...]  # (height, width) of the image
    width: int  # Of lines
    note: Callable[[str], None]

    @property
    def box(self) -> PixelBox:
        """Return the box, truncated to pixels towards zero."""
        return PixelBox(*(int(value) for value in self.region.box))


# --- the pieces of a mark -------------------------------------------------------------------------


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
        outlines = [[*corners, corners[0]]]  # Closed: a loose contour drops the last vertex
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


# --- drawing --------------------------------------------------------------------------------------

Paint = Callable[[Canvas, Any, Colour, int], None]  # Canvas, piece, colour, line width


class Painter(NamedTuple):
    """How the marks of a style are drawn."""

    pieces_of: Callable[[Mark], Sequence[Any]]
    paint: Paint  # Draws a piece
    paint_under: Paint  # Covers the pixels that decide the contrasting colour of a piece


# By variant of :data:`.style.STYLES`
PAINTERS: Mapping[tuple[Shape, str], Painter] = {
    (Shape.BOX, "square"): Painter(_box, shapes.box_with_squares, shapes.plain_box),
    (Shape.BOX, "round"): Painter(_box, shapes.box_with_discs, shapes.plain_box),
    (Shape.BOX, "none"): Painter(_box, shapes.plain_box, shapes.plain_box),
    (Shape.OVAL, ONLY_VARIANT): Painter(_box, shapes.oval, shapes.oval),
    (Shape.ARROW, "open"): Painter(_box, shapes.open_arrow, shapes.open_arrow),
    (Shape.ARROW, "filled"): Painter(_box, shapes.filled_arrow, shapes.open_arrow),
    (Shape.MASK, "outlined"): Painter(_outlines, shapes.outlined_mask, shapes.tight_contour),
    (Shape.MASK, "plain"): Painter(_outlines, shapes.plain_mask, shapes.tight_contour),
    (Shape.CONTOUR, "tight"): Painter(_outlines, shapes.tight_contour, shapes.tight_contour),
    (Shape.CONTOUR, "loose"): Painter(_outlines, shapes.loose_contour, shapes.tight_contour),
    (Shape.TAG, "digit square"): Painter(_digit, shapes.square_tag, shapes.square_plate),
    (Shape.TAG, "digit round"): Painter(_digit, shapes.round_tag, shapes.square_plate),
    (Shape.TAG, "letter square"): Painter(_letter, shapes.square_tag, shapes.square_plate),
    (Shape.TAG, "letter round"): Painter(_letter, shapes.round_tag, shapes.square_plate),
    (Shape.POINT, "round"): Painter(_box, shapes.round_point, shapes.round_point),
    (Shape.POINT, "square"): Painter(_box, shapes.square_point, shapes.round_point),
    (Shape.SCRIBBLE, ONLY_VARIANT): Painter(_each_scribble, scribble, scribble),
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
    painter = PAINTERS[style.shape, style.variant]
    used: list[str] = []
    notes: list[str] = []
    for number, (region, name) in enumerate(zip(regions, named, strict=True), 1):
        mark = Mark(number, region, canvas.shape[:2], style.width, notes.append)
        chosen = None if name == CONTRAST else name
        for piece in painter.pieces_of(mark):
            if chosen is None:
                covered = np.zeros(canvas.shape[:2], dtype=np.uint8)
                painter.paint_under(covered, piece, (1,), style.width)
                chosen = contrasting_colour(canvas[covered.view(np.bool_)], used)
            painter.paint(canvas, piece, COLOURS[chosen], style.width)
            used.append(chosen)
    return MarkedImage(canvas, tuple(used), tuple(notes))
