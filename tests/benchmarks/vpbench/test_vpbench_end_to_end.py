"""VP-Bench the whole way: prepared, run under VLMEvalKit and as a sweep, scored, ranked, shown."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from host_runs import RUN_FINDIT, environment, metric_values, predictions, require_host, run
from vpbench_stand_in import row, write_tsv

pytestmark = [pytest.mark.host, pytest.mark.slow]

DATA = "VPBench_Stage1"
BOTH = [DATA, f"{DATA}_original"]
MODELS = ["FirstOption", "RandomOption"]
ROWS = [
    row(i, image=row(2 * i)["image"], vp_shape=["box", "mask"][i % 2], vp_amount=str(1 + i % 3))
    for i in range(24)
]


@pytest.fixture(scope="module")
def lmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_host()
    folder = tmp_path_factory.mktemp("lmu")
    source = write_tsv(folder / "vp_bench_stage_1.tsv", ROWS)
    command = ["data", "get", "VPBench", "--from", str(source)]
    done = run(RUN_FINDIT, command, folder, environment(folder))
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture(scope="module")
def finished(lmu: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    cwd = tmp_path_factory.mktemp("finished")
    done = run(RUN_FINDIT, ["--data", *BOTH, "--model", *MODELS], cwd, environment(lmu))
    assert done.returncode == 0, done.stdout
    return cwd / "outputs"


def test_a_run_is_scored_by_both_readings(finished: Path) -> None:
    found = metric_values(predictions(finished, "FirstOption", DATA))
    right = 100 * sum(one["answer"] == "A" for one in ROWS) / len(ROWS)
    assert found["accuracy"] == found["accuracy_as_published"] == right
    assert found["read"] == 100.0
    provenance = predictions(finished, "FirstOption", DATA)
    values = json.loads(provenance.with_name(f"{provenance.stem}_provenance.json").read_text())
    assert values["benchmark"] == "VP-Bench"
    assert values["table"]["meta"]["official"] is False
    with provenance.with_name(f"{provenance.stem}_score.csv").open() as f:
        (score,) = csv.DictReader(f)
    assert (score["failed calls"], values["reasons"]) == ("0", {})


def test_leaderboard_and_report(finished: Path, lmu: Path, tmp_path: Path) -> None:
    env = environment(lmu)
    done = run(RUN_FINDIT, ["leaderboard", str(finished), "--out", "board"], tmp_path, env)
    assert done.returncode == 0, done.stdout
    board = next((tmp_path / "board").rglob("leaderboard.md")).read_text()
    assert "| *published* | *InternVL3-78B* |" in board
    assert "## Accuracy (as published)" in board
    assert "## Hallucination rate" not in board, "no question of the table is about an absent mark"
    with next((tmp_path / "board").rglob("slices.csv")).open() as f:
        rows = list(csv.DictReader(f))
    kinds = {one["slice"] for one in rows}
    assert {"shape", "amount", "kind", "property", "mark"} <= kinds
    contour = next(one for one in rows if one["value"] == "contour")
    assert contour["rows"] == "12"
    low, value, high = (float(contour[f"Accuracy{end}"]) for end in (" low", "", " high"))
    assert low < value < high
    done = run(RUN_FINDIT, ["report", str(finished), "--out", "report.html"], tmp_path, env)
    assert done.returncode == 0, done.stdout
    page = (tmp_path / "report.html").read_text()
    assert "InternVL3-78B" in page
    assert "Accuracy (as published)" in page
    assert '["option","B. a dog"]' in page
