"""A whole set of questions about marks, as rows of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from training.vp_questions.asking import PosedMarks, ShownQuestion, choices, marker_of, posed
from training.vp_questions.images import AnnotatedImage, ClassCounts
from training.vp_questions.marking import Marker
from training.vp_questions.plan import WIDTHS, Absence, Rng, Slot, plan, spread
from training.vp_questions.wording import FIELD_NAMES
from vlmeval_findit.benchmarks.vpbench.vp_query import LETTERS, QuestionKind, VPQuery
from vlmeval_findit.marks.style import CONTRAST, STYLES, Shape, Style, default_style

_MOST_READ = 12
"""Images that are read before a question is put in an easier way."""


def questions(
    images: Sequence[AnnotatedImage], count: int, seed: int, shapes: Sequence[Shape] = tuple(Shape)
) -> Iterator[ShownQuestion]:
    """Yield the questions of a set, in order; one for which there is no image is left out.

    Args:
        images: to ask about.
        count: how many questions are wanted.
        seed: of all random choices.
        shapes: of marks.
    """
    search = _Search(images)
    for slot in plan(count, seed, shapes):
        shown = search.find(slot, np.random.RandomState([seed, count, slot.number]))
        if shown is not None:
            yield shown


def lettered(asked: Sequence[PosedMarks], seed: int) -> list[str]:
    """The letter of every right answer: each of A to D as often as the others or once more.

    Questions with two options have A and B in turn, those that say yes and those that say no.
    """
    share = {
        letter: (len(asked) + LETTERS[::-1].index(letter)) // len(LETTERS) for letter in LETTERS
    }
    letters = [""] * len(asked)
    turns: dict[str, int] = {}
    for i, one in enumerate(asked):
        if len(one.wrong) + 1 < len(LETTERS):
            # One answer begins with A, the other with B.
            turn = turns.setdefault(one.right, len(turns))
            letters[i] = LETTERS[turn % (len(one.wrong) + 1)]
            turns[one.right] = turn + 1
            share[letters[i]] -= 1
    left = [letter for letter in LETTERS for _ in range(share[letter])]
    open_ = [i for i, letter in enumerate(letters) if not letter]
    rng = np.random.RandomState([seed, len(asked)])
    for i, letter in zip(open_, spread(left, len(open_), rng), strict=True):
        letters[i] = letter
    return letters


def options_of(one: PosedMarks, letter: str) -> tuple[tuple[str, str], ...]:
    """(letter, text), the right option at its letter."""
    texts = list(one.wrong)
    texts.insert(LETTERS.index(letter), one.right)
    return tuple(zip(LETTERS, texts, strict=False))


class _Search:
    """Images for questions: those that were used least are tried first."""

    def __init__(self, images: Sequence[AnnotatedImage]) -> None:
        self._pictures = images
        self._classes = ClassCounts(images)
        self._used: Counter[str] = Counter()
        self._fields: Counter[str] = Counter()

    def find(self, slot: Slot, rng: Rng) -> ShownQuestion | None:
        for easier in easier_slots(slot):
            for field in self._wanted(easier):
                found = self._first(easier, field, rng)
                if found is not None:
                    self._used[found.posed.image] += 1
                    if field is not None:
                        self._fields[field] += 1
                    return found
        return None

    def _wanted(self, slot: Slot) -> Sequence[str | None]:
        """The fields in which an object may lie; those that were asked for least first."""
        if slot.kind is not QuestionKind.LOCALISATION:
            return [None]
        return sorted(FIELD_NAMES[slot.fields].values(), key=lambda name: self._fields[name])

    def _first(self, slot: Slot, field: str | None, rng: Rng) -> ShownQuestion | None:
        chance = rng.permutation(len(self._pictures))
        order = sorted(chance, key=lambda i: self._used[self._pictures[i].name])
        read = 0
        for i in order:
            image = self._pictures[i]
            marker: Marker | None = None
            for choice in choices(slot, image, field, rng):
                if marker is None:
                    marker = marker_of(slot, image, image.read())
                    read += 1
                found = posed(slot, image, marker, choice, self._classes, rng)
                if found is not None:
                    return found
            if read == _MOST_READ:
                return None
        return None


def easier_slots(slot: Slot) -> Iterator[Slot]:
    """A question as planned, then with thinner lines, of other variants, in contrast, of fewer
    marks, of another shape.
    """
    style = slot.style
    widths = [width for width in (*reversed(WIDTHS), 1) if width < style.width]
    styles = [style, *(replace(style, width=width) for width in widths)]
    thin = min(style.width, WIDTHS[0])
    others = [variant for variant in STYLES[style.shape] if variant != style.variant]
    styles += [Style(style.shape, variant, thin) for variant in others]
    for marks in range(slot.marks, 0, -1):
        for one in styles:
            yield replace(slot, style=one, marks=marks)
        yield replace(slot, style=replace(style, width=thin), colour=CONTRAST, marks=marks)
    first = slot.number % len(_ANYWHERE)
    for shape in (*_ANYWHERE[first:], *_ANYWHERE[:first]):
        plain = replace(default_style(shape), width=WIDTHS[1])
        yield replace(slot, style=plain, colour=CONTRAST, marks=1)


_ANYWHERE = (Shape.BOX, Shape.OVAL, Shape.ARROW, Shape.POINT)
"""Shapes that most objects can be marked with."""


def mark_rows(asked: Sequence[PosedMarks], seed: int, source: str) -> list[VPQuery]:
    """Questions as rows of a table."""
    letters = lettered(asked, seed)
    return [
        VPQuery(
            index=index,
            label=one.question,
            images=(image_name(index),),
            hint=one.hint,
            question=one.question,
            options=options_of(one, letter),
            answer=letter,
            amount=str(one.amount),
            shapes=(one.slot.style.shape.value,),
            properties=_properties(one.slot.style, one.slot.colour),
            kind=one.slot.kind,
            absent=one.slot.absence is Absence.TRUE,
            source=source,
            cluster=one.image,
        )
        for index, (one, letter) in enumerate(zip(asked, letters, strict=True), 1)
    ]


def _properties(style: Style, colour: str) -> tuple[str, ...]:
    """Colour, variant and line width, as far as the shape has them."""
    has_width = STYLES[style.shape][style.variant].has_width
    known = (colour, style.variant, f"width {style.width}" if has_width else "")
    return tuple(filter(None, known))


def image_name(index: int) -> str:
    """The file of a row's image."""
    return f"{index:05d}.png"
