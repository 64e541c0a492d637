"""Training samples of FindIt-Nano-SigLIP: pairs of scenes of the train split, with captions.

A caption is complete, as the pairs' captions are, or names some objects and some attributes, in any
order. An omission never makes it true of the other scene.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from training.pairs import (
    ATTRIBUTES,
    ScenePair,
    attribute_of,
    phrase,
    scene_pair,
    tells_apart,
    values_of,
)
from training.questions import shuffled
from training.samples import draw
from training.scenes import SPLITS, Scene
from vlmeval_findit.data import Rng, Stream, draw_name, rng_of

OPENINGS = ("", "", "there is ", "a picture of ", "this image shows ")
SEPARATORS = ("; ", ", ", ", ", " and ", ". ")

_STREAM = 1  # The stream of random numbers of a step's pairs; FindIt-Nano's steps use another


class PairSample(NamedTuple):
    """A pair of scenes with a caption of each."""

    pair: ScenePair
    captions: tuple[str, str]


def plain_sample(seed: int) -> PairSample:
    """Return the pair of a seed with its complete captions."""
    pair = scene_pair(seed)
    return PairSample(pair, (pair.left_caption, pair.right_caption))


def varied_sample(rng: Rng, seed: int) -> PairSample:
    """Return the pair of a seed with captions that omit or reorder something."""
    pair = scene_pair(seed)
    left = [values_of(thing, pair.left) for thing in pair.left.things]
    right = [values_of(thing, pair.right) for thing in pair.right.things]
    names = [_some(rng, 0.6) for _ in left]
    names[0] = sorted({*names[0], pair.attribute}, key=[*ATTRIBUTES].index)
    if not tells_apart(left, right, names[0]):
        names[0] = [*ATTRIBUTES]
    order = [0, *(i for i in range(1, len(names)) if rng.randint(3))]
    if rng.randint(2):
        order = shuffled(rng, order)
    opening = draw_name(rng, OPENINGS)
    separator = draw_name(rng, SEPARATORS)
    captions = [
        opening + separator.join(phrase(things[i], names[i]) for i in order)
        for things in (left, right)
    ]
    return PairSample(pair, (captions[0], captions[1]))


def _some(rng: Rng, share: float) -> list[str]:
    return [name for name in ATTRIBUTES if rng.random_sample() < share]


def samples_of(
    seed: int, step: int, pairs: int, plain: float, shares: Mapping[str, float]
) -> list[PairSample]:
    """Return the samples of a step.

    ``plain`` is the share of pairs with complete captions, ``shares`` are weights of the attributes
    in which pairs differ.
    """
    rng = rng_of(Stream.BATCH, seed, step, 1, _STREAM)
    drawn = []
    for _ in range(pairs):
        attribute = draw(rng, shares)
        pair_seed = _train_seed(rng)
        while attribute_of(pair_seed) != attribute:
            pair_seed = _train_seed(rng)
        drawn.append(_sample(rng, pair_seed, plain))
    return drawn


def corpus(seed: int, tens: int, plain: float) -> list[str]:
    """Return captions to learn a tokenizer from, of ``tens`` times ten pairs."""
    captions: list[str] = []
    for ten in range(tens):
        rng = rng_of(Stream.BATCH, seed, ten, 0, _STREAM)
        for _ in range(10):
            captions += _sample(rng, _train_seed(rng), plain).captions
    return captions


def _train_seed(rng: Rng) -> int:
    split = SPLITS["train"]
    return split.start + int(rng.random_sample() * len(split))


def _sample(rng: Rng, seed: int, plain: float) -> PairSample:
    return plain_sample(seed) if rng.random_sample() < plain else varied_sample(rng, seed)


# --- targets of the auxiliary losses --------------------------------------------------------------

# Every value of every attribute, with the attribute
VALUES = tuple((name, value) for name, values in ATTRIBUTES.items() for value in values)
_NUMBERS = {value: i for i, value in enumerate(VALUES)}

# Numbers of two values that an object may have together
BONDS = tuple(
    (a, b) for a, b in combinations(range(len(VALUES)), 2) if VALUES[a][0] != VALUES[b][0]
)
_BOND_NUMBERS = {bond: i for i, bond in enumerate(BONDS)}

NOTHING = -1


def cells_of(scene: Scene, grid: int) -> Any:
    """Return the object under the middle of each patch: (grid * grid) x 5 values, -1 for none.

    Patches are counted by rows; the image is stretched to the grid.
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
    """Return which values, and which two values of one object, a scene has: zeros and ones."""
    facts = np.zeros(len(VALUES) + len(BONDS), dtype=np.float32)
    for thing in scene.things:
        numbers = [_NUMBERS[item] for item in values_of(thing, scene).items()]
        facts[numbers] = 1
        for bond in combinations(sorted(numbers), 2):
            facts[len(VALUES) + _BOND_NUMBERS[bond]] = 1
    return facts
