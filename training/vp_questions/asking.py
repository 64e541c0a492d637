"""Ask a planned question about an image, if the image allows it.

First objects to mark are chosen by their boxes alone (:func:`choices`), then the image is read,
marked and asked about (:func:`posed`). Both return nothing if the image is not suitable.
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
from vlmeval_findit.benchmarks.vpbench import QuestionKind
from vlmeval_findit.boxes import Corners
from vlmeval_findit.marks import CONTRAST, Region, Shape

LEAST_SIDE = 14.0  # Least width and height, in pixels, of an object that can be marked
MOST_AREA = 0.7  # Most area, as a share of the image, of an object that can be marked
WRONG = 3  # Number of wrong options


class MarkChoice(NamedTuple):
    """Objects of an image to mark, by their places; the last ``decoys`` in another colour."""

    places: tuple[int, ...]
    decoys: int
    field: str | None


@dataclass(frozen=True, slots=True)
class PosedMarks:
    """A question with its options, its image and the marked objects.

    ``amount`` is the number of marks of any colour.
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
    """A question with its marked image, and regions and colours of the marks."""

    posed: PosedMarks
    pixels: Pixels
    regions: tuple[Region, ...]
    colours: tuple[str, ...]


# --- what to mark ---------------------------------------------------------------------------------


def choices(slot: Slot, image: AnnotatedImage, field: str | None, rng: Rng) -> Iterator[MarkChoice]:
    """Yield objects that could be marked, in random order, by the boxes of an image.

    ``field`` is where the object must lie if the question is about fields.
    """
    markable = [place for place in range(len(image.objects)) if can_be_marked(image, place)]
    alone = [markable[i] for i in rng.permutation(len(markable))]
    if slot.kind is QuestionKind.COUNTING:
        # Every second image has a mark of another colour that is not to be counted.
        decoys = int(slot.number % 2 and slot.colour != CONTRAST and slot.marks < MOST_MARKS)
        for many in (slot.marks + decoys, slot.marks):
            if many <= len(alone):
                for _ in range(_MOST_CHOICES):
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


_MOST_CHOICES = 4  # Random choices of several objects of an image


def can_be_marked(image: AnnotatedImage, place: int) -> bool:
    """Return whether an object has a suitable size and overlaps no other object of its class."""
    target = image.objects[place]
    x1, y1, x2, y2 = target.box
    is_large = _area(target.box) > MOST_AREA * image.width * image.height
    if min(x2 - x1, y2 - y1) < LEAST_SIDE or is_large:
        return False
    return not any(
        other.label == target.label and _common(other.box, target.box) > 0
        for i, other in enumerate(image.objects)
        if i != place
    )


# Shapes that show the place of an object, not its extent
_POINTING = (Shape.ARROW, Shape.TAG, Shape.POINT, Shape.SCRIBBLE)


def is_partly_hidden(image: AnnotatedImage, place: int) -> bool:
    """Return whether an object overlaps another in part.

    An object inside another, like a part of it, does not count.
    """
    box = image.objects[place].box
    return any(
        0 < _common(other.box, box) < _WHOLE * min(_area(other.box), _area(box))
        for i, other in enumerate(image.objects)
        if i != place
    )


_WHOLE = 0.9  # Shared part of the smaller area from which an object lies inside another


def _common(a: Corners, b: Corners) -> float:
    across = min(a[2], b[2]) - max(a[0], b[0])
    down = min(a[3], b[3]) - max(a[1], b[1])
    return max(across, 0.0) * max(down, 0.0)


def _area(box: Corners) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


# --- what to ask ----------------------------------------------------------------------------------


def marker_of(slot: Slot, image: AnnotatedImage, pixels: OutlinedPixels) -> Marker:
    """Return the marker that draws the marks of a question on its image."""
    regions = [
        region_of(target.box, outlines, image.width, image.height)
        for target, outlines in zip(image.objects, pixels.outlines, strict=True)
    ]
    hidden = Hidden.LITTLE if slot.kind is QuestionKind.REFERENCE else Hidden.SOME
    return Marker(pixels.pixels, regions, slot.style, hidden)


def posed(
    slot: Slot,
    image: AnnotatedImage,
    marker: Marker,
    choice: MarkChoice,
    classes: ClassCounts,
    rng: Rng,
) -> ShownQuestion | None:
    """Return the question about chosen objects; None if it would have no clear answer."""
    targets = [image.objects[i] for i in choice.places]
    counted = len(targets) - choice.decoys
    colours = [slot.colour] * counted + [other_colour(slot.colour, rng)] * choice.decoys
    marked = marker.marked(choice.places, colours)
    if marked is None or not _are_alone(image, choice, marked):
        return None
    named_colour = None if slot.colour == CONTRAST else slot.colour
    drawn = MarkName(slot.style, marked.colour if len(targets) == 1 else named_colour)
    there = {drawn.bare}
    there.update(MarkName(slot.style, colour).bare for colour in colours[counted:])
    named = undrawn_mark(drawn, there, rng) if slot.absence is Absence.TRUE else drawn
    options = _options(slot, image, choice, classes, marked, drawn, rng)
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
    return ShownQuestion(question, marked.pixels, marked.regions, tuple(colours))


def _are_alone(image: AnnotatedImage, choice: MarkChoice, marked: MarkedImage) -> bool:
    """Return whether no other object of a marked class lies under its mark."""
    for place, cover in zip(choice.places, marked.covers, strict=True):
        label, box = image.objects[place]
        others = [other for i, other in enumerate(image.objects) if i != place]
        if any(each.label == label and lies_under(each.box, cover, box) for each in others):
            return False
    return True


def _options(
    slot: Slot,
    image: AnnotatedImage,
    choice: MarkChoice,
    classes: ClassCounts,
    marked: MarkedImage,
    drawn: MarkName,
    rng: Rng,
) -> tuple[str, tuple[str, ...]] | None:
    """Return the right option and the wrong ones; None if there are too few wrong ones."""
    if slot.form is Form.IS_THERE:
        return (NO, (YES,)) if slot.absence is Absence.TRUE else (YES, (NO,))
    if slot.form is Form.WHICH:
        right = drawn.singular
        wrong = [name.singular for name in other_marks(drawn, rng)]
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
        wrong = _other_classes(image, choice.places[0], classes, marked, rng)
    if len(wrong) < WRONG:
        return None
    if slot.absence is Absence.TRUE:
        # The right option for the mark that is there is among the wrong ones.
        shown = wrong if slot.form is Form.WHICH else [right, *wrong]
        return ABSENT, tuple(shown[:WRONG])
    if slot.absence is Absence.OFFERED:
        return right, (*wrong[: WRONG - 1], ABSENT)
    return right, tuple(wrong[:WRONG])


def _other_classes(
    image: AnnotatedImage, place: int, classes: ClassCounts, marked: MarkedImage, rng: Rng
) -> list[str]:
    """Return other classes: of the image first, then those often together with the marked class."""
    marked_label, box = image.objects[place]
    cover = marked.covers[0]
    under = {other.label for other in image.objects if lies_under(other.box, cover, box)}
    present = sorted({other.label for other in image.objects} - under)
    present = [present[i] for i in rng.permutation(len(present))]
    further = classes.likely_with(marked_label)
    together = dict.fromkeys((*present, *further))
    return [label for label in together if label not in {marked_label, *under}]
