"""Questions about a scene: one function for each task family.

Every function takes random numbers and a scene, and returns a label (a name, names, an expression)
with the right boxes, or None if the scene does not allow the question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations
from typing import NamedTuple, TypeVar

from training.scenes import SPLITS, Scene, Thing, shot
from training.scenes import scene as render_scene
from vlmeval_findit.boxes import Corners
from vlmeval_findit.data import (
    COLOURS,
    HALF_SIZES,
    SHAPES,
    TEXTURES,
    Look,
    Rng,
    Stream,
    draw_name,
    rng_of,
)

Item = TypeVar("Item")

ANY_SHAPE = "shape"  # The noun of an expression without a shape


class PosedQuestion(NamedTuple):
    """A question's label and its right answer.

    ``boxes`` are (x1, y1, x2, y2) in pixels of the scene; ``labels[i]`` is the label of box i;
    empty if the question has one label.
    """

    label: str
    boxes: tuple[Corners, ...]
    labels: tuple[str, ...] = ()


def detection(rng: Rng, scene: Scene) -> PosedQuestion:
    """Ask for every object of one shape that is there."""
    shape = draw_name(rng, sorted({thing.look.shape for thing in scene.things}))
    return PosedQuestion(shape, tuple(t.box for t in scene.things if t.look.shape == shape))


def several(rng: Rng, scene: Scene) -> PosedQuestion:
    """Ask for every object of several shapes, most of which are there."""
    present = sorted({thing.look.shape for thing in scene.things})
    absent = [shape for shape in SHAPES if shape not in present]
    shapes = shuffled(rng, present)[: max(2, rng.randint(len(present)) + 1)]
    if rng.randint(4) == 0 or len(shapes) == 1:
        shapes = shuffled(rng, [*shapes, draw_name(rng, absent)])
    things: list[Thing] = []
    for shape in shapes:
        things += [thing for thing in scene.things if thing.look.shape == shape]
    boxes = tuple(thing.box for thing in things)
    labels = tuple(thing.look.shape for thing in things)
    return PosedQuestion(", ".join(shapes), boxes, labels)


# --- expressions ----------------------------------------------------------------------------------

Attribute = Callable[[Thing], str]

# Attributes before the noun, in the order of an expression
ATTRIBUTES: dict[str, Attribute] = {
    "size": lambda thing: thing.size,
    "texture": lambda thing: thing.look.texture,
    "colour": lambda thing: thing.look.colour,
}

# Pixels by which a relation must hold between two centres, so that nobody can doubt it
_MARGIN = 16.0

# By how many pixels the first object is on that side of the second
RELATIONS: dict[str, Callable[[Thing, Thing], float]] = {
    "left of": lambda a, b: b.centre[0] - a.centre[0],
    "right of": lambda a, b: a.centre[0] - b.centre[0],
    "above": lambda a, b: b.centre[1] - a.centre[1],
    "below": lambda a, b: a.centre[1] - b.centre[1],
}


def referring(rng: Rng, scene: Scene) -> PosedQuestion | None:
    """Ask for one object by an expression; its shape alone would mean several."""
    twins = [thing for thing in scene.things if len(_of_same_shape(scene, thing)) > 1]
    if not twins:
        return None
    target = twins[rng.randint(len(twins))]
    by_relation = _relations(scene, target)
    by_attribute = _attributes(scene, target)
    if by_relation and (rng.randint(5) < 2 or not by_attribute):
        words = by_relation[rng.randint(len(by_relation))]
        if rng.randint(2):
            words = f"{ATTRIBUTES[draw_name(rng, [*ATTRIBUTES])](target)} {words}"
    elif by_attribute:
        words = by_attribute[rng.randint(len(by_attribute))]
    else:
        return None
    return PosedQuestion(f"the {words}", (target.box,))


def _of_same_shape(scene: Scene, thing: Thing) -> list[Thing]:
    return [other for other in scene.things if other.look.shape == thing.look.shape]


def _twins(scene: Scene, thing: Thing) -> list[Thing]:
    return [other for other in _of_same_shape(scene, thing) if other is not thing]


def _attributes(scene: Scene, target: Thing) -> list[str]:
    """Return the shortest expressions by attributes that mean the target alone."""
    twins = _twins(scene, target)
    for size in (1, 2, 3):
        expressions = []
        for values_of in combinations(ATTRIBUTES.values(), size):
            words = [value_of(target) for value_of in values_of]
            if words not in [[value_of(twin) for value_of in values_of] for twin in twins]:
                expressions.append(" ".join([*words, target.look.shape]))
        if expressions:
            return expressions
    return []


def _relations(scene: Scene, target: Thing) -> list[str]:
    """Return ``ring left of the cross``: there is one cross, and no other ring is left of it."""
    twins = _twins(scene, target)
    others = [thing for thing in scene.things if thing.look.shape != target.look.shape]
    anchors = [thing for thing in others if len(_of_same_shape(scene, thing)) == 1]
    expressions = []
    for anchor in anchors:
        for name, distance in RELATIONS.items():
            is_clear = distance(target, anchor) >= _MARGIN
            if is_clear and all(distance(twin, anchor) <= 0.0 for twin in twins):
                expressions.append(f"{target.look.shape} {name} the {anchor.look.shape}")
    return expressions


def described(rng: Rng, scene: Scene) -> PosedQuestion:
    """Ask for every object that an expression describes: any number, often none."""
    if rng.randint(3):
        thing = scene.things[rng.randint(len(scene.things))]
        values = {name: value_of(thing) for name, value_of in ATTRIBUTES.items()}
        shape = thing.look.shape
    else:
        values = {"size": draw_name(rng, HALF_SIZES), "texture": draw_name(rng, TEXTURES)}
        values["colour"] = draw_name(rng, COLOURS)
        shape = draw_name(rng, SHAPES)
    named = shuffled(rng, [*ATTRIBUTES])[: 1 + rng.randint(2)]
    adjectives = [values[name] for name in ATTRIBUTES if name in named]
    noun = shape if rng.randint(2) else ANY_SHAPE

    def is_meant(thing: Thing) -> bool:
        has_shape = noun in (ANY_SHAPE, thing.look.shape)
        return has_shape and all(ATTRIBUTES[name](thing) == values[name] for name in named)

    boxes = tuple(thing.box for thing in scene.things if is_meant(thing))
    return PosedQuestion(" ".join([*adjectives, noun]), boxes)


def instance(rng: Rng, scene: Scene) -> tuple[PosedQuestion, Look] | None:
    """Ask for one object that looks like no other, by a reference shot of its look."""
    looks = [thing.look for thing in scene.things]
    single = [thing for thing in scene.things if looks.count(thing.look) == 1]
    if not single:
        return None
    thing = single[rng.randint(len(single))]
    words = f"{thing.look.texture} {thing.look.colour} {thing.look.shape}"
    return PosedQuestion(words, (thing.box,)), thing.look


def in_clip(rng: Rng, frames: Sequence[Scene]) -> tuple[PosedQuestion, tuple[int, ...]]:
    """Ask for every object of one shape in every frame; also return each box's frame, from 0."""
    things = chain.from_iterable(frame.things for frame in frames)
    shape = draw_name(rng, sorted({thing.look.shape for thing in things}))
    boxes: list[Corners] = []
    numbers: list[int] = []
    for number, frame in enumerate(frames):
        for thing in frame.things:
            if thing.look.shape == shape:
                boxes.append(thing.box)
                numbers.append(number)
    return PosedQuestion(shape, tuple(boxes)), tuple(numbers)


