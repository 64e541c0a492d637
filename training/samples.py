"""Training samples of FindIt-Nano: scenes of the train split, questions, and right replies.

A sample is a question of the benchmark and a perfect model's reply, by the package's
prompts and writer, so training and scoring cannot drift apart. Formats have unequal shares: the
model prefers one, as real models do. Needs no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from training import questions as asking
from training.questions import PosedQuestion
from training.scenes import SPLITS, Scene, clip, scene, shot
from training.vp_questions.marking import Cover
from vlmeval_findit.benchmarks.findit import DATASETS, FindItQuery, FindItVariant, format_problem
from vlmeval_findit.benchmarks.findit import box_prompts as prompts
from vlmeval_findit.boxes import BoxToWrite, Corners, Truth, write
from vlmeval_findit.data import SCENE_SIZES, Rng, Stream, rng_of
from vlmeval_findit.marks import Shape
from vlmeval_findit.models import MODELS, NANO, NANO_PX
from vlmeval_findit.protocol import Message, PartKind


class Units(Enum):
    """Units of a model's coordinates."""

    # Of the image, in steps of 5 (of 10 for centres, so that halves are steps too)
    THOUSANDTHS = "thousandths"
    PIXELS = "pixels"  # Of the image as the model sees it; scenes are not resized


# The models that answer in these units, by which replies are read
UNIT_ROWS = {Units.THOUSANDTHS: MODELS[NANO], Units.PIXELS: MODELS[NANO_PX]}


@dataclass(frozen=True, slots=True)
class Shares:
    """How often each value of an axis of the grid is asked for, as weights."""

    units: Units  # Of the replies
    representation: Mapping[str, float]
    output: Mapping[str, float]
    key: Mapping[str, float]
    structure: Mapping[str, float]
    task: Mapping[str, float]


# Of each object its image, counted from 0, and its box in the image's pixels
PlacedBoxes = tuple[tuple[int, Corners], ...]


class PhraseSpan(NamedTuple):
    """The meaning of a phrase of a request that ends before character ``end``."""

    end: int
    objects: PlacedBoxes | None  # None: it has no place in the images
    right: bool | None = None  # None: it is no option


class ReplySpan(NamedTuple):
    """Characters ``start`` to ``end`` of a reply in words, and the object that they describe."""

    start: int
    end: int
    which: int


class Turn(NamedTuple):
    """A request (the text after the images) and its reply."""

    request: str
    reply: str
    objects: PlacedBoxes  # That the reply is about
    numbers: int  # Coordinates of each object in the reply; 0: it is in words
    phrases: tuple[PhraseSpan, ...] = ()
    reply_spans: tuple[ReplySpan, ...] = ()


class SampleMark(NamedTuple):
    """A mark on a sample's first image."""

    cover: Cover  # (height, width): its pixels
    shape: Shape
    colour: str


class Sample(NamedTuple):
    """Images, the message that shows them, and turns that each begin after the images."""

    images: tuple[Scene, ...]
    opening: Message  # Up to and with its last image
    turns: tuple[Turn, ...]
    marks: tuple[SampleMark, ...] = ()


def draw_variant(
    rng: Rng, shares: Shares, dataset: str, multilabel: bool = False, frames: int = 1
) -> FindItVariant:
    """Draw a variant of a dataset by its shares; draw again if it is outside the grid."""
    while True:
        output = draw(rng, shares.output)
        representation = draw(rng, shares.representation)
        chosen = FindItVariant(
            dataset, representation, output, multilabel=multilabel, frames=frames
        )
        if output == "json":
            structure = draw(rng, shares.structure)
            key = "bbox" if structure == "decomposed" else draw(rng, shares.key)
            chosen = replace(chosen, key=key, structure=structure)
        if format_problem(chosen) is None:
            return chosen


def draw(rng: Rng, weights: Mapping[str, float]) -> str:
    """Draw a name by its weight."""
    at = rng.uniform(0.0, sum(weights.values()))
    for name, weight in weights.items():
        at -= weight
        if at < 0:
            return name
    return name


# --- turns ----------------------------------------------------------------------------------------


class SceneTask(NamedTuple):
    """A way of asking about a scene."""

    dataset: str
    multilabel: bool
    ask: Callable[[Rng, Scene], PosedQuestion | None]


# Tasks that share an image
TASKS: dict[str, SceneTask] = {
    "detection": SceneTask("Scenes", False, asking.detection),
    "multilabel": SceneTask("Scenes", True, asking.several),
    "refexp": SceneTask("Scenes_refexp", False, asking.referring),
    "described": SceneTask("Scenes_described", False, asking.described),
}


