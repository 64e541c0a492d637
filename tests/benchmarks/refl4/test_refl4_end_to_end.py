"""Ref-L4 the whole way: prepared, run under VLMEvalKit and as a sweep, scored, ranked, shown."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml
from host_runs import (
    RUN_FINDIT,
    environment,
    metric_values,
    predictions,
    replies,
    require_host,
    run,
)
from refl4_stand_in import VAL, prepared

pytestmark = [pytest.mark.host, pytest.mark.slow]

DATA = "FindIt_RefL4Full_val_xyxy_json"
BOTH = [DATA, "FindIt_RefL4Full_all_cxcywh_text"]


@pytest.fixture(scope="module")
def lmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_host()
    return prepared(tmp_path_factory.mktemp("lmu"), tmp_path_factory.mktemp("parquet"))


@pytest.fixture(scope="module")
def finished(lmu: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    cwd = tmp_path_factory.mktemp("finished")
    arguments = ["--data", *BOTH, "--model", "FullImage", "FindIt-Nano"]
    done = run(RUN_FINDIT, arguments, cwd, environment(lmu))
    assert done.returncode == 0, done.stdout
    return cwd / "outputs"


def test_a_run_is_scored_by_the_protocol(finished: Path) -> None:
    path = predictions(finished, "FullImage", DATA)
    found = metric_values(path)
    # Two of eight boxes are nearly the whole picture, both by one class of four.
    assert found["acc_0.5"] == found["class_acc"] == 25.0
    assert found["large_acc"] == 100.0
    assert found["class_acc_corrected"] == pytest.approx(100 / 6)
    assert found["adherence"] == 100.0
    provenance = json.loads(path.with_name(f"{path.stem}_provenance.json").read_text())
    assert provenance["benchmark"] == "Ref-L4"
    assert provenance["table"]["meta"]["unlike_release"]
    assert {row["id"] for row in VAL} == set(replies(path))


def test_a_search_names_the_best_format_by_the_benchmarks_own_figures(
    finished: Path, lmu: Path, tmp_path: Path
) -> None:
    words = ["search", "--model", "FullImage", "--space", "grid1000", "--data", "RefL4Full_val"]
    for _ in range(2):
        done = run(RUN_FINDIT, [*words, "--limit", "3"], tmp_path, environment(lmu))
        assert done.returncode == 0, done.stdout
    assert "FullImage: best format on Ref-L4 " in done.stdout
    assert "(acc_0.5 " in done.stdout
    found = yaml.safe_load((tmp_path / "outputs" / "best_formats.yaml").read_text())["models"][
        "FullImage"
    ]["Ref-L4"]
    assert found["tables"] == ["RefL4Full_val"]
    assert found["rule"].startswith("highest acc_0.5 (failed calls as misses)")
    assert set(found["averages"][0]) == {"format", "acc_0.5", "macc", "Adherence"}


def test_leaderboard_and_report_show_published_rows_and_slices(
    finished: Path, lmu: Path, tmp_path: Path
) -> None:
    env = environment(lmu)
    done = run(RUN_FINDIT, ["leaderboard", str(finished), "--out", "board"], tmp_path, env)
    assert done.returncode == 0, done.stdout
    board = next((tmp_path / "board").rglob("leaderboard.md")).read_text()
    assert "| *published* | *CogVLM-Grounding* |" in board
    ranked = [line for line in board.splitlines() if line.startswith(("| 1", "| 2"))]
    assert not any("CogVLM" in line for line in ranked)
    with next((tmp_path / "board").rglob("slices.csv")).open() as f:
        kinds = {row["slice"] for row in csv.DictReader(f)}
    assert {"size", "source", "words", "wording", "class", "corrected class"} <= kinds
    done = run(RUN_FINDIT, ["report", str(finished), "--out", "report.html"], tmp_path, env)
    assert done.returncode == 0, done.stdout
    page = (tmp_path / "report.html").read_text()
    assert "CogVLM-Grounding" in page
    assert VAL[0]["file_name"] in page
