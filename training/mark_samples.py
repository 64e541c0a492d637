"""Questions about marks on rendered scenes, as VP-Bench's own tables ask them, and right letters.

What is drawn, asked and offered comes from ``vp_questions``; the request is the text that a
run of ``VPBench_Scenes`` would send.  A sample asks several questions about one marked image,
where a table marks an image anew for each.  Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, takewhile
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
from training.vp_questions.plan import Absence, Fields, Form, Slot, plan
from training.vp_questions.wording import ABSENT, FIELD_NAMES, field_of
from vlmeval_findit.benchmarks.vpbench.question_tables import message, parse
from vlmeval_findit.benchmarks.vpbench.vp_query import LETTERS, QuestionKind, VPQuery
from vlmeval_findit.boxes.representation import Corners
from vlmeval_findit.data.rendered.drawing import SHAPES, Rng
from vlmeval_findit.data.rendered.scene import Owners, Stream, rng_of
from vlmeval_findit.marks.style import Shape

QUESTION = parse("VPBench_Scenes")
IMAGE = "0"
"""What the opening calls the image, as that of a scene's sample does."""

_STREAM = 2
"""Names the random numbers of a seed's marks, beside those of its other questions."""
_PLANNED = 48
"""Questions of a plan, as in VPBench_Scenes_mini: all that a table asks has its share."""
_SEVERAL = 0.35
"""Of all samples have several marks, if they find room: of these a table asks only how many."""
_TRIED = 3
"""Ways of marking an image for one question."""
_SCENES = 3
"""Scenes that are looked at before a question is put in an easier way."""
_PASSES = 3
"""Times that a plan is gone through for different questions, of which there may be too few."""
_COLOURS_TRIED = 8
"""Times that a question about a mark of chance colour is put."""


def mark_sample(seed: int, turns: int, count: tuple[int, int], size: tuple[int, int]) -> Sample:
    """Several questions about one set of marks on one scene, each answered by a letter.

    Args:
        seed: of the scene; where it does not take the marks, a next one is taken.
        turns: the most questions.
        count: fewest and most objects.
        size: (width, height) of the scene in pixels.
    """
    asked = marked_questions(seed, turns, count, size)
    opening = message(asked.queries[0], QUESTION)[:-1]
    both = zip(asked.posed, asked.queries, strict=True)
    made = tuple(turn(posed, query, asked.shown) for posed, query in both)
    return Sample((asked.shown,), opening, made, asked.marks)


class MarkQuestions(NamedTuple):
    """A scene with marks, the questions about them, and these as rows of a table."""

    shown: Scene
    marks: tuple[SampleMark, ...]
    posed: tuple[PosedMarks, ...]
    queries: tuple[VPQuery, ...]


def marked_questions(
    seed: int, turns: int, count: tuple[int, int], size: tuple[int, int]
) -> MarkQuestions:
    """What :func:`mark_sample` is made of; its arguments are the same."""
    rng = rng_of(Stream.QUESTION, seed, _STREAM)
    shown, marks = _scene_with_marks(rng, seed, count, size)
    found: dict[VPQuery, PosedMarks] = {_row(rng, marks.first.posed): marks.first.posed}
    for one in chain.from_iterable(_more(rng, marks) for _ in range(_PASSES)):
        if len(found) >= turns:
            break
        found.setdefault(_row(rng, one), one)
    return MarkQuestions(shown, _drawn(marks), tuple(found.values()), tuple(found))


def turn(posed: PosedMarks, query: VPQuery, shown: Scene) -> Turn:
    """A question's turn; it is about the marked objects that it asks for."""
    slot = posed.slot
    # Those of another colour come last; and of a mark that is not there, none is asked for.
    asked = () if slot.absence is Absence.TRUE else posed.marked[: slot.marks]
    objects = _placed(one.box for one in asked)
    request = message(query, QUESTION)[-1].value
    named = [PhraseSpan(request.index(posed.question) + len(posed.question), objects)]
    for letter, option in query.options:
        line = f"\n{letter}. {option}"
        end = request.index(f"{line}\n") + len(line)
        named.append(PhraseSpan(end, _meant(option, posed, shown), letter == query.answer))
    return Turn(request, query.answer, objects, 0, tuple(named))


def _placed(boxes: Iterable[Corners]) -> PlacedBoxes:
    return tuple((0, box) for box in boxes)


