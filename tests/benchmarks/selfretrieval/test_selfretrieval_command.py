"""``score --convert --data SelfRetrieval``: captions of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from word_encoder import install

from vlmeval_findit.benchmarks.selfretrieval.image_pairs import ImagePair, write_table
from vlmeval_findit.cli import main

Capture = pytest.CaptureFixture[str]
COLOURS = ("red", "blue", "green", "grey", "pink")
DESCRIBED = {
    f"{at}{side[0]}.png": f"{word} {side}"
    for at, word in enumerate(COLOURS)
    for side in ("left", "right")
}
PAIRS = [ImagePair(at, str(at), (f"{at}l.png", f"{at}r.png")) for at in range(len(COLOURS))]
RIGHT = {str(at): {"left": "left", "right": "right"} for at in range(len(COLOURS))}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    write_table(tmp_path, "SelfRetrieval", PAIRS, {"source": "a test"})
    install(monkeypatch, DESCRIBED)
    return tmp_path


def score(path: Path, values: object, *flags: str) -> int:
    path.write_text(json.dumps(values))
    words = ("--data", "SelfRetrieval", *flags)
    return main(["score", "--convert", str(path), *words])


def left_by(path: Path) -> dict[str, Any]:
    return json.loads(path.with_name("captions_SelfRetrieval_provenance.json").read_text())


def test_a_file_is_scored(folder: Path, capsys: Capture) -> None:
    path = folder / "captions.json"
    assert score(path, RIGHT) == 0
    assert "Pairs as published" in capsys.readouterr().out
    result = left_by(path)
    assert list(result["metrics"].values())[:4] == [100.0, 100.0, 0.0, 0.0]
    assert result["scorer"]["source"] == "default of SelfRetrieval"


def test_missing_captions_are_wrong_and_unknown_uids_are_named(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = folder / "captions.json"
    values: dict[str, Any] = {**RIGHT, "x": {}, "1": {"left_image": "left"}, "2": None}
    del values["0"]
    assert score(path, values, "--encoder", "owner/name") == 0
    result = left_by(path)
    assert result["scorer"]["name"] == "owner/name"
    assert list(result["metrics"].values())[:2] == [40.0, 50.0]
    assert "1 uids of no pair, the first 'x': not used" in caplog.text
