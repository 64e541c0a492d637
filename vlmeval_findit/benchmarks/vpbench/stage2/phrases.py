"""What a mark or a place is called, and questions with that in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ....core.image_files import Size
from ....marks.style import Shape, default_style, words_of
from .row import Marked, Role, Stage2Row

SPAN = re.compile(r"<\s*colou?r\s*>\s*<\s*vp\s*>|<\s*vp\s*>|<\s*colou?r\s*>", re.IGNORECASE)
"""Where a question names a mark."""


def filled(question: str, phrases: Sequence[str]) -> str:
    """A question with phrases in its spans.

    Every span gets the phrase, where there is one; else they take turns, where that comes out
    even, or each gets all of them.

    >>> filled("Is the <color> <vp> left of the <color> <vp>?", ["red box", "green box"])
    'Is the red box left of the green box?'
    >>> filled("Describe the <color> <vp>.", ["red box", "green box"])
    'Describe the red box and green box.'
    """
    spans = len(SPAN.findall(question))
    if not spans or not phrases:
        return question
    given = list(phrases) if spans % len(phrases) == 0 else [" and ".join(phrases)]
    turns = iter(given * (spans // len(given)))
    return SPAN.sub(lambda _: next(turns), question)


def uneven(row: Stage2Row) -> bool:
    """Whether spans and regions of a row do not come out even: all stand in each span."""
    spans = len(SPAN.findall(row.label))
    return spans == 0 or spans % len({mark.role for mark in row.marks}) != 0


# --- marks ----------------------------------------------------------------------------------------


def mark_words(shape: Shape, colours: Sequence[str]) -> list[str]:
    """What marks of one shape are called, each colour once.

    >>> mark_words(Shape.TAG, ["red", "green", "red"])
    ['red digit tag', 'green digit tag']
    """
    return [words_of(default_style(shape), colour) for colour in dict.fromkeys(colours)]


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
    Role.DEFAULT: "what the question is about",
    Role.SUBJECT: "the subject of the question",
    Role.OBJECT: "the object of the question",
}


def mark_described(shape: Shape, colours: Sequence[str], roles: Sequence[Role]) -> str:
    """What marks look like and what they point at, one sentence a colour.

    >>> mark_described(Shape.OVAL, ["red"], [Role.DEFAULT])
    'The red oval is an ellipse drawn around what the question is about.'
    """
    by_colour = dict(zip(colours, roles, strict=True))
    return " ".join(
        f"The {words_of(default_style(shape), colour)} is {_LOOKS[shape]} {_ROLES[role]}."
        for colour, role in by_colour.items()
    )


# --- places ---------------------------------------------------------------------------------------


_ACROSS, _DOWN = ("left", "middle", "right"), ("upper", "middle", "lower")

_ORDINALS = ("first", "second", "third", "fourth")


def place_words(row: Stage2Row) -> list[str]:
    """What the regions of a row are called by their places."""
    many = len(row.images) > 1
    found = []
    for mark in row.marks:
        where = place(mark, row.sizes[mark.picture])
        number = mark.picture + 1
        ordinal = _ORDINALS[mark.picture] if number <= len(_ORDINALS) else f"{number}th"
        found.append(where + f" of the {ordinal} picture" * many)
    return list(dict.fromkeys(found))


def place(mark: Marked, size: Size) -> str:
    """A region by its place: one of nine fields of the picture, and shares of its sides.

    >>> place(Marked(0, Role.DEFAULT, (10, 20, 30, 40)), (100, 200))
    'region at the upper left (from 10% to 40% of the width and from 10% to 30% of the height)'
    """
    x, y, w, h = mark.box
    across = _ACROSS[_third(x + w / 2, size[0])]
    down = _DOWN[_third(y + h / 2, size[1])]
    field = "centre" if across == down else f"{down} {across}"
    return (
        f"region at the {field} (from {_share(x, size[0])} to {_share(x + w, size[0])} of the width"
        f" and from {_share(y, size[1])} to {_share(y + h, size[1])} of the height)"
    )


def _third(at: float, side: int) -> int:
    return min(2, max(0, int(3 * at / side)))


def _share(at: float, side: int) -> str:
    return f"{min(100, max(0, round(100 * at / side)))}%"


PLACES_DESCRIBED = (
    "Regions are named by their place: the width is counted from the left edge of the picture, "
    "the height from its upper edge."
)
