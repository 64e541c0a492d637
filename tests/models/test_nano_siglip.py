"""FindIt-Nano-SigLIP: what it is taught, how it is trained, and the checkpoint that ships."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from training import saving  # noqa: E402
from training.dual_encoder import lessons, train  # noqa: E402
from training.dual_encoder.batches import batch_of  # noqa: E402
from training.dual_encoder.evaluate import evaluate  # noqa: E402
from training.dual_encoder.lessons import ATTRIBUTES, BONDS, NOTHING, VALUES  # noqa: E402
from training.dual_encoder.losses import both_right  # noqa: E402
from training.dual_encoder.recipe import RECIPE as RECIPE_FILE  # noqa: E402
from training.dual_encoder.recipe import read_recipe  # noqa: E402
from training.dual_encoder.train import Training  # noqa: E402
from training.pairs import CHANGES, scene_pair  # noqa: E402
from vlmeval_findit.data.rendered.drawing import Rng  # noqa: E402
from vlmeval_findit.data.rendered.scene import SPLITS  # noqa: E402
from vlmeval_findit.models.dual_encoder.encoder import NANO_SIGLIP, checkpoint_of  # noqa: E402
from vlmeval_findit.models.dual_encoder.towers import Towers, named_encoder  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

FOLDER = Path(checkpoint_of(NANO_SIGLIP))
RECIPE = read_recipe(RECIPE_FILE)
TOWER = {"hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 2}
SMALL = replace(
    RECIPE,
    corpus=20,
    vocabulary=300,
    side=24,
    text={**TOWER, "num_hidden_layers": 1},
    vision={**TOWER, "num_hidden_layers": 1, "image_size": 24, "patch_size": 12},
    pairs=3,
    warmup=2,
    save_every=2,
    evaluate_every=1000,
    validation=4,
    stages=(replace(RECIPE.stages[-1], until=4),),
)
LEAST = 90.0
"""Percent of pairs that the shipped checkpoint must get right, of those of each attribute too."""


# --- what is taught -------------------------------------------------------------------------------


def test_lessons_are_of_the_train_split_and_of_their_step() -> None:
    shares = dict.fromkeys(CHANGES, 1.0)
    twice = [lessons.lessons_of(7, 3, 4, 0.5, shares) for _ in range(2)]
    assert [one.captions for one in twice[0]] == [one.captions for one in twice[1]]
    assert twice[0][0].captions != lessons.lessons_of(7, 4, 4, 0.5, shares)[0].captions
    seeds = [lessons._train_seed(np.random.RandomState(i)) for i in range(200)]
    assert all(seed in SPLITS["train"] for seed in seeds)
    assert len({*seeds}) == 200


def test_pairs_differ_in_what_a_stage_asks_for() -> None:
    made = lessons.lessons_of(7, 0, 40, 1.0, {"shape": 3, "size": 1})
    found = Counter(lesson.pair.attribute for lesson in made)
    assert found.keys() == {"shape", "size"}
    assert found["shape"] > found["size"]


def test_a_varied_caption_leaves_out_nothing_that_tells_the_two_apart() -> None:
    for seed in range(300):
        lesson = lessons.varied_lesson(Rng(seed), seed)
        pair = lesson.pair
        assert lesson.captions[0] != lesson.captions[1]
        for caption, own, other in (
            (lesson.captions[0], pair.left, pair.right),
            (lesson.captions[1], pair.right, pair.left),
        ):
            said = lessons.values_of(own.things[0], own)
            assert said[pair.attribute] in caption
            # At least what is said of the first object is true of none in the other picture.
            values = [lessons.values_of(thing, other) for thing in other.things]
            kept = [name for name in ATTRIBUTES if said[name] in caption]
            assert all(any(of[name] != said[name] for name in kept) for of in values)


def test_patches_and_facts_are_those_of_the_scene() -> None:
    scene = scene_pair(2).left
    cells = lessons.cells_of(scene, 10).reshape(10, 10, len(ATTRIBUTES))
    for thing in scene.things:
        x, y = thing.centre
        values = lessons.values_of(thing, scene)
        under = cells[int(y / scene.height * 10), int(x / scene.width * 10)]
        assert [names[i] for names, i in zip(ATTRIBUTES.values(), under, strict=True)] == [
            values[name] for name in ATTRIBUTES
        ]
    assert (cells[..., 0] == NOTHING).any()
    facts = lessons.facts_of(scene)
    there = {VALUES[i] for i in np.flatnonzero(facts[: len(VALUES)])}
    assert there == {item for t in scene.things for item in lessons.values_of(t, scene).items()}
    bonds = {BONDS[i] for i in np.flatnonzero(facts[len(VALUES) :])}
    striped, green, ring = (
        VALUES.index(item)
        for item in (("texture", "striped"), ("colour", "green"), ("shape", "ring"))
    )
    assert (striped, green) in bonds
    assert (green, ring) not in bonds


# --- the training ---------------------------------------------------------------------------------


def test_a_step_teaches() -> None:
    training = Training(SMALL)
    batch = batch_of(SMALL, lessons.lessons_of(7, 0, 3, 0.5, dict.fromkeys(CHANGES, 1.0)))
    assert batch.ids.shape == (6, 64)
    assert batch.pixels.shape == (6, 3, 24, 24)
    first, *_, last = [training.advance(batch) for _ in range(4)]
    assert last["sigmoid"] < first["sigmoid"]
    assert set(training.validate()) <= {"all", *CHANGES}


def test_both_captions_must_be_as_near_to_their_own_picture() -> None:
    x, y = [1.0, 0.0], [0.0, 1.0]
    pictures = torch.tensor([x, y] * 3)
    captions = torch.tensor([x, y, y, x, x, x]) * 5
    assert both_right(pictures, captions).tolist() == [True, False, False]
    assert both_right(pictures[:2] * 0 + 1, captions[:2]).tolist() == [True], "ties are right"


def test_a_training_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    values = {name: getattr(SMALL, name) for name in SMALL.__dataclass_fields__}
    stages = [{"until": 4, "cells": 1.5, "shares": dict(SMALL.stages[0].shares)}]
    recipe.write_text(yaml.safe_dump({**values, "stages": stages}))
    train.train(recipe, tmp_path / "whole", torch.float32)
    first, second = Training(read_recipe(recipe)), Training(read_recipe(recipe))
    (tmp_path / "parts").mkdir()
    for training in (first, second):
        if training is second:
            saving.save(first, tmp_path / "parts")
            saving.resume(second, tmp_path / "parts")
        for step in range(training.step, training.step + 2):
            shares = training.recipe.stage(step).shares
            made = lessons.lessons_of(SMALL.seed, step, SMALL.pairs, SMALL.plain, shares)
            training.advance(batch_of(training.recipe, made))
    whole, parts = (
        torch.load(tmp_path / "whole" / "training.pt")["model"],
        second.model.state_dict(),
    )
    assert all(torch.equal(weight, parts[name]) for name, weight in whole.items())
    recipe.write_text(recipe.read_text().replace("seed: 7", "seed: 8"))
    with pytest.raises(ValueError, match="begun with another recipe"):
        train.train(recipe, tmp_path / "whole", torch.float32)


# --- the checkpoint that ships --------------------------------------------------------------------


def test_it_is_a_few_megabytes_of_a_real_siglip() -> None:
    files = [path for path in FOLDER.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 6e6
    config = json.loads((FOLDER / "config.json").read_text())
    assert config["architectures"] == ["SiglipModel"]
    facts = named_encoder(NANO_SIGLIP).facts
    assert facts["identifier"] == NANO_SIGLIP
    assert facts["as trained"] == "padded to 64 tokens, not masked"


def test_its_card_holds_the_recipe_that_is_in_the_repository() -> None:
    card = (FOLDER / "README.md").read_text()
    (yaml_text,) = re.findall(r"```yaml\n(.*?)```", card, re.DOTALL)
    assert yaml_text.strip() == RECIPE_FILE.read_text().strip()
    assert "license: apache-2.0" in card
    assert "python -m training.dual_encoder.evaluate" in card


def test_captions_of_pairs_are_not_cut() -> None:
    captions = [scene_pair(seed).left_caption for seed in range(100)]
    assert 30 < max(Towers(str(FOLDER)).lengths(captions)) <= 64


def test_it_tells_pairs_apart_and_shuffled_captions_do_not() -> None:
    metric_values = evaluate(NANO_SIGLIP, "test", 150)
    assert all(metric_values.percent(name) >= LEAST - 5 for name in CHANGES)
    assert metric_values.percent("all") >= LEAST
    assert 12 < 100 * metric_values.shuffled.mean() < 38
    assert 100 * metric_values.unpadded.mean() < metric_values.percent("all")
