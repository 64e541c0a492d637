"""Which names find which row, in which space a model answers, and how it answers by itself."""

from __future__ import annotations

from functools import partial

import pytest

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.boxes import SPACE_KINDS, Space
from vlmeval_findit.models import MODELS, find_model, unknown_space


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("Qwen2.5-VL-7B", "Qwen2.5-VL"),
        ("Qwen3-VL-8B-Instruct", "Qwen3-VL"),
        ("Qwen/Qwen3-VL-30B-A3B-Thinking", "Qwen3-VL"),
        ("Qwen3.5-9B", "Qwen3.5"),
        ("Qwen3.5-9B-nothink", "Qwen3.5-nothink"),
        ("Qwen3.5-122B-A10B_InstructMode_api", "Qwen3.5-nothink"),
        ("InternVL3-8B-hf", "InternVL3"),
        ("GLM-4.6V-Flash-nothink", "GLM-4.6V"),
        ("GLM4_6V", "GLM-4.6V"),
        ("google/gemma-4-E4B-it", "Gemma 4"),
        ("GeminiFlash2-5", "Gemini 2.5 Flash"),
        ("GPT-5.4-2026-03-05", "GPT-5.4"),
        ("anthropic/claude-4.5-sonnet", "Claude Sonnet 4.5"),
        ("Claude-Opus-5.5", "Claude Opus 5.5"),
        ("fullimage", "FullImage"),
        ("FindIt-Nano", "FindIt-Nano"),
        ("FINDIT-NANO-PX", "FindIt-Nano-px"),
    ],
)
def test_names_find_their_row(name: str, row: str) -> None:
    actual = find_model(name)
    assert actual is not None
    assert actual.name == row


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("Qwen2.5-VL-7B-Instruct", id="the host's: resized within other bounds"),
        pytest.param("Qwen3-VL-8B--crop--official_prompt--vllm", id="crops its images"),
        pytest.param("SenseNova-SI-1.1-Qwen3-VL-8B", id="a fine-tune"),
        pytest.param("InternVL3_5-8B", id="another version"),
        pytest.param("Qwen2-VL-7B-Instruct", id="an older model"),
        pytest.param("GPT-5.2", id="another model"),
        pytest.param("FindIt-Nano-px-2", id="in pixels, as its elder is not"),
        pytest.param("", id="nothing"),
    ],
)
def test_names_that_only_look_alike_find_nothing(name: str) -> None:
    assert find_model(name) is None
    message = str(unknown_space(name))
    assert "it is not guessed" in message
    assert all(kind in message for kind in SPACE_KINDS)


QWEN = partial(Space, "smart_resize", min_pixels=200_704)
NANO_PX = Space("smart_resize", min_pixels=2304, max_pixels=28_224, factor=24)


@pytest.mark.parametrize(
    ("model", "dataset", "space"),
    [
        ("Qwen2.5-VL", "Pascal", QWEN(max_pixels=1_605_632, two_step=True)),
        ("Qwen2.5-VL", "HRInsDet_hard", QWEN(max_pixels=12_845_056)),
        ("FindIt-Nano", "HRInsDet_easy", Space("grid1000")),
        ("FindIt-Nano-px", "HRInsDet_easy", NANO_PX),
        ("Qwen3-VL", "HRInsDet_easy", Space("grid1000")),
        ("GPT-5.4", "Pascal", Space("openai_high")),
        ("GPT-5.4", "HRInsDet_easy", Space("openai_high", scene_max_size=4096)),
        ("GPT-6 Astra", "HRInsDet_easy", Space("pixels", scene_max_size=1824)),
        ("GPT-6 Astra", "RoboTools", Space("pixels")),
        ("Claude Sonnet 4.5", "HRInsDet_easy", Space("claude_standard", scene_max_size=4096)),
        ("Claude Opus 5.5", "Pascal", Space("claude_highres")),
    ],
)
def test_the_space_of_a_model_on_a_dataset(model: str, dataset: str, space: Space) -> None:
    assert MODELS[model].space(parse(f"FindIt_{dataset}_xyxy_json")) == space


XYXY = ("json", "xyxy", "bbox_2d", "per_box")
YXYX = ("json", "yxyx", "box_2d", "per_box")
NAMED = ("json", "xyxy", "bbox", "decomposed")
PLAIN = ("json", "xyxy", "bbox", "per_box")
AS_ASKED = None


@pytest.mark.parametrize(
    ("model", "text_one", "text_many", "json_one", "json_many"),
    [
        ("Qwen2.5-VL", XYXY, XYXY, AS_ASKED, AS_ASKED),
        ("Qwen3.5-nothink", XYXY, XYXY, AS_ASKED, AS_ASKED),
        ("Qwen3-VL", AS_ASKED, XYXY, AS_ASKED, AS_ASKED),
        ("Qwen3.5", AS_ASKED, XYXY, AS_ASKED, AS_ASKED),
        ("Gemma 4", YXYX, YXYX, YXYX, YXYX),
        ("Gemini 2.5 Flash", YXYX, YXYX, YXYX, YXYX),
        ("Claude Sonnet 4.5", AS_ASKED, AS_ASKED, NAMED, PLAIN),
        ("GPT-5.4", AS_ASKED, AS_ASKED, AS_ASKED, AS_ASKED),
    ],
)
def test_how_unconstrained_prompts_are_answered(
    model: str, text_one: object, text_many: object, json_one: object, json_many: object
) -> None:
    """The table of protocol section 3."""
    asked = {
        "unconstrained_text": text_one,
        "multilabel_unconstrained_text": text_many,
        "unconstrained_json": json_one,
        "multilabel_unconstrained_json": json_many,
    }
    for form, expected in asked.items():
        variant = parse(f"FindIt_Pascal_{form}")
        how = MODELS[model].reads(variant.reply)
        assert how.multilabel == variant.multilabel
        if expected is AS_ASKED:
            assert how == variant.reply
        else:
            assert (how.output, how.representation, how.key, how.structure) == expected


def test_a_format_that_is_named_is_read_as_named() -> None:
    variant = parse("FindIt_Pascal_xyxy_text")
    assert all(row.reads(variant.reply) == variant.reply for row in MODELS.values())
