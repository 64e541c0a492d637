"""Captions of self-retrieval in its authors' form: what is written is read back with its score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import FAILED_ANSWER
from vlmeval_findit.scoring import load_runs

NAME = "SelfRetrieval_Scenes_mini"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with right captions, exchanged ones, one that is missing, words, and a failed call."""
    folder = tmp_path_factory.mktemp("pairs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(folder / "data"))
        pairs = list(load_dataset(NAME).queries.values())[:6]
        answers = []
        for at, pair in enumerate(pairs):
            left, right = pair.captions
            answer = {"left_image": left, "right_image": right}
            if at == 1:
                answer = {"left_image": right, "right_image": left}
            elif at == 2:
                answer = {"left_image": left}
            text = {3: "None.", 4: FAILED_ANSWER}.get(at, json.dumps(answer))
            answers.append({"index": pair.index, "prediction": text})
        runs = folder / "runs"
        runs.mkdir()
        (runs / f"M_{NAME}.json").write_text(json.dumps(answers))
        assert main(["score", str(runs / f"M_{NAME}.json")]) == 0
        out = folder / "captions"
        assert main(["export", str(runs), "--to", "captions", "--out", str(out)]) == 0
    return folder


def written(folder: Path, what: str) -> dict[str, Any]:
    (path,) = (folder / "captions").glob(f"*_{what}.json")
    values: dict[str, Any] = json.loads(path.read_text())
    return values


def test_files_have_uids_and_what_is_known_of_them(folder: Path) -> None:
    (run,) = load_runs([folder / "runs"])
    captions = written(folder, "captions")
    accuracies = written(folder, "uid2acc")
    uids = [row.source for row in run.rows]
    # Neither pair is in the captions: words, a failed call.
    assert list(captions) == [*uids[:3], uids[5]]
    assert list(captions[uids[2]]) == ["left"]
    assert list(accuracies) == [*uids[:4], uids[5]]
    assert accuracies[uids[3]] == 0
    assert {*accuracies.values()} <= {0, 0.5, 1}
    pairs = sum(accuracy == 1 for accuracy in accuracies.values()) / len(accuracies)
    assert run.metric_values["Pairs as published"] == pytest.approx(100 * pairs)


def test_captions_are_read_back_with_their_score(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LMUData", str(folder / "data"))
    (path,) = (folder / "captions").glob("*_captions.json")
    again = folder / "theirs.json"
    again.write_bytes(path.read_bytes())
    assert main(["score", "--convert", str(again), "--data", NAME]) == 0
    missing = 50 - len(written(folder, "captions"))
    assert f"theirs.json: {missing} of 50 pairs are not in it: wrong" in caplog.text
    (run,) = load_runs([folder / "runs"])
    (converted,) = load_runs([folder / f"theirs_{NAME}.json"])
    by_uid = {row.source: row for row in converted.rows}
    for row in run.rows:
        if not row.failed:
            right = by_uid[row.source].sums["right_published"]
            assert right == row.sums["right_published"]


def test_runs_without_captions_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path / "data"))
    runs = str(tmp_path / "runs")
    data = "FindIt_Scenes_mini_xyxy_json"
    assert (
        main(["run", "--data", data, "--model", "FullImage", "--limit", "2", "--work-dir", runs])
        == 0
    )
    assert main(["export", runs, "--to", "captions", "--out", str(tmp_path / "out")]) == 2
    assert "no run has captions: name a run of SelfRetrieval" in capsys.readouterr().err
