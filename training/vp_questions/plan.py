"""What is to be asked, before any image is looked at: kinds, styles and absent marks, spread
evenly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

import numpy as np

from vlmeval_findit.benchmarks.vpbench.vp_query import QuestionKind
from vlmeval_findit.marks.style import COLOURS, CONTRAST, STYLES, Shape, Style

Rng = np.random.RandomState
"""numpy has promised never to change its streams."""

KINDS = (
    QuestionKind.EXISTENCE,
    QuestionKind.COUNTING,
    QuestionKind.LOCALISATION,
    QuestionKind.REFERENCE,
)
WIDTHS = (2, 3, 4, 6)
"""Line widths in pixels.  A line of one pixel is lost where an image is made smaller."""
_LEAST_WIDTH = {Shape.POINT: 3}
"""A point is four times as wide, and is still to be told from the dots of an image."""
MOST_MARKS = 4
NEED_OUTLINES = frozenset({Shape.MASK, Shape.CONTOUR, Shape.SCRIBBLE})
"""Shapes that a box alone cannot carry."""
ABSENT_ONE_IN = 8


class Fields(Enum):
    """Into how many equal fields an image is divided, across and down alike."""

    FOUR = 2
    NINE = 3


class Absence(Enum):
    """Whether an option says that there is no such mark, and whether that is right."""

    NOT_OFFERED = "not offered"
    OFFERED = "offered"
    TRUE = "true"


class Form(Enum):
    """How a question is put, where its kind can be in more than one way."""

    ONLY = "only"
    IS_THERE = "is there"
    WHICH = "which"


@dataclass(frozen=True, slots=True)
class Slot:
    """A question that is to be: ``marks`` is how many of the asked mark are drawn."""

    number: int
    kind: QuestionKind
    form: Form
    style: Style
    colour: str
    absence: Absence
    marks: int
    fields: Fields


Value = TypeVar("Value")


def plan(count: int, seed: int, shapes: Sequence[Shape]) -> list[Slot]:
    """So many questions, everything in them spread evenly.

    One of eight asks for a mark that is not there.  The option that says so stands in four times as
    many questions with four options, and in all with two: by itself it says nothing.

    Args:
        count: of questions.
        seed: what is chance follows from it.
        shapes: which may be drawn.
    """
    rng = np.random.RandomState([seed, count])
    ordered = spread(KINDS, count, rng)
    styles = _styles(spread(shapes, count, rng), spread(WIDTHS, count, rng))
    colours = spread((*COLOURS, CONTRAST), count, rng)
    slots = [
        Slot(i, kind, form, styles[i], colours[i], Absence.NOT_OFFERED, 1, fields)
        for i, (kind, form, fields) in enumerate(
            zip(ordered, _forms(ordered), _alternating(ordered), strict=True)
        )
    ]
    counted = [slot.number for slot in slots if slot.kind is QuestionKind.COUNTING]
    amounts = dict(zip(counted, spread(range(1, MOST_MARKS + 1), len(counted), rng), strict=True))
    absences = _absences(slots, rng)
    return [
        replace(slot, marks=amounts.get(slot.number, 1), absence=absences[slot.number])
        for slot in slots
    ]


def spread(values: Iterable[Value], count: int, rng: Rng) -> list[Value]:
    """Values in chance order, each as often as the others or once more.

    >>> sorted(spread("abc", 4, np.random.RandomState(0)))
    ['a', 'a', 'b', 'c']
    """
    known = list(values)
    many = [known[i % len(known)] for i in range(count)]
    return [many[i] for i in rng.permutation(count)]


def _styles(shapes: Sequence[Shape], widths: Sequence[int]) -> list[Style]:
    """Every shape with its variants in turn."""
    used: Counter[Shape] = Counter()
    styles = []
    for shape, width in zip(shapes, widths, strict=True):
        variants = list(STYLES[shape])
        wide = max(width, _LEAST_WIDTH.get(shape, width))
        styles.append(Style(shape, variants[used[shape] % len(variants)], wide))
        used[shape] += 1
    return styles


def _forms(kinds: Sequence[QuestionKind]) -> list[Form]:
    """Existence is asked in two ways, in turn."""
    turns = _turns(kinds)
    ways = (Form.IS_THERE, Form.WHICH)
    return [
        ways[turn % 2] if kind is QuestionKind.EXISTENCE else Form.ONLY
        for kind, turn in zip(kinds, turns, strict=True)
    ]


def _alternating(kinds: Sequence[QuestionKind]) -> list[Fields]:
    return [(Fields.NINE, Fields.FOUR)[turn % 2] for turn in _turns(kinds)]


def _turns(kinds: Sequence[QuestionKind]) -> list[int]:
    """How many of its kind come before each."""
    seen: Counter[QuestionKind] = Counter()
    turns = []
    for kind in kinds:
        turns.append(seen[kind])
        seen[kind] += 1
    return turns


def _absences(slots: Sequence[Slot], rng: Rng) -> list[Absence]:
    found = [slot.absence for slot in slots]
    shuffled = [slots[i] for i in rng.permutation(len(slots))]
    yes_no = [slot.number for slot in shuffled if slot.form is Form.IS_THERE]
    four = [slot for slot in shuffled if slot.form is not Form.IS_THERE]
    # One of every kind, then the next of every kind.
    turns = _turns([slot.kind for slot in four])
    rest = [four[i].number for i in sorted(range(len(four)), key=turns.__getitem__)]
    absent = round(len(slots) / ABSENT_ONE_IN)
    said_no = min(len(yes_no) // 2, absent)
    for place, number in enumerate(yes_no):
        # Two options: the one that says no is there anyway.
        found[number] = Absence.TRUE if place < said_no else Absence.OFFERED
    among_four = absent - said_no
    for number in rest[:among_four]:
        found[number] = Absence.TRUE
    for number in rest[among_four : 4 * among_four]:
        found[number] = Absence.OFFERED
    return found