def shuffled(rng: Rng, items: Sequence[Item]) -> list[Item]:
    """Shuffle. numpy promises its streams to stay the same, but not its shuffles."""
    rest = list(items)
    return [rest.pop(rng.randint(len(rest))) for _ in items]


# --- sets of scenes -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SceneSet:
    """The size of a set, and the split of its seeds."""

    split: str
    scenes: int
    clips: int


# By the key of the set's image folder
SETS = {
    "Scenes": SceneSet("test", scenes=1000, clips=100),
    "Scenes_mini": SceneSet("validation", scenes=50, clips=10),
    "Scenes_train": SceneSet("train", scenes=400, clips=40),
}


class ShownScene(NamedTuple):
    """A scene of a set with all its questions."""

    seed: int
    scene: Scene
    questions: dict[str, PosedQuestion]
    instance: PosedQuestion
    shot: Scene


def shown_scenes(scenes: SceneSet) -> Iterator[ShownScene]:
    """Yield the scenes of a set, in order."""
    count = 0
    for seed in SPLITS[scenes.split]:
        if count == scenes.scenes:
            return
        shown = _shown(seed)
        if shown is not None:
            count += 1
            yield shown


@lru_cache(maxsize=4096)
def _shown(seed: int) -> ShownScene | None:
    """Return a seed's scene with its questions; None if one of them cannot be asked."""
    shown = render_scene(seed)
    rng = rng_of(Stream.QUESTION, seed)
    expression = referring(rng, shown)
    posed = instance(rng, shown)
    if expression is None or posed is None:
        return None
    questions = {
        "": detection(rng, shown),
        "multilabel": several(rng, shown),
        "refexp": expression,
        "described": described(rng, shown),
    }
    alone, look = posed
    return ShownScene(seed, shown, questions, alone, shot(seed, look))
