"""What FindIt-Nano is taught: scenes of the train split, questions about them, and right replies.

A lesson is what the benchmark would ask and what a perfect model would say, through the package's
own prompts and its own writer, so that training and scoring cannot drift apart.  Formats come with
unequal shares: the model prefers one, as real models do.  Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from training import questions as asking
from training.questions import PosedQuestion
from training.vp_questions.marking import Cover
from vlmeval_findit.benchmarks.findit import box_prompts as prompts
from vlmeval_findit.benchmarks.findit.findit_datasets import DATASETS
from vlmeval_findit.benchmarks.findit.findit_query import FindItQuery
from vlmeval_findit.benchmarks.findit.variant import Variant, format_problem
from vlmeval_findit.boxes.records import Truth
from vlmeval_findit.boxes.representation import Corners
from vlmeval_findit.boxes.writing import Said, write
from vlmeval_findit.core import messages
from vlmeval_findit.data.rendered.drawing import Rng
from vlmeval_findit.data.rendered.scene import (
    SIZES,
    SPLITS,
    Scene,
    Stream,
    clip,
    rng_of,
    scene,
    shot,
)
from vlmeval_findit.marks.style import Shape
from vlmeval_findit.models.model_row import ModelRow
from vlmeval_findit.models.model_table import MODELS, NANO, NANO_PX


class Numbers(Enum):
    """What a model's coordinates are counted in."""

    THOUSANDTHS = "thousandths"
    """Of the picture, in steps of 5 (of 10 for centres, so that halves are steps too)."""
    PIXELS = "pixels"
    """Of the picture as the model sees it; scenes are seen as they are."""


SPEAKERS: Mapping[Numbers, ModelRow] = {
    Numbers.THOUSANDTHS: MODELS[NANO],
    Numbers.PIXELS: MODELS[NANO_PX],
}
"""The model that says such numbers; its row knows how it answers where no format is named."""


@dataclass(frozen=True, slots=True)
class Shares:
    """How often each value of an axis of the grid is asked for, as weights.

    ``numbers`` is what the answers are counted in.
    """

    numbers: Numbers
    representation: Mapping[str, float]
    output: Mapping[str, float]
    key: Mapping[str, float]
    structure: Mapping[str, float]
    task: Mapping[str, float]


Placed = tuple[tuple[int, Corners], ...]
"""Objects: of each its picture, counted from 0, and its box in the picture's pixels."""


class Named(NamedTuple):
    """What the words of a request mean that end before character ``end`` of it.

    ``objects`` is None of what has no place in the pictures, ``right`` of what is no option.
    """

    end: int
    objects: Placed | None
    right: bool | None = None


class Spoken(NamedTuple):
    """Characters ``start`` to ``end`` of a reply in words, and which of its objects they are of."""

    start: int
    end: int
    which: int


class Turn(NamedTuple):
    """A request (the text after the pictures), its reply, and the objects that the reply is about.

    Each of ``objects`` takes ``numbers`` coordinates of the reply, 0 where that is words, which
    ``spoken`` tells apart; ``named`` are words of the request that name something, and options.
    """

    request: str
    reply: str
    objects: Placed
    numbers: int
    named: tuple[Named, ...] = ()
    spoken: tuple[Spoken, ...] = ()


class Mark(NamedTuple):
    """A mark on a lesson's picture: the pixels that it covers (height, width), and what it is."""

    cover: Cover
    shape: Shape
    colour: str


class Lesson(NamedTuple):
    """Pictures, the message that shows them, and turns that each begin after the pictures.

    ``opening`` is the message up to and with its last picture; ``marks`` are those on the first.
    """

    pictures: tuple[Scene, ...]
    opening: messages.Message
    turns: tuple[Turn, ...]
    marks: tuple[Mark, ...] = ()


def draw_variant(
    rng: Rng, shares: Shares, dataset: str, multilabel: bool = False, frames: int = 1
) -> Variant:
    """A variant of a dataset by its shares; what is not in the grid is drawn again."""
    while True:
        output = draw(rng, shares.output)
        chosen = Variant(
            dataset=dataset,
            representation=draw(rng, shares.representation),
            output=output,
            multilabel=multilabel,
            frames=frames,
        )
        if output == "json":
            structure = draw(rng, shares.structure)
            key = "bbox" if structure == "decomposed" else draw(rng, shares.key)
            chosen = replace(chosen, key=key, structure=structure)
        if format_problem(chosen) is None:
            return chosen


def draw(rng: Rng, weights: Mapping[str, float]) -> str:
    """A name, by its weight."""
    at = rng.uniform(0.0, sum(weights.values()))
    for name, weight in weights.items():
        at -= weight
        if at < 0:
            return name
    return name


# --- turns ----------------------------------------------------------------------------------------

Ask = Callable[[Rng, Scene], PosedQuestion | None]

TASKS: dict[str, tuple[str, bool, Ask]] = {
    "detection": ("Scenes", False, asking.detection),
    "multilabel": ("Scenes", True, asking.several),
    "refexp": ("Scenes_refexp", False, asking.referring),
    "described": ("Scenes_described", False, asking.described),
}
"""Tasks that share a picture: the dataset, whether it has several labels, and what is asked."""