def _meant(option: str, posed: PosedMarks, shown: Scene) -> PlacedBoxes | None:
    """What an option names in the image; None where it names nothing that has a place."""
    if posed.slot.kind is QuestionKind.LOCALISATION:
        box = _field_box(option, posed.slot.fields, shown.width, shown.height)
        return None if box is None else _placed([box])
    if posed.slot.kind is QuestionKind.REFERENCE:
        same = [thing.box for thing in shown.things if thing.look.shape == option]
        return _placed(same) if option in SHAPES else None
    if posed.slot.form is Form.WHICH and option != ABSENT:
        there = posed.slot.absence is not Absence.TRUE and option == posed.right
        return _placed(one.box for one in posed.marked) if there else ()
    return None


def _field_box(name: str, fields: Fields, width: int, height: int) -> Corners | None:
    """The box of a field in pixels of the image; None of what is no field."""
    parts = fields.value
    for field, called in FIELD_NAMES[fields].items():
        if called == name:
            x, y = field.across * width / parts, field.down * height / parts
            return x, y, x + width / parts, y + height / parts
    return None


def _drawn(marks: _Marks) -> tuple[SampleMark, ...]:
    found, shape = marks.drawn.found, marks.slot.style.shape
    assert found is not None, "the first question was asked"
    # What contrasts has a name once it is drawn, which only the first mark's is known of.
    colours = [found.colour, *[*marks.drawn.colours.values()][1:]]
    return tuple(
        SampleMark(cover, shape, c) for cover, c in zip(found.covers, colours, strict=True)
    )


def _row(rng: Rng, one: PosedMarks) -> VPQuery:
    """A question as the row of a table, the right option at any letter."""
    letter = LETTERS[rng.randint(len(one.wrong) + 1)]
    (row,) = mark_rows([one], 0, QUESTION.table)
    return replace(row, images=(IMAGE,), options=options_of(one, letter), answer=letter)


# --- the first question, for which the marks are drawn --------------------------------------------


class _Marks(NamedTuple):
    """An image once marked, and what it takes to ask more about it."""

    image: AnnotatedImage
    seen: OutlinedPixels
    slots: Sequence[Slot]
    slot: Slot
    choice: MarkChoice
    first: ShownQuestion
    drawn: _DrawnOnce


def _scene_with_marks(
    rng: Rng, seed: int, count: tuple[int, int], size: tuple[int, int]
) -> tuple[Scene, _Marks]:
    """The first scene from a seed on that takes the marks of a question, with these."""
    slots = _slots(rng)
    for scene_seed in count_from(seed):
        patient = scene_seed - seed < _SCENES
        scene, owners = scene_and_owners(scene_seed, count, size)
        marks = _marked(rng, scene, owners, slots, patient)
        if marks is not None:
            return Scene(marks.first.pixels, scene.things), marks
    raise AssertionError("seeds have no end")


class _DrawnOnce(Marker):
    """Draws once; after that it gives that image again, and nothing for other marks."""

    def __init__(self, marker: Marker) -> None:
        self._marker = marker
        self.found: MarkedImage | None = None
        self.colours: dict[int, str] = {}

    def marked(self, places: Sequence[int], colours: Sequence[str]) -> MarkedImage | None:
        wanted = dict(zip(places, colours, strict=True))
        if self.found is None:
            self.found, self.colours = self._marker.marked(places, colours), wanted
        if self.found is None or wanted != self.colours:
            return None
        covers = dict(zip(self.colours, self.found.covers, strict=True))
        return self.found._replace(covers=tuple(covers[place] for place in places))


class _AnyOthers(ClassCounts):
    """The shapes of scenes, none more likely than another."""

    def __init__(self, rng: Rng) -> None:
        names = list(SHAPES)
        self._order = [names[i] for i in rng.permutation(len(names))]

    def __len__(self) -> int:
        return len(self._order)

    def likely_with(self, label: str) -> list[str]:
        return [other for other in self._order if other != label]


def _slots(rng: Rng) -> list[Slot]:
    """What a table would ask, in chance order; the first is what marks are drawn for."""
    planned = plan(_PLANNED, rng.randint(2**31), tuple(Shape))
    slots = [planned[i] for i in rng.permutation(len(planned))]
    several = rng.random_sample() < _SEVERAL
    return sorted(slots, key=lambda slot: (slot.marks > 1) is not several)


