"""Marks that are not drawn: what a question names in vain, and wrong options."""

from __future__ import annotations

from training.vp_questions.annotated import Rng
from training.vp_questions.wording import Name
from vlmeval_findit.marks.style import COLOURS, Shape, Style, default_style

LOOK_ALIKE = frozenset(
    {
        frozenset({Shape.CONTOUR, Shape.BOX}),
        frozenset({Shape.CONTOUR, Shape.OVAL}),
        frozenset({Shape.CONTOUR, Shape.MASK}),
        frozenset({Shape.MASK, Shape.BOX}),
        frozenset({Shape.MASK, Shape.OVAL}),
    }
)
"""Shapes of which one may be taken for the other: the contour of a square is a box."""


def other_colour(colour: str, rng: Rng) -> str:
    """Any colour but this one."""
    others = [one for one in COLOURS if one != colour]
    return others[rng.randint(len(others))]


def others(drawn: Name, rng: Rng) -> list[Name]:
    """Three marks that nobody takes for this one: of another colour, of another shape, of both."""
    assert drawn.colour is not None
    shape, another = _other_styles(drawn.style, rng)[:2]
    colour = other_colour(drawn.colour, rng)
    return [
        Name(drawn.style, colour),
        Name(shape, drawn.colour),
        Name(another, other_colour(drawn.colour, rng)),
    ]


def not_drawn(drawn: Name, there: set[str], rng: Rng) -> Name:
    """A mark of another colour or another shape than those that are there."""
    if drawn.colour is not None and rng.randint(2):
        colours = [c for c in COLOURS if Name(drawn.style, c).bare not in there]
        return Name(drawn.style, colours[rng.randint(len(colours))])
    return Name(_other_styles(drawn.style, rng)[0], drawn.colour)


def _other_styles(style: Style, rng: Rng) -> list[Style]:
    """The other shapes, those left out that look alike, in chance order."""
    shapes = [
        shape
        for shape in Shape
        if shape is not style.shape and frozenset({shape, style.shape}) not in LOOK_ALIKE
    ]
    return [default_style(shapes[i]) for i in rng.permutation(len(shapes))]
