"""Convert rows of stage 2 to queries, with marks or with places in words.

Marked images are named by a hash of what is drawn, so that queries are known before drawing and
nothing is drawn twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...core import sha256_of
from ...marks import COLOURS, Region, Shape, default_style, words_of
from ...storage import Size, decode_image, png
from .mark_choices import MarkChoice
from .vp_query import SOURCE_NAMES, MarkedRegion, RegionRole, Stage2Row, VPQuery

# A mark's placeholder in a question
SPAN = re.compile(r"<\s*colou?r\s*>\s*<\s*vp\s*>|<\s*vp\s*>|<\s*colou?r\s*>", re.IGNORECASE)


def fill_spans(question: str, phrases: Sequence[str]) -> str:
    """Fill a question's spans with phrases.

    Phrases take turns if their number divides that of the spans, else each span gets all.

    >>> fill_spans("Is the <color> <vp> left of the <color> <vp>?", ["red box", "green box"])
    'Is the red box left of the green box?'
    >>> fill_spans("Describe the <color> <vp>.", ["red box", "green box"])
    'Describe the red box and green box.'
    """
    spans = len(SPAN.findall(question))
    if not spans or not phrases:
        return question
    inputs = list(phrases) if spans % len(phrases) == 0 else [" and ".join(phrases)]
    turns = iter(inputs * (spans // len(inputs)))
    return SPAN.sub(lambda _: next(turns), question)


# --- marks ----------------------------------------------------------------------------------------


_LOOKS = {
    Shape.BOX: "a rectangle drawn around",
    Shape.OVAL: "an ellipse drawn around",
    Shape.ARROW: "an arrow that points at",
    Shape.MASK: "a half transparent area that covers",
    Shape.CONTOUR: "a line drawn along the outline of",
    Shape.TAG: "a small plate with a number in the middle of",
    Shape.POINT: "a dot in the middle of",
    Shape.SCRIBBLE: "a short stroke drawn across",
}

_ROLES = {
    RegionRole.DEFAULT: "what the question is about",
    RegionRole.SUBJECT: "the subject of the question",
    RegionRole.OBJECT: "the object of the question",
}


def mark_described(shape: Shape, colours: Mapping[RegionRole, str]) -> str:
    """Describe the look of marks and what they point at, a sentence per colour.

    >>> mark_described(Shape.OVAL, {RegionRole.DEFAULT: "red"})
    'The red oval is an ellipse drawn around what the question is about.'
    """
    by_colour = {colour: role for role, colour in colours.items()}
    return " ".join(
        f"The {words_of(default_style(shape), colour)} is {_LOOKS[shape]} {_ROLES[role]}."
        for colour, role in by_colour.items()
    )


# --- places ---------------------------------------------------------------------------------------

_ACROSS = ("left", "middle", "right")
_DOWN = ("upper", "middle", "lower")
_ORDINALS = ("first", "second", "third", "fourth")


def regions_in_words(row: Stage2Row) -> list[str]:
    """Name a row's regions by their places."""
    result = []
    for mark in row.marks:
        where = region_in_words(mark, row.sizes[mark.image])
        if len(row.images) > 1:
            number = mark.image + 1
            ordinal = _ORDINALS[mark.image] if number <= len(_ORDINALS) else f"{number}th"
            where += f" of the {ordinal} picture"
        result.append(where)
    return list(dict.fromkeys(result))


def region_in_words(mark: MarkedRegion, size: Size) -> str:
    """Name a region by its cell in a 3 x 3 grid and by percentages of the image's sides.

    >>> region_in_words(MarkedRegion(0, RegionRole.DEFAULT, (10, 20, 30, 40)), (100, 200))
    'region at the upper left (from 10% to 40% of the width and from 10% to 30% of the height)'
    """
    x, y, w, h = mark.box
    width, height = size
    across = _ACROSS[min(2, max(0, int(3 * (x + w / 2) / width)))]
    down = _DOWN[min(2, max(0, int(3 * (y + h / 2) / height)))]
    field = "centre" if across == down else f"{down} {across}"
    left, right, top, bottom = (
        f"{min(100, max(0, round(100 * at / side)))}%"
        for at, side in ((x, width), (x + w, width), (y, height), (y + h, height))
    )
    return (
        f"region at the {field} (from {left} to {right} of the width"
        f" and from {top} to {bottom} of the height)"
    )


