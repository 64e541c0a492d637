"""Samples of FindIt-Nano-SigLIP: pairs of scenes with captions that tell them apart."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from late import Late

from training.pairs import ATTRIBUTES, CHANGES, scene_pair, values_of
from training.scenes import SPLITS
from training.siglip import samples
from training.siglip.samples import BONDS, NOTHING, VALUES
from vlmeval_findit.data import Rng

torch = Late("torch")
model = Late("training.siglip.model")


@pytest.fixture(scope="module", autouse=True)
def _needed() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")


def test_samples_are_of_the_train_split_and_of_their_step() -> None:
    shares = dict.fromkeys(CHANGES, 1.0)
    twice = [samples.samples_of(7, 3, 4, 0.5, shares) for _ in range(2)]
    assert [entry.captions for entry in twice[0]] == [entry.captions for entry in twice[1]]
    assert twice[0][0].captions != samples.samples_of(7, 4, 4, 0.5, shares)[0].captions
    seeds = [samples._train_seed(np.random.RandomState(i)) for i in range(200)]
    assert all(seed in SPLITS["train"] for seed in seeds)
    assert len({*seeds}) == 200


def test_pairs_differ_in_what_a_stage_asks_for() -> None:
    built = samples.samples_of(7, 0, 40, 1.0, {"shape": 3, "size": 1})
    actual = Counter(sample.pair.attribute for sample in built)
    assert actual.keys() == {"shape", "size"}
    assert actual["shape"] > actual["size"]


@pytest.mark.slow
def test_a_varied_caption_keeps_what_tells_images_apart() -> None:
    for seed in range(300):
        sample = samples.varied_sample(Rng(seed), seed)
        pair = sample.pair
        assert sample.captions[0] != sample.captions[1]
        sides = ((pair.left, pair.right), (pair.right, pair.left))
        for caption, (scene, other) in zip(sample.captions, sides, strict=True):
            reported = values_of(scene.things[0], scene)
            assert reported[pair.attribute] in caption
            # The words about the first object are true of no object in the other image.
            stored = [name for name in ATTRIBUTES if reported[name] in caption]
            values = [values_of(thing, other) for thing in other.things]
            assert all(any(of[name] != reported[name] for name in stored) for of in values)


def test_patches_and_facts_are_those_of_the_scene() -> None:
    scene = scene_pair(2).left
    cells = samples.cells_of(scene, 10).reshape(10, 10, len(ATTRIBUTES))
    for thing in scene.things:
        x, y = thing.centre
        values = values_of(thing, scene)
        under = cells[int(y / scene.height * 10), int(x / scene.width * 10)]
        shown = [names[i] for names, i in zip(ATTRIBUTES.values(), under, strict=True)]
        assert shown == [values[name] for name in ATTRIBUTES]
    assert (cells[..., 0] == NOTHING).any()
    facts = samples.facts_of(scene)
    there = {VALUES[i] for i in np.flatnonzero(facts[: len(VALUES)])}
    assert there == {item for t in scene.things for item in values_of(t, scene).items()}
    bonds = {BONDS[i] for i in np.flatnonzero(facts[len(VALUES) :])}
    looks = (("texture", "striped"), ("colour", "green"), ("shape", "ring"))
    striped, green, ring = map(VALUES.index, looks)
    assert (striped, green) in bonds
    assert (green, ring) not in bonds


def test_both_captions_must_be_as_near_to_their_own_image() -> None:
    x, y = [1.0, 0.0], [0.0, 1.0]
    images = torch.tensor([x, y] * 3)
    captions = torch.tensor([x, y, y, x, x, x]) * 5
    assert model.both_right(images, captions).tolist() == [True, False, False]
    assert model.both_right(images[:2] * 0 + 1, captions[:2]).tolist() == [True], "ties are right"
