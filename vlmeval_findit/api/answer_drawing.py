"""An answer on its image, in the colours of the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import ceil, dist
from typing import TYPE_CHECKING, Any, NamedTuple

from ..benchmarks.findit import FindItQuery, ScoredReply, box_outcomes, scored_row
from ..boxes import MatchRule, ParsedReply, Truth, match
from ..core import printable, shorten
from ..protocol import DrawnBox, Reply, Role
from ..storage import decode_image
from .inputs import (
    BoxesLike,
    ImageLike,
    check_in_image,
    image_in_memory,
    is_file,
    plain,
    predicted_boxes,
)
from .inputs import truth as truth_from
from .reply_scores import ReplyBoxes

if TYPE_CHECKING:
    from PIL import Image, ImageDraw


Point = tuple[float, float]


class Stroke(NamedTuple):
    """The stroke of a role: colour, width in pixels, and the lengths of dash and gap (0: none)."""

    colour: str
    width: int
    dash: int = 0
    gap: int = 0


STROKES: Mapping[Role, Stroke] = {
    Role.TRUTH: Stroke("#ffffff", 3),
    Role.HIT: Stroke("#35d07f", 3, 14, 5),
    Role.MISS: Stroke("#ff5a4d", 3, 5, 4),
    Role.WRONG_LABEL: Stroke("#ffb52e", 3, 2, 4),
    Role.IGNORED: Stroke("#c9ced6", 3, 1, 6),
    Role.UNCOUNTED: Stroke("#c9ced6", 2, 9, 6),
}
"""As in ``report/templates/gallery.css``: they differ even without colours."""

_LONGEST = 24
"""Characters of a label; an expression has more."""

_SHADE = "#000000"

_ARM = 9
"""Pixels from the middle of a point's cross to its ends."""


def draw(
    image: ImageLike, truth: Truth | BoxesLike, answer: ReplyBoxes | BoxesLike, *, frame: int = 0
) -> Image.Image:
    """Draw the ground truth and an answer onto a copy of an image, as the report does.

    Objects are white; boxes that hit are green with long dashes, boxes that miss red with short
    dashes, boxes with a wrong label orange and dotted. Ignored objects are grey and dotted, and
    boxes that lie on an ignored object are grey and dashed.  Points are crosses.

    >>> import numpy as np
    >>> image = np.zeros((480, 640, 3), np.uint8)
    >>> draw(image, [[60, 50, 320, 240]], [[64, 48, 320, 240]]).size
    (640, 480)

    Args:
        image: the original image: a file, a PIL image, or an array (height, width, 3) of uint8.
        truth: (N, 4) corners (x1, y1, x2, y2) in pixels of the original image, or the
            result of :func:`.truth`.
        answer: the result of :func:`.read`, or (M, 4) corners in pixels, in any order: a model may
            answer a box without extent, or inside out.
        frame: number of the image's frame, counted from 0.

    Returns:
        A new RGB image of the same size.

    Raises:
        ImageFileError: the file is no image.
        ValueError: a true box is not in the image.
        ValueError: the array is no image, a box of the truth is invalid, or one of the answer is
            not four finite numbers.
    """
    copy = decode_image(str(image)) if is_file(image) else image_in_memory(image)
    draw_boxes(copy, _boxes(copy.size, truth, answer, frame))
    return copy


def draw_answer(row: Any, *, frame: int = 0) -> Image.Image:
    """Draw the answer of a row of :func:`.load_runs` onto a copy of its image, as the report does.

    Whatever the benchmark scores decides what a hit is: overlap, points, labels.

    Args:
        row: of ``load_runs(…).itertuples()``, or ``load_runs(…).loc[number]``.
        frame: number of the image if the query has several, counted from 0.

    Returns:
        A new RGB image of the same size.

    Raises:
        ImageFileError: the file is missing, or no image.
        ValueError: the row has no image, or not as many.
    """
    images = [row.image] if isinstance(row.image, str) else plain(row.image)
    if not isinstance(images, list):
        raise ValueError(f"no image of this row of {row.dataset}: load_runs warned why")
    if not 0 <= frame < len(images):
        raise ValueError(f"frame {frame} is out of range 0..{len(images) - 1}")
    copy = decode_image(images[frame])
    draw_boxes(copy, [_drawn_box(box) for box in row.drawn[frame]])
    return copy


