"""Dual encoders: features as their models were trained to give them, and their cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import ROOT
from PIL import Image

from vlmeval_findit.models import EncoderError, Padding

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")

import tiny_encoders  # noqa: E402
import transformers as hf  # noqa: E402

from vlmeval_findit.models import Towers, named_encoder, stored_vectors  # noqa: E402

pytestmark = pytest.mark.slow

SHORT = "a small red circle"
LONG = "the quick brown fox jumps over the lazy dog while nobody looks " * 3
CAPTIONS = [SHORT, LONG, "two dogs", "Two dogs", "a blue square in the middle", ""]
FAMILIES = [*tiny_encoders.FAMILIES]
AS_TRAINED = Padding.AS_TRAINED


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    folder = tmp_path_factory.mktemp("encoders")
    return {family: str(tiny_encoders.build(family, folder / family)) for family in FAMILIES}


@pytest.fixture(autouse=True)
def _lmu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lmu").mkdir()
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    """Of several sizes and modes."""
    rng, paths = np.random.default_rng(5), []
    for width, height, mode in ((60, 40, "RGB"), (40, 60, "RGBA"), (32, 32, "L"), (90, 33, "P")):
        paths.append(tmp_path / f"{mode}.png")
        pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).convert(mode).save(paths[-1])
    return paths


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, atol=1e-5)


def cosine(a: Any, b: Any) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


# --- what a feature is ----------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_is_what_its_members_are(
    family: str, checkpoints: Mapping[str, str], pictures: list[Path]
) -> None:
    towers = Towers(checkpoints[family])
    for padding in Padding:
        alone = [towers.texts([caption], padding) for caption in CAPTIONS]
        close(towers.texts(CAPTIONS, padding), np.concatenate(alone))
    together = towers.images(pictures)
    close(together, np.concatenate([towers.images([path]) for path in pictures]))
    assert together.dtype == np.float32
    assert together.shape[1] == towers.texts(CAPTIONS, AS_TRAINED).shape[1]


@pytest.mark.parametrize("family", FAMILIES)
def test_features_are_those_of_the_model_s_own_pipeline(
    family: str, checkpoints: Mapping[str, str], pictures: list[Path]
) -> None:
    """SigLIP's captions are padded to 64 and not masked; CLIP's are projected and cut at 77."""
    folder = checkpoints[family]
    model = hf.AutoModel.from_pretrained(folder)
    processor = hf.AutoProcessor.from_pretrained(folder)
    pixels = processor.image_processor(Image.open(pictures[1]).convert("RGB"), return_tensors="pt")
    clip = family == "CLIP"
    how = {"padding": True, "max_length": 77} if clip else {"padding": "max_length"}
    words = processor.tokenizer([SHORT, LONG], truncation=True, return_tensors="pt", **how)
    with torch.inference_mode():
        seen = model.vision_model(**pixels)[1]
        said = model.text_model(**(words if clip else {"input_ids": words.input_ids}))[1]
        if clip:
            seen, said = model.visual_projection(seen), model.text_projection(said)
    towers = Towers(folder)
    close(towers.images(pictures)[1], seen[0])
    padded, unpadded = (towers.texts([SHORT, LONG], padding) for padding in Padding)
    close(padded, said)
    if clip:
        close(padded[0], unpadded[0])
        assert cosine(padded[1], unpadded[1]) < 0.99, "77 tokens are not 64"
    else:
        assert words.input_ids.shape[1] == 64
        assert cosine(padded[0], unpadded[0]) < 0.9
        assert towers.lengths([LONG])[0] > 64, "it is cut, so that nothing is padded"
        close(padded[1], unpadded[1])


def test_captions_as_they_come(checkpoints: Mapping[str, str]) -> None:
    """One of exactly as many tokens is not cut; half a surrogate pair has features."""
    encoder = named_encoder(checkpoints["CLIP"])
    letters = ["x" * count for count in (62, 63, 75, 76)]
    cut = [encoder.texts(letters, padding).cut for padding in Padding]
    assert cut == [(False, False, False, True), (False, True, True, True)]
    assert encoder.texts(letters, AS_TRAINED).tokens == (64, 65, 77, 78)
    assert np.isfinite(encoder.texts(["\ud83d half a pair"], AS_TRAINED).vectors).all()


# --- facts ----------------------------------------------------------------------------------------


def test_facts_say_what_a_score_depends_on(checkpoints: Mapping[str, str]) -> None:
    siglip, clip = (named_encoder(checkpoints[family]).facts for family in FAMILIES)
    assert siglip["identifier"] == checkpoints["SigLIP"]
    assert siglip["revision"].startswith("sha256:")
    assert siglip["revision"] != clip["revision"]
    assert siglip["image_processor"] == "SiglipImageProcessor (torchvision)"
    assert siglip["as trained"] == "padded to 64 tokens, not masked"
    assert clip["as trained"] == "cut at 77 tokens, masked"
    assert siglip["dtype"] == "float32"
    assert {"device", "torch", "torchvision", "transformers"} <= siglip.keys()


def test_an_identifier_resolves_to_the_cached_commit(
    checkpoints: Mapping[str, str], tmp_path: Path
) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--owner--siglip"
    shutil.copytree(checkpoints["SigLIP"], repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    code = (
        "from vlmeval_findit.models.dual_encoder.towers import named_encoder, Padding\n"
        "encoder = named_encoder('owner/siglip')\n"
        "print(encoder.facts['identifier'], encoder.facts['revision'])\n"
        "print(encoder.texts(['a dog'], Padding.AS_TRAINED).vectors.shape)\n"
    )
    cache = {"HF_HOME": str(tmp_path), "HF_HUB_CACHE": str(tmp_path / "hub")}
    environment = {**os.environ, **cache, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [f"owner/siglip {commit}", "(1, 32)"], done.stderr


def test_what_is_no_dual_encoder_is_refused_by_name(
    checkpoints: Mapping[str, str], tmp_path: Path
) -> None:
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32}
    hf.BertConfig(num_hidden_layers=1, **sizes).save_pretrained(tmp_path)
    with pytest.raises(EncoderError, match=f"{tmp_path}: BertModel is not a dual encoder"):
        named_encoder(str(tmp_path))
    without = shutil.ignore_patterns("*.safetensors")
    folder = shutil.copytree(checkpoints["CLIP"], tmp_path / "damaged", ignore=without)
    with pytest.raises(EncoderError, match=f"{folder}: no weights"):
        named_encoder(str(folder)).texts([SHORT], AS_TRAINED)


# --- what is stored -------------------------------------------------------------------------------


def test_stored_features_need_no_weights(
    checkpoints: Mapping[str, str], pictures: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images are known by their content, under any path."""
    first = named_encoder(checkpoints["SigLIP"])
    images = first.images(pictures)
    texts = {padding: first.texts(CAPTIONS, padding) for padding in Padding}

    plain = vars(hf.PreTrainedModel)["from_pretrained"].__func__

    def refuse(cls: Any, *arguments: Any, **named: Any) -> Any:
        if named.get("device_map") != "meta":  # There only names and shapes are read
            raise AssertionError("weights were read")
        return plain(cls, *arguments, **named)

    monkeypatch.setattr(hf.PreTrainedModel, "from_pretrained", classmethod(refuse))
    again = named_encoder(checkpoints["SigLIP"])
    assert np.array_equal(again.images(pictures[::-1]), images[::-1])
    for padding in Padding:
        actual = again.texts(CAPTIONS, padding)
        assert np.array_equal(actual.vectors, texts[padding].vectors)
        assert actual[1:] == texts[padding][1:]
    with pytest.raises(AssertionError, match="weights were read"):
        again.texts(["never asked before"], AS_TRAINED)
    moved = pictures[0].rename(pictures[0].with_name("moved.png"))
    assert np.array_equal(again.images([moved])[0], images[0])
    shutil.copy(pictures[1], moved)
    assert np.array_equal(again.images([moved])[0], images[1])


def test_each_content_is_computed_once() -> None:
    asked: list[list[int]] = []

    def vectors(contents: str, revision: str = "1") -> Any:
        def make(numbers: Any) -> Any:
            asked.append([*numbers])
            return np.array([[i, i + 0.5] for i in numbers], dtype=np.float32)

        return stored_vectors({"revision": revision}, range(len(contents)), contents, make)

    assert vectors("bab").tolist() == [[0, 0.5], [1, 1.5], [0, 0.5]]
    assert vectors("acc").tolist() == [[1, 1.5]] * 3
    vectors("a", revision="2")
    assert vectors("").shape == (0, 0)
    assert asked == [[0, 1], [1], [0]]