def turn_of(
    question: PosedQuestion,
    variant: FindItVariant,
    shown: Scene,
    frames: Sequence[int],
    units: Units,
    first: int = 0,
) -> Turn:
    """Return the turn of a question about a scene, or about a clip with its frame ``shown``.

    ``frames`` are those of the boxes, counted from 0; ``first`` is the place of the scene, or of
    the first frame, among the images of the message.
    """
    names = question.label.split(", ")
    step = 10 if variant.representation == "cxcywh" else 5
    labels = question.labels or ("",) * len(question.boxes)
    answers: list[_AnswerBox] = []
    for box, frame, label in zip(question.boxes, frames, labels, strict=True):
        written = box
        if units is Units.THOUSANDTHS:
            written = _grid(box, shown.width, shown.height, step)
        rank = names.index(label) if label else 0
        answers.append(_AnswerBox(frame, rank, box, BoxToWrite(written, label, frame)))
    answers.sort(key=lambda answer: (answer.frame, answer.rank, answer.box))
    reply_format = UNIT_ROWS[units].reads(variant.reply)
    images = ("",) * variant.frames
    query = FindItQuery(0, question.label, shown.width, shown.height, images, Truth((), ()))
    return Turn(
        prompts.request(query, variant),
        write([answer.written for answer in answers], reply_format, digits=0),
        tuple((first + answer.frame, answer.box) for answer in answers),
        reply_format.numbers.width,
    )


class _AnswerBox(NamedTuple):
    """A right box; ``rank`` is the place of its label in the question."""

    frame: int
    rank: int
    box: Corners
    written: BoxToWrite


def _grid(box: Corners, width: int, height: int, step: int) -> Corners:
    """Return a box in thousandths of the image, in whole steps."""
    x1, y1, x2, y2 = (
        float(step * int(np.floor(n / size * 1000 / step + 0.5)))
        for n, size in zip(box, (width, height, width, height), strict=True)
    )
    return x1, y1, x2, y2


# --- samples --------------------------------------------------------------------------------------


def scene_sample(
    seed: int, turns: int, shares: Shares, count: tuple[int, int], size: tuple[int, int]
) -> Sample:
    """Return several questions of any kind about one scene."""
    shown = scene(seed, count, size)
    rng = rng_of(Stream.QUESTION, seed)
    drawn: list[Turn] = []
    while len(drawn) < turns:
        task = TASKS[draw(rng, shares.task)]
        question = task.ask(rng, shown)
        if question is None:
            continue
        variant = draw_variant(rng, shares, task.dataset, task.multilabel)
        drawn.append(turn_of(question, variant, shown, [0] * len(question.boxes), shares.units))
    return Sample((shown,), opening("Scenes"), tuple(drawn))


def instance_sample(
    seed: int, turns: int, shares: Shares, count: tuple[int, int], size: tuple[int, int]
) -> Sample:
    """Return questions in several formats about one object, shown by a reference shot."""
    rng = rng_of(Stream.QUESTION, seed)
    posed = None
    while posed is None:
        shown = scene(seed, count, size)
        posed = asking.instance(rng, shown)
        seed += 1
    question, target = posed
    variants = [draw_variant(rng, shares, "Scenes_insdet") for _ in range(turns)]
    drawn = tuple(turn_of(question, v, shown, [0], shares.units, first=1) for v in variants)
    return Sample((shot(seed, target), shown), opening("Scenes_insdet"), drawn)


def clip_sample(
    seed: int,
    turns: int,
    shares: Shares,
    frames: int,
    count: tuple[int, int],
    size: tuple[int, int],
) -> Sample:
    """Return questions about shapes in every frame of a clip."""
    shown = clip(seed, frames, count, size)
    rng = rng_of(Stream.QUESTION, seed)
    drawn = []
    for _ in range(turns):
        question, places = asking.in_clip(rng, shown)
        variant = draw_variant(rng, shares, "Scenes_video", frames=frames)
        drawn.append(turn_of(question, variant, shown[0], places, shares.units))
    return Sample(shown, opening("Scenes_video", frames), tuple(drawn))


def opening(dataset: str, frames: int = 1, references: int = 1) -> Message:
    """Return a message's parts up to its last image, which no question changes."""
    names = tuple(map(str, range(frames)))
    has_shots = DATASETS[dataset].family.has_references
    support = tuple(map(str, range(references))) if has_shots else ()
    query = FindItQuery(0, "-", *SCENE_SIZES[0], names, Truth((), ()), support)
    return prompts.message(query, FindItVariant(dataset, "xyxy", "json", frames=frames))[:-1]


def train_seed(seed: int, step: int, place: int) -> int:
    """Return a seed of the train split for a place in a step's batch."""
    split = SPLITS["train"]
    rng = rng_of(Stream.BATCH, seed, step, place)
    return split.start + int(rng.random_sample() * len(split))


def texts(samples: Iterable[Sample]) -> Iterator[str]:
    """Yield requests and replies, to learn a tokenizer from."""
    for sample in samples:
        yield from (part.value for part in sample.opening if part.kind is PartKind.TEXT)
        for turn in sample.turns:
            yield turn.request
            yield turn.reply
