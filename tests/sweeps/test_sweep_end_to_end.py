"""Whole sweeps with VLMEvalKit's models, in processes of their own that are really killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from engine_fakes import answered_keys
from host_runs import RUN_FINDIT, STOCK, environment, metric_values, require_host, run

from vlmeval_findit.runs.format_file import BestFormats

pytestmark = [pytest.mark.host, pytest.mark.slow]

MODEL = "FullImage"
CONFIG = f"""
models: {MODEL}
datasets: [Demo_described, Demo]
representations: all
outputs: all
keys: [bbox, bbox_2d]
structures: [per_box, nested]
"""
CELLS, CALLS = 2 * 40, 40 * (4 + 19)


@pytest.fixture(scope="module")
def lmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_host()
    return tmp_path_factory.mktemp("lmu")


def config_in(folder: Path) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def finished(lmu: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an uninterrupted sweep."""
    folder = tmp_path_factory.mktemp("finished")
    done = run(RUN_FINDIT, ["sweep", str(config_in(folder))], folder, environment(lmu))
    assert done.returncode == 0, done.stdout
    keys = answered_keys(folder / "outputs" / "calls.jsonl")
    assert len(keys) == len(set(keys)) == CALLS
    return folder


def test_the_stock_runner_takes_the_files_as_its_own(
    finished: Path, lmu: Path, tmp_path: Path
) -> None:
    name = "FindIt_Demo_described_yxyx_json_nested"
    work = finished / "outputs"
    theirs = work / MODEL / f"{MODEL}_{name}.json"
    before, score = theirs.read_bytes(), metric_values(theirs)
    flags = ["--data", name, "--model", MODEL]
    env = environment(lmu, PRED_FORMAT="json")
    evaluated = [*flags, "--mode", "eval", "--reuse", "--work-dir", str(work)]
    done = run(STOCK, evaluated, tmp_path, env)
    assert done.returncode == 0, done.stdout
    status = json.loads(next(work.glob(f"{MODEL}/**/status.json")).read_text())
    entry = status["datasets"][name]
    assert not entry.get("skip_reason"), entry
    assert entry["metrics"]["F1@0.5"] == pytest.approx(score["f1"], abs=1e-3)
    assert theirs.read_bytes() == before
    # And it writes the very bytes that we do.
    done = run(STOCK, [*flags, "--work-dir", str(tmp_path / "stock")], tmp_path, env)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "stock" / MODEL / theirs.name).read_bytes() == before
    for path in (*work.glob(f"{MODEL}/**/status.json"), *work.glob("logs/*")):
        path.unlink()


def test_search_finds_a_format_and_sweep_takes_it(
    finished: Path, lmu: Path, tmp_path: Path
) -> None:
    flags = ["--model", MODEL, "--data", "Demo", "--limit", "3"]
    done = run(RUN_FINDIT, ["search", *flags], tmp_path, environment(lmu))
    assert done.returncode == 0, done.stdout
    path = tmp_path / "outputs" / "best_formats.yaml"
    assert set(BestFormats(path).models) == {MODEL}
    said = yaml.safe_load(path.read_text())["models"][MODEL]["FindIt"]
    assert len(said["cells"]) == 19
    assert f"{MODEL}: best format" in done.stdout
    one = tmp_path / "one.yaml"
    one.write_text(f"models: {MODEL}\ndatasets: [Demo_refexp, Demo]\nlimit: 3\n")
    done = run(
        RUN_FINDIT, ["sweep", "one.yaml", "--formats", str(path)], tmp_path, environment(lmu)
    )
    assert done.returncode == 0, done.stdout
    assert len(list(tmp_path.glob(f"outputs/{MODEL}/*_score.csv"))) == 2
    # The search had paid for three of the six calls.
    assert len(answered_keys(tmp_path / "outputs" / "calls.jsonl")) == 19 * 3 + 3
