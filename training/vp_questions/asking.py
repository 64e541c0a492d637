"""A question that is to be and a picture: the question with its marked picture, if it can be asked.

First the objects to mark are chosen by their boxes alone (:func:`choices`), then the picture is
read, marked and asked about (:func:`posed`).  Either gives nothing where the picture does not do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from training.vp_questions import wording
from training.vp_questions.annotated import (
    AnnotatedPicture,
    Classes,
    Object,
    Pixels,
    Rng,
    Seen,
    told_apart,
)
from training.vp_questions.fields import NAMES, field_of
from training.vp_questions.marking import Hidden, Marked, Marker, lies_under, region_of
from training.vp_questions.other_marks import not_drawn, other_colour, others
from training.vp_questions.plan import MOST_MARKS, Absence, Form, Slot
from training.vp_questions.wording import ABSENT, NO, YES, Name
from vlmeval_findit.benchmarks.vpbench.vp_query import QuestionKind
from vlmeval_findit.boxes.representation import Corners
from vlmeval_findit.marks.region import Region
from vlmeval_findit.marks.style import CONTRAST, Shape

LEAST_SIDE = 14.0
"""Pixels of an object that can be marked."""
MOST_AREA = 0.7
"""Of the picture: what fills it need not be marked."""
WRONG = 3
"""Options that are not right."""
FEWEST_CLASSES = 1 + WRONG
"""With fewer nobody can be asked which object is marked."""


class Choice(NamedTuple):
    """Objects of a picture to mark, by their places; the last ``decoys`` in another colour."""

    places: tuple[int, ...]
    decoys: int
    field: str | None


@dataclass(frozen=True, slots=True)
class Posed:
    """A question with its right option and the others, and what is marked in which picture.

    ``amount`` is how many marks there are, of whatever colour.
    """

    slot: Slot
    picture: str
    hint: str
    question: str
    right: str
    wrong: tuple[str, ...]
    amount: int
    field: str | None
    marked: tuple[Object, ...]


class Shown(NamedTuple):
    """A question with its picture, marks drawn: where, and in which colours."""

    posed: Posed
    pixels: Pixels
    regions: tuple[Region, ...]
    colours: tuple[str, ...]


# --- what to mark ---------------------------------------------------------------------------------


def choices(slot: Slot, picture: AnnotatedPicture, field: str | None, rng: Rng) -> Iterator[Choice]:
    """The objects that could be marked, in chance order, going by the boxes of a picture.

    Args:
        slot: what is to be asked.
        picture: of what.
        field: where the object must lie, if that is asked.
        rng: chance.
    """
    alone = [i for i, _ in enumerate(picture.objects) if can_be_marked(picture, i)]
    alone = [alone[i] for i in rng.permutation(len(alone))]
    if slot.kind is QuestionKind.COUNTING:
        # Every second is to be counted beside a mark of another colour.
        decoys = int(slot.number % 2 and slot.colour != CONTRAST and slot.marks < MOST_MARKS)
        for many in (slot.marks + decoys, slot.marks):
            if many <= len(alone):
                for _ in range(_TRIED):
                    places = tuple(alone[i] for i in rng.permutation(len(alone))[:many])
                    yield Choice(places, many - slot.marks, None)
        return
    for place in alone:
        box = picture.objects[place].box
        if slot.style.shape in _POINTING and is_partly_hidden(picture, place):
            continue
        if slot.kind is not QuestionKind.LOCALISATION:
            yield Choice((place,), 0, None)
        elif field_of(box, picture.width, picture.height, slot.fields) == field:
            yield Choice((place,), 0, field)


_TRIED = 4
"""Ways of choosing several objects of a picture."""


def can_be_marked(picture: AnnotatedPicture, place: int) -> bool:
    """Whether an object is neither tiny nor all of the picture, and alone of its class there."""
    target = picture.objects[place]
    x1, y1, x2, y2 = target.box
    if min(x2 - x1, y2 - y1) < LEAST_SIDE:
        return False
    if (x2 - x1) * (y2 - y1) > MOST_AREA * picture.width * picture.height:
        return False
    return not any(
        other.label == target.label and _meet(other.box, target.box)
        for i, other in enumerate(picture.objects)
        if i != place
    )


_POINTING = (Shape.ARROW, Shape.TAG, Shape.POINT, Shape.SCRIBBLE)
"""Shapes that say a place, not how far an object reaches."""


def is_partly_hidden(picture: AnnotatedPicture, place: int) -> bool:
    """Whether another object lies over a part of this one, or this one over a part of it.

    A part of an object, or what it is a part of, lies in the other as a whole.
    """
    box = picture.objects[place].box
    return any(
        _meet(other.box, box)
        and _common(other.box, box) < _WHOLE * min(_area(other.box), _area(box))
        for i, other in enumerate(picture.objects)
        if i != place
    )


_WHOLE = 0.9


def _meet(a: Corners, b: Corners) -> bool:
    return _common(a, b) > 0.0


def _common(a: Corners, b: Corners) -> float:
    across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return max(across, 0.0) * max(down, 0.0)


def _area(box: Corners) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


# --- what to ask ----------------------------------------------------------------------------------


def marker_of(slot: Slot, picture: AnnotatedPicture, seen: Seen) -> Marker:
    """Draws the marks of a question on its picture."""
    regions = [
        region_of(one.box, outlines, picture.width, picture.height)
        for one, outlines in zip(picture.objects, seen.outlines, strict=True)
    ]
    hidden = Hidden.LITTLE if slot.kind is QuestionKind.REFERENCE else Hidden.SOME
    return Marker(seen.pixels, regions, slot.style, hidden)


def posed(
    slot: Slot,
    picture: AnnotatedPicture,
    marker: Marker,
    choice: Choice,
    classes: Classes,
    rng: Rng,
) -> Shown | None:
    """The question about chosen objects; None where it would have no clear answer."""
    targets = [picture.objects[i] for i in choice.places]
    asked = len(targets) - choice.decoys
    colours = [slot.colour] * asked + [other_colour(slot.colour, rng)] * choice.decoys
    found = marker.marked(choice.places, colours)
    if found is None or not _are_alone(picture, choice, found):
        return None
    drawn = Name(slot.style, found.colour if len(targets) == 1 else _said(slot.colour))
    there = {name.bare for name in (drawn, *(Name(slot.style, c) for c in colours[asked:]))}
    named = not_drawn(drawn, there, rng) if slot.absence is Absence.TRUE else drawn
    options = _options(slot, picture, choice, classes, found, drawn, rng)
    if options is None:
        return None
    right, wrong = options
    question = Posed(
        slot,
        picture.name,
        wording.hint_of(slot.form, named),
        wording.question_of(slot.kind, slot.form, named, slot.fields),
        right,
        wrong,
        len(targets),
        choice.field,
        tuple(targets),
    )
    return Shown(question, found.pixels, found.regions, tuple(colours))


def _said(colour: str) -> str | None:
    return None if colour == CONTRAST else colour


def _are_alone(picture: AnnotatedPicture, choice: Choice, found: Marked) -> bool:
    """Whether no other object of a marked class lies under its mark."""
    for place, cover in zip(choice.places, found.covers, strict=True):
        target = picture.objects[place]
        for i, other in enumerate(picture.objects):
            same = i != place and other.label == target.label
            if same and lies_under(other.box, cover, target.box):
                return False
    return True


def _options(
    slot: Slot,
    picture: AnnotatedPicture,
    choice: Choice,
    classes: Classes,
    found: Marked,
    drawn: Name,
    rng: Rng,
) -> tuple[str, tuple[str, ...]] | None:
    """The right option and the wrong ones; None where there are not enough of these."""
    if slot.form is Form.IS_THERE:
        return (NO, (YES,)) if slot.absence is Absence.TRUE else (YES, (NO,))
    if slot.form is Form.WHICH:
        right = drawn.one
        wrong = [name.one for name in others(drawn, rng)]
    elif slot.kind is QuestionKind.COUNTING:
        counted = len(choice.places) - choice.decoys
        right = str(counted)
        wrong = [str(n) for n in range(1, MOST_MARKS + 1) if n != counted]
        wrong = [wrong[i] for i in rng.permutation(len(wrong))]
    elif slot.kind is QuestionKind.LOCALISATION:
        right = choice.field or ""
        wrong = [name for name in NAMES[slot.fields].values() if name != right]
        wrong = [wrong[i] for i in rng.permutation(len(wrong))]
    else:
        right = picture.objects[choice.places[0]].label
        wrong = _other_classes(picture, choice.places[0], classes, found, rng)
    if len(wrong) < WRONG:
        return None
    if slot.absence is Absence.TRUE:
        # What would be right if it were asked of the mark that is there stands among them.
        shown = wrong if slot.form is Form.WHICH else [right, *wrong]
        return ABSENT, tuple(shown[:WRONG])
    if slot.absence is Absence.OFFERED:
        return right, (*wrong[: WRONG - 1], ABSENT)
    return right, tuple(wrong[:WRONG])


def _other_classes(
    picture: AnnotatedPicture, place: int, classes: Classes, found: Marked, rng: Rng
) -> list[str]:
    """Classes that are not what is marked: of the picture first, then those often seen with it."""
    target = picture.objects[place]
    under = {
        other.label
        for other in picture.objects
        if lies_under(other.box, found.covers[0], target.box)
    }
    here = sorted({other.label for other in picture.objects} - under)
    here = [here[i] for i in rng.permutation(len(here))]
    away = [label for label in classes.likely_with(target.label) if label not in {*here, *under}]
    chosen: list[str] = []
    for label in (*here, *away):
        if told_apart(label, [target.label, *chosen]):
            chosen.append(label)
    return chosen
