"""An answer on its picture, in the colours of the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ..benchmarks.findit import drawing
from ..benchmarks.findit.query import Query
from ..benchmarks.findit.scoring import MatchedReply, scored_row
from ..boxes.matching import match
from ..boxes.records import Reading, Truth
from ..boxes.representation import Judging
from ..core.drawing import DrawnBox, Role
from ..core.image_files import decode
from ..core.replies import Reply
from ..core.visible import visible
from .pictures import Picture, in_memory, is_file
from .reading import Read
from .truths import Boxes
from .truths import truth as truth_from

if TYPE_CHECKING:
    from PIL import Image, ImageDraw


class Line(NamedTuple):
    """How a role is drawn: colour, width in pixels, and the lengths of dash and gap (0: none)."""

    colour: str
    width: int
    dash: int = 0
    gap: int = 0


LINES: Mapping[Role, Line] = {
    Role.TRUTH: Line("#ffffff", 3),
    Role.HIT: Line("#35d07f", 3),
    Role.MISS: Line("#ff5a4d", 2, 7, 4),
    Role.WRONG_LABEL: Line("#ffb52e", 3, 2, 4),
    Role.IGNORED: Line("#c9ced6", 3, 1, 6),
    Role.UNCOUNTED: Line("#c9ced6", 2, 9, 6),
}
"""As ``report/templates/report.css`` has them: told apart without colours, too."""

_SHADE = "#000000"

_ARM = 9
"""Pixels from the middle of a point's cross to its ends."""


def draw(
    picture: Picture, truth: Truth | Boxes, answer: Read | Boxes, *, frame: int = 0
) -> Image.Image:
    """Draw what is right and what was answered.

    Objects are white; a box that found one is green, one that found none red and dashed, one with
    the wrong label orange and dotted.  Objects to ignore are grey and dotted, boxes that are not
    counted because of one grey and dashed.  Points are crosses.

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


def draw_boxes(image: Image.Image, boxes: Iterable[DrawnBox]) -> None:
    """Draw boxes onto an image of the size that they are in; a role without a line is left out."""
    from PIL import ImageDraw

    pen = ImageDraw.Draw(image)
    for one in boxes:
        if one.role in LINES:
            _draw_box(pen, one, image.size)


def _image(picture: Picture) -> Image.Image:
    return decode(str(picture)) if is_file(picture) else in_memory(picture)


def _boxes(
    size: tuple[int, int], truth: Truth | Boxes, answer: Read | Boxes, frame: int
) -> tuple[DrawnBox, ...]:
    """The boxes of a frame by what became of them, as the report has them."""
    right = truth if isinstance(truth, Truth) else truth_from(truth)
    judged = Judging.BY_OVERLAP
    if isinstance(answer, Read):
        judged = answer.judged
        reading = Reading(
            list(answer.boxes), list(answer.labels), list(answer.frames), answer.reason
        )
    else:
        reading = Reading(list(truth_from(answer).boxes), [], [], None)
    (matched,) = match([reading], [right], [(1.0, 1.0)], judged)
    count = max((frame, *right.frames, *reading.frames)) + 1
    query = Query(0, "", *size, ("",) * count, right)
    found = MatchedReply(query, Reply(0, ""), reading, matched, judged=judged)
    row = scored_row(found, is_video=False)
    return drawing.draw(query, row).pictures[frame].boxes


def _draw_box(pen: ImageDraw.ImageDraw, one: DrawnBox, size: tuple[int, int]) -> None:
    line = LINES[one.role]
    width, height = size
    x1, y1, x2, y2 = one.box
    # What a model said may be anywhere; what is far outside is outside.
    x1, x2 = (min(max(x, -width), 2 * width) for x in (x1, x2))
    y1, y2 = (min(max(y, -height), 2 * height) for y in (y1, y2))
    sides = list(pairwise([(x1, y1), (x2, y1), (x2, y2), (x1, y2), (x1, y1)]))
    if (x1, y1) == (x2, y2):
        sides = [((x1 - _ARM, y1), (x1 + _ARM, y1)), ((x1, y1 - _ARM), (x1, y1 + _ARM))]
    if one.role is Role.TRUTH:
        for side in sides:
            pen.line(side, fill=_SHADE, width=line.width + 2)
    for start, end in sides:
        for piece in _dashes(start, end, line):
            pen.line(piece, fill=line.colour, width=line.width)
    if one.label:
        name = visible(one.label)
        pen.text((x1 + 4, y1 + 2), name, fill=line.colour, stroke_width=1, stroke_fill=_SHADE)


Point = tuple[float, float]


def _dashes(start: Point, end: Point, line: Line) -> Iterator[tuple[Point, Point]]:
    """The pieces of a line that runs along an axis."""
    if not line.gap:
        yield start, end
        return
    length = abs(end[0] - start[0]) + abs(end[1] - start[1])
    at = 0.0
    while at < length:
        yield tuple(  # type: ignore[misc]
            tuple(a + (b - a) * min(to, length) / length for a, b in zip(start, end, strict=True))
            for to in (at, at + line.dash)
        )
        at += line.dash + line.gap