def turn_of(
    asked: PosedQuestion,
    variant: Variant,
    shown: Scene,
    frames: Sequence[int],
    numbers: Numbers,
    first: int = 0,
) -> Turn:
    """The turn of a question in a variant.

    Args:
        asked: the question.
        variant: how it is asked.
        shown: the scene, or any frame of the clip.
        frames: the frame of every box, counted from 0.
        numbers: what the answer is counted in.
        first: the place of the scene, or of the first frame, among the pictures of the message.
    """
    labels = asked.labels or ("",) * len(asked.boxes)
    names = asked.label.split(", ")
    order = sorted(
        range(len(asked.boxes)),
        key=lambda i: (frames[i], names.index(labels[i]) if labels[i] else 0, asked.boxes[i]),
    )
    size = (shown.width, shown.height)
    if numbers is Numbers.PIXELS:
        boxes = asked.boxes
    else:
        step = 10 if variant.representation == "cxcywh" else 5
        boxes = tuple(_grid(box, *size, step) for box in asked.boxes)
    said = [Said(boxes[i], labels[i], frames[i]) for i in order]
    how = SPEAKERS[numbers].reads(variant.reply)
    query = FindItQuery(0, asked.label, *size, ("",) * variant.frames, Truth((), ()))
    return Turn(
        prompts.request(query, variant),
        write(said, how, digits=0),
        tuple((first + frames[i], asked.boxes[i]) for i in order),
        how.numbers.width,
    )


def _grid(box: Corners, width: int, height: int, step: int) -> Corners:
    """Thousandths of the picture, in whole steps."""
    x1, y1, x2, y2 = (
        float(step * int(np.floor(n / size * 1000 / step + 0.5)))
        for n, size in zip(box, (width, height, width, height), strict=True)
    )
    return x1, y1, x2, y2


# --- lessons --------------------------------------------------------------------------------------


def scene_lesson(
    seed: int, turns: int, shares: Shares, count: tuple[int, int], size: tuple[int, int]
) -> Lesson:
    """Several questions of any kind about one scene."""
    shown = scene(seed, count, size)
    rng = rng_of(Stream.QUESTION, seed)
    asked: list[Turn] = []
    while len(asked) < turns:
        dataset, multilabel, ask = TASKS[draw(rng, shares.task)]
        question = ask(rng, shown)
        if question is None:
            continue
        variant = draw_variant(rng, shares, dataset, multilabel)
        asked.append(turn_of(question, variant, shown, [0] * len(question.boxes), shares.numbers))
    return Lesson((shown,), opening("Scenes"), tuple(asked))


def instance_lesson(
    seed: int, turns: int, shares: Shares, count: tuple[int, int], size: tuple[int, int]
) -> Lesson:
    """One object of a scene by a reference shot, asked in several formats."""
    rng = rng_of(Stream.QUESTION, seed)
    found = None
    while found is None:
        shown = scene(seed, count, size)
        found = asking.instance(rng, shown)
        seed += 1
    question, look = found
    asked = tuple(
        turn_of(
            question,
            draw_variant(rng, shares, "Scenes_insdet"),
            shown,
            [0],
            shares.numbers,
            first=1,
        )
        for _ in range(turns)
    )
    return Lesson((shot(seed, look), shown), opening("Scenes_insdet"), asked)


def clip_lesson(
    seed: int,
    turns: int,
    shares: Shares,
    frames: int,
    count: tuple[int, int],
    size: tuple[int, int],
) -> Lesson:
    """Shapes in every frame of a clip."""
    shown = clip(seed, frames, count, size)
    rng = rng_of(Stream.QUESTION, seed)
    asked = []
    for _ in range(turns):
        question, places = asking.in_clip(rng, shown)
        variant = draw_variant(rng, shares, "Scenes_video", frames=frames)
        asked.append(turn_of(question, variant, shown[0], places, shares.numbers))
    return Lesson(shown, opening("Scenes_video", frames), tuple(asked))


def opening(dataset: str, frames: int = 1, references: int = 1) -> messages.Message:
    """A message's parts up to its last picture, which no question changes."""
    names = tuple(map(str, range(frames)))
    has_shots = DATASETS[dataset].family.has_references
    support = tuple(map(str, range(references))) if has_shots else ()
    query = FindItQuery(0, "-", *SIZES[0], names, Truth((), ()), support)
    return prompts.message(query, Variant(dataset, "xyxy", "json", frames=frames))[:-1]


def train_seed(seed: int, step: int, place: int) -> int:
    """A seed of the train split for the scene at a place of a step's batch."""
    split = SPLITS["train"]
    rng = rng_of(Stream.BATCH, seed, step, place)
    return split.start + int(rng.random_sample() * len(split))


def corpus(lessons: Iterable[Lesson]) -> Iterator[str]:
    """Requests and replies of lessons, to train a tokenizer on."""
    for lesson in lessons:
        yield from (part.value for part in lesson.opening if part.kind is messages.PartKind.TEXT)
        yield from (text for turn in lesson.turns for text in (turn.request, turn.reply))