def _drawn_box(values: Mapping[str, Any]) -> DrawnBox:
    """Return a box of a frame of :func:`.load_runs`, perhaps read back from a file."""
    role, box, label, value = (values[name] for name in DrawnBox._fields)
    return DrawnBox(Role(role), tuple(box), label, value)


def draw_boxes(
    image: Image.Image, boxes: Iterable[DrawnBox], size: tuple[int, int] | None = None
) -> None:
    """Draw boxes onto an image; a role without a stroke is left out.

    Args:
        image: is changed.
        boxes: in pixels of the original image.
        size: (width, height) of the original, if the image is a smaller copy.
    """
    from PIL import ImageDraw

    width, height = size or image.size
    scale = (image.width / width, image.height / height)
    for box in boxes:
        if box.role in STROKES:
            _draw_box(ImageDraw.Draw(image), box, image.size, scale)


def _boxes(
    size: tuple[int, int], truth: Truth | BoxesLike, answer: ReplyBoxes | BoxesLike, frame: int
) -> tuple[DrawnBox, ...]:
    """Return the boxes of a frame with their roles, as in the report."""
    true = truth if isinstance(truth, Truth) else truth_from(truth)
    check_in_image(true, size)
    match_rule = MatchRule.BOX_OVERLAP
    if isinstance(answer, ReplyBoxes):
        match_rule = answer.match_rule
        parsed = ParsedReply(answer.boxes, answer.labels, answer.frames, answer.reason)
    else:
        parsed = ParsedReply(predicted_boxes(answer), (), (), None)
    (matches,) = match([parsed], [true], match_rule=match_rule)
    count = max((frame, *true.frames, *parsed.frames)) + 1
    query = FindItQuery(0, "", *size, ("",) * count, true)
    row = scored_row(ScoredReply(query, Reply(0, ""), parsed, matches, match_rule=match_rule))
    return box_outcomes.draw(query, row).images[frame].boxes


def _draw_box(pen: ImageDraw.ImageDraw, box: DrawnBox, size: tuple[int, int], scale: Point) -> None:
    stroke = STROKES[box.role]
    # Limited to the surroundings of the drawn image
    x1, y1, x2, y2 = (
        min(max(number * scale[at % 2], -size[at % 2]), 2 * size[at % 2])
        for at, number in enumerate(box.box)
    )
    sides = list(pairwise([(x1, y1), (x2, y1), (x2, y2), (x1, y2), (x1, y1)]))
    if (x1, y1) == (x2, y2):
        sides = [((x1 - _ARM, y1), (x1 + _ARM, y1)), ((x1, y1 - _ARM), (x1, y1 + _ARM))]
    if box.role is Role.TRUTH:
        for side in sides:
            pen.line(side, fill=_SHADE, width=stroke.width + 2)
    for start, end in sides:
        for dash in _dashes(start, end, stroke):
            pen.line(dash, fill=stroke.colour, width=stroke.width)
    if box.label:
        name = shorten(printable(box.label), _LONGEST)
        corner = (x1 + 4, y1 + 2)
        pen.text(corner, name, fill=stroke.colour, stroke_width=1, stroke_fill=_SHADE)


def _dashes(start: Point, end: Point, stroke: Stroke) -> list[tuple[Point, Point]]:
    if not stroke.gap:
        return [(start, end)]
    length = dist(start, end)

    def point(distance: float) -> Point:
        share = min(distance, length) / length
        return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share

    begins = range(0, ceil(length), stroke.dash + stroke.gap)
    return [(point(begin), point(begin + stroke.dash)) for begin in begins]
