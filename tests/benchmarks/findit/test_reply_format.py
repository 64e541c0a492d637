"""Settings of scoring, and how they choose the format in which replies are read."""

from __future__ import annotations

from typing import Any

import pytest

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.benchmarks.findit.run_space import reply_format
from vlmeval_findit.boxes.spaces import SpaceError
from vlmeval_findit.core.settings import Settings, settings_from
from vlmeval_findit.models.model_table import check_settings


@pytest.mark.parametrize(
    ("values", "environment", "expected"),
    [
        ({}, {}, Settings()),
        ({"space": "unit"}, {}, Settings("unit")),
        ({}, {"FINDIT_SPACE": ' {"kind": "unit"}'},
         Settings({"kind": "unit"}, source="FINDIT_SPACE")),
        ({}, {"FINDIT_FORCE": "1"}, Settings(force=True)),
        ({"space": "pixels"}, {"FINDIT_SPACE": "unit"}, Settings("pixels")),
        ({"reads_like": "Qwen3-VL"}, {"FINDIT_READS_LIKE": "x"}, Settings(reads_like="Qwen3-VL")),
    ],
    ids=str,
)  # fmt: skip
def test_settings(
    values: dict[str, Any],
    environment: dict[str, str],
    expected: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert settings_from(values) == expected


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (Settings({"kind": "smart_resize"}), "needs the min_pixels"),
        (Settings(reads_like="Gemma 5"), "no model 'Gemma 5' in the model table: did you mean Gem"),
    ],
    ids=str,
)
def test_settings_are_checked_before_a_run(settings: Settings, says: str) -> None:
    with pytest.raises(SpaceError, match=r".") as error:
        check_settings(settings)
    assert says in str(error.value)


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
    options = reply_format(
        model, parse("FindIt_SVG_unconstrained_text"), Settings(reads_like=reads_like)
    )
    assert (options.representation, options.key) == (representation, key)
    named = parse("FindIt_SVG_xyxy_text")
    assert reply_format(model, named, Settings(reads_like=reads_like)) == named.reply