PLACES_DESCRIBED = (
    "Regions are named by their place: the width is counted from the left edge of the picture, "
    "the height from its upper edge."
)


# --- queries --------------------------------------------------------------------------------------

RECIPE = 1  # version of the drawing, part of the names of marked images


@dataclass(frozen=True, slots=True)
class MarkRequest:
    """An image with marks of one shape."""

    image: str
    marks: tuple[MarkedRegion, ...]
    shape: Shape
    colours: tuple[str, ...]  # a name per mark

    @property
    def name(self) -> str:
        """Return its path in the image folder."""
        regions = [[mark.box, mark.outlines] for mark in self.marks]
        drawn = [RECIPE, self.image, regions, self.shape.value, self.colours]
        return f"stage2/marked/{sha256_of(json.dumps(drawn).encode())[:24]}.png"


def draw_marked_image(item: MarkRequest, folder: Path) -> bytes:
    """Draw a marked image as PNG, or raise ImageFileError."""
    import numpy as np

    from ...marks import draw_marks

    pixels = np.asarray(decode_image(folder / item.image))
    regions = [Region(mark.box, mark.outlines) for mark in item.marks]
    return png(draw_marks(pixels, regions, default_style(item.shape), item.colours).pixels)


def unmarked_query(row: Stage2Row) -> VPQuery:
    """Convert a row to a query with unmarked images and unfilled spans."""
    return VPQuery(
        index=row.index,
        label=row.label,
        images=row.images,
        question=row.label,
        options=row.options,
        answer=row.answer,
        amount=str(len(row.marks)),
        cluster=row.cluster,
        source=SOURCE_NAMES[row.source],
    )


def colour_of(role: RegionRole, selected: str) -> str:
    """Choose a mark's colour; the object's differs from the subject's.

    >>> colour_of(RegionRole.SUBJECT, "blue"), colour_of(RegionRole.OBJECT, "blue")
    ('blue', 'black')
    """
    colours = list(COLOURS)
    after = colours[(colours.index(selected) + 1) % len(colours)]
    return after if role is RegionRole.OBJECT else selected


def query_with_marks(
    row: Stage2Row, choice: MarkChoice, described: bool
) -> tuple[VPQuery, list[MarkRequest]]:
    """Show a row's regions by marks of one shape; also return the marked images."""
    colours = {mark.role: colour_of(mark.role, choice.colour) for mark in row.marks}
    shown = list(row.images)
    requests: list[MarkRequest] = []
    for at in sorted({mark.image for mark in row.marks}):
        marks = tuple(mark for mark in row.marks if mark.image == at)
        of_marks = tuple(colours[mark.role] for mark in marks)
        requests.append(MarkRequest(row.images[at], marks, choice.shape, of_marks))
        shown[at] = requests[-1].name
    used = tuple(dict.fromkeys(colours.values()))
    words = [words_of(default_style(choice.shape), colour) for colour in used]
    query = replace(
        unmarked_query(row),
        images=tuple(shown),
        hint=mark_described(choice.shape, colours) if described else "",
        question=fill_spans(row.label, words),
        shapes=(choice.shape.value,),
        properties=used,
    )
    return query, requests


def query_in_words(row: Stage2Row, described: bool) -> VPQuery:
    """Name a row's regions by their places, in the hint if the question has no spans."""
    words = regions_in_words(row)
    above = [PLACES_DESCRIBED] if described else []
    if not SPAN.search(row.label):
        above.append(f"The question is about the {' and the '.join(words)}.")
    return replace(unmarked_query(row), hint=" ".join(above), question=fill_spans(row.label, words))


def count_without_outline(row: Stage2Row, shape: Shape) -> int:
    """Count the marks that need an outline and only have a box."""
    needs_outline = shape in (Shape.MASK, Shape.CONTOUR, Shape.SCRIBBLE)
    return sum(not mark.outlines for mark in row.marks) if needs_outline else 0
