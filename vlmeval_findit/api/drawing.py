"""An answer on its picture, in the colours of the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import dist
from typing import TYPE_CHECKING, NamedTuple

from ..benchmarks.findit import box_drawing as drawing
from ..benchmarks.findit.findit_query import FindItQuery
from ..benchmarks.findit.reply_scoring import MatchedReply, scored_row
from ..boxes.matching import match
from ..boxes.records import ParsedReply, Truth
from ..boxes.representation import MatchRule
from ..core.drawing import DrawnBox, Role
from ..core.formatting import printable
from ..core.image_files import decode
from ..core.replies import Reply
from .given import Boxes, Picture, in_memory, is_file
from .given import truth as truth_from
from .reading import Read

if TYPE_CHECKING:
    from PIL import Image, ImageDraw


Point = tuple[float, float]


class Line(NamedTuple):
    """How a role is drawn: colour, width in pixels, and the lengths of dash and gap (0: none)."""

    colour: str
    width: int
    dash: int = 0
    gap: int = 0


LINES: Mapping[Role, Line] = {
    Role.TRUTH: Line("#ffffff", 3),
    Role.HIT: Line("#35d07f", 3, 14, 5),
    Role.MISS: Line("#ff5a4d", 3, 5, 4),
    Role.WRONG_LABEL: Line("#ffb52e", 3, 2, 4),
    Role.IGNORED: Line("#c9ced6", 3, 1, 6),
    Role.UNCOUNTED: Line("#c9ced6", 2, 9, 6),
}
"""As ``report/templates/gallery.css`` has them: told apart without colours, too."""

_SHADE = "#000000"

_HATCH = 8
"""Pixels between the lines across a region."""

_ARM = 9
"""Pixels from the middle of a point's cross to its ends."""


def draw(
    picture: Picture, truth: Truth | Boxes, answer: Read | Boxes, *, frame: int = 0
) -> Image.Image:
    """Draw what is right and what was answered.

    Objects are white; a box that found one is green with long dashes, one that found none red with
    short ones, one with the wrong label orange and dotted.  Objects to ignore are grey and dotted,
    boxes that are not counted because of one grey and dashed.  Points are crosses.

    Args:
        picture: the original: a file, a PIL image or an array.
        truth: (x1, y1, x2, y2) each in pixels, or :func:`.truth`; none: nothing to find.
        answer: what :func:`.read` gave, or boxes in pixels.
        frame: which frame the picture is, counted from 0.

    Returns:
        A new RGB image of the picture's size.

    Raises:
        ImageFileError: the file is no picture.
        ValueError: the array is no picture, or a box of the truth is none.
    """
    image = _image(picture)
    draw_boxes(image, _boxes(image.size, truth, answer, frame))
    return image


def draw_boxes(
    image: Image.Image, boxes: Iterable[DrawnBox], size: tuple[int, int] | None = None
) -> None:
    """Draw boxes onto an image; a role without a line is left out.

    Args:
        image: is changed.
        boxes: in pixels of the original image.
        size: the original's, if the image is a smaller copy.
    """
    from PIL import ImageDraw

    pen = ImageDraw.Draw(image)
    wide, high = size or image.size
    scale = (image.width / wide, image.height / high)
    for one in boxes:
        if one.role in LINES:
            _draw_box(pen, one, image.size, scale)


def _image(picture: Picture) -> Image.Image:
    return decode(str(picture)) if is_file(picture) else in_memory(picture)


def _boxes(
    size: tuple[int, int], truth: Truth | Boxes, answer: Read | Boxes, frame: int
) -> tuple[DrawnBox, ...]:
    """Return the boxes of a frame with their roles, as the report has them."""
    right = truth if isinstance(truth, Truth) else truth_from(truth)
    match_rule = MatchRule.BOX_OVERLAP
    if isinstance(answer, Read):
        match_rule = answer.match_rule
        reading = ParsedReply(answer.boxes, answer.labels, answer.frames, answer.reason)
    else:
        reading = ParsedReply(truth_from(answer).boxes, (), (), None)
    (matched,) = match([reading], [right], match_rule=match_rule)
    count = max((frame, *right.frames, *reading.frames)) + 1
    query = FindItQuery(0, "", *size, ("",) * count, right)
    found = MatchedReply(query, Reply(0, ""), reading, matched, match_rule=match_rule)
    row = scored_row(found)
    return drawing.draw(query, row).pictures[frame].boxes


def _draw_box(pen: ImageDraw.ImageDraw, one: DrawnBox, size: tuple[int, int], scale: Point) -> None:
    line = LINES[one.role]
    (x1, y1), (x2, y2) = _points(one.box, size, scale)
    rings = [_points(outline, size, scale) for outline in one.outlines]
    rings = rings or [[(x1, y1), (x2, y1), (x2, y2), (x1, y2)]]
    sides = [side for ring in rings for side in pairwise([*ring, ring[0]])]
    if (x1, y1) == (x2, y2):
        sides = [((x1 - _ARM, y1), (x1 + _ARM, y1)), ((x1, y1 - _ARM), (x1, y1 + _ARM))]
    if one.outlines and one.role not in (Role.TRUTH, Role.IGNORED):
        _hatch(pen, rings, line, size, rising=one.role is Role.HIT)
    if one.role is Role.TRUTH:
        for side in sides:
            pen.line(side, fill=_SHADE, width=line.width + 2)
    for start, end in sides:
        for piece in _dashes(start, end, line):
            pen.line(piece, fill=line.colour, width=line.width)
    if one.label:
        name = printable(one.label)
        pen.text((x1 + 4, y1 + 2), name, fill=line.colour, stroke_width=1, stroke_fill=_SHADE)


def _points(numbers: Sequence[float], size: tuple[int, int], scale: Point) -> list[Point]:
    """Return pixels of the image drawn on; far outside of it is as good as outside."""
    width, height = size
    return [
        (min(max(x * scale[0], -width), 2 * width), min(max(y * scale[1], -height), 2 * height))
        for x, y in zip(numbers[::2], numbers[1::2], strict=True)
    ]


def _hatch(
    pen: ImageDraw.ImageDraw,
    rings: Sequence[Sequence[Point]],
    line: Line,
    size: tuple[int, int],
    rising: bool,
) -> None:
    """Draw lines across a region, so that an answer is told from an object without colours."""
    from PIL import Image, ImageChops, ImageDraw

    inside = Image.new("1", size)
    for ring in rings:
        one = Image.new("1", size)
        ImageDraw.Draw(one).polygon(ring, fill=1)
        inside = ImageChops.logical_xor(inside, one)
    lines = Image.new("1", size)
    width, height = size
    for x in range(-height, width + height, _HATCH):
        ends = (x, height, x + height, 0) if rising else (x, 0, x + height, height)
        ImageDraw.Draw(lines).line(ends, fill=1, width=1)
    pen.bitmap((0, 0), ImageChops.logical_and(inside, lines), fill=line.colour)


def _dashes(start: Point, end: Point, line: Line) -> Iterator[tuple[Point, Point]]:
    """Yield the pieces of a line."""
    if not line.gap:
        yield start, end
        return
    length = dist(start, end)
    at = 0.0
    while at < length:
        yield tuple(  # type: ignore[misc]
            tuple(a + (b - a) * min(to, length) / length for a, b in zip(start, end, strict=True))
            for to in (at, at + line.dash)
        )
        at += line.dash + line.gap
