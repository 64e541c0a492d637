"""A whole set of questions: every one finds a picture, then right answers find their letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from training.vp_questions.annotated import AnnotatedPicture, Classes, Rng
from training.vp_questions.asking import FEWEST_CLASSES, Posed, Shown, choices, marker_of, posed
from training.vp_questions.fields import NAMES
from training.vp_questions.marking import Marker
from training.vp_questions.plan import KINDS, WIDTHS, Slot, plan, spread
from training.vp_questions.sources import Source
from vlmeval_findit.benchmarks.vpbench.vp_query import LETTERS, QuestionKind
from vlmeval_findit.marks.style import CONTRAST, STYLES, Shape, Style, default_style

_MOST_READ = 12
"""Pictures that are read before a question is put in an easier way."""


def questions(source: Source, count: int, seed: int) -> Iterator[Shown]:
    """The questions of a set, in order; one for which there is no picture is left out.

    Args:
        source: the pictures.
        count: how many questions are wanted.
        seed: what is chance follows from it.
    """
    search = _Search(source.pictures)
    for slot in plan(count, seed, source.shapes, kinds_of(source)):
        found = search.find(slot, np.random.RandomState([seed, count, slot.number]))
        if found is not None:
            yield found


def kinds_of(source: Source) -> tuple[QuestionKind, ...]:
    """What can be asked: with few classes nobody can be asked which object is marked."""
    enough = len(Classes(source.pictures)) >= FEWEST_CLASSES
    return tuple(kind for kind in KINDS if enough or kind is not QuestionKind.REFERENCE)


def lettered(asked: Sequence[Posed], seed: int) -> list[str]:
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


def options_of(one: Posed, letter: str) -> tuple[tuple[str, str], ...]:
    """(letter, text), the right option at its letter."""
    texts = list(one.wrong)
    texts.insert(LETTERS.index(letter), one.right)
    return tuple(zip(LETTERS, texts, strict=False))


class _Search:
    """Pictures for questions: those that were used least are tried first."""

    def __init__(self, pictures: Sequence[AnnotatedPicture]) -> None:
        self._pictures = pictures
        self._classes = Classes(pictures)
        self._used: Counter[str] = Counter()
        self._fields: Counter[str] = Counter()

    def find(self, slot: Slot, rng: Rng) -> Shown | None:
        for easier in easier_ways(slot):
            for field in self._wanted(easier):
                found = self._first(easier, field, rng)
                if found is not None:
                    self._used[found.posed.picture] += 1
                    if field is not None:
                        self._fields[field] += 1
                    return found
        return None

    def _wanted(self, slot: Slot) -> Sequence[str | None]:
        """The fields in which an object may lie; those that were asked for least first."""
        if slot.kind is not QuestionKind.LOCALISATION:
            return [None]
        return sorted(NAMES[slot.fields].values(), key=lambda name: self._fields[name])

    def _first(self, slot: Slot, field: str | None, rng: Rng) -> Shown | None:
        chance = rng.permutation(len(self._pictures))
        order = sorted(chance, key=lambda i: self._used[self._pictures[i].name])
        read = 0
        for i in order:
            picture = self._pictures[i]
            marker: Marker | None = None
            for choice in choices(slot, picture, field, rng):
                if marker is None:
                    marker = marker_of(slot, picture, picture.read())
                    read += 1
                found = posed(slot, picture, marker, choice, self._classes, rng)
                if found is not None:
                    return found
            if read == _MOST_READ:
                return None
        return None


def easier_ways(slot: Slot) -> Iterator[Slot]:
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
