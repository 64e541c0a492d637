"""What models of every family are shown: messages, images and their sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiny_models import VARIANT, picture, ready, runner

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.boxes import reference_size, space_from
from vlmeval_findit.models import MODELS, ImageSet, RunSettings, limit_size, plan_generation
from vlmeval_findit.protocol import Message, image, system, text
from vlmeval_findit.storage import decode_image

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from tiny_checkpoints import FAMILIES  # noqa: E402

pytestmark = [pytest.mark.host, pytest.mark.slow]

INSTANCES = parse("FindIt_HRInsDet_easy_xyxy_json")
QWEN_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
CHATML = "<|im_start|>user\na{0}b{0}c<|im_end|>\n<|im_start|>assistant\n"
SHOWN = {
    "Qwen3-VL": CHATML.format(QWEN_IMAGE),
    "Qwen2.5-VL": CHATML.format(QWEN_IMAGE),
    "Qwen3.5": CHATML.format(QWEN_IMAGE) + "<think>\n",
    "Qwen3.5-nothink": CHATML.format(QWEN_IMAGE) + "<think>\n\n</think>\n\n",
    "GLM-4.6V": "[gMASK]<sop><|user|>\na{0}b{0}c/nothink<|assistant|>\n<think></think>\n".format(
        "<|begin_of_image|><|image|><|end_of_image|>"
    ),
    "Gemma 4": "<bos><|turn>user\na<|image|>b<|image|>c<turn|>\n<|turn>model\n"
    "<|channel>thought\n<channel|>",
    "InternVL3": CHATML.format("<IMG_CONTEXT>\n"),
}


def encoded(row: str, message: Message, variant: Any = VARIANT, **bounds: Any) -> Any:
    """Return how a model gets a message."""
    how = plan_generation(MODELS[row], variant, RunSettings(**bounds))
    return ready(row)._loaded.encoder.encode(message, ImageSet(how.bounds))


@pytest.mark.parametrize("row", SHOWN)
def test_texts_and_images_keep_their_order(row: str) -> None:
    chat = ready(row)._loaded.encoder.chat
    assert chat((text("a"), image("1"), text("b"), image("2"), text("c"))) == SHOWN[row]
    before, _, after = chat((system("Be brief."), text("x"))).partition("Be brief.")
    assert "system" in before
    assert "user" in after
    assert "x" in after
    assert "system" not in chat((text("x"),))


@pytest.mark.parametrize("row", FAMILIES)
def test_the_order_of_images_reaches_the_model(row: str) -> None:
    loaded, logits = ready(row)._loaded, []
    shown = [image(picture(640, 480, seed)) for seed in (3, 4)]
    for a, b in (shown, shown[::-1]):
        message = (text("First:"), a, text("second:"), b, text("Find it."))
        with torch.no_grad():
            logits.append(loaded.model(**loaded.inputs([encoded(row, message)])).logits[0, -1])
    assert (logits[0] - logits[1]).abs().max() > 1e-3


def test_a_placeholder_in_a_text_is_refused() -> None:
    with pytest.raises(ValueError, match="1 images, but 2 times"):
        encoded("Qwen3-VL", (image(picture(320, 200)), text("Find <|image_pad|>")))


# --- sizes ----------------------------------------------------------------------------------------


SIDES = {"Qwen3-VL": 32, "Qwen3.5": 32, "Qwen2.5-VL": 28, "GLM-4.6V": 28, "Gemma 4": 48}
"""Pixels of the side of an image feature."""

BOUNDS: dict[str, dict[str, Any]] = {
    "Qwen2.5-VL": {"min_pixels": 200_704, "max_pixels": 1_605_632, "two_step": True},
    "Qwen3-VL": {"min_pixels": 200_704, "max_pixels": 1_605_632},
    "Qwen3.5": {"min_pixels": 200_704, "max_pixels": 1_605_632},
    "GLM-4.6V": {"min_pixels": 64 * 64, "max_pixels": 1024 * 1024},
    "Gemma 4": {"soft_tokens": 70},
    "InternVL3": {"patches": 12},
}


@pytest.mark.parametrize("row", BOUNDS)
def test_recorded_sizes_are_those_of_the_image_features(row: str) -> None:
    message = (image(picture(640, 360, 5)), text("Find it."))
    record = ready(row).answer_batch([message], VARIANT)[0].record
    (sizes,) = record.images
    assert sizes["original"] == [640, 360]
    assert sizes["bounds"] == BOUNDS[row]
    width, height = sizes["processed"]
    query = encoded(row, message)
    if row == "InternVL3":
        tiles = (width // 112) * (height // 112)
        assert sum(query.types) == 16 * (tiles + (tiles > 1))
    else:
        assert sum(query.types) == (width // SIDES[row]) * (height // SIDES[row])
    assert 0.8 < (width / height) / (640 / 360) < 1.25
    assert record.tokens == {"prompt": len(query.ids), "reply": record.tokens["reply"]}
    assert set(record.model) == {"row", "identifier", "weights", "revision", "processor_revision"}


@pytest.mark.parametrize("row", ["Qwen2.5-VL", "Qwen3-VL", "GLM-4.6V"])
def test_a_run_may_have_other_bounds(row: str) -> None:
    model = runner(row, max_pixels=150_000, min_pixels=100_000)
    message = (image(picture(640, 480, 2)), text("x"))
    (sizes,) = model.answer_batch([message], VARIANT)[0].record.images
    width, height = sizes["processed"]
    assert 100_000 <= width * height <= 150_000
    assert sizes["bounds"]["max_pixels"] == 150_000


@pytest.mark.parametrize("variant", [VARIANT, INSTANCES], ids=["chat", "simple"])
@pytest.mark.parametrize("max_pixels", [None, 300_000])
@pytest.mark.parametrize("size", [(640, 480), (333, 517), (90, 1200), (2000, 1500)])
def test_scoring_reads_the_very_size_that_qwen_was_shown(
    variant: Any, max_pixels: int | None, size: tuple[int, int]
) -> None:
    """Both resize paths of the protocol, and other bounds: the recorded space is the real space."""
    message = (image(picture(*size)), text("x"))
    bounds = {"max_pixels": max_pixels}
    (sizes,) = encoded("Qwen2.5-VL", message, variant, **bounds).images
    space = plan_generation(MODELS["Qwen2.5-VL"], variant, RunSettings(max_pixels=max_pixels)).space
    assert reference_size(space_from(space), *size) == tuple(sizes["processed"])


def test_the_first_resize_is_that_of_qwens_package() -> None:
    utils = pytest.importorskip("qwen_vl_utils")
    path = picture(333, 517)
    expected = utils.fetch_image({"image": path}, image_patch_size=14)
    actual = limit_size(
        decode_image(path), plan_generation(MODELS["Qwen2.5-VL"], VARIANT, RunSettings()).bounds
    )
    assert np.array_equal(np.asarray(expected), np.asarray(actual.pixels))
