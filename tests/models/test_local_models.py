"""Every family with a tiny checkpoint of its real architecture: CPU, float32, one thread."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.boxes.spaces import reference_size, space_from
from vlmeval_findit.core.answers import CancelledError
from vlmeval_findit.core.image_files import decode
from vlmeval_findit.core.question import Message, image, system, text
from vlmeval_findit.core.replies import Reply
from vlmeval_findit.models.local.local_runner import (
    LocalReply,
    LocalRunner,
    load_local,
)
from vlmeval_findit.models.local.model_images import ImageSet, limited
from vlmeval_findit.models.local.run_plan import RunSettings, plan
from vlmeval_findit.models.model_table import MODELS

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from tiny_checkpoints import FAMILIES, build  # noqa: E402

pytestmark = [pytest.mark.host, pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

ROWS = list(FAMILIES)
VARIANT = parse("FindIt_Pascal_xyxy_json")
INSTANCES = parse("FindIt_HRInsDet_easy_xyxy_json")
FOLDER = Path(mkdtemp(prefix="findit-tiny-"))


@cache
def picture(width: int, height: int, seed: int = 0) -> str:
    path = FOLDER / f"{width}x{height}-{seed}.png"
    noise = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    return str(path)


@cache
def checkpoint(row: str) -> str:
    return str(build(row, FOLDER / row.replace(" ", "")))


def runner(row: str, **settings: Any) -> LocalRunner:
    return load_local(checkpoint(row), MODELS[row], RunSettings(max_new_tokens=12, **settings))


@cache
def ready(row: str) -> LocalRunner:
    return runner(row)


def questions() -> list[Message]:
    """Different images, numbers of images and lengths of text."""
    a, b, c = picture(320, 200), picture(200, 260, 1), picture(640, 480, 2)
    return [
        (image(a), text("Find the cat.")),
        (image(b), text("Find every instance of the dog and of the bicycle, please. " * 3)),
        (text("Reference image 1:"), image(a), text("Scene:"), image(c), text("Find it.")),
        (image(c), text("x")),
    ]


def variants() -> list[Message]:
    """Return one image, texts of several lengths, two of them the same."""
    scene = picture(640, 480, 2)
    asked = ["the cat.", "the dog: [x1, y1, x2, y2]", "the bicycle and every lamp", "it", "it"]
    return [(image(scene), text(f"Find {what}")) for what in asked]


def one_at_a_time(model: LocalRunner, messages: Sequence[Message]) -> list[LocalReply]:
    return [model.answer_batch([message], VARIANT)[0] for message in messages]


# --- what a model is shown ------------------------------------------------------------------------

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


@pytest.mark.parametrize("row", SHOWN)
def test_images_stand_at_their_places_and_thinking_is_switched(row: str) -> None:
    encoder = ready(row)._loaded.encoder
    message = (text("a"), image("1"), text("b"), image("2"), text("c"))
    assert encoder.chat(message) == SHOWN[row]


@pytest.mark.parametrize("row", ROWS)
def test_the_order_of_images_reaches_the_model(row: str) -> None:
    model = ready(row)
    a, b = picture(640, 480, 3), picture(640, 480, 4)
    ask = [
        (text("First:"), image(x), text("second:"), image(y), text("Find it."))
        for x, y in ((a, b), (b, a))
    ]
    loaded = model._loaded
    how = plan(MODELS[row], VARIANT, RunSettings())
    logits = []
    for message in ask:
        inputs = loaded.inputs([loaded.encoder.encode(message, ImageSet(how.bounds), how.bounds)])
        with torch.no_grad():
            logits.append(loaded.model(**inputs).logits[0, -1])
    assert (logits[0] - logits[1]).abs().max() > 1e-3


def test_a_placeholder_in_a_text_is_refused() -> None:
    encoder = ready("Qwen3-VL")._loaded.encoder
    how = plan(MODELS["Qwen3-VL"], VARIANT, RunSettings())
    with pytest.raises(ValueError, match="1 images, but 2 times"):
        encoder.encode(
            (image(picture(320, 200)), text("Find <|image_pad|>")),
            ImageSet(how.bounds),
            how.bounds,
        )


# --- sizes ----------------------------------------------------------------------------------------


SIDES = {"Qwen3-VL": 32, "Qwen3.5": 32, "Qwen2.5-VL": 28, "GLM-4.6V": 28, "Gemma 4": 48}
"""Pixels of the side of an image feature."""


@pytest.mark.parametrize("row", [*SIDES, "InternVL3"])
def test_sizes_are_those_of_the_image_features(row: str) -> None:
    """The recorded size is that of the tokens."""
    model = ready(row)
    message = (image(picture(640, 360, 5)), text("Find it."))
    record = model.answer_batch([message], VARIANT)[0].recorded
    (sizes,) = record.images
    assert sizes["original"] == [640, 360]
    width, height = sizes["processed"]
    how = plan(MODELS[row], VARIANT, RunSettings())
    encoded = model._loaded.encoder.encode(message, ImageSet(how.bounds), how.bounds)
    if row == "InternVL3":
        tiles = (width // 112) * (height // 112)
        assert sum(encoded.types) == 16 * (tiles + (tiles > 1))
    else:
        assert sum(encoded.types) == (width // SIDES[row]) * (height // SIDES[row])
    assert 0.8 < (width / height) / (640 / 360) < 1.25
    assert record.tokens == {"prompt": len(encoded.ids), "reply": record.tokens["reply"]}
    assert set(record.model) == {"row", "identifier", "revision", "processor_revision"}


@pytest.mark.parametrize(
    ("row", "in_force"),
    [
        ("Qwen2.5-VL", {"min_pixels": 200_704, "max_pixels": 1_605_632, "two_step": True}),
        ("Qwen3-VL", {"min_pixels": 200_704, "max_pixels": 1_605_632}),
        ("GLM-4.6V", {"min_pixels": 64 * 64, "max_pixels": 1024 * 1024}),
        ("Gemma 4", {"soft_tokens": 70}),
        ("InternVL3", {"patches": 12}),
    ],
)
def test_the_bounds_in_force_are_recorded(row: str, in_force: dict[str, Any]) -> None:
    (sizes,) = ready(row).answer_batch(questions()[:1], VARIANT)[0].recorded.images
    assert sizes["bounds"] == in_force


@pytest.mark.parametrize("row", ["Qwen2.5-VL", "Qwen3-VL", "GLM-4.6V"])
def test_a_run_may_have_other_bounds(row: str) -> None:
    model = runner(row, max_pixels=150_000, min_pixels=100_000)
    (sizes,) = model.answer_batch(questions()[3:], VARIANT)[0].recorded.images
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
    how = plan(MODELS["Qwen2.5-VL"], variant, RunSettings(max_pixels=max_pixels))
    encoder = ready("Qwen2.5-VL")._loaded.encoder
    message = (image(picture(*size)), text("x"))
    (sizes,) = encoder.encode(message, ImageSet(how.bounds), how.bounds).images
    assert reference_size(space_from(how.space), *size) == tuple(sizes["processed"])


def test_the_first_resize_is_that_of_qwens_package() -> None:
    utils = pytest.importorskip("qwen_vl_utils")
    path = picture(333, 517)
    expected = utils.fetch_image({"image": path}, image_patch_size=14)
    actual = limited(decode(path), plan(MODELS["Qwen2.5-VL"], VARIANT, RunSettings()).bounds)
    assert np.array_equal(np.asarray(expected), np.asarray(actual.pixels))


# --- replies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS)
def test_a_batch_gives_the_replies_of_single_runs(row: str) -> None:
    model = ready(row)
    single = one_at_a_time(model, questions())
    assert model.answer_batch(questions(), VARIANT) == single
    # Positions left in the model by the batch must not reach what comes next.
    assert one_at_a_time(model, questions()) == single
    assert len({answer.text + answer.recorded.thought for answer in single}) > 2


@pytest.mark.parametrize("row", ROWS)
def test_variants_give_the_replies_of_single_runs(
    row: str, caplog: pytest.LogCaptureFixture
) -> None:
    from vlmeval_findit.models.local.shared_prefix import _say_copies

    _say_copies.cache_clear()
    model = ready(row)
    single = one_at_a_time(model, variants())
    with caplog.at_level(logging.WARNING, logger="vlmeval_findit"):
        assert model.answer_variants(variants(), VARIANT) == single
        assert model.answer_variants(variants()[::-1], VARIANT) == single[::-1]
    reported = [r for r in caplog.records if "copies of the shared prefix" in r.getMessage()]
    assert len(reported) == (row in ("Gemma 4", "Qwen3.5", "Qwen3.5-nothink")), "says so once"
    # Positions left in the model by the variants must not reach what comes next.
    assert one_at_a_time(model, questions()) == model.answer_batch(questions(), VARIANT)


def test_variants_prefill_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ready("Qwen3-VL")
    visual = model._loaded.model.model.visual
    encodes = Mock(wraps=visual.forward)
    monkeypatch.setattr(visual, "forward", encodes)
    model.answer_variants(variants(), VARIANT)
    encodes.assert_called_once()


def test_instance_detection_shares_references_and_scene(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ready("Qwen3-VL")
    front = questions()[2][:-1]
    asked = [(*front, text(f"Find it {how}.")) for how in ("as JSON", "as text, one a line", "")]
    single = [model.answer_batch([item], INSTANCES)[0] for item in asked]
    assert model.answer_variants(asked, INSTANCES) == single


def test_messages_that_part_before_the_image_are_an_ordinary_batch() -> None:
    model = ready("Qwen3-VL")
    scene = image(picture(320, 200))
    asked = [(text("a"), scene, text("b")), (text("c"), scene, text("d")), questions()[1]]
    assert model.answer_variants(asked, VARIANT) == one_at_a_time(model, asked)
    assert model.answer_variants([], VARIANT) == []


def test_a_stop_token_ends_its_row_and_no_other() -> None:
    model = runner("Qwen3-VL")
    free = model.answer_batch(questions(), VARIANT)
    tokenizer = model._loaded.encoder.processor.tokenizer
    loaded = model._loaded
    how = plan(MODELS["Qwen3-VL"], VARIANT, RunSettings())
    encoded = [
        loaded.encoder.encode(item, ImageSet(how.bounds), how.bounds) for item in questions()
    ]
    from vlmeval_findit.models.local.transformer import Decoding, generate

    rows = [item.ids for item in generate(loaded, encoded, Decoding(12))]
    others = {token for row in rows[1:] for token in row}
    at, stop = next((at, token) for at, token in enumerate(rows[0]) if token not in others)
    loaded.model.generation_config.eos_token_id = [tokenizer.eos_token_id, stop]
    stopped = model.answer_batch(questions(), VARIANT)
    assert stopped[0].recorded.finish_reason == "stop"
    assert stopped[0].recorded.tokens["reply"] == at
    assert stopped[1:] == free[1:]
    assert {answer.recorded.finish_reason for answer in free} == {"length"}


def test_a_temperature_samples() -> None:
    import torch

    greedy = ready("Qwen3-VL").answer_batch(questions(), VARIANT)
    cold, hot = (runner("Qwen3-VL", temperature=value) for value in (1e-4, 50.0))
    assert cold.answer_batch(questions(), VARIANT) == greedy
    torch.manual_seed(7)
    texts = [answer.text for answer in hot.answer_batch(questions(), VARIANT)]
    torch.manual_seed(7)
    assert [answer.text for answer in hot.answer_batch(questions(), VARIANT)] == texts
    assert texts != [answer.text for answer in greedy]


def test_a_seeded_reply_is_the_same_in_any_batch() -> None:
    hot = runner("Qwen3-VL", temperature=50.0)
    asked, seeds = questions(), [11, 12, 13, 14]

    def texts(messages: Any, seeds: list[int]) -> list[str]:
        return [item.text for item in hot.answer_batch(messages, VARIANT, seeds=seeds)]

    together = texts(asked, seeds)
    assert texts(asked[::-1], seeds[::-1]) == together[::-1]
    assert [texts([asked[at]], [seeds[at]])[0] for at in range(4)] == together
    assert texts(asked, [seed + 1 for seed in seeds]) != together
    samples = [asked[0]] * 4
    shared = [item.text for item in hot.answer_variants(samples, VARIANT, seeds=seeds)]
    assert shared == texts(samples, seeds)
    assert len({*shared}) == 4


def test_seeds_draw_from_the_whole_distribution() -> None:
    import torch

    from vlmeval_findit.models.local.logits import SeededSampler

    logits, rows = torch.tensor([2.0, 0.0, float("-inf"), 1.0]), 4000
    sample = SeededSampler(0.5, range(rows))
    drawn = sample(None, logits.expand(rows, -1)).argmax(dim=-1)
    shares = torch.bincount(drawn, minlength=4) / rows
    assert torch.allclose(shares, (logits / 0.5).softmax(dim=-1), atol=0.02)
    again = sample(None, logits.expand(rows, -1)).argmax(dim=-1)
    assert (again != drawn).float().mean() > 0.1, "the next token has other random numbers"


@pytest.mark.parametrize("row", ROWS)
def test_the_familys_stop_tokens_are_known_to_its_tokenizer(row: str) -> None:
    encoder = ready(row)._loaded.encoder
    local = MODELS[row].local
    assert local is not None
    ids = encoder.processor.tokenizer.convert_tokens_to_ids(list(local.stops))
    assert set(ids) <= set(ready(row)._loaded.stops)
    assert len(set(ids)) == len(local.stops)


def test_special_tokens_are_stripped_but_the_box_markers_of_glm() -> None:
    encoder = ready("GLM-4.6V")._loaded.encoder
    reported = "<|begin_of_box|>[[1, 2, 3, 4]]<|end_of_box|><|user|>"
    ids = encoder.processor.tokenizer(reported)["input_ids"]
    assert encoder.decode(ids) == "<|begin_of_box|>[[1, 2, 3, 4]]<|end_of_box|>"
    qwen = ready("Qwen3-VL")._loaded.encoder
    ids = qwen.processor.tokenizer("[1, 2]<|im_end|><|endoftext|>")["input_ids"]
    assert qwen.decode(ids) == "[1, 2]"


@pytest.mark.parametrize("row", ROWS)
def test_a_system_text_comes_before_the_question(row: str) -> None:
    encoder = ready(row)._loaded.encoder
    before, _, after = encoder.chat((system("Be brief."), text("x"))).partition("Be brief.")
    assert "system" in before
    assert "user" in after
    assert "x" in after
    assert "system" not in encoder.chat((text("x"),))


# --- thinking -------------------------------------------------------------------------------------


def test_a_reply_that_ends_in_its_thought_has_no_boxes() -> None:
    answer = ready("Qwen3.5").answer_batch(questions()[:1], VARIANT)[0]
    assert answer.text == ""
    assert answer.recorded.ends_in_thought
    assert answer.recorded.thought


# --- memory and broken images ---------------------------------------------------------------------


def test_a_query_that_does_not_fit_alone_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import vlmeval_findit.models.local.transformer as transformer

    model = runner("Qwen3-VL")
    expected = model.answer_batch(questions(), VARIANT)
    real = transformer.generate

    def small_memory(loaded: Any, batch: Any, how: Any) -> Any:
        if any(len(item.ids) > 500 for item in batch):
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(loaded, batch, how)

    monkeypatch.setattr(transformer, "generate", small_memory)
    answers = model.answer_batch(questions(), VARIANT)
    assert [Reply(0, a.text).failed for a in answers] == [False, False, True, False]
    assert [a for at, a in enumerate(answers) if at != 2] == expected[:2] + expected[3:]


def test_a_run_that_is_cancelled_ends_between_two_tokens() -> None:
    model = runner("Qwen3-VL")
    asked: list[bool] = []

    def told() -> bool:
        asked.append(True)
        return len(asked) == 3

    model.cancelled_by(told)
    for answer, messages in [
        (model.answer_batch, questions()[:1]),
        (model.answer_batch, questions()),
        (model.answer_variants, variants()),
    ]:
        asked.clear()
        with pytest.raises(CancelledError):
            answer(messages, VARIANT)
        assert len(asked) == 3
    model.cancelled_by(lambda: False)
    assert model.answer_batch(questions(), VARIANT) == ready("Qwen3-VL").answer_batch(
        questions(), VARIANT
    )


def test_a_broken_image_fails_alone(tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(Path(picture(320, 200)).read_bytes()[:200])
    asked = [*questions()[:2], (image(str(broken)), text("Find it."))]
    answers = ready("Qwen3-VL").answer_batch(asked, VARIANT)
    assert answers[:2] == one_at_a_time(ready("Qwen3-VL"), asked[:2])
    assert Reply(0, answers[2].text).failed
    alone = ready("Qwen3-VL").answer_variants(asked[2:] * 2, VARIANT)
    assert all(Reply(0, answer.text).failed for answer in alone)
