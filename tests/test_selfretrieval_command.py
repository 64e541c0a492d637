"""``score --protocol self-retrieval``: captions of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from word_encoder import install

from vlmeval_findit.benchmarks.selfretrieval.pairs import Pair, write_table
from vlmeval_findit.cli import main

Capture = pytest.CaptureFixture[str]
COLOURS = ("red", "blue", "green", "grey", "pink")
DESCRIBED = {
    f"{at}{side[0]}.png": f"{word} {side}"
    for at, word in enumerate(COLOURS)
    for side in ("left", "right")
}
PAIRS = [Pair(at, str(at), (f"{at}l.png", f"{at}r.png")) for at in range(len(COLOURS))]
RIGHT = {str(at): {"left": "left", "right": "right"} for at in range(len(COLOURS))}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    write_table(tmp_path, "SelfRetrieval", PAIRS, {"source": "a test"})
    install(monkeypatch, DESCRIBED)
    return tmp_path


def score(path: Path, values: object, *flags: str) -> int:
    path.write_text(json.dumps(values))
    return main(["score", "--protocol", "self-retrieval", str(path), *flags])


def left_by(path: Path) -> dict[str, Any]:
    return json.loads(path.with_name(f"{path.stem}_self-retrieval.json").read_text())


def test_a_file_is_scored(folder: Path, capsys: Capture) -> None:
    path = folder / "captions.json"
    assert score(path, RIGHT) == 0
    out = capsys.readouterr().out
    assert "5 pairs" in out
    assert "scored by SigLIP (revision of SigLIP, padding as trained)" in out
    assert "Pairs as published" in out
    found = left_by(path)
    assert found["figures"] == {
        "Pairs": 100.0,
        "Captions": 100.0,
        "Pairs as published": 0.0,
        "Captions as published": 0.0,
    }
    assert found["scorer"]["source"] == "default of SelfRetrieval"
    assert found["pairs"]["3"]["left"]["default"]["right"] is True
    assert found["missing"] == found["unknown"] == []
    assert "SelfRetrieval.tsv" in found["data"]


def test_what_is_missing_is_wrong_and_what_is_unknown_is_said(
    folder: Path, capsys: Capture
) -> None:
    path = folder / "captions.json"
    values: dict[str, Any] = {**RIGHT, "x": {}, "1": {"left_image": "left"}, "2": None}
    del values["0"]
    assert score(path, values) == 0
    found = left_by(path)
    assert found["missing"] == [
        ["0", "left"],
        ["0", "right"],
        ["1", "right"],
        ["2", "left"],
        ["2", "right"],
    ]
    assert found["unknown"] == ["x"]
    assert found["reasons"] == {"missing_key": 3, "not_text": 2}
    assert found["figures"]["Pairs"] == 40.0
    assert found["figures"]["Captions"] == 50.0
    out = capsys.readouterr().out
    assert "5 missing captions: 0 left, 0 right, 1 right, 2 left, 2 right\n" in out
    assert "1 uids of no pair, not used: x\n" in out


def test_pairs_of_a_dataset_json(folder: Path) -> None:
    path, data = folder / "captions.json", folder / "mine.json"
    data.write_text(json.dumps({"7": {"left": "0l.png", "right": "0r.png"}}))
    flags = ("--data", str(data), "--encoder", "owner/name")
    assert score(path, {"7": {"left": "left", "right": "right"}}, *flags) == 0
    found = left_by(path)
    assert found["of"] == 1
    assert found["scorer"]["name"] == "owner/name"
    assert found["intervals"]["Pairs"] is None  # one pair says nothing of others


@pytest.mark.parametrize(
    ("values", "flags", "says"),
    [
        ([], (), "is no object of"),
        ({"x": {}}, (), "none of its 1 uids is of a pair"),
        (RIGHT, ("--data", "SelfRetreival"), "did you mean SelfRetrieval?"),
        (RIGHT, ("--encoder", "Siglip"), "did you mean SigLIP?"),
    ],
    ids=["a list", "other uids", "no such data", "no such encoder"],
)
def test_what_cannot_be_scored(
    values: object, flags: tuple[str, ...], says: str, folder: Path, capsys: Capture
) -> None:
    path = folder / "captions.json"
    assert score(path, values, *flags) == 2
    assert says in capsys.readouterr().err
    assert not path.with_name("captions_self-retrieval.json").exists()


def test_one_file_that_is_refused_does_not_stop_the_others(folder: Path) -> None:
    good, bad = folder / "good.json", folder / "bad.json"
    bad.write_text("no")
    assert score(good, RIGHT, str(bad)) == 2
    assert main(["score", "--protocol", "self-retrieval", str(bad), str(good)]) == 2
    assert left_by(good)["figures"]["Pairs"] == 100.0
