"""A small model that has no word for what is asked for says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from vlmeval_findit.cli import main


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMUData", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    Image.new("RGB", (96, 96), "white").save("a.png")
    return tmp_path


def _import(expressions: list[str]) -> None:
    rows = []
    for expression in expressions:
        rows.append({"image": "a.png", "expression": expression, "boxes": [[8, 8, 40, 40]]})
    Path("mine.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert main("data import mine.jsonl --name Mine".split()) == 0


@pytest.mark.parametrize("model", ["FindIt-Nano", "FindIt-Nano-px"])
def test_words_that_a_small_model_lacks_are_named(
    model: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _import(["the zebra", "the red ring"])
    capsys.readouterr()
    assert main(["run", "--data", "FindIt_Mine_xyxy_json", "--model", model]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{model} knows 20 words (above, below, blue and 17 more)" in said
    assert "no word of 'the zebra', which is asked for" in said
    assert "Ask another model: " in said


def test_nothing_is_said_where_all_words_are_known(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _import(["the red ring", "triangle"])
    capsys.readouterr()
    assert main("run --data FindIt_Mine_xyxy_json --model FindIt-Nano".split()) == 0
    assert " knows " not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "count"), [("FindIt-Nano", 20), ("FindIt-Nano-px", 20), ("FindIt-Nano-SigLIP", 35)]
)
def test_models_lists_the_words_of_small_ones(
    name: str, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", name]) == 0
    assert f"knows    {count} words: " in capsys.readouterr().out
