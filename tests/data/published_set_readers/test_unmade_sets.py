"""A published set that is not imported yet: each command says how to make it, not a near name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vlmeval_findit.cli import main

TABLE = "ODinW13_papers_AerialMaritimeDrone_multilabel"
NAME = f"FindIt_{TABLE}_xyxy_json"
MAKE = "data get ODinW13_papers --from PATH, then name"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_root: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (TABLE, NAME, f"FindIt_{TABLE}"):
        Path(f"{name}.yaml").write_text(f"models: FullImage\ndatasets: [{name}]\n")
    for name in (f"M_{NAME}.json", "other.json"):
        Path(name).write_text(json.dumps([{"index": 0, "prediction": "[]"}]))


# A line, and the name that it says to type then
LINES = {
    f"run --data {TABLE} --model FullImage": NAME,
    f"run --data {NAME} --model FullImage": NAME,
    f"run --data FindIt_{TABLE} --model FullImage": NAME,
    f"sweep {TABLE}.yaml": TABLE,
    f"sweep {NAME}.yaml": NAME,
    f"search --data {TABLE} --model FullImage": TABLE,
    f"search --data {NAME} --model FullImage": NAME,
    f"score M_{NAME}.json": NAME,
    f"score other.json --data {NAME}": NAME,
    f"score other.json --convert --data {NAME}": NAME,
    f"data stats {TABLE}": TABLE,
    f"data stats {NAME}": NAME,
    f"data show {NAME}": NAME,
    f"check {NAME}": NAME,
}


@pytest.mark.parametrize("line", LINES)
def test_the_import_is_named(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    printed = "".join(capsys.readouterr())
    text = " ".join(printed.split())
    assert f"{MAKE} {LINES[line]}" in text
    assert "did you mean" not in text
