"""Marks drawn on a picture, one region after the other.

Hard edges, and the same bytes with every OpenCV 4 from 4.8 on; but before 4.13 ovals of one pixel
lie up to a pixel elsewhere.  OpenCV 5 draws other letters and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from . import areas, strokes, tags
from .contrast import Contrast, contrasting
from .geometry import Canvas, Colour, PixelBox, Points, pixel_box
from .parabola import Fit
from .region import Region, RegionError
from .rle import RLE
from .scribble import scribble, scribbles
from .style import COLOURS, ONLY, Shape, Style, StyleError, rgb_of

if not cv2.__version__.startswith("4."):
    raise RuntimeError(
        f"OpenCV {cv2.__version__} draws other letters than the marks have: "
        "pip install 'opencv-python<5'"
    )


class Drawn(NamedTuple):
    """A picture with its marks.

    ``pixels`` is height x width x 3, uint8, RGB.  ``colours_used`` names a colour for every piece
    that was drawn: a polygon of a mask or contour, a part of a scribble, else the mark.
    ``notes`` says where a mark was not drawn as it was asked for.
    """

    pixels: npt.NDArray[np.uint8]
    colours_used: tuple[str, ...]
    notes: tuple[str, ...]


Paint = Callable[[Canvas, Any, Colour, int], None]
"""Draws one piece into a canvas, in a colour, with a line width."""


class Way(NamedTuple):
    """How a variant is drawn: its pieces, their paint, and the paint that contrast looks under."""

    pieces: Callable[[Mark], Iterable[Any]]
    paint: Paint
    under: Paint


class Mark(NamedTuple):
    """One region about to be marked: its number from 1, and the picture's (height, width)."""

    number: int
    region: Region
    size: tuple[int, ...]
    fit: Fit
    note: Callable[[str], None]

    @property
    def box(self) -> PixelBox:
        return pixel_box(self.region.box)


def _one_box(mark: Mark) -> Iterable[PixelBox]:
    return [mark.box]


def _one_digit(mark: Mark) -> Iterable[tags.Tag]:
    return [tags.digit(mark.box, mark.number)]


def _one_letter(mark: Mark) -> Iterable[tags.Tag]:
    return [tags.letter(mark.box, mark.number)]


def _each_area(mark: Mark) -> Sequence[areas.Area]:
    outlines = mark.region.outlines
    if isinstance(outlines, RLE):
        if (outlines.height, outlines.width) != mark.size:
            height, width = mark.size
            raise RegionError(
                f"mark {mark.number}: a mask of {outlines.width} x {outlines.height} pixels "
                f"on a picture of {width} x {height}"
            )
        return [areas.of_rle(outlines)]
    if not outlines:
        mark.note(f"mark {mark.number}: no outline is known, its box was used")
        return [areas.of_box(mark.box)]
    return areas.of_polygons(outlines)


def _each_scribble(mark: Mark) -> Iterable[Points]:
    mask = np.zeros(mark.size, dtype=np.uint8)
    for area in _each_area(mark):
        mask |= area.filled(mark.size)
    lines = list(scribbles(mask, mark.fit))
    if not any(len(line) for line in lines):
        mark.note(f"mark {mark.number}: nothing was drawn, no part is large enough for a scribble")
    return lines


