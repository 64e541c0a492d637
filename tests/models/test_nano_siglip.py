"""The FindIt-Nano-SigLIP that ships: a small SigLIP that tells rendered pairs apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from late import Late

from training.pairs import scene_pair
from vlmeval_findit import models
from vlmeval_findit.models import NANO_SIGLIP, checkpoint_of

siglip = Late("training.siglip.evaluate")
FOLDER = Path(checkpoint_of(NANO_SIGLIP))
LEAST = 90.0
"""Percent of pairs that it must get right."""


@pytest.fixture(scope="module", autouse=True)
def _needed() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")


def test_it_is_a_few_megabytes_of_a_real_siglip() -> None:
    files = [path for path in FOLDER.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 6e6
    config = json.loads((FOLDER / "config.json").read_text())
    assert config["architectures"] == ["SiglipModel"]
    facts = models.named_encoder(NANO_SIGLIP).facts
    assert facts["identifier"] == NANO_SIGLIP
    assert facts["as trained"] == "padded to 64 tokens, not masked"


def test_captions_of_pairs_are_not_cut() -> None:
    captions = [scene_pair(seed).left_caption for seed in range(100)]
    assert 30 < max(models.Towers(str(FOLDER)).lengths(captions)) <= 64


@pytest.mark.slow
def test_it_tells_pairs_apart_and_shuffled_captions_do_not() -> None:
    scores = siglip.evaluate(NANO_SIGLIP, "test", 150)
    assert all(percent >= LEAST - 5 for percent in scores.percents().values())
    assert scores.percents()["all"] >= LEAST
    assert 12 < 100 * scores.shuffled.mean() < 38
    assert 100 * scores.unpadded.mean() < scores.percents()["all"]
