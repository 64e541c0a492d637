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

from vlmeval_findit.models.dual_encoder.encoder import EncoderError, Padding
from vlmeval_findit.models.dual_encoder.towers import FeatureCache

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")

import tiny_encoders  # noqa: E402
import transformers as hf  # noqa: E402

from vlmeval_findit.models.dual_encoder.towers import Towers, named_encoder  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

SHORT = "a small red circle"
LONG = "the quick brown fox jumps over the lazy dog while nobody looks " * 3
CAPTIONS = [SHORT, LONG, "two dogs", "Two dogs", "a blue square in the middle", ""]
FAMILIES = [*tiny_encoders.FAMILIES]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("encoders")
    return {family: tiny_encoders.build(family, folder / family) for family in FAMILIES}


@pytest.fixture(autouse=True)
def lmu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "lmu"
    folder.mkdir()
    monkeypatch.setenv("LMUData", str(folder))
    return folder


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    """Of several sizes, modes and formats."""
    rng = np.random.default_rng(5)
    paths = []
    for i, (width, height, mode) in enumerate(
        [(60, 40, "RGB"), (40, 60, "RGBA"), (32, 32, "L"), (90, 33, "P")]
    ):
        path = tmp_path / f"{i}.png"
        pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).convert(mode).save(path)
        paths.append(path)
    return paths


def cosine(a: Any, b: Any) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


# --- what a feature is ----------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_is_what_its_members_are(
    family: str, checkpoints: Mapping[str, Path], pictures: list[Path]
) -> None:
    towers = Towers(str(checkpoints[family]))
    for padding in Padding:
        together = towers.texts(CAPTIONS, padding)
        alone = np.concatenate([towers.texts([caption], padding) for caption in CAPTIONS])
        np.testing.assert_allclose(together, alone, atol=1e-5)
    together = towers.images(pictures)
    alone = np.concatenate([towers.images([path]) for path in pictures])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert together.dtype == np.float32
    assert together.shape[1] == towers.texts(CAPTIONS, Padding.AS_TRAINED).shape[1]


@pytest.mark.parametrize("family", FAMILIES)
def test_images_are_the_pooled_output_of_the_processor_s_pixels(
    family: str, checkpoints: Mapping[str, Path], pictures: list[Path]
) -> None:
    folder = str(checkpoints[family])
    model, processor = (
        hf.AutoModel.from_pretrained(folder),
        hf.AutoProcessor.from_pretrained(folder),
    )
    image = Image.open(pictures[1]).convert("RGB")
    with torch.inference_mode():
        seen = model.vision_model(**processor.image_processor(image, return_tensors="pt"))[1]
        if family == "CLIP":
            seen = model.visual_projection(seen)
    np.testing.assert_allclose(Towers(folder).images(pictures)[1], seen[0].numpy(), atol=1e-5)


def test_siglip_s_texts_are_padded_to_64_and_not_masked(checkpoints: Mapping[str, Path]) -> None:
    folder = str(checkpoints["SigLIP"])
    model, processor = (
        hf.AutoModel.from_pretrained(folder),
        hf.AutoProcessor.from_pretrained(folder),
    )
    reported = processor.tokenizer(
        [SHORT], padding="max_length", max_length=64, return_tensors="pt"
    )
    with torch.inference_mode():
        expected = model.text_model(input_ids=reported.input_ids)[1][0].numpy()
    towers = Towers(folder)
    padded, unpadded = (towers.texts([SHORT, LONG], padding) for padding in Padding)
    np.testing.assert_allclose(padded[0], expected, atol=1e-5)
    assert cosine(padded[0], unpadded[0]) < 0.9
    assert towers.lengths([LONG])[0] > 64, "it is cut, so that nothing is padded"
    np.testing.assert_allclose(padded[1], unpadded[1], atol=1e-5)


def test_clip_s_texts_are_projected_and_cut_at_77(checkpoints: Mapping[str, Path]) -> None:
    folder = str(checkpoints["CLIP"])
    model, processor = (
        hf.AutoModel.from_pretrained(folder),
        hf.AutoProcessor.from_pretrained(folder),
    )
    reported = processor.tokenizer(
        [SHORT, LONG], padding=True, truncation=True, max_length=77, return_tensors="pt"
    )
    with torch.inference_mode():
        expected = model.text_projection(model.text_model(**reported)[1]).numpy()
    towers = Towers(folder)
    np.testing.assert_allclose(towers.texts([SHORT, LONG], Padding.AS_TRAINED), expected, atol=1e-5)
    padded, unpadded = (towers.texts([SHORT, LONG], padding) for padding in Padding)
    np.testing.assert_allclose(padded[0], unpadded[0], atol=1e-5)
    assert cosine(padded[1], unpadded[1]) < 0.99, "77 tokens are not 64"


# --- captions as they come ------------------------------------------------------------------------