WAYS: Mapping[tuple[Shape, str], Way] = {
    (Shape.BOX, "square"): Way(_one_box, strokes.box_with_squares, strokes.plain_box),
    (Shape.BOX, "round"): Way(_one_box, strokes.box_with_discs, strokes.plain_box),
    (Shape.BOX, "none"): Way(_one_box, strokes.plain_box, strokes.plain_box),
    (Shape.OVAL, ONLY): Way(_one_box, strokes.oval, strokes.oval),
    (Shape.ARROW, "open"): Way(_one_box, strokes.open_arrow, strokes.open_arrow),
    (Shape.ARROW, "filled"): Way(_one_box, strokes.filled_arrow, strokes.open_arrow),
    (Shape.MASK, "outlined"): Way(_each_area, areas.outlined_mask, areas.under_mask),
    (Shape.MASK, "plain"): Way(_each_area, areas.plain_mask, areas.under_mask),
    (Shape.CONTOUR, "tight"): Way(_each_area, areas.tight_contour, areas.tight_contour),
    (Shape.CONTOUR, "loose"): Way(_each_area, areas.loose_contour, areas.tight_contour),
    (Shape.TAG, "digit square"): Way(_one_digit, tags.square_tag, tags.square_plate),
    (Shape.TAG, "digit round"): Way(_one_digit, tags.round_tag, tags.square_plate),
    (Shape.TAG, "letter square"): Way(_one_letter, tags.square_tag, tags.square_plate),
    (Shape.TAG, "letter round"): Way(_one_letter, tags.round_tag, tags.square_plate),
    (Shape.POINT, "round"): Way(_one_box, strokes.round_point, strokes.round_point),
    (Shape.POINT, "square"): Way(_one_box, strokes.square_point, strokes.round_point),
    (Shape.SCRIBBLE, ONLY): Way(_each_scribble, scribble, scribble),
}
"""One row a variant of :data:`.style.STYLES`."""


def draw_marks(
    pixels: npt.NDArray[np.uint8],
    regions: Sequence[Region],
    style: Style,
    colours: str | Sequence[str],
    contrast: Contrast = Contrast.TRUE_LAB,
    fit: Fit = Fit.ALONG_LONGER_SIDE,
) -> Drawn:
    """Draw a mark of one style on every region, in their order, on a copy of a picture.

    >>> from .style import default_style
    >>> grey = np.full((60, 80, 3), 128, dtype=np.uint8)
    >>> drawn = draw_marks(grey, [Region((20, 10, 40, 30))], default_style(Shape.BOX), "red")
    >>> drawn.pixels[10, 30].tolist(), drawn.colours_used, grey[10, 30].tolist()
    ([255, 0, 0], ('red',), [128, 128, 128])

    Args:
        pixels: height x width x 3, uint8, RGB; never written to.
        regions: in pixels of the picture.
        style: shape, variant and line width of all marks.
        colours: one name for all marks, or one a region; ``contrast`` is chosen for each mark.
        contrast: how that choice is made.
        fit: which way scribbles run.

    Raises:
        StyleError: there is no such colour, or not one a region.
        ValueError: ``pixels`` is no RGB picture.
        RegionError: an RLE is not of the picture's size.
    """
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise ValueError(
            f"a picture is height x width x 3 of uint8, not {pixels.shape} {pixels.dtype}"
        )
    named = [colours] * len(regions) if isinstance(colours, str) else list(colours)
    if len(named) != len(regions):
        raise StyleError(f"{len(named)} colours for {len(regions)} regions")
    for name in named:
        rgb_of(name)
    canvas = np.array(pixels, order="C")
    way, used, notes = WAYS[style.shape, style.variant], list[str](), list[str]()
    for number, (region, name) in enumerate(zip(regions, named, strict=True), 1):
        mark = Mark(number, region, canvas.shape[:2], fit, notes.append)
        chosen = None if rgb_of(name) is None else name
        for piece in way.pieces(mark):
            if chosen is None:
                under = _pixels_under(canvas, way.under, piece, style.width)
                chosen = contrasting(under, used, contrast)
            way.paint(canvas, piece, COLOURS[chosen], style.width)
            used.append(chosen)
    return Drawn(canvas, tuple(used), tuple(notes))


def _pixels_under(canvas: Canvas, paint: Paint, piece: Any, width: int) -> npt.NDArray[np.uint8]:
    """The picture's pixels (n x 3) where a paint would draw, row by row."""
    covered = np.zeros(canvas.shape[:2], dtype=np.uint8)
    paint(covered, piece, (1,), width)
    under: npt.NDArray[np.uint8] = canvas[covered.view(np.bool_)]
    return under
