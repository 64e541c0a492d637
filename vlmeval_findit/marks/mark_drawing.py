"""Draw marks on an image, region by region.

Every OpenCV from 4.8 to 4.x draws the same pixels, except that ovals of one-pixel lines may be a
pixel off before 4.13. OpenCV 5 draws other letters and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from . import shapes
from .region import Region
from .scribble import scribble, scribbles
from .shapes import Canvas, Colour, PixelBox, Points, pixel_box
from .style import COLOURS, ONLY, Shape, Style, contrasting, rgb_of

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


Paint = Callable[[Canvas, Any, Colour, int], None]  # canvas, piece, colour, line width


class MarkPainter(NamedTuple):
    """How a variant is drawn."""

    pieces: Callable[[Mark], Iterable[Any]]
    paint: Paint
    under: Paint  # covers the pixels that decide the contrasting colour


class Mark(NamedTuple):
    """One region to be marked."""

    number: int  # from 1
    region: Region
    size: tuple[int, ...]  # (height, width) of the image
    width: int  # of lines
    note: Callable[[str], None]

    @property
    def box(self) -> PixelBox:
        return pixel_box(self.region.box)


def _box(mark: Mark) -> list[PixelBox]:
    return [mark.box]


def _digit(mark: Mark) -> list[shapes.Tag]:
    return [shapes.digit(mark.box, mark.number, mark.width)]


def _letter(mark: Mark) -> list[shapes.Tag]:
    return [shapes.letter(mark.box, mark.number, mark.width)]


def _outlines(mark: Mark) -> list[Points]:
    if not mark.region.outlines:
        mark.note(f"mark {mark.number}: no outline is known, its box was used")
        return [shapes.box_outline(mark.box)]
    # Overlaps of polygons are drawn twice.
    return [shapes.pixel_points(polygon) for polygon in mark.region.outlines]


def _each_scribble(mark: Mark) -> Iterable[Points]:
    mask = np.zeros(mark.size, dtype=np.uint8)
    for outline in _outlines(mark):
        mask |= shapes.filled(outline, mark.size)
    lines = list(scribbles(mask))
    if not any(len(line) for line in lines):
        mark.note(f"mark {mark.number}: nothing was drawn, no part is large enough for a scribble")
    return lines


PAINTERS: Mapping[tuple[Shape, str], MarkPainter] = {  # for every variant of :data:`.style.STYLES`
    (Shape.BOX, "square"): MarkPainter(_box, shapes.box_with_squares, shapes.plain_box),
    (Shape.BOX, "round"): MarkPainter(_box, shapes.box_with_discs, shapes.plain_box),
    (Shape.BOX, "none"): MarkPainter(_box, shapes.plain_box, shapes.plain_box),
    (Shape.OVAL, ONLY): MarkPainter(_box, shapes.oval, shapes.oval),
    (Shape.ARROW, "open"): MarkPainter(_box, shapes.open_arrow, shapes.open_arrow),
    (Shape.ARROW, "filled"): MarkPainter(_box, shapes.filled_arrow, shapes.open_arrow),
    (Shape.MASK, "outlined"): MarkPainter(_outlines, shapes.outlined_mask, shapes.tight_contour),
    (Shape.MASK, "plain"): MarkPainter(_outlines, shapes.plain_mask, shapes.tight_contour),
    (Shape.CONTOUR, "tight"): MarkPainter(_outlines, shapes.tight_contour, shapes.tight_contour),
    (Shape.CONTOUR, "loose"): MarkPainter(_outlines, shapes.loose_contour, shapes.tight_contour),
    (Shape.TAG, "digit square"): MarkPainter(_digit, shapes.square_tag, shapes.square_plate),
    (Shape.TAG, "digit round"): MarkPainter(_digit, shapes.round_tag, shapes.square_plate),
    (Shape.TAG, "letter square"): MarkPainter(_letter, shapes.square_tag, shapes.square_plate),
    (Shape.TAG, "letter round"): MarkPainter(_letter, shapes.round_tag, shapes.square_plate),
    (Shape.POINT, "round"): MarkPainter(_box, shapes.round_point, shapes.round_point),
    (Shape.POINT, "square"): MarkPainter(_box, shapes.square_point, shapes.round_point),
    (Shape.SCRIBBLE, ONLY): MarkPainter(_each_scribble, scribble, scribble),
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

    Raises:
        StyleError: unknown colour.
    """
    named = [colours] * len(regions) if isinstance(colours, str) else colours
    canvas = np.array(pixels, order="C")
    painter, used, notes = PAINTERS[style.shape, style.variant], list[str](), list[str]()
    for number, (region, name) in enumerate(zip(regions, named, strict=True), 1):
        mark = Mark(number, region, canvas.shape[:2], style.width, notes.append)
        chosen = None if rgb_of(name) is None else name
        for piece in painter.pieces(mark):
            if chosen is None:
                under = _pixels_under(canvas, painter.under, piece, style.width)
                chosen = contrasting(under, used)
            painter.paint(canvas, piece, COLOURS[chosen], style.width)
            used.append(chosen)
    return MarkedImage(canvas, tuple(used), tuple(notes))


def _pixels_under(canvas: Canvas, paint: Paint, piece: Any, width: int) -> npt.NDArray[np.uint8]:
    """Return the pixels (n x 3) that a paint would cover, row by row."""
    covered = np.zeros(canvas.shape[:2], dtype=np.uint8)
    paint(covered, piece, (1,), width)
    under: npt.NDArray[np.uint8] = canvas[covered.view(np.bool_)]
    return under