def test_a_caption_of_exactly_as_many_tokens_is_not_cut(checkpoints: Mapping[str, Path]) -> None:
    encoder = named_encoder(str(checkpoints["CLIP"]))
    letters = ["x" * count for count in (62, 63, 75, 76)]
    for padding, cut in (
        (Padding.UNPADDED, (False, True, True, True)),
        (Padding.AS_TRAINED, (False, False, False, True)),
    ):
        actual = encoder.texts(letters, padding)
        assert actual.tokens == (64, 65, 77, 78)
        assert actual.cut == cut


def test_half_a_surrogate_pair_has_features(checkpoints: Mapping[str, Path]) -> None:
    encoder = named_encoder(str(checkpoints["CLIP"]))
    actual = encoder.texts(["\ud83d half a pair"], Padding.AS_TRAINED)
    assert np.isfinite(actual.vectors).all()


# --- facts ----------------------------------------------------------------------------------------


def test_facts_say_what_a_score_depends_on(checkpoints: Mapping[str, Path]) -> None:
    siglip, clip = (named_encoder(str(checkpoints[family])).facts for family in FAMILIES)
    assert siglip["identifier"] == str(checkpoints["SigLIP"])
    assert siglip["revision"].startswith("sha256:")
    assert siglip["revision"] != clip["revision"]
    assert siglip["image_processor"] == "SiglipImageProcessor (torchvision)"
    assert siglip["as trained"] == "padded to 64 tokens, not masked"
    assert clip["as trained"] == "cut at 77 tokens, masked"
    assert siglip["dtype"] == "float32"
    assert siglip["device"] in ("cpu", "cuda")
    assert {"torch", "torchvision", "transformers"} <= siglip.keys()


def test_an_identifier_is_what_the_hub_s_cache_has_at_its_commit(
    checkpoints: Mapping[str, Path], tmp_path: Path
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
    environment = {
        **os.environ,
        "HF_HOME": str(tmp_path),
        "HF_HUB_CACHE": str(tmp_path / "hub"),
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [f"owner/siglip {commit}", "(1, 32)"], done.stderr


# --- what is refused ------------------------------------------------------------------------------


def test_a_model_with_a_single_tower_is_refused_before_its_weights_are_read(tmp_path: Path) -> None:
    config = hf.BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    config.save_pretrained(tmp_path)
    with pytest.raises(EncoderError, match=r"BertModel is no dual encoder") as actual:
        named_encoder(str(tmp_path))
    assert str(tmp_path) in str(actual.value)


def test_a_checkpoint_without_weights_is_refused_by_name(
    checkpoints: Mapping[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(checkpoints["CLIP"], folder, ignore=shutil.ignore_patterns("*.safetensors"))
    with pytest.raises(EncoderError, match=f"{folder}: no weights"):
        named_encoder(str(folder)).texts([SHORT], Padding.AS_TRAINED)


# --- the cache ------------------------------------------------------------------------------------


def test_cached_features_need_no_weights(
    checkpoints: Mapping[str, Path], pictures: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images are known by their content, under any path."""
    name = str(checkpoints["SigLIP"])
    images = named_encoder(name).images(pictures)
    texts = {padding: named_encoder(name).texts(CAPTIONS, padding) for padding in Padding}

    def refuse(*arguments: Any, **named: Any) -> None:
        raise AssertionError("weights were read")

    monkeypatch.setattr(hf.PreTrainedModel, "from_pretrained", refuse)
    again = named_encoder(name)
    assert np.array_equal(again.images(pictures[::-1]), images[::-1])
    for padding in Padding:
        actual = again.texts(CAPTIONS, padding)
        assert np.array_equal(actual.vectors, texts[padding].vectors)
        assert actual[1:] == texts[padding][1:]
    with pytest.raises(AssertionError, match="weights were read"):
        again.texts(["never asked before"], Padding.AS_TRAINED)
    moved = pictures[0].rename(pictures[0].with_name("moved.png"))
    assert np.array_equal(again.images([moved])[0], images[0])
    shutil.copy(pictures[1], moved)
    assert np.array_equal(again.images([moved])[0], images[1])


def test_each_content_is_computed_once(tmp_path: Path) -> None:
    asked: list[list[int]] = []

    def make(numbers: Any) -> Any:
        asked.append([*numbers])
        return np.array([[i, i + 0.5] for i in numbers], dtype=np.float32)

    stored = FeatureCache({"revision": "1"}, tmp_path)
    assert stored.of(["b", "a", "b"], make).tolist() == [[0, 0.5], [1, 1.5], [0, 0.5]]
    assert stored.of(["a", "c", "c"], make).tolist() == [[1, 1.5], [1, 1.5], [1, 1.5]]
    assert asked == [[0, 1], [1]]
    FeatureCache({"revision": "2"}, tmp_path).of(["a"], make)
    assert asked[2:] == [[0]]
    assert stored.of([], make).shape == (0, 0)
    assert len(asked) == 3
