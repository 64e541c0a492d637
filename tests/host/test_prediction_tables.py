"""VLMEvalKit's own readers of FindIt's prediction files."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

pytestmark = pytest.mark.host

ANSWERS = ("[]", "Failed to obtain answer via API.", "")
OURS = ("FindIt_Scenes_mini_xyxy_json", "RefL4_test_xyxy_json", "FindIt_Pascal_caption_xywh_text")


def write_answers(folder: Path, model: str, dataset: str) -> Path:
    path = folder / model / f"{model}_{dataset}.json"
    path.parent.mkdir(exist_ok=True)
    rows = [{"index": n, "prediction": answer} for n, answer in enumerate(ANSWERS)]
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("module", ["smp", "smp.file", "tools", "inference"])
def test_prediction_files_are_tables_wherever_they_are_loaded(
    module: str, host: SimpleNamespace, tmp_path: Path
) -> None:
    load = importlib.import_module(f"vlmeval.{module}").load
    path = write_answers(tmp_path, "Mine", OURS[0])
    table = load(str(path))
    assert isinstance(table, pd.DataFrame)
    assert "prediction" in table
    assert tuple(table["prediction"]) == ANSWERS
    for name in ("Mine_MMBench.json", f"Mine_{OURS[0]}_other.json"):
        other = path.rename(tmp_path / name)
        assert isinstance(load(str(other)), list)
        path = other


@pytest.mark.parametrize("form", [None, "", "json"])
@pytest.mark.parametrize("named", [True, False])
def test_a_scan_counts_failed_calls_of_findit_datasets(
    form: str | None,
    named: bool,
    host: SimpleNamespace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import vlmeval

    monkeypatch.delenv("PRED_FORMAT", raising=False)
    if form is not None:
        monkeypatch.setenv("PRED_FORMAT", form)
    datasets = OURS[:1]
    write_answers(tmp_path, "Mine", OURS[0])
    words = ["vlmutil", "scan", "--model", "Mine", "--root", str(tmp_path)]
    monkeypatch.setattr("sys.argv", [*words, *(("--data", *datasets) if named else ())])
    vlmeval.cli()
    said = capsys.readouterr().out
    assert f"Model Mine x Dataset {OURS[0]} Inference: 1 out of 3 failed" in said
    assert "Missing" not in said
    assert os.environ.get("PRED_FORMAT") == form


def test_a_scan_of_other_datasets_is_vlmevalkits(
    host: SimpleNamespace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import vlmeval

    monkeypatch.delenv("PRED_FORMAT", raising=False)
    write_answers(tmp_path, "Mine", OURS[0])
    data = pd.DataFrame({"index": [0, 1], "prediction": ["A", ANSWERS[1]]})
    data.to_excel(tmp_path / "Mine" / "Mine_MMBench.xlsx", index=False)
    words = ["scan", "--model", "Mine", "--data", "MMBench", *OURS[:1], "--root", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["vlmutil", *words])
    vlmeval.cli()
    said = capsys.readouterr().out
    assert "Model Mine x Dataset MMBench Inference: 1 out of 2 failed" in said
    assert f"Model Mine x Dataset {OURS[0]} Inference: 1 out of 3 failed" in said
