"""The plan of a set's questions: kinds, styles and absent marks, spread evenly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

import numpy as np

from vlmeval_findit.benchmarks.vpbench import QuestionKind
from vlmeval_findit.marks import COLOURS, CONTRAST, STYLES, Shape, Style

Rng = np.random.RandomState  # numpy has promised never to change its streams

KINDS = (
    QuestionKind.EXISTENCE,
    QuestionKind.COUNTING,
    QuestionKind.LOCALISATION,
    QuestionKind.REFERENCE,
)
# Line widths in pixels. A line of one pixel is lost when an image is made smaller.
WIDTHS = (2, 3, 4, 6)

# A point is four times as wide, and must differ from the dots of an image.
_LEAST_WIDTH = {Shape.POINT: 3}
MOST_MARKS = 4

# Shapes that need more than a box
NEED_OUTLINES = frozenset({Shape.MASK, Shape.CONTOUR, Shape.SCRIBBLE})
ABSENT_ONE_IN = 8


class Fields(Enum):
    """Number of equal fields across and down an image."""

    FOUR = 2
    NINE = 3


class Absence(Enum):
    """Whether the option that the mark is absent is offered, and whether it is right."""

    NOT_OFFERED = "not offered"
    OFFERED = "offered"
    TRUE = "true"


class Form(Enum):
    """Wording of a question, if its kind has several."""

    ONLY = "only"
    IS_THERE = "is there"
    WHICH = "which"


@dataclass(frozen=True, slots=True)
class Slot:
    """A planned question; ``marks`` is the number of marks that it asks for."""

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
    """Plan questions with all properties spread evenly.

    One of eight asks for a mark that is not there. The option for that is in four times as many
    questions with four options, and in all with two, so that its presence reveals nothing.

    Args:
        count: number of questions.
        seed: of all random choices.
        shapes: shapes that may be drawn.
    """
    rng = np.random.RandomState([seed, count])
    ordered = spread(KINDS, count, rng)
    styles = _styles(spread(shapes, count, rng), spread(WIDTHS, count, rng))
    colours = spread((*COLOURS, CONTRAST), count, rng)
    slots = []
    for i, (kind, turn) in enumerate(zip(ordered, _turns(ordered), strict=True)):
        is_even = turn % 2 == 0
        form = Form.ONLY
        if kind is QuestionKind.EXISTENCE:
            form = Form.IS_THERE if is_even else Form.WHICH
        fields = Fields.NINE if is_even else Fields.FOUR
        slots.append(Slot(i, kind, form, styles[i], colours[i], Absence.NOT_OFFERED, 1, fields))
    counted = [slot.number for slot in slots if slot.kind is QuestionKind.COUNTING]
    amounts = dict(zip(counted, spread(range(1, MOST_MARKS + 1), len(counted), rng), strict=True))
    absences = _absences(slots, rng)
    return [
        replace(slot, marks=amounts.get(slot.number, 1), absence=absences[slot.number])
        for slot in slots
    ]


def spread(values: Iterable[Value], count: int, rng: Rng) -> list[Value]:
    """Return values in random order, each equally often, or once more.

    >>> sorted(spread("abc", 4, np.random.RandomState(0)))
    ['a', 'a', 'b', 'c']
    """
    known = list(values)
    many = [known[i % len(known)] for i in range(count)]
    return [many[i] for i in rng.permutation(count)]


def _styles(shapes: Sequence[Shape], widths: Sequence[int]) -> list[Style]:
    """Return a style for every shape, with its variants in turn."""
    used: Counter[Shape] = Counter()
    styles = []
    for shape, width in zip(shapes, widths, strict=True):
        variants = list(STYLES[shape])
        wide = max(width, _LEAST_WIDTH.get(shape, width))
        styles.append(Style(shape, variants[used[shape] % len(variants)], wide))
        used[shape] += 1
    return styles


def _turns(kinds: Sequence[QuestionKind]) -> list[int]:
    """Return how many of the same kind come before each."""
    counts: Counter[QuestionKind] = Counter()
    turns = []
    for kind in kinds:
        turns.append(counts[kind])
        counts[kind] += 1
    return turns


def _absences(slots: Sequence[Slot], rng: Rng) -> list[Absence]:
    absences = [slot.absence for slot in slots]
    shuffled = [slots[i] for i in rng.permutation(len(slots))]
    yes_no = [slot.number for slot in shuffled if slot.form is Form.IS_THERE]
    four = [slot for slot in shuffled if slot.form is not Form.IS_THERE]
    # One of every kind, then the next of every kind.
    turns = _turns([slot.kind for slot in four])
    rest = [four[i].number for i in sorted(range(len(four)), key=turns.__getitem__)]
    absent = round(len(slots) / ABSENT_ONE_IN)
    yes_no_absent = min(len(yes_no) // 2, absent)
    for place, number in enumerate(yes_no):
        # With two options, "no" is always offered.
        absences[number] = Absence.TRUE if place < yes_no_absent else Absence.OFFERED
    among_four = absent - yes_no_absent
    for number in rest[:among_four]:
        absences[number] = Absence.TRUE
    for number in rest[among_four : 4 * among_four]:
        absences[number] = Absence.OFFERED
    return absences
