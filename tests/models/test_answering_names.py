"""Which names are of one model: services and servers add much to the name that was asked."""

from __future__ import annotations

import pytest

from vlmeval_findit.models import may_be_same_model

HASH = "0123456789abcdef0123456789abcdef01234567"

ONE_MODEL = [
    # a snapshot's date or number
    ("gpt-x", "gpt-x-2026-01"),
    ("gpt-4o", "gpt-4o-2024-08-06"),
    ("openai/gpt-4o", "gpt-4o-2024-08-06"),
    ("gpt-4.1", "gpt-4.1-2025-04-14"),
    ("claude-sonnet-4.5", "claude-sonnet-4-5-20250929"),
    ("claude-3-opus@20240229", "claude-3-opus-20240229"),
    ("grok-4", "grok-4-0709"),
    ("gemini-1.5-pro", "gemini-1.5-pro-002"),
    ("gemini-2.5-pro", "models/gemini-2.5-pro-preview-05-06"),
    ("pixtral-large-latest", "pixtral-large-2411"),
    ("qwen-vl-max", "qwen-vl-max-2025-01-25"),
    ("qwen-vl-max-0125", "qwen-vl-max-2025-01-25"),
    ("gpt-x-2026-01", "gpt-x-2026-01-31"),
    # a maker, a route, a tag
    ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet-20241022"),
    ("google/gemini-flash-1.5", "gemini-1.5-flash"),
    ("qwen/qwen3-vl-8b-instruct:free", "qwen/qwen3-vl-8b-instruct"),
    ("accounts/fireworks/models/llava-13b", "llava-13b"),
    ("qwen2.5vl", "qwen2.5vl:latest"),
    ("qwen2.5vl:7b", "qwen2.5vl:7b"),
    ("qwen2.5vl", "qwen2.5vl:7b"),
    # quantisations, files and folders
    ("Qwen/Qwen3-VL-8B-Instruct", "Qwen3-VL-8B-Instruct-FP8"),
    ("Qwen3-VL", "/models/Qwen3-VL-8B-Instruct-Q4_K_M.gguf"),
    ("Qwen3-VL", r"C:\models\Qwen3-VL-8B-UD-IQ2_XXS-00001-of-00003.gguf"),
    ("Qwen3-VL", "/home/u/Qwen3-VL-2B/model.gguf"),
    ("Qwen3-VL", f"/hub/models--Qwen--Qwen3-VL-2B-Instruct/snapshots/{HASH}"),
    ("Qwen2.5-VL", "unsloth/Qwen2.5-VL-7B-Instruct-bnb-4bit"),
    ("Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-7B-Instruct-GPTQ-Int4"),
    ("gemma-3-12b-it", "mlx-community/gemma-3-12b-it-4bit"),
    ("InternVL3-8B", "OpenGVLab/InternVL3-8B-hf"),
    ("qwen3-vl-235b-a22b-instruct", "Qwen/Qwen3-VL-235B-A22B-Instruct-FP8"),
    # as it is
    ("mine", "mine"),
    ("my-lora", "MY-LoRA"),
    ("数据", "数据"),
    ("", "anything"),
    ("model", "anything"),
]

TWO_MODELS = [
    ("gpt-4o", "gpt-4o-mini"),
    ("openai/gpt-4o", "openai/gpt-4o-mini-2024-07-18"),
    ("gpt-4", "gpt-4-turbo"),
    ("gpt-4.1", "gpt-4"),
    ("gemini-2.5-flash", "gemini-2.5-flash-lite"),
    ("gemini-3-pro", "gemini-2.5-pro"),
    ("claude-sonnet-4", "claude-sonnet-4-5-20250929"),
    ("claude-3-5-haiku", "claude-3-5-sonnet"),
    ("grok-4", "grok-4-fast"),
    ("qwen-vl-max", "qwen-vl-plus"),
    ("Qwen3-VL-8B", "Qwen3-VL-2B"),
    ("Qwen3-VL-8B-Thinking", "Qwen3-VL-8B-Instruct"),
    ("Qwen2.5-VL-7B", "Qwen2-VL-7B"),
    ("llava-1.5-7b-hf", "llava-1.6-7b-hf"),
    ("qwen2.5vl:7b", "qwen2.5vl:3b"),
    ("weights-A", "weights-B"),
    ("mine", "small-backup-3b"),
    ("primary", "cheap-fallback-3b"),
    ("openrouter/auto", "openai/gpt-4o"),
    # two snapshots
    ("gpt-4.1-2025-04-14", "gpt-4.1-2025-08-14"),
    ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20260131"),
    ("gemini-1.5-pro-001", "gemini-1.5-pro-002"),
    ("pixtral-large-2407", "pixtral-large-2411"),
]


@pytest.mark.parametrize(("asked", "answered"), ONE_MODEL)
def test_what_services_add_is_no_other_model(asked: str, answered: str) -> None:
    assert may_be_same_model(asked, answered)
    assert may_be_same_model(answered, asked)


@pytest.mark.parametrize(("asked", "answered"), TWO_MODELS)
def test_another_member_of_a_family_is_another_model(asked: str, answered: str) -> None:
    assert not may_be_same_model(asked, answered)
    assert not may_be_same_model(answered, asked)
