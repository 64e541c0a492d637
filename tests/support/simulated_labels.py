"""Made-up annotations, label errors injected into them, and answers of models that err alike.

Models answer the truth with faults of their own and never see the label. Their errors are
correlated in two ways: objects are hard for all of them, and wrong answers have favourites.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from vlmeval_findit.analysis import ClassedBoxes, classed_boxes, count_votes
from vlmeval_findit.boxes import iou
from vlmeval_findit.statistics import LabelFault, Votes

WIDTH, HEIGHT = 640.0, 480.0
CLASSES = 6
SHARE = 0.14  # Of labels that are wrong
ACCURACY = 0.85  # Share of objects that a model finds
CORRELATION = 0.3  # Of the errors of models

Generator = np.random.Generator
Box = NDArray[np.float64]


class Task(Enum):
    """What queries ask for."""

    ONE = "one object"
    SET = "every object of a class"
    CLASSES = "every object of several classes"

    @property
    def faults(self) -> tuple[LabelFault, ...]:
        if self is Task.ONE:
            return LabelFault.BOX, LabelFault.WRONG_OBJECT, LabelFault.AMBIGUOUS
        faults = (
            LabelFault.BOX,
            LabelFault.WRONG_OBJECT,
            LabelFault.MISSING,
            LabelFault.SUPERFLUOUS,
        )
        return faults if self is Task.SET else (*faults, LabelFault.WRONG_CLASS)


@dataclass(frozen=True)
class Scene:
    """The objects of an image that a query asks for, and others."""

    asked: ClassedBoxes
    others: ClassedBoxes


@dataclass(frozen=True)
class Label:
    """What an annotator wrote, with the injected fault (None: it is right)."""

    written: ClassedBoxes
    fault: LabelFault | None


@dataclass(frozen=True)
class World:
    """Scenes with their labels, and what models answer."""

    task: Task
    scenes: Sequence[Scene]
    labels: Sequence[Label]
    answers: Sequence[Sequence[ClassedBoxes]]  # By model, by scene

    @property
    def wrong(self) -> NDArray[np.bool_]:
        return np.array([label.fault is not None for label in self.labels])

    def votes(self, models: int | None = None) -> Votes:
        """Return the votes of the first models."""
        labels = [label.written for label in self.labels]
        return count_votes(labels, self.answers[:models], self.task is Task.ONE)


def simulate(
    task: Task,
    rows: int,
    seed: int,
    models: int = 3,
    accuracy: float = ACCURACY,
    correlation: float = CORRELATION,
    share: float = SHARE,
    spread: float = 0.04,
) -> World:
    """Simulate a world; accuracies of models lie within ``spread`` of the given one."""
    chance = np.random.default_rng([seed, *task.value.encode()])
    scenes = [_scene(task, chance) for _ in range(rows)]
    wrong = set(chance.permutation(rows)[: round(share * rows)].tolist())
    labels = [label_of(task, scene, row in wrong, chance) for row, scene in enumerate(scenes)]
    accuracies = accuracy + np.linspace(-spread, spread, models) if models > 1 else [accuracy]
    answering = _Answering(task, [float(each) for each in accuracies], correlation, chance)
    pairs = zip(scenes, labels, strict=True)
    by_scene = [answering.answers(scene, label) for scene, label in pairs]
    return World(task, scenes, labels, list(zip(*by_scene, strict=True)))


# --- scenes and labels ----------------------------------------------------------------------------


def iou_of(one: Box, others: Box) -> Box:
    """Return the IoU of a box (4,) with others (n, 4)."""
    others = np.asarray(others, float).reshape(-1, 4)
    return np.asarray(iou(np.tile(one, (len(others), 1)), others))


def _scene(task: Task, chance: Generator) -> Scene:
    count = 1 if task is Task.ONE else int(chance.integers(1, 6))
    boxes = apart(count, [], 0.4, chance)
    others = apart(4, boxes, 0.3, chance)
    classes = [int(chance.integers(CLASSES)) if task is Task.CLASSES else 0 for _ in boxes]
    other_classes = [int(each) for each in chance.choice(classes, len(others))]
    return Scene(classed_boxes(boxes, classes), classed_boxes(others, other_classes))


def apart(
    count: int,
    before: Sequence[Box],
    most: float,
    chance: Generator,
    image: tuple[float, float] = (WIDTH, HEIGHT),
) -> list[Box]:
    """Draw boxes that overlap none of each other, or of those before, by more than an IoU."""
    made: list[Box] = []
    while len(made) < count:
        size = np.array(image) * np.exp(chance.uniform(np.log(0.06), np.log(0.5), 2))
        corner = chance.random(2) * (np.array(image) - size)
        box = np.concatenate([corner, corner + size])
        if iou_of(box, np.array([*before, *made])).max(initial=0) < most:
            made.append(box)
    return made


def _moved(box: Box, low: float, high: float, chance: Generator) -> Box:
    """Move the edges of a box until its IoU with itself lies between two values."""
    sides = np.tile(box[2:] - box[:2], 2)
    for spread in np.tile(np.linspace(0.05, 0.5, 20), 10):
        moved: Box = box + chance.normal(0, spread, 4) * sides
        if (moved[2:] > moved[:2] + 1).all() and low <= iou_of(box, moved)[0] <= high:
            return moved
    shifted: Box = box + 0.3 * sides
    return shifted


def label_of(
    task: Task, scene: Scene, is_wrong: bool, chance: Generator, of_classes: int = CLASSES
) -> Label:
    """Write the label of a scene, with one of the task's faults if it is to be wrong."""
    boxes = scene.asked.boxes.copy()
    classes = scene.asked.classes.copy()
    if not is_wrong:
        return Label(ClassedBoxes(boxes, classes), None)
    faults = [each for each in task.faults if len(boxes) > 1 or each is not LabelFault.MISSING]
    fault = faults[int(chance.integers(len(faults)))]
    at = int(chance.integers(len(boxes)))
    match fault:
        case LabelFault.BOX:
            boxes[at] = _moved(boxes[at], 0.3, 0.75, chance)
        case LabelFault.WRONG_OBJECT:
            boxes[at] = scene.others.boxes[int(chance.integers(len(scene.others.boxes)))]
        case LabelFault.MISSING:
            boxes, classes = np.delete(boxes, at, 0), np.delete(classes, at)
        case LabelFault.SUPERFLUOUS:
            boxes = np.concatenate([boxes, scene.others.boxes[-1:]])
            classes = np.append(classes, scene.others.classes[-1])
        case LabelFault.WRONG_CLASS:
            classes[at] = (classes[at] + chance.integers(1, of_classes)) % of_classes
        case LabelFault.AMBIGUOUS:
            pass  # The first of the other objects is right as well.
    return Label(ClassedBoxes(boxes, classes), fault)


