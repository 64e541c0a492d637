"""Settings of scoring, and how they choose the format in which replies are read."""

from __future__ import annotations

from typing import Any

import pytest

from vlmeval_findit.benchmarks.findit import parse, reply_format
from vlmeval_findit.boxes import SpaceError
from vlmeval_findit.models import check_settings
from vlmeval_findit.protocol import OfUnknown, Settings, ThoughtMarks, settings_from


@pytest.mark.parametrize(
    ("values", "environment", "expected"),
    [
        ({}, {}, Settings()),
        (
            {},
            {"SPACE": ' {"kind": "unit"}', "THOUGHT_MARKS": "<a> </a>"},
            Settings(
                of_unknown=OfUnknown({"kind": "unit"}, thought_marks=ThoughtMarks("<a>", "</a>"))
            ),
        ),
        ({}, {"FORCE": "1"}, Settings(force=True)),
        (
            {"space": "pixels"},
            {"SPACE": "unit"},
            Settings("pixels", of_unknown=OfUnknown("unit")),
        ),
        (
            {"reads_like": "Qwen3-VL"},
            {"READS_LIKE": "x"},
            Settings(reads_like="Qwen3-VL", of_unknown=OfUnknown(reads_like="x")),
        ),
    ],
    ids=str,
)
def test_settings(
    values: Any, environment: dict[str, str], expected: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(f"FINDIT_{name}", value)
    assert settings_from(values) == expected


def test_settings_are_checked_before_a_run() -> None:
    with pytest.raises(SpaceError, match="needs the min_pixels"):
        check_settings(Settings({"kind": "smart_resize"}))
    with pytest.raises(SpaceError, match=r"unknown model .Gemma 5. .*another model, Gem"):
        check_settings(Settings(reads_like="Gemma 5"))


@pytest.mark.sees("key reads_like")
@pytest.mark.parametrize(
    ("model", "reads_like", "representation", "key"),
    [
        ("Gemma4-E4B", None, "yxyx", "box_2d"),
        ("Mystery", None, "unconstrained", "bbox"),
        ("Mystery", "gemma-4-E4B-it", "yxyx", "box_2d"),
        ("Gemma4-E4B", "Qwen2.5-VL", "xyxy", "bbox_2d"),
        ("Gemma4-E4B", "GPT-5.4", "unconstrained", "bbox"),
    ],
)
def test_reads_like_another_model(
    model: str, reads_like: str | None, representation: str, key: str
) -> None:
    settings = Settings(reads_like=reads_like)
    options = reply_format(model, parse("FindIt_SVG_unconstrained_text"), settings)
    assert (options.representation, options.key) == (representation, key)
    named = parse("FindIt_SVG_xyxy_text")
    assert reply_format(model, named, settings) == named.reply
