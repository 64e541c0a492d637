"""What FindIt-Nano-SigLIP is taught: pairs of scenes of the train split, and captions of them.

A caption says of every object all that can be said, as the pairs' own captions do, or less: some
objects, some attributes, in any order.  What is left out never makes it true of the other scene.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from training.lessons import draw
from training.pairs import (
    PLACES,
    ScenePair,
    attribute_of,
    place_word,
    scene_pair,
)
from vlmeval_findit.data.rendered.drawing import COLOURS, SHAPES, TEXTURES, Rng
from vlmeval_findit.data.rendered.scene import HALVES, SPLITS, Scene, Stream, Thing, pick, rng_of

ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "size": tuple(HALVES),
    "texture": tuple(TEXTURES),
    "colour": tuple(COLOURS),
    "shape": tuple(SHAPES),
    "place": tuple(word for row in PLACES for word in row),
}
"""What can be said of an object and its values, in the order in which it is said."""

NO_SHAPE = "shape"
"""The noun of an object whose shape is not said."""
OPENINGS = ("", "", "there is ", "a picture of ", "this image shows ")
SEPARATORS = ("; ", ", ", ", ", " and ", ". ")

_STREAM = 1
"""Names the random numbers of a step's pairs, beside those of FindIt-Nano's."""


class Lesson(NamedTuple):
    """Two pictures, a caption of each, and what they differ in."""

    pair: ScenePair
    captions: tuple[str, str]


def values_of(thing: Thing, scene: Scene) -> dict[str, str]:
    """Everything that can be said of an object, by attribute."""
    where = place_word(thing.centre, (scene.width, scene.height))
    return {**thing.look._asdict(), "size": thing.size, "place": where}


def plain_lesson(seed: int) -> Lesson:
    """The pair of a seed with its own captions."""
    pair = scene_pair(seed)
    return Lesson(pair, (pair.left_caption, pair.right_caption))


def varied_lesson(rng: Rng, seed: int) -> Lesson:
    """The pair of a seed with captions that leave something out, say it in another order."""
    pair = scene_pair(seed)
    things = [
        [values_of(thing, scene) for thing in scene.things] for scene in (pair.left, pair.right)
    ]
    kept = [_some(rng, ATTRIBUTES, 0.6) for _ in things[0]]
    kept[0] = sorted({*kept[0], pair.attribute}, key=[*ATTRIBUTES].index)
    if any(
        all(other[name] == own[0][name] for name in kept[0])
        for own, others in (things, things[::-1])
        for other in others
    ):
        kept[0] = [*ATTRIBUTES]
    order = [0, *(i for i in range(1, len(kept)) if rng.randint(3))]
    if rng.randint(2):
        order = _shuffled(rng, order)
    opening, separator = pick(rng, OPENINGS), pick(rng, SEPARATORS)
    left, right = (
        opening + separator.join(phrase(scene[i], kept[i]) for i in order) for scene in things
    )
    return Lesson(pair, (left, right))


def phrase(values: Mapping[str, str], kept: Collection[str]) -> str:
    """An object in words, as far as its attributes are kept."""
    said = [
        values[name] if name in kept else NO_SHAPE
        for name in ATTRIBUTES
        if name in kept or name == "shape"
    ]
    return f"{'an' if said[0] == 'orange' else 'a'} {' '.join(said)}"


def _some(rng: Rng, names: Mapping[str, object], share: float) -> list[str]:
    return [name for name in names if rng.random_sample() < share]


def _shuffled(rng: Rng, items: Sequence[int]) -> list[int]:
    rest, out = list(items), []
    while rest:
        out.append(rest.pop(rng.randint(len(rest))))
    return out


def lessons_of(
    seed: int, step: int, pairs: int, plain: float, shares: Mapping[str, float]
) -> list[Lesson]:
    """The lessons of a step.

    ``plain`` is the share of pairs that keep their own captions, ``shares`` how often pairs differ
    in each attribute, as weights.
    """
    rng = rng_of(Stream.BATCH, seed, step, 1, _STREAM)
    made = []
    for _ in range(pairs):
        attribute, which = draw(rng, shares), _train_seed(rng)
        while attribute_of(which) != attribute:
            which = _train_seed(rng)
        made.append(_lesson(rng, which, plain))
    return made


def corpus(seed: int, tens: int, plain: float) -> list[str]:
    """Captions to learn a tokenizer from, those of ten pairs at a time."""
    captions: list[str] = []
    for ten in range(tens):
        rng = rng_of(Stream.BATCH, seed, ten, 0, _STREAM)
        for _ in range(10):
            captions += _lesson(rng, _train_seed(rng), plain).captions
    return captions


def _train_seed(rng: Rng) -> int:
    split = SPLITS["train"]
    return split.start + int(rng.random_sample() * len(split))


def _lesson(rng: Rng, seed: int, plain: float) -> Lesson:
    return plain_lesson(seed) if rng.random_sample() < plain else varied_lesson(rng, seed)


# --- what lies where, and what is there at all ----------------------------------------------------

VALUES = tuple((name, value) for name, values in ATTRIBUTES.items() for value in values)
"""Every value of every attribute, by its number."""

_NUMBERS = {value: i for i, value in enumerate(VALUES)}
BONDS = tuple(
    (a, b)
    for a in range(len(VALUES))
    for b in range(a + 1, len(VALUES))
    if VALUES[a][0] != VALUES[b][0]
)
"""Two values that one object may have."""
_BOND_NUMBERS = {bond: i for i, bond in enumerate(BONDS)}

NOTHING = -1


def cells_of(scene: Scene, grid: int) -> Any:
    """What lies under the middle of each patch: (grid * grid) x 5 values, -1 where nothing does.

    Patches are counted by rows; the picture fills the grid, whatever its sides.
    """
    cells = np.full((grid, grid, len(ATTRIBUTES)), NOTHING)
    x = (np.arange(grid) + 0.5) / grid * scene.width
    y = (np.arange(grid) + 0.5) / grid * scene.height
    for thing in scene.things:
        x1, y1, x2, y2 = thing.box
        values = values_of(thing, scene)
        inside = np.ix_((y1 <= y) & (y < y2), (x1 <= x) & (x < x2))
        cells[inside] = [known.index(values[name]) for name, known in ATTRIBUTES.items()]
    return cells.reshape(-1, len(ATTRIBUTES))


def facts_of(scene: Scene) -> Any:
    """Which values, and which two values of one object, a scene has: zeros and ones."""
    facts = np.zeros(len(VALUES) + len(BONDS), dtype=np.float32)
    for thing in scene.things:
        numbers = [_NUMBERS[item] for item in values_of(thing, scene).items()]
        facts[numbers] = 1
        for i, a in enumerate(numbers):
            for b in numbers[i + 1 :]:
                facts[len(VALUES) + _BOND_NUMBERS[min(a, b), max(a, b)]] = 1
    return facts
