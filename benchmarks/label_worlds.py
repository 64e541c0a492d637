"""Made-up labels with faults of one kind, and the answers of models that err alike.

No constant of the audit was chosen on these worlds, and nothing is drawn as in
``simulated_labels``, where some were. Objects have sizes between 12 and 240 pixels, and small ones
are missed more often. How often an object is missed, a distractor boxed, or a class confused is
drawn from a beta distribution, of which models share the draw: ``correlation`` is that of two
models' errors on one object, so at 0.7 most objects that one model misses are hidden from all. Some
pictures are blurred, edges err with heavy tails, and calls fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from vlmeval_findit.analysis import ClassedBoxes, count_votes
from vlmeval_findit.boxes import iou
from vlmeval_findit.statistics import Votes

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Generator = np.random.Generator

CLASSES = 6
MOST_MODELS = 5
CONFUSED = 0.1  # Share of objects of another class that a model boxes all the same
WIDTH, HEIGHT = 1280.0, 960.0
SIDES = 12.0, 240.0  # Of objects in pixels
APART = 0.2  # IoU of two objects, at most
DISTRACTORS = 4
BLURRED = 0.05  # Share of pictures in which models err …
BLUR = 3.0  # … so many times as often
FAILED = 0.02  # Share of calls that fail
ACCURACY = (0.8, 0.94)  # Of the worst and the best model, over objects of all sizes


class Asked(Enum):
    """What queries ask for."""

    ONE = "one object"
    CLASS = "every object of a class"
    CLASSES = "every object of several classes"


class Kind(Enum):
    """A fault of labels, and what queries ask for."""

    ELSEWHERE = "another object", Asked.ONE
    BADLY_DRAWN_ONE = "badly drawn", Asked.ONE
    BADLY_DRAWN = "badly drawn", Asked.CLASS
    MISSING = "missing", Asked.CLASS
    ON_NOTHING = "on nothing", Asked.CLASS
    OTHER_CLASS = "of another class", Asked.CLASS  # The object is there, but not asked for
    TWICE = "twice", Asked.CLASS
    WRONG_CLASS = "wrong class", Asked.CLASSES
    ON_NOTHING_CLASSES = "on nothing", Asked.CLASSES
    TWICE_CLASSES = "twice", Asked.CLASSES

    @property
    def fault(self) -> str:
        return self.value[0]

    @property
    def asked(self) -> Asked:
        return self.value[1]


@dataclass(frozen=True)
class LabelWorld:
    """Labels of n queries, which of them are wrong, and what models answer."""

    kind: Kind
    labels: Sequence[ClassedBoxes]
    wrong: Flags  # (n,)
    answers: Sequence[Sequence[ClassedBoxes | None]]  # By model, by query

    def votes(self, models: int) -> Votes:
        """Return the votes of the first models."""
        return count_votes(self.labels, self.answers[:models], self.kind.asked is Asked.ONE)


def make_world(
    kind: Kind,
    share: float,
    correlation: float,
    crowds: bool,
    rows: int,
    seed: int,
    accuracy: tuple[float, float] = ACCURACY,
    favourite: float = 0.4,
) -> LabelWorld:
    """Make a world of five models.

    Args:
        kind: of the faults, and of what is asked.
        share: of the labels that are wrong.
        correlation: of the errors of two models on one object.
        crowds: a query has 10 to 30 objects, not 1 to 4.
        rows: queries.
        seed: of all draws.
        accuracy: of the worst and the best model.
        favourite: share of the wrong boxes that are on one and the same distractor.
    """
    chance = np.random.default_rng([seed, *repr((kind, share, correlation, crowds)).encode()])
    wrong = np.zeros(rows, bool)
    wrong[chance.permutation(rows)[: round(share * rows)]] = True
    errors = 1 - np.linspace(*accuracy, MOST_MODELS)[[3, 1, 0, 4, 2]]
    labels = []
    answers = []
    for is_wrong in wrong.tolist():
        scene = _Scene(kind.asked, crowds, chance)
        labels.append(_label(kind, scene, chance) if is_wrong else scene.asked)
        answering = _Answering(scene, errors, correlation, favourite, chance)
        boxes_it = CONFUSED if is_wrong and kind is Kind.OTHER_CLASS else 0.0
        answers.append([answering.answer(model, boxes_it) for model in range(MOST_MODELS)])
    return LabelWorld(kind, labels, wrong, list(zip(*answers, strict=True)))


class _Scene:
    """The objects that a query asks for, and distractors; the last of these only a label has."""

    def __init__(self, asked: Asked, crowds: bool, chance: Generator) -> None:
        fewest, most = (10, 30) if crowds else (1, 4)
        if asked is Asked.ONE:
            fewest = most = 1
        self.several = asked is Asked.CLASSES
        self.single = asked is Asked.ONE
        objects = int(chance.integers(fewest, most + 1))
        boxes = _apart(objects + DISTRACTORS, chance)
        classes = np.zeros(len(boxes), np.intp)
        if self.several:
            classes = chance.integers(0, CLASSES, len(boxes))
        self.asked = ClassedBoxes(boxes[:objects], classes[:objects])
        self.others = ClassedBoxes(boxes[objects:], classes[objects:])


def _apart(count: int, chance: Generator) -> Array:
    """Draw boxes that hardly overlap."""
    made = np.zeros((0, 4))
    while len(made) < count:
        sides = np.exp(chance.uniform(*np.log(SIDES))) * np.exp(chance.normal(0, 0.3, 2))
        corner = chance.random(2) * (np.array([WIDTH, HEIGHT]) - sides)
        box = np.concatenate([corner, corner + sides])
        if np.max(iou(np.tile(box, (len(made), 1)), made), initial=0) < APART:
            made = np.concatenate([made, box[None]])
    return made


def _label(kind: Kind, scene: _Scene, chance: Generator) -> ClassedBoxes:
    """Write the label of a scene with a fault."""
    boxes, classes = scene.asked.boxes.copy(), scene.asked.classes.copy()
    at = int(chance.integers(len(boxes)))
    sides = np.tile(boxes[at, 2:] - boxes[at, :2], 2)
    match kind.fault:
        case "another object":
            return ClassedBoxes(scene.others.boxes[-1:], classes)
        case "badly drawn":
            # One or two edges are at another place: a part is left out, or something is added.
            edges = chance.permutation(4)[: chance.integers(1, 3)]
            outwards = np.array([-1, -1, 1, 1])[edges]
            reach = np.where(chance.random(len(edges)) < 0.5, -0.35, 0.5)
            boxes[at, edges] += outwards * reach * sides[edges]
        case "missing":
            boxes, classes = np.delete(boxes, at, 0), np.delete(classes, at)
        case "wrong class":
            classes[at] = (classes[at] + chance.integers(1, CLASSES)) % CLASSES
        case "twice":
            again = boxes[at] + chance.normal(0, 0.04, 4) * sides
            boxes = np.concatenate([boxes, again[None]])
            classes = np.append(classes, classes[at])
        case _:  # On nothing, of another class
            boxes = np.concatenate([boxes, scene.others.boxes[-1:]])
            classes = np.append(classes, scene.others.classes[-1])
    return ClassedBoxes(boxes, classes)


class _Answering:
    """Models that answer one query."""

    def __init__(
        self,
        scene: _Scene,
        errors: Array,
        correlation: float,
        favourite: float,
        chance: Generator,
    ) -> None:
        self.scene = scene
        self.chance = chance
        self.relative = errors / errors.mean()
        boxes = scene.asked.boxes
        sides = np.sqrt((boxes[:, 2:] - boxes[:, :2]).prod(1))
        small = (np.log(SIDES[1]) - np.log(sides)) / np.log(SIDES[1] / SIDES[0])
        blur = BLUR if chance.random() < BLURRED else 1.0
        mean = errors.mean() * blur * np.clip(2 * small, 0.1, 2)
        self.missed = self._shared(mean, correlation)
        rest = (1 - favourite) / (DISTRACTORS - 2)
        weights = np.array([favourite, *[rest] * (DISTRACTORS - 2)])
        self.weights = weights / weights.sum()
        self.lured = self._shared(errors.mean() * blur * self.weights, correlation)
        self.confused = self._shared(np.full(len(boxes), errors.mean() / 2), correlation)
        self.bias = 0.02 * np.sqrt(correlation) * chance.standard_t(3, boxes.shape)
        self.correlation = correlation

    def answer(self, model: int, boxes_it: float) -> ClassedBoxes | None:
        """Return a model's answer; ``boxes_it`` is how often it boxes the last distractor."""
        chance = self.chance
        scene = self.scene
        boxes, classes = scene.asked
        if chance.random() < FAILED:
            return None
        found = chance.random(len(boxes)) >= self.missed * self.relative[model]
        sides = np.tile(boxes[:, 2:] - boxes[:, :2], 2)
        own = 0.02 * np.sqrt(1 - self.correlation) * chance.standard_t(3, boxes.shape)
        boxes = boxes + np.clip(self.bias + own, -0.3, 0.3) * sides
        if scene.several:
            is_confused = chance.random(len(boxes)) < self.confused * self.relative[model]
            step = np.where(
                chance.random(len(boxes)) < 0.5, 1, chance.integers(1, CLASSES, len(boxes))
            )
            classes = np.where(is_confused, (classes + step) % CLASSES, classes)
        lured = chance.random(DISTRACTORS - 1) < self.lured * self.relative[model]
        if scene.single:
            lured[:] = False
            if not found[0] and chance.random() < 0.8:
                lured[self._favourite()] = True
        extra = np.append(lured, chance.random() < boxes_it)
        return ClassedBoxes(
            np.concatenate([boxes[found], scene.others.boxes[extra]]),
            np.concatenate([classes[found], scene.others.classes[extra]]),
        )

    def _favourite(self) -> int:
        return int(self.chance.choice(DISTRACTORS - 1, p=self.weights))

    def _shared(self, mean: Array, correlation: float) -> NDArray[np.float64]:
        """Draw what models share: chances of errors, whose variance correlates them."""
        mean = np.clip(mean, 1e-4, 0.9)
        if correlation == 0:
            return mean
        firmness = (1 - correlation) / correlation
        return self.chance.beta(mean * firmness, (1 - mean) * firmness)
