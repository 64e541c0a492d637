"""A question that is to be and an image: the question with its marked image, if it can be asked.

First the objects to mark are chosen by their boxes alone (:func:`choices`), then the image is
read, marked and asked about (:func:`posed`).  Either gives nothing where the image does not do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from training.vp_questions import wording
from training.vp_questions.images import (
    AnnotatedImage,
    ClassCounts,
    LabelledBox,
    OutlinedPixels,
    Pixels,
)
from training.vp_questions.marking import Hidden, MarkedImage, Marker, lies_under, region_of
from training.vp_questions.plan import MOST_MARKS, Absence, Form, Rng, Slot
from training.vp_questions.wording import (
    ABSENT,
    FIELD_NAMES,
    NO,
    YES,
    MarkName,
    field_of,
    other_colour,
    other_marks,
    undrawn_mark,
)
from vlmeval_findit.benchmarks.vpbench.vp_query import QuestionKind
from vlmeval_findit.boxes.representation import Corners
from vlmeval_findit.marks.region import Region
from vlmeval_findit.marks.style import CONTRAST, Shape

LEAST_SIDE = 14.0
"""Pixels of an object that can be marked."""
MOST_AREA = 0.7
"""Of the image: what fills it need not be marked."""
WRONG = 3
"""Options that are not right."""


class MarkChoice(NamedTuple):
    """Objects of an image to mark, by their places; the last ``decoys`` in another colour."""

    places: tuple[int, ...]
    decoys: int
    field: str | None


@dataclass(frozen=True, slots=True)
class PosedMarks:
    """A question with its right option and the others, and what is marked in which image.

    ``amount`` is how many marks there are, of whatever colour.
    """

    slot: Slot
    image: str
    hint: str
    question: str
    right: str
    wrong: tuple[str, ...]
    amount: int
    field: str | None
    marked: tuple[LabelledBox, ...]


class ShownQuestion(NamedTuple):
    """A question with its image, marks drawn: where, and in which colours."""

    posed: PosedMarks
    pixels: Pixels
    regions: tuple[Region, ...]
    colours: tuple[str, ...]


# --- what to mark ---------------------------------------------------------------------------------


def choices(slot: Slot, image: AnnotatedImage, field: str | None, rng: Rng) -> Iterator[MarkChoice]:
    """The objects that could be marked, in chance order, going by the boxes of an image.

    Args:
        slot: what is to be asked.
        image: of what.
        field: where the object must lie, if that is asked.
        rng: chance.
    """
    alone = [i for i, _ in enumerate(image.objects) if can_be_marked(image, i)]
    alone = [alone[i] for i in rng.permutation(len(alone))]
    if slot.kind is QuestionKind.COUNTING:
        # Every second is to be counted beside a mark of another colour.
        decoys = int(slot.number % 2 and slot.colour != CONTRAST and slot.marks < MOST_MARKS)
        for many in (slot.marks + decoys, slot.marks):
            if many <= len(alone):
                for _ in range(_TRIED):
                    places = tuple(alone[i] for i in rng.permutation(len(alone))[:many])
                    yield MarkChoice(places, many - slot.marks, None)
        return
    for place in alone:
        box = image.objects[place].box
        if slot.style.shape in _POINTING and is_partly_hidden(image, place):
            continue
        if slot.kind is not QuestionKind.LOCALISATION:
            yield MarkChoice((place,), 0, None)
        elif field_of(box, image.width, image.height, slot.fields) == field:
            yield MarkChoice((place,), 0, field)


_TRIED = 4
"""Ways of choosing several objects of an image."""


def can_be_marked(image: AnnotatedImage, place: int) -> bool:
    """Whether an object is neither tiny nor all of the image, and alone of its class there."""
    target = image.objects[place]
    x1, y1, x2, y2 = target.box
    if min(x2 - x1, y2 - y1) < LEAST_SIDE:
        return False
    if (x2 - x1) * (y2 - y1) > MOST_AREA * image.width * image.height:
        return False
    return not any(
        other.label == target.label and _meet(other.box, target.box)
        for i, other in enumerate(image.objects)
        if i != place
    )


_POINTING = (Shape.ARROW, Shape.TAG, Shape.POINT, Shape.SCRIBBLE)
"""Shapes that say a place, not how far an object reaches."""


def is_partly_hidden(image: AnnotatedImage, place: int) -> bool:
    """Whether another object lies over a part of this one, or this one over a part of it.

    A part of an object, or what it is a part of, lies in the other as a whole.
    """
    box = image.objects[place].box
    return any(
        _meet(other.box, box)
        and _common(other.box, box) < _WHOLE * min(_area(other.box), _area(box))
        for i, other in enumerate(image.objects)
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


def marker_of(slot: Slot, image: AnnotatedImage, seen: OutlinedPixels) -> Marker:
    """Draws the marks of a question on its image."""
    regions = [
        region_of(one.box, outlines, image.width, image.height)
        for one, outlines in zip(image.objects, seen.outlines, strict=True)
    ]
    hidden = Hidden.LITTLE if slot.kind is QuestionKind.REFERENCE else Hidden.SOME
    return Marker(seen.pixels, regions, slot.style, hidden)


def posed(
    slot: Slot,
    image: AnnotatedImage,
    marker: Marker,
    choice: MarkChoice,
    classes: ClassCounts,
    rng: Rng,
) -> ShownQuestion | None:
    """The question about chosen objects; None where it would have no clear answer."""
    targets = [image.objects[i] for i in choice.places]
    asked = len(targets) - choice.decoys
    colours = [slot.colour] * asked + [other_colour(slot.colour, rng)] * choice.decoys
    found = marker.marked(choice.places, colours)
    if found is None or not _are_alone(image, choice, found):
        return None
    drawn = MarkName(slot.style, found.colour if len(targets) == 1 else _said(slot.colour))
    there = {name.bare for name in (drawn, *(MarkName(slot.style, c) for c in colours[asked:]))}
    named = undrawn_mark(drawn, there, rng) if slot.absence is Absence.TRUE else drawn
    options = _options(slot, image, choice, classes, found, drawn, rng)
    if options is None:
        return None
    right, wrong = options
    question = PosedMarks(
        slot,
        image.name,
        wording.hint_of(slot.form, named),
        wording.question_of(slot.kind, slot.form, named, slot.fields),
        right,
        wrong,
        len(targets),
        choice.field,
        tuple(targets),
    )
    return ShownQuestion(question, found.pixels, found.regions, tuple(colours))


def _said(colour: str) -> str | None:
    return None if colour == CONTRAST else colour


def _are_alone(image: AnnotatedImage, choice: MarkChoice, found: MarkedImage) -> bool:
    """Whether no other object of a marked class lies under its mark."""
    for place, cover in zip(choice.places, found.covers, strict=True):
        target = image.objects[place]
        for i, other in enumerate(image.objects):
            same = i != place and other.label == target.label
            if same and lies_under(other.box, cover, target.box):
                return False
    return True


def _options(
    slot: Slot,
    image: AnnotatedImage,
    choice: MarkChoice,
    classes: ClassCounts,
    found: MarkedImage,
    drawn: MarkName,
    rng: Rng,
) -> tuple[str, tuple[str, ...]] | None:
    """The right option and the wrong ones; None where there are not enough of these."""
    if slot.form is Form.IS_THERE:
        return (NO, (YES,)) if slot.absence is Absence.TRUE else (YES, (NO,))
    if slot.form is Form.WHICH:
        right = drawn.one
        wrong = [name.one for name in other_marks(drawn, rng)]
    elif slot.kind is QuestionKind.COUNTING:
        counted = len(choice.places) - choice.decoys
        right = str(counted)
        wrong = [str(n) for n in range(1, MOST_MARKS + 1) if n != counted]
        wrong = [wrong[i] for i in rng.permutation(len(wrong))]
    elif slot.kind is QuestionKind.LOCALISATION:
        right = choice.field or ""
        wrong = [name for name in FIELD_NAMES[slot.fields].values() if name != right]
        wrong = [wrong[i] for i in rng.permutation(len(wrong))]
    else:
        right = image.objects[choice.places[0]].label
        wrong = _other_classes(image, choice.places[0], classes, found, rng)
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
    image: AnnotatedImage, place: int, classes: ClassCounts, found: MarkedImage, rng: Rng
) -> list[str]:
    """Classes that are not what is marked: of the image first, then those often seen with it."""
    target = image.objects[place]
    under = {
        other.label for other in image.objects if lies_under(other.box, found.covers[0], target.box)
    }
    here = sorted({other.label for other in image.objects} - under)
    here = [here[i] for i in rng.permutation(len(here))]
    away = [label for label in classes.likely_with(target.label) if label not in {*here, *under}]
    return [label for label in (*here, *away) if label != target.label]
