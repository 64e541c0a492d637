"""Rows of stage 2 as queries: with the marks of a choice, or with places in words."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....marks.style import COLOURS, Shape
from ..best_marks import Choice
from ..query import Kind, VPQuery
from . import phrases
from .pictures import MarkedPicture
from .question import Hint
from .row import TASKS, Role, Stage2Row


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, and the marked pictures that it shows."""

    query: VPQuery
    pictures: tuple[MarkedPicture, ...] = ()


def unsaid(row: Stage2Row) -> VPQuery:
    """A row before it is said how its regions are named."""
    return VPQuery(
        index=row.index,
        label=row.label,
        images=row.images,
        hint="",
        question=row.label,
        options=row.options,
        answer=row.answer,
        amount=str(len(row.marks)),
        shapes=(),
        properties=(),
        kind=Kind.UNKNOWN,
        absent=False,
        source=TASKS[row.source],
        photograph=row.images[0],
    )


def colour_of(role: Role, chosen: str) -> str:
    """The colour of a mark: that of the object is another than the subject's.

    >>> colour_of(Role.SUBJECT, "blue"), colour_of(Role.OBJECT, "blue")
    ('blue', 'black')
    """
    colours = list(COLOURS)
    after = colours[(colours.index(chosen) + 1) % len(colours)]
    return after if role is Role.OBJECT else chosen


def with_mark(row: Stage2Row, choice: Choice, hint: Hint) -> Asked:
    """A row that shows its regions by marks of one shape."""
    coloured = [(mark, colour_of(mark.role, choice.colour)) for mark in row.marks]
    shown, pictures = list(row.images), []
    for at in sorted({mark.picture for mark in row.marks}):
        here = [(mark, colour) for mark, colour in coloured if mark.picture == at]
        marks, colours = zip(*here, strict=True)
        made = MarkedPicture(row.images[at], marks, choice.shape, colours)
        pictures.append(made)
        shown[at] = made.name
    of_marks = [colour for _, colour in coloured]
    roles = [mark.role for mark in row.marks]
    words = phrases.mark_words(choice.shape, of_marks)
    said = phrases.mark_described(choice.shape, of_marks, roles) if hint is Hint.DESCRIBED else ""
    query = replace(
        unsaid(row),
        images=tuple(shown),
        hint=said,
        question=phrases.filled(row.label, words),
        shapes=(choice.shape.value,),
        properties=tuple(dict.fromkeys(of_marks)),
    )
    return Asked(query, tuple(pictures))


def in_words(row: Stage2Row, hint: Hint) -> VPQuery:
    """A row that names its regions by their places.

    Where the question has no span for them, they stand above it.
    """
    words = phrases.place_words(row)
    above = [phrases.PLACES_DESCRIBED] * (hint is Hint.DESCRIBED)
    if not phrases.SPAN.search(row.label):
        above.append(f"The question is about the {' and the '.join(words)}.")
    return replace(unsaid(row), hint=" ".join(above), question=phrases.filled(row.label, words))


def without_outline(row: Stage2Row, shape: Shape) -> int:
    """How many marks of a row follow the box alone, though their shape follows outlines."""
    if shape not in (Shape.MASK, Shape.CONTOUR, Shape.SCRIBBLE):
        return 0
    return sum(not mark.outlines for mark in row.marks)
