"""A set of questions about marks, as rows of a table."""

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
from vlmeval_findit.benchmarks.vpbench import LETTERS, QuestionKind, VPQuery
from vlmeval_findit.marks import CONTRAST, STYLES, Shape, Style, default_style

_MOST_READ = 12  # Images that are read before an easier question is asked


def questions(
    images: Sequence[AnnotatedImage], count: int, seed: int, shapes: Sequence[Shape] = tuple(Shape)
) -> Iterator[ShownQuestion]:
    """Yield the questions of a set, in order, without those that no image allows."""
    search = _Search(images)
    for slot in plan(count, seed, shapes):
        shown = search.find(slot, np.random.RandomState([seed, count, slot.number]))
        if shown is not None:
            yield shown


def lettered(posed_marks: Sequence[PosedMarks], seed: int) -> list[str]:
    """Return the letter of every right answer: each of A to D equally often, or once more.

    Questions with two options have A and B in turn, separately for "yes" and for "no".
    """
    count = len(posed_marks)
    share = {letter: (count + 3 - place) // 4 for place, letter in enumerate(LETTERS)}
    letters = [""] * len(posed_marks)
    turns: dict[str, int] = {}
    for i, question in enumerate(posed_marks):
        if len(question.wrong) + 1 < len(LETTERS):
            # "Yes" begins with A, "no" with B, or the other way round.
            turn = turns.setdefault(question.right, len(turns))
            letters[i] = LETTERS[turn % (len(question.wrong) + 1)]
            turns[question.right] = turn + 1
            share[letters[i]] -= 1
    rest: list[str] = []
    for letter in LETTERS:
        rest += [letter] * share[letter]
    without_letter = [i for i, letter in enumerate(letters) if not letter]
    rng = np.random.RandomState([seed, len(posed_marks)])
    shuffled = spread(rest, len(without_letter), rng)
    for i, letter in zip(without_letter, shuffled, strict=True):
        letters[i] = letter
    return letters


def options_of(question: PosedMarks, letter: str) -> tuple[tuple[str, str], ...]:
    """Return (letter, text) of every option, the right one at ``letter``."""
    texts = list(question.wrong)
    texts.insert(LETTERS.index(letter), question.right)
    return tuple(zip(LETTERS, texts, strict=False))


class _Search:
    """Search for an image of each question: those that were used least first."""

    def __init__(self, images: Sequence[AnnotatedImage]) -> None:
        self._images = images
        self._classes = ClassCounts(images)
        self._used: Counter[str] = Counter()
        self._fields: Counter[str] = Counter()

    def find(self, slot: Slot, rng: Rng) -> ShownQuestion | None:
        for easier in easier_slots(slot):
            for field in self._fields_to_try(easier):
                shown = self._first(easier, field, rng)
                if shown is not None:
                    self._used[shown.posed.image] += 1
                    if field is not None:
                        self._fields[field] += 1
                    return shown
        return None

    def _fields_to_try(self, slot: Slot) -> Sequence[str | None]:
        """Return the fields in which an object may lie; those that were asked for least first."""
        if slot.kind is not QuestionKind.LOCALISATION:
            return [None]
        return sorted(FIELD_NAMES[slot.fields].values(), key=lambda name: self._fields[name])

    def _first(self, slot: Slot, field: str | None, rng: Rng) -> ShownQuestion | None:
        shuffled = rng.permutation(len(self._images))
        order = sorted(shuffled, key=lambda i: self._used[self._images[i].name])
        read = 0
        for i in order:
            image = self._images[i]
            marker: Marker | None = None
            for choice in choices(slot, image, field, rng):
                if marker is None:
                    marker = marker_of(slot, image, image.read())
                    read += 1
                shown = posed(slot, image, marker, choice, self._classes, rng)
                if shown is not None:
                    return shown
            if read == _MOST_READ:
                return None
        return None


def easier_slots(slot: Slot) -> Iterator[Slot]:
    """Yield a question as planned, then easier questions.

    They have thinner lines, other variants, contrast, fewer marks, another shape.
    """
    style = slot.style
    widths = [width for width in (*reversed(WIDTHS), 1) if width < style.width]
    styles = [style, *(replace(style, width=width) for width in widths)]
    thin = min(style.width, WIDTHS[0])
    others = [variant for variant in STYLES[style.shape] if variant != style.variant]
    styles += [Style(style.shape, variant, thin) for variant in others]
    for marks in range(slot.marks, 0, -1):
        for variant_style in styles:
            yield replace(slot, style=variant_style, marks=marks)
        yield replace(slot, style=replace(style, width=thin), colour=CONTRAST, marks=marks)
    first = slot.number % len(_ANYWHERE)
    for shape in (*_ANYWHERE[first:], *_ANYWHERE[:first]):
        plain = replace(default_style(shape), width=WIDTHS[1])
        yield replace(slot, style=plain, colour=CONTRAST, marks=1)


# Shapes that most objects can be marked with
_ANYWHERE = (Shape.BOX, Shape.OVAL, Shape.ARROW, Shape.POINT)


def mark_rows(posed_marks: Sequence[PosedMarks], seed: int, source: str) -> list[VPQuery]:
    """Return questions as rows of a table."""
    letters = lettered(posed_marks, seed)
    return [
        VPQuery(
            index=index,
            label=posed.question,
            images=(image_name(index),),
            hint=posed.hint,
            question=posed.question,
            options=options_of(posed, letter),
            answer=letter,
            amount=str(posed.amount),
            shapes=(posed.slot.style.shape.value,),
            properties=_properties(posed.slot.style, posed.slot.colour),
            kind=posed.slot.kind,
            absent=posed.slot.absence is Absence.TRUE,
            source=source,
            cluster=posed.image,
        )
        for index, (posed, letter) in enumerate(zip(posed_marks, letters, strict=True), 1)
    ]


def _properties(style: Style, colour: str) -> tuple[str, ...]:
    """Return colour, variant and line width, as far as the shape has them."""
    has_width = STYLES[style.shape][style.variant].has_width
    width = f"width {style.width}" if has_width else ""
    return tuple(text for text in (colour, style.variant, width) if text)


def image_name(index: int) -> str:
    """Return the file name of a row's image."""
    return f"{index:05d}.png"
