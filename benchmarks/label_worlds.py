"""Made-up labels with faults of one kind, and the answers of models that err alike.

Objects lie in cells of a grid, so that none overlaps another. Whether a model finds an object is a
one-factor probit: ``correlation`` is that of the latent ease of two models. Wrong boxes, wrong
classes and drifting edges are shared as often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlmeval_findit.analysis import ClassedBoxes, count_votes
from vlmeval_findit.statistics import Votes

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

COLUMNS, ROWS_OF_CELLS = 8, 8
CELL = 80.0  # Sides of a cell in pixels
CLASSES = 6
MOST_MODELS = 5
ACCURACY = (0.85, 0.95)  # Of the worst and the best model
CONFUSED = 0.1  # Share of objects of another class that a model boxes all the same


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
    answers: Sequence[Sequence[ClassedBoxes]]  # By model, by query

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
) -> LabelWorld:
    """Make a world of five models; in crowds a query has 10 to 30 objects, not 1 to 4."""
    chance = np.random.default_rng([seed, *repr((kind, share, correlation, crowds)).encode()])
    scenes = _scenes(kind.asked, crowds, rows, chance)
    wrong = np.zeros(rows, bool)
    wrong[chance.permutation(rows)[: round(share * rows)]] = True
    labels = [
        _label(kind, scene, chance) if bad else scene.asked
        for scene, bad in zip(scenes, wrong, strict=True)
    ]
    answering = _Answering(kind, correlation, accuracy, chance)
    by_scene = [
        answering.answers(scene, bool(bad)) for scene, bad in zip(scenes, wrong, strict=True)
    ]
    return LabelWorld(kind, labels, wrong, list(zip(*by_scene, strict=True)))


# --- scenes and labels ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scene:
    """The objects that a query asks for, and four places where there may be others."""

    asked: ClassedBoxes
    others: ClassedBoxes


def _scenes(asked: Asked, crowds: bool, rows: int, chance: np.random.Generator) -> list[_Scene]:
    fewest, most = (10, 30) if crowds else (1, 4)
    if asked is Asked.ONE:
        fewest = most = 1
    return [_scene(asked, int(chance.integers(fewest, most + 1)), chance) for _ in range(rows)]


def _scene(asked: Asked, objects: int, chance: np.random.Generator) -> _Scene:
    cells = chance.permutation(COLUMNS * ROWS_OF_CELLS)[: objects + 4]
    corners = CELL * np.column_stack([cells % COLUMNS, cells // COLUMNS])
    sides = chance.uniform(0.35, 0.75, (len(cells), 2)) * CELL
    first = corners + chance.random((len(cells), 2)) * (CELL - sides)
    boxes = np.concatenate([first, first + sides], axis=1)
    classes = np.zeros(len(cells), np.intp)
    if asked is Asked.CLASSES:
        classes = chance.integers(0, CLASSES, len(cells))
    return _Scene(
        ClassedBoxes(boxes[:objects], classes[:objects]),
        ClassedBoxes(boxes[objects:], classes[objects:]),
    )


def _label(kind: Kind, scene: _Scene, chance: np.random.Generator) -> ClassedBoxes:
    """Write the label of a scene with a fault."""
    boxes, classes = scene.asked.boxes.copy(), scene.asked.classes.copy()
    at = int(chance.integers(len(boxes)))
    match kind.fault:
        case "another object":
            return ClassedBoxes(scene.others.boxes[-1:], classes)
        case "badly drawn":
            sides = np.tile(boxes[at, 2:] - boxes[at, :2], 2)
            boxes[at] += sides * chance.choice([-0.2, 0.2], 4)
        case "missing":
            boxes, classes = np.delete(boxes, at, 0), np.delete(classes, at)
        case "wrong class":
            classes[at] = (classes[at] + chance.integers(1, CLASSES)) % CLASSES
        case "twice":
            again = boxes[at] + chance.normal(0, 0.05, 4) * np.tile(
                boxes[at, 2:] - boxes[at, :2], 2
            )
            boxes, classes = np.concatenate([boxes, again[None]]), np.append(classes, classes[at])
        case _:  # On nothing, of another class
            boxes = np.concatenate([boxes, scene.others.boxes[-1:]])
            classes = np.append(classes, scene.others.classes[-1])
    return ClassedBoxes(boxes, classes)


# --- models ---------------------------------------------------------------------------------------


class _Answering:
    """Models that err alike."""

    def __init__(
        self,
        kind: Kind,
        correlation: float,
        accuracy: tuple[float, float],
        chance: np.random.Generator,
    ) -> None:
        self.kind = kind
        self.correlation = correlation
        self.chance = chance
        worst, best = accuracy
        order = [0.5, 0.0, 1.0, 0.25, 0.75]  # The first two and three are not the worst
        self.accuracies = worst + (best - worst) * np.array(order)
        self.limits = np.array([NormalDist().inv_cdf(1 - each) for each in self.accuracies])

    def answers(self, scene: _Scene, is_wrong: bool) -> list[ClassedBoxes]:
        """Return the answer of each model to the query of a scene."""
        objects = len(scene.asked.boxes)
        found = self._mixed((objects,)) > self.limits[:, None]
        noise = 0.04 * self._mixed(scene.asked.boxes.shape)
        names = self._names(scene.asked.classes)
        errs = self._alike((), self.chance.random) < 1 - self.accuracies
        wrong_cell = self._alike((), lambda size: self.chance.integers(3, size=size)).astype(int)
        confused = self._alike((), self.chance.random) < CONFUSED
        answers = []
        for model in range(MOST_MODELS):
            boxes = scene.asked.boxes
            sides = np.tile(boxes[:, 2:] - boxes[:, :2], 2)
            boxes = (boxes + sides * noise[model])[found[model]]
            classes = names[model][found[model]]
            others: list[int] = []
            # Asked for one object, a model that misses it mostly boxes another.
            if errs[model] if self.kind.asked is not Asked.ONE else not found[model].any():
                others.append(wrong_cell[model])
            if is_wrong and self.kind is Kind.OTHER_CLASS and confused[model]:
                others.append(len(scene.others.boxes) - 1)
            boxes = np.concatenate([boxes, scene.others.boxes[others]])
            classes = np.append(classes, scene.others.classes[others])
            answers.append(ClassedBoxes(boxes, classes.astype(np.intp)))
        return answers

    def _names(self, classes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the class that each model names for each object, (5, objects)."""
        if self.kind.asked is not Asked.CLASSES:
            return np.tile(classes, (MOST_MODELS, 1))
        errs = self._alike(classes.shape, self.chance.random) < (1 - self.accuracies[:, None]) / 2
        instead = self._alike(classes.shape, lambda size: self.chance.integers(CLASSES, size=size))
        named: NDArray[np.intp] = np.where(errs, instead, classes).astype(np.intp)
        return named

    def _mixed(self, shape: tuple[int, ...]) -> Array:
        """Mix normal draws that models share with draws of their own, (5, *shape)."""
        shared = self.chance.normal(size=shape)
        own = self.chance.normal(size=(MOST_MODELS, *shape))
        mixed: Array = np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * own
        return mixed

    def _alike(self, shape: tuple[int, ...], draw: Callable[..., Any]) -> Array:
        """Return what models share, as often as they err alike; else draws of their own."""
        shared = np.asarray(draw(size=shape))
        own = np.asarray(draw(size=(MOST_MODELS, *shape)))
        is_shared = self.chance.random((MOST_MODELS, *shape)) < self.correlation
        alike: Array = np.where(is_shared, shared, own)
        return alike