def _marked(
    rng: Rng, scene: Scene, owners: Owners, slots: Sequence[Slot], patient: bool
) -> _Marks | None:
    """A scene marked for the first of questions, if it does for it.

    ``patient`` waits for a scene that takes as many marks of the shape as planned.
    """
    objects = tuple(LabelledBox(thing.look.shape, thing.box) for thing in scene.things)
    seen = OutlinedPixels(scene.pixels, outlines(owners, len(objects)))
    image = AnnotatedImage(IMAGE, scene.width, scene.height, objects, lambda: seen)
    planned = slots[0]
    ways = easier_slots(planned)
    if patient:
        ways = takewhile(lambda slot: _as_planned(slot, planned), ways)
    for slot in ways:
        drawing = marker_of(slot, image, seen)
        for choice in _choices(rng, slot, image):
            once = _DrawnOnce(drawing)
            first = posed(slot, image, once, choice, _AnyOthers(rng), rng)
            if first is not None:
                return _Marks(image, seen, slots, slot, choice, first, once)
    return None


def _as_planned(slot: Slot, planned: Slot) -> bool:
    return (slot.style.shape, slot.marks) == (planned.style.shape, planned.marks)


def _choices(rng: Rng, slot: Slot, image: AnnotatedImage) -> Iterator[MarkChoice]:
    """Some ways to mark an image for a question; any field as likely, where fields are asked."""
    fields: list[str | None] = [None]
    if slot.kind is QuestionKind.LOCALISATION:
        names = list(FIELD_NAMES[slot.fields].values())
        fields = [names[i] for i in rng.permutation(len(names))]
    found = (one for field in fields for one in choices(slot, image, field, rng))
    return islice(found, _TRIED)


# --- the next questions, about the same marks -----------------------------------------------------


def _more(rng: Rng, marks: _Marks) -> Iterator[PosedMarks]:
    """What else a plan asks that can be asked of marks that are drawn."""
    for slot in (marks.slots[i] for i in rng.permutation(len(marks.slots))):
        again = replace(slot, style=marks.slot.style, colour=marks.slot.colour)
        choice = marks.choice
        if len(choice.places) == 1:
            if slot.marks > 1:
                continue
            asked = _of_one(rng, again, marks)
        else:
            asked = _of_several(rng, again, marks)
        if asked is None:
            continue
        again, choice = asked
        # A mark of another colour gets any: ask until it is the one that was drawn.
        for _ in range(_COLOURS_TRIED):
            found = posed(again, marks.image, marks.drawn, choice, _AnyOthers(rng), rng)
            if found is not None:
                yield found.posed
                break


def _of_one(rng: Rng, slot: Slot, marks: _Marks) -> tuple[Slot, MarkChoice] | None:
    """A question about the one mark, if a table would mark its object for it."""
    (place,) = marks.choice.places
    image, field = marks.image, None
    if slot.kind is QuestionKind.LOCALISATION:
        box = image.objects[place].box
        field = field_of(box, image.width, image.height, slot.fields)
        if field is None:
            return None
    # Even questions have no marks beside those that are counted.
    slot = replace(slot, number=0)
    if slot.kind is QuestionKind.REFERENCE and marks.slot.kind is not QuestionKind.REFERENCE:
        # It must leave more of the object to be seen than other questions ask for.
        marker = marker_of(slot, image, marks.seen)
        if marker.marked([place], [marks.drawn.colours[place]]) is None:
            return None
    for choice in choices(slot, image, field, rng):
        if choice.places == (place,):
            return slot, choice
    return None


def _of_several(rng: Rng, slot: Slot, marks: _Marks) -> tuple[Slot, MarkChoice] | None:
    """How many there are, or whether: of those that were counted first, or of the one beside."""
    choice, counted = marks.choice, len(marks.choice.places) - marks.choice.decoys
    if slot.kind is not QuestionKind.COUNTING and slot.form is not Form.IS_THERE:
        return None
    if choice.decoys and not rng.randint(3):
        places = choice.places
        beside = places[counted:]
        colour = marks.drawn.colours[beside[0]]
        slot = replace(slot, colour=colour, marks=len(beside))
        return slot, MarkChoice((*beside, *places[:counted]), counted, None)
    return replace(slot, marks=counted), choice