# --- models ---------------------------------------------------------------------------------------


class _Answering:
    """Models that err alike."""

    def __init__(
        self, task: Task, accuracies: Sequence[float], correlation: float, chance: Generator
    ) -> None:
        self.task = task
        self.accuracies = accuracies
        self.correlation = correlation
        self.chance = chance
        many = chance.normal(size=20_000)
        self.limits = [float(np.quantile(many, 1 - accuracy)) for accuracy in accuracies]
        # Mean error of the edges of each model, in sides of the box
        self.looseness = np.linspace(0.025, 0.055, len(accuracies))

    def answers(self, scene: Scene, label: Label) -> list[ClassedBoxes]:
        """Return the answer of each model to the query of a scene."""
        chance = self.chance
        shared = _Shared(
            ease=chance.normal(size=len(scene.asked.boxes)),
            drift=chance.normal(size=scene.asked.boxes.shape),
            draw=float(chance.random()),
            favourite=int(chance.integers(len(scene.others.boxes))),
            kind_of_error=float(chance.random()),
            wrong_class=int(chance.integers(CLASSES)),
        )
        is_ambiguous = label.fault is LabelFault.AMBIGUOUS
        one = self.task is Task.ONE
        answer = self._one_object if one else self._set
        return [answer(model, scene, shared, is_ambiguous) for model in range(len(self.accuracies))]

    def _one_object(
        self, model: int, scene: Scene, shared: _Shared, is_ambiguous: bool
    ) -> ClassedBoxes:
        chance = self.chance
        meant = scene.asked
        if is_ambiguous and self._alike(shared.draw, chance.random) < 0.5:
            meant = ClassedBoxes(scene.others.boxes[:1], meant.classes)
        if self._latent(shared)[0] > self.limits[model]:
            return meant._replace(boxes=self._loosely(model, meant.boxes, shared))
        kind = self._alike(shared.kind_of_error, chance.random)
        if kind < 0.65:
            other = scene.others.boxes[self._favourite(scene, shared, is_ambiguous)]
            return meant._replace(boxes=_moved(other, 0.75, 0.95, chance)[None])
        if kind < 0.85:
            return meant._replace(boxes=_moved(meant.boxes[0], 0.15, 0.45, chance)[None])
        return classed_boxes([], [])

    def _set(self, model: int, scene: Scene, shared: _Shared, is_ambiguous: bool) -> ClassedBoxes:
        chance = self.chance
        error = 1 - self.accuracies[model]
        boxes = self._loosely(model, scene.asked.boxes, shared)
        classes = scene.asked.classes.copy()
        if self.task is Task.CLASSES:
            for at in np.flatnonzero(chance.random(len(classes)) < error / 2).tolist():
                classes[at] = self._alike(shared.wrong_class, lambda: chance.integers(CLASSES))
        found = self._latent(shared) > self.limits[model]
        boxes, classes = boxes[found], classes[found]
        if self._alike(shared.draw, chance.random) < error:
            at = self._favourite(scene, shared, is_ambiguous)
            extra = _moved(scene.others.boxes[at], 0.75, 0.95, chance)
            boxes = np.concatenate([boxes, extra[None]])
            classes = np.append(classes, scene.others.classes[at])
        return ClassedBoxes(boxes, classes)

    def _alike(self, shared: float, own: Callable[[], float]) -> float:
        """Return what models share, as often as they err alike; else a draw of one's own."""
        return shared if self.chance.random() < self.correlation else own()

    def _mixed(self, shared: Box) -> Box:
        """Mix normal draws that models share with draws of one's own."""
        own = self.chance.normal(size=shared.shape)
        mixed: Box = np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * own
        return mixed

    def _latent(self, shared: _Shared) -> Box:
        return self._mixed(shared.ease)

    def _loosely(self, model: int, boxes: Box, shared: _Shared) -> Box:
        sides = np.tile(boxes[:, 2:] - boxes[:, :2], 2)
        loose: Box = boxes + self._mixed(shared.drift) * self.looseness[model] * sides
        return loose

    def _favourite(self, scene: Scene, shared: _Shared, is_ambiguous: bool) -> int:
        """Return the place of a wrong object; the first of an ambiguous query is right."""
        count = len(scene.others.boxes)
        at = int(self._alike(shared.favourite, lambda: self.chance.integers(count)))
        return min(at + is_ambiguous, count - 1)


@dataclass(frozen=True)
class _Shared:
    """What models share about a scene."""

    ease: Box  # How easy each object is to find
    drift: Box  # Where its edges seem to be
    draw: float
    favourite: int  # Place of the wrong object
    kind_of_error: float
    wrong_class: int
