"""Training samples of marks on rendered scenes: questions as in VP-Bench, and right letters.

Marks, questions and options come from ``vp_questions``; the request is the text that a run of
``VPBench_Scenes`` would send. A sample asks several questions about one marked image, where a table
marks an image for each question. Needs no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from itertools import count as count_from
from typing import NamedTuple

from training.samples import PhraseSpan, PlacedBoxes, Sample, SampleMark, Turn
from training.scenes import Scene, scene_and_owners
from training.vp_questions.asking import (
    MarkChoice,
    PosedMarks,
    ShownQuestion,
    choices,
    marker_of,
    posed,
)
from training.vp_questions.images import (
    AnnotatedImage,
    ClassCounts,
    LabelledBox,
    OutlinedPixels,
    outlines,
)
from training.vp_questions.making import easier_slots, mark_rows, options_of
from training.vp_questions.marking import MarkedImage, Marker
from training.vp_questions.plan import Absence, Form, Slot, plan
from training.vp_questions.wording import ABSENT, FIELD_NAMES, field_of
from vlmeval_findit.benchmarks.vpbench import LETTERS, QuestionKind, VPQuery, message, parse
from vlmeval_findit.boxes import Corners
from vlmeval_findit.data import SHAPES, Owners, Rng, Stream, rng_of
from vlmeval_findit.marks import Shape

VARIANT = parse("VPBench_Scenes")
IMAGE = "0"  # Name of the image in the opening, as in other samples of a scene

_STREAM = 2  # The stream of random numbers of a seed's marks

# Questions of a plan, as in VPBench_Scenes_mini: everything that a table asks has its share.
_PLANNED = 48

# Share of samples with several marks, if there is room: a table asks only to count them.
_SEVERAL = 0.35
_MOST_CHOICES = 3  # Choices of objects to mark for a question that are tried
_SCENES = 3  # Scenes that are tried before an easier question is asked
_PASSES = 3  # Passes through a plan in search of different questions
_COLOURS_TRIED = 8  # Attempts at a question about a mark of random colour


def mark_sample(seed: int, turns: int, count: tuple[int, int], size: tuple[int, int]) -> Sample:
    """Return at most ``turns`` questions about one set of marks, each answered by a letter.

    They are about the scene of ``seed`` or, if it cannot be marked, of the next one; it has
    ``count`` objects (fewest and most) and ``size`` (width and height in pixels).
    """
    questions = marked_questions(seed, turns, count, size)
    opening = message(questions.queries[0], VARIANT)[:-1]
    rows = zip(questions.posed, questions.queries, strict=True)
    drawn = tuple(turn(posed, query, questions.shown) for posed, query in rows)
    return Sample((questions.shown,), opening, drawn, questions.marks)


class MarkQuestions(NamedTuple):
    """A scene with marks, and questions about them, also as rows of a table."""

    shown: Scene
    marks: tuple[SampleMark, ...]
    posed: tuple[PosedMarks, ...]
    queries: tuple[VPQuery, ...]


def marked_questions(
    seed: int, turns: int, count: tuple[int, int], size: tuple[int, int]
) -> MarkQuestions:
    """Return the questions of :func:`mark_sample`; the arguments are the same."""
    rng = rng_of(Stream.QUESTION, seed, _STREAM)
    shown, marks = _scene_with_marks(rng, seed, count, size)
    questions: dict[VPQuery, PosedMarks] = {_row(rng, marks.first.posed): marks.first.posed}
    for question in chain.from_iterable(_more(rng, marks) for _ in range(_PASSES)):
        if len(questions) >= turns:
            break
        questions.setdefault(_row(rng, question), question)
    return MarkQuestions(shown, _drawn(marks), tuple(questions.values()), tuple(questions))


def turn(posed: PosedMarks, query: VPQuery, shown: Scene) -> Turn:
    """Return the turn of a question, with the marked objects that it asks for."""
    slot = posed.slot
    # Objects marked in another colour come last. An absent mark has no object.
    asked = () if slot.absence is Absence.TRUE else posed.marked[: slot.marks]
    objects = _placed(target.box for target in asked)
    request = message(query, VARIANT)[-1].value
    phrases = [PhraseSpan(request.index(posed.question) + len(posed.question), objects)]
    for letter, option in query.options:
        line = f"\n{letter}. {option}"
        end = request.index(f"{line}\n") + len(line)
        phrases.append(PhraseSpan(end, _meant(option, posed, shown), letter == query.answer))
    return Turn(request, query.answer, objects, 0, tuple(phrases))


def _placed(boxes: Iterable[Corners]) -> PlacedBoxes:
    return tuple((0, box) for box in boxes)


def _meant(option: str, posed: PosedMarks, shown: Scene) -> PlacedBoxes | None:
    """Return the objects that an option names; None if it names nothing that has a place."""
    if posed.slot.kind is QuestionKind.LOCALISATION:
        parts = posed.slot.fields.value
        width = shown.width / parts
        height = shown.height / parts
        for field, name in FIELD_NAMES[posed.slot.fields].items():
            if name == option:
                x = field.across * shown.width / parts
                y = field.down * shown.height / parts
                return _placed([(x, y, x + width, y + height)])
        return None
    if posed.slot.kind is QuestionKind.REFERENCE:
        same = [thing.box for thing in shown.things if thing.look.shape == option]
        return _placed(same) if option in SHAPES else None
    if posed.slot.form is Form.WHICH and option != ABSENT:
        there = posed.slot.absence is not Absence.TRUE and option == posed.right
        return _placed(target.box for target in posed.marked) if there else ()
    return None


def _drawn(marks: _Marks) -> tuple[SampleMark, ...]:
    image = marks.drawn.image
    shape = marks.slot.style.shape
    assert image is not None, "the first question was asked"
    # A contrasting colour gets its name when it is drawn; only the first mark's name is known.
    colours = list(marks.drawn.colours.values())
    colours[0] = image.colour
    return tuple(
        SampleMark(cover, shape, colour)
        for cover, colour in zip(image.covers, colours, strict=True)
    )


def _row(rng: Rng, posed: PosedMarks) -> VPQuery:
    """Return a question as the row of a table, the right option at a random letter."""
    letter = LETTERS[rng.randint(len(posed.wrong) + 1)]
    (row,) = mark_rows([posed], 0, VARIANT.table)
    return replace(row, images=(IMAGE,), options=options_of(posed, letter), answer=letter)


# --- the first question, for which the marks are drawn --------------------------------------------


class _Marks(NamedTuple):
    """A marked image, and the state that further questions about it need."""

    image: AnnotatedImage
    pixels: OutlinedPixels
    slots: Sequence[Slot]
    slot: Slot
    choice: MarkChoice
    first: ShownQuestion
    drawn: _DrawnOnce


def _scene_with_marks(
    rng: Rng, seed: int, count: tuple[int, int], size: tuple[int, int]
) -> tuple[Scene, _Marks]:
    """Return the first scene from a seed on that can be marked for a question, with the marks."""
    slots = _slots(rng)
    for scene_seed in count_from(seed):
        patient = scene_seed - seed < _SCENES
        scene, owners = scene_and_owners(scene_seed, count, size)
        marks = _marked(rng, scene, owners, slots, patient)
        if marks is not None:
            return Scene(marks.first.pixels, scene.things), marks
    raise AssertionError("seeds have no end")


class _DrawnOnce(Marker):
    """Marker that draws once, then returns the same image, and None for other marks."""

    def __init__(self, marker: Marker) -> None:
        self._marker = marker
        self.image: MarkedImage | None = None
        self.colours: dict[int, str] = {}

    def marked(self, places: Sequence[int], colours: Sequence[str]) -> MarkedImage | None:
        requested = dict(zip(places, colours, strict=True))
        if self.image is None:
            self.image = self._marker.marked(places, colours)
            self.colours = requested
        if self.image is None or requested != self.colours:
            return None
        covers = dict(zip(self.colours, self.image.covers, strict=True))
        return self.image._replace(covers=tuple(covers[place] for place in places))


class _AnyOthers(ClassCounts):
    """The shapes of scenes, all equally likely."""

    def __init__(self, rng: Rng) -> None:
        names = list(SHAPES)
        self._order = [names[i] for i in rng.permutation(len(names))]

    def likely_with(self, label: str) -> list[str]:
        return [other for other in self._order if other != label]


def _slots(rng: Rng) -> list[Slot]:
    """Return the questions of a table in random order; marks are drawn for the first."""
    planned = plan(_PLANNED, rng.randint(2**31), tuple(Shape))
    slots = [planned[i] for i in rng.permutation(len(planned))]
    several = rng.random_sample() < _SEVERAL
    return sorted(slots, key=lambda slot: (slot.marks > 1) is not several)


def _marked(
    rng: Rng, scene: Scene, owners: Owners, slots: Sequence[Slot], patient: bool
) -> _Marks | None:
    """Return a scene marked for the first of the slots; None if it cannot be.

    ``patient`` accepts only as many marks of the shape as planned.
    """
    objects = tuple(LabelledBox(thing.look.shape, thing.box) for thing in scene.things)
    pixels = OutlinedPixels(scene.pixels, outlines(owners, len(objects)))
    image = AnnotatedImage(IMAGE, scene.width, scene.height, objects, lambda: pixels)
    planned = slots[0]
    for slot in easier_slots(planned):
        is_planned = (slot.style.shape, slot.marks) == (planned.style.shape, planned.marks)
        if patient and not is_planned:
            return None
        marker = marker_of(slot, image, pixels)
        for choice in _choices(rng, slot, image):
            once = _DrawnOnce(marker)
            first = posed(slot, image, once, choice, _AnyOthers(rng), rng)
            if first is not None:
                return _Marks(image, pixels, slots, slot, choice, first, once)
    return None


def _choices(rng: Rng, slot: Slot, image: AnnotatedImage) -> Iterator[MarkChoice]:
    """Yield some choices of objects to mark; all fields are equally likely if fields are asked."""
    fields: list[str | None] = [None]
    if slot.kind is QuestionKind.LOCALISATION:
        names = list(FIELD_NAMES[slot.fields].values())
        fields = [names[i] for i in rng.permutation(len(names))]
    candidates = chain.from_iterable(choices(slot, image, field, rng) for field in fields)
    return islice(candidates, _MOST_CHOICES)


# --- the next questions, about the same marks -----------------------------------------------------


def _more(rng: Rng, marks: _Marks) -> Iterator[PosedMarks]:
    """Yield the other questions of a plan that fit the marks that are drawn."""
    has_one = len(marks.choice.places) == 1
    for place in rng.permutation(len(marks.slots)):
        slot = marks.slots[place]
        if has_one and slot.marks > 1:
            continue
        new_slot = replace(slot, style=marks.slot.style, colour=marks.slot.colour)
        if has_one:
            further = _of_single_mark(rng, new_slot, marks)
        else:
            further = _of_several_marks(rng, new_slot, marks)
        if further is None:
            continue
        new_slot, choice = further
        # A mark of another colour gets a random colour: repeat until it is the drawn one.
        for _ in range(_COLOURS_TRIED):
            shown = posed(new_slot, marks.image, marks.drawn, choice, _AnyOthers(rng), rng)
            if shown is not None:
                yield shown.posed
                break


def _of_single_mark(rng: Rng, slot: Slot, marks: _Marks) -> tuple[Slot, MarkChoice] | None:
    """Return a question about the single mark, if a table would mark its object for it."""
    (place,) = marks.choice.places
    image = marks.image
    field: str | None = None
    if slot.kind is QuestionKind.LOCALISATION:
        box = image.objects[place].box
        field = field_of(box, image.width, image.height, slot.fields)
        if field is None:
            return None
    # Even questions have only marks that are counted.
    slot = replace(slot, number=0)
    if slot.kind is QuestionKind.REFERENCE and marks.slot.kind is not QuestionKind.REFERENCE:
        # The mark must hide less of the object than for other questions.
        marker = marker_of(slot, image, marks.pixels)
        if marker.marked([place], [marks.drawn.colours[place]]) is None:
            return None
    for choice in choices(slot, image, field, rng):
        if choice.places == (place,):
            return slot, choice
    return None


def _of_several_marks(rng: Rng, slot: Slot, marks: _Marks) -> tuple[Slot, MarkChoice] | None:
    """Return a question that counts marks or asks whether there are any, in either colour."""
    choice = marks.choice
    counted = len(marks.choice.places) - marks.choice.decoys
    if slot.kind is not QuestionKind.COUNTING and slot.form is not Form.IS_THERE:
        return None
    if choice.decoys and not rng.randint(3):
        others = choice.places[:counted]
        decoys = choice.places[counted:]
        slot = replace(slot, colour=marks.drawn.colours[decoys[0]], marks=len(decoys))
        return slot, MarkChoice((*decoys, *others), counted, None)
    return replace(slot, marks=counted), choice
