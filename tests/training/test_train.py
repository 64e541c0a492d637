"""The trainer: each recipe trains, continues after a kill, and leaves a card that says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from late import Late
from small_recipes import NANO, NANO_PX, SIGLIP, small_recipe

from training.recipe import RECIPES
from vlmeval_findit.models import ENCODERS, SHIPPED

torch = Late("torch")
train = Late("training.train")
architecture = Late("training.nano.architecture")
learner = Late("training.nano.learner")
siglip_learner = Late("training.siglip.learner")


@pytest.fixture(scope="module", autouse=True)
def _needed() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")


@pytest.fixture
def quick_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner.NanoLearner, "validate", lambda self, folder: {"Scenes_mini": 0.0})


def weights(training: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(training / "checkpoint" / "model.safetensors")


def steps_of(training: Path) -> list[int]:
    lines = (training / "curve.jsonl").read_text().splitlines()
    return [json.loads(line)["step"] for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("name", [NANO, NANO_PX, SIGLIP])
def test_a_stopped_training_continues_as_if_it_had_not_been(
    name: str, quick_validation: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = small_recipe(name, tmp_path)
    whole = tmp_path / "whole"
    stopped = tmp_path / "stopped"
    train.train(recipe, whole, report_every=2)
    training = train.Training(train.learner_of(recipe))
    for step in range(2):
        training.advance(training.learner.batch(step))
    training.save(stopped)
    # Lines of steps after the save, as a killed training leaves them.
    (stopped / "curve.jsonl").write_text('{"step": 2}\n{"step": 3}\n')
    # A tokenizer learnt again might differ if a prompt was reworded in between.
    monkeypatch.setattr("training.nano.architecture.build_tokenizer", None)
    monkeypatch.setattr("training.siglip.learner.build_tokenizer", None)
    train.train(recipe, stopped, report_every=2)
    expected, actual = weights(whole), weights(stopped)
    assert all(torch.equal(expected[name], actual[name]) for name in expected)
    assert steps_of(stopped) == steps_of(whole) == [2, 4]


@pytest.mark.slow
@pytest.mark.parametrize("name", [NANO, SIGLIP])
def test_a_training_leaves_a_checkpoint_with_a_card(
    name: str, quick_validation: None, tmp_path: Path
) -> None:
    recipe = small_recipe(name, tmp_path)
    out = tmp_path / "out"
    train.main([str(recipe), "--out", str(out), "--report-every", "2"])
    assert steps_of(out) == [2, 4]
    (line,) = (out / "validation.jsonl").read_text().splitlines()
    assert json.loads(line)["step"] == 4
    shipped = Path({**ENCODERS, **SHIPPED}[yaml.safe_load(recipe.read_text())["model"]])
    files = {path.name for path in (out / "checkpoint").iterdir()}
    assert files == {path.name for path in shipped.iterdir()}
    card = (out / "checkpoint" / "README.md").read_text()
    assert recipe.read_text().strip() in card
    assert "run as it stands" in card
    recipe.write_text(recipe.read_text().replace("seed: ", "seed: 9"))
    with pytest.raises(ValueError, match="begun with another recipe"):
        train.main([str(recipe), "--out", str(out)])


@pytest.mark.slow
@pytest.mark.parametrize("name", [NANO, SIGLIP])
def test_losses_fall(name: str, tmp_path: Path) -> None:
    training = train.Training(train.learner_of(small_recipe(name, tmp_path)))
    batch = training.learner.batch(0)
    first = training.advance(batch)
    for _ in range(8):
        training.step = 1
        last = training.advance(batch)
    for part in ("reply", "cells", "pointers", "phrases", "sigmoid"):
        if part in first:
            assert last[part] < first[part], part


def test_importing_vlmevalkit_does_not_stop_a_training(tmp_path: Path) -> None:
    """``import vlmeval`` calls ``torch.set_grad_enabled(False)`` for the whole process."""
    training = train.Training(train.learner_of(small_recipe(SIGLIP, tmp_path)))
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        assert training.advance(training.learner.batch(0))["norm"] > 0
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(before)


@pytest.mark.parametrize(
    ("name", "right", "wrong", "message"),
    [
        (NANO, "warmup", "warm_up", "warm_up"),
        (NANO, "formats: {output", "formats: {out_put", "out_put"),
        (NANO, "{scenes: 1}", "{scene: 1}", "unknown kind 'scene' of samples"),
        (SIGLIP, "sharpness", "sharp_ness", "sharp_ness"),
    ],
)
def test_a_misspelt_recipe_is_refused(
    name: str, right: str, wrong: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "recipe.yaml"
    text = (RECIPES / f"{name}.yaml").read_text()
    assert right in text
    path.write_text(text.replace(right, wrong))
    with pytest.raises(ValueError, match=rf"recipe\.yaml.*{message}"):
        train.learner_of(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [NANO, SIGLIP])
def test_the_shipped_tokenizer_is_learnt_again(name: str) -> None:
    """The cards say so."""
    if name == NANO:
        recipe = learner.read_nano_recipe(RECIPES / f"{name}.yaml")
        tokenizer = architecture.build_tokenizer(learner.corpus(recipe), recipe.vocabulary)
        folder = SHIPPED["FindIt-Nano"]
    else:
        siglip = siglip_learner.read_siglip_recipe(RECIPES / f"{name}.yaml")
        captions = siglip_learner.samples.corpus(siglip.seed, siglip.corpus // 10, siglip.plain)
        tokenizer = siglip_learner.build_tokenizer(captions, siglip.vocabulary)
        folder = ENCODERS["FindIt-Nano-SigLIP"]
    shipped = json.loads((Path(folder) / "tokenizer.json").read_text())
    built = json.loads(tokenizer.backend_tokenizer.to_str())
    for part in ("vocab", "merges"):
        assert built["model"][part] == shipped["model"][part]
    added = [[token["content"] for token in of["added_tokens"]] for of in (built, shipped)]
    assert added[0] == added[1]


def test_shipped_cards_hold_the_recipes() -> None:
    for path in RECIPES.glob("*.yaml"):
        text = path.read_text()
        folder = Path({**ENCODERS, **SHIPPED}[yaml.safe_load(text)["model"]])
        card = (folder / "README.md").read_text()
        assert f"```yaml\n{text.strip()}\n```" in card
        for part in ("How these weights were made", "Scores", "Validation while training", "Curve"):
            assert f"## {part}" in card
