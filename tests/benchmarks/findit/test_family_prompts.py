"""Prompts of families: the published words, asked in the format in which they are answered."""

from __future__ import annotations

import pytest

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.benchmarks.findit import (
    BENCHMARK,
    FAMILY_PROMPTS,
    Asks,
    FamilyPromptError,
    FindItQuery,
    PromptError,
)
from vlmeval_findit.boxes import Truth, read
from vlmeval_findit.core import sha256_of
from vlmeval_findit.models import MODELS
from vlmeval_findit.protocol import PartKind

QUERY = FindItQuery(0, "a {} with a cap", 640, 480, ("1.jpg",), Truth(((1, 2, 3, 4),), (0,)))

# As these models answer
REPLIES = {
    "internvl-1": "<ref>a cap</ref><box>[[100, 200, 300, 400]]</box>",
    "qwen2.5-vl-1": '```json\n[{"bbox_2d": [100, 200, 300, 400], "label": "cap"}]\n```',
    "qwen3-vl-1": '[{"bbox_2d": [100, 200, 300, 400], "label": "cap"}]',
    "qwen2.5-vl-odinw-1": '```json\n[{"bbox_2d": [100, 200, 300, 400], "label": "cap"}]\n```',
    "qwen3-vl-odinw-1": '[{"bbox_2d": [100, 200, 300, 400], "label": "cap"}]',
    "glm-1": "It is <|begin_of_box|>[[100, 200, 300, 400]]<|end_of_box|>",
}

# Beginnings of the SHA-256 of their words: runs are told apart by names
WORDS = {
    "internvl-1": "6789481484c9",
    "qwen2.5-vl-1": "f09aa6f4e5aa",
    "qwen3-vl-1": "231936ae5e6e",
    "qwen2.5-vl-odinw-1": "5da5a6e8e91c",
    "qwen3-vl-odinw-1": "a0d31c90b77b",
    "glm-1": "459034b5f2fa",
}

# What is asked with them, without a format
ASKED = {Asks.EXPRESSION: "RefCOCO", Asks.CLASS: "Pascal", Asks.CLASSES: "Pascal_multilabel"}


def test_other_words_have_another_name() -> None:
    actual = {name: sha256_of(row.words.encode())[:12] for name, row in FAMILY_PROMPTS.items()}
    assert actual == WORDS


def test_every_prompt_has_a_known_family_and_source() -> None:
    assert {*REPLIES} == {*FAMILY_PROMPTS}
    for name, row in FAMILY_PROMPTS.items():
        assert name == row.name
        assert row.source
        assert {*row.families} <= {*MODELS}
        assert row.words.count("{}") == 1


@pytest.mark.sees("FINDIT_PROMPTS")
@pytest.mark.parametrize("name", REPLIES)
def test_the_expression_is_asked_and_the_answer_is_read(name: str, monkeypatch) -> None:
    monkeypatch.setenv("FINDIT_PROMPTS", name)
    row = FAMILY_PROMPTS[name]
    prompts = BENCHMARK.prompts()[0]
    assert prompts.name == name
    variant = parse(f"FindIt_{ASKED[row.asks]}_{row.format}")
    picture, words = prompts.message(QUERY, variant)
    assert (picture.kind, picture.value) == (PartKind.IMAGE, "1.jpg")
    assert words.value == row.words.replace("{}", "a {} with a cap")
    assert read(REPLIES[name], variant.reply).boxes == ((100, 200, 300, 400),)


def test_runs_of_a_family_prompt_are_recognised_later() -> None:
    assert {*FAMILY_PROMPTS} < {prompts.name for prompts in BENCHMARK.prompts()}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("RefCOCO_xyxy_json", "Type: --data FindIt_RefCOCO_xyxy_json_bbox_2d"),
        ("RefCOCO_point_json_point_2d", "is answered in another format"),
        ("Pascal_xyxy_json_bbox_2d", "asks for one expression in an image"),
        ("Pascal_multilabel_xyxy_json_bbox_2d", "asks for one expression in an image"),
        ("HRInsDet_easy_xyxy_json_bbox_2d", "asks for one expression in an image"),
        ("iGround_xyxy_json_bbox_2d", "asks for one expression in an image"),
    ],
)
def test_other_questions_are_refused(data: str, why: str) -> None:
    with pytest.raises(FamilyPromptError, match=why):
        FAMILY_PROMPTS["qwen3-vl-1"].message(QUERY, parse(f"FindIt_{data}"))


def test_a_misspelt_prompt_gets_the_nearest(monkeypatch) -> None:
    monkeypatch.setenv("FINDIT_PROMPTS", "qwen3-vl")
    with pytest.raises(PromptError, match="prompt of a family: did you mean qwen3-vl-1"):
        BENCHMARK.prompts()
