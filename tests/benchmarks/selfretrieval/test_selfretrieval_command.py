"""``score --convert --data SelfRetrieval``: captions of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from word_encoder import install

from vlmeval_findit.benchmarks.selfretrieval import ImagePair, write_table
from vlmeval_findit.cli import main

COLOURS = ("red", "blue", "green", "grey", "pink")
DESCRIBED = {
    f"{at}{side[0]}.png": f"{word} {side}"
    for at, word in enumerate(COLOURS)
    for side in ("left", "right")
}
PAIRS = [ImagePair(at, str(at), (f"{at}l.png", f"{at}r.png")) for at in range(len(COLOURS))]


@pytest.mark.sees("score --encoder", "FINDIT_ENCODER")
def test_missing_captions_are_wrong_and_unknown_uids_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    write_table(tmp_path, "SelfRetrieval", PAIRS, {"source": "a test"})
    install(monkeypatch, DESCRIBED)

    def scored(name: str, values: object, *flags: str) -> tuple[list[float], dict[str, Any]]:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(values))
        assert main(["score", "--convert", str(path), "--data", "SelfRetrieval", *flags]) == 0
        provenance = path.with_name(f"{name}_SelfRetrieval_provenance.json")
        result = json.loads(provenance.read_text())
        return list(result["metrics"].values()), result["scorer"]

    values: dict[str, Any] = {str(at): {"left": "left", "right": "right"} for at in range(5)}
    metrics, scorer = scored("all", values)
    assert metrics[:4] == [100.0, 100.0, 0.0, 0.0]
    assert scorer["source"] == "default of SelfRetrieval"
    with monkeypatch.context() as patch:
        patch.setenv("FINDIT_ENCODER", "owner/other")
        _, scorer = scored("named", values)
    assert (scorer["name"], scorer["source"]) == ("owner/other", "FINDIT_ENCODER")
    values |= {"x": {}, "1": {"left_image": "left"}, "2": None}
    del values["0"]
    metrics, scorer = scored("some", values, "--encoder", "owner/name")
    assert metrics[:2] == [40.0, 50.0]
    assert scorer["name"] == "owner/name"
    assert "1 uids of no pair, the first 'x': not used" in caplog.text
