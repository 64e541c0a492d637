"""The whole path through the real VLMEvalKit, as its users start it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from host_runs import (
    RUN_FINDIT,
    STOCK,
    digest,
    environment,
    kill_midway,
    metric_values,
    predictions,
    replies,
    run,
)
from upstream import COMMIT, make_clone

from vlmeval_findit.storage import read_identity

pytestmark = [pytest.mark.host, pytest.mark.slow]

DATA = "FindIt_Demo_xyxy_json"
MODEL = "FindIt-Nano"
LIFE, LIFE_ROWS = "FindIt_Scenes_mini_xyxy_json", 50
"""More rows than a model gets at a time under VLMEvalKit's runner, so it can be killed midway."""


@pytest.fixture(scope="module")
def finished(lmu: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the work folder of an undisturbed run under VLMEvalKit's runner."""
    cwd = tmp_path_factory.mktemp("finished")
    done = run(
        STOCK,
        ["--data", DATA, LIFE, "FindIt_Demo_video_f8_all_text", "--model", MODEL, "FullImage"],
        cwd,
        environment(lmu),
    )
    assert done.returncode == 0, done.stdout
    return cwd / "outputs"


def beside(path: Path, suffix: str) -> str:
    return path.with_name(f"{path.stem}_{suffix}").read_text()


def test_a_run_leaves_score_details_and_provenance(finished: Path) -> None:
    path = predictions(finished, MODEL, DATA)
    assert path.suffix == ".json", "xlsx would cut replies"
    details = [json.loads(line) for line in beside(path, "details.jsonl").splitlines()]
    provenance = json.loads(beside(path, "provenance.json"))
    assert len(details) == len(replies(path)) == provenance["predictions"]["rows"] == 19
    assert provenance["spaces"] == [{"kind": "grid1000", "source": "recorded by the run"}]
    assert provenance["identity"]["prompts"].startswith("findit-own-")
    assert provenance["identity"]["host"]["ms-vlmeval"]
    assert sum(d["tp"] for d in details) == provenance["totals"]["tp"]
    status = json.loads(next(finished.glob(f"{MODEL}/**/status.json")).read_text())
    entry = status["datasets"][DATA]
    assert entry["primary_metric"] == "F1@0.5"
    assert entry["metrics"]["F1@0.5"] == pytest.approx(metric_values(path)["f1"], abs=1e-3)


# --- the life of a run ----------------------------------------------------------------------------

SWEEP = """\
models: FindIt-Nano
datasets: Scenes_mini
representations: xyxy
outputs: json
work_dir: outputs
journal: outputs/calls.jsonl
"""


@pytest.mark.parametrize("program", ["ms-vlmeval", "upstream", "run", "sweep"])
def test_the_life_of_a_run(program: str, finished: Path, lmu: Path, tmp_path: Path) -> None:
    """Killed, continued, run and scored again, moved and exported: the same run and values."""
    env = environment(lmu)
    arguments = ["--data", LIFE, "--model", MODEL]
    command = [*RUN_FINDIT, *arguments]
    if program == "ms-vlmeval":
        command = [*STOCK, *arguments]
    if program == "upstream":
        command = [str(make_clone(tmp_path / "clone") / "run.py"), *arguments]
    if program == "sweep":
        (tmp_path / "sweep.yaml").write_text(SWEEP)
        command = [*RUN_FINDIT, "sweep", "sweep.yaml"]
    before = kill_midway(command, tmp_path, env, 5)
    assert 5 <= before < LIFE_ROWS
    done = run(command[:1], command[1:], tmp_path, env)
    assert done.returncode == 0, done.stdout
    path = predictions(tmp_path / "outputs", MODEL, LIFE)
    whole = predictions(finished, MODEL, LIFE)

    def check(at: Path) -> None:
        assert metric_values(at) == metric_values(whole)
        assert digest(at) == digest(whole)
        assert replies(at) == replies(whole)

    check(path)
    journal = next((tmp_path / "outputs").rglob("*calls.jsonl"))
    assert journal.read_bytes().count(b"\n") == LIFE_ROWS, "no call was made twice"

    reuse = ["--reuse"] * (program in ("ms-vlmeval", "run"))
    again = run(command[:1], [*command[1:], *reuse], tmp_path, env)
    assert again.returncode == 0, again.stdout
    assert journal.read_bytes().count(b"\n") == LIFE_ROWS
    if program in ("ms-vlmeval", "upstream"):
        assert "nothing is left to ask" in again.stdout
    if program == "upstream":
        recorded = read_identity(path)
        assert recorded is not None
        assert recorded.host == {"VLMEvalKit": COMMIT[:12]}
    path = min((tmp_path / "outputs").rglob(path.name), key=lambda p: len(p.parts))
    check(path)

    moved = tmp_path / "elsewhere"
    shutil.move(tmp_path / "outputs", moved)
    path = moved / path.relative_to(tmp_path / "outputs")
    assert run(RUN_FINDIT, ["score", str(path)], tmp_path, env).returncode == 0
    check(path)
    export = ["export", str(path), "--to", "coco", "--out", "coco"]
    assert run(RUN_FINDIT, export, tmp_path, env).returncode == 0
    boxes = json.loads((tmp_path / "coco" / f"{path.stem}_coco_results.json").read_text())
    assert len(boxes) == json.loads(beside(path, "provenance.json"))["totals"]["n_pred"]


def test_a_run_goes_on_under_any_program(finished: Path, lmu: Path, tmp_path: Path) -> None:
    """Begun under one host, continued under the other, finished by a sweep."""
    clone = make_clone(tmp_path / "clone")
    arguments = ["--data", LIFE, "--model", MODEL]
    env = environment(lmu)
    kill_midway([*RUN_FINDIT, *arguments], tmp_path, env, 4)
    done = run([str(clone / "run.py")], arguments, tmp_path, env)
    assert done.returncode == 0, done.stdout
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    done = run(RUN_FINDIT, ["sweep", "sweep.yaml"], tmp_path, env)
    assert done.returncode == 0, done.stdout
    path = tmp_path / "outputs" / MODEL / f"{MODEL}_{LIFE}.json"
    assert metric_values(path) == metric_values(predictions(finished, MODEL, LIFE))
    assert digest(path) == digest(predictions(finished, MODEL, LIFE))
    calls = tmp_path / "outputs" / MODEL / f"{MODEL}_{LIFE}_calls.jsonl"
    assert calls.read_bytes().count(b"\n") == LIFE_ROWS


def test_where_there_is_no_runner_it_says_what_to_type(lmu: Path, tmp_path: Path) -> None:
    clone = make_clone(tmp_path / "clone")
    (clone / "run.py").unlink()
    env = environment(lmu, PYTHONPATH=str(clone))
    words = ["--data", DATA, "--model", MODEL, "--mode", "infer"]
    done = run(RUN_FINDIT, words, tmp_path, env)
    assert done.returncode == 2
    assert "error: --mode infer needs VLMEvalKit's runner" in done.stdout
    assert "In a clone of it, type:\n  python run.py " in done.stdout
    assert f" --data {DATA} --model {MODEL}\n" in done.stdout


def test_a_config_file_names_classes(finished: Path, lmu: Path, tmp_path: Path) -> None:
    config = {
        "model": {"Baseline": {"class": "FindItBaseline", "baseline": "FullImage"}},
        "data": {DATA: {"class": "FindItObjectDetection", "dataset": DATA}},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = run(STOCK, ["--config", "config.json"], tmp_path, environment(lmu))
    assert done.returncode == 0, done.stdout
    again = predictions(tmp_path / "outputs", "Baseline", DATA)
    assert again.suffix == ".json"
    assert replies(again) == replies(predictions(finished, "FullImage", DATA))
    assert metric_values(again) == metric_values(predictions(finished, "FullImage", DATA))


def test_a_failure_ends_the_stock_runner_with_a_status(
    finished: Path, lmu: Path, tmp_path: Path
) -> None:
    env = environment(lmu)
    done = run(STOCK, ["--data", DATA, "--model", "Qwen2-VL-7B-Instruct"], tmp_path, env)
    assert "it is not guessed" in done.stdout
    assert "Infer" not in done.stdout, "an unknown space is refused before any call"
    shutil.copytree(finished, tmp_path / "outputs", dirs_exist_ok=True)
    recorded = tmp_path / "outputs" / MODEL / f"{MODEL}_{DATA}_identity.json"
    recorded.write_text(json.dumps({**json.loads(recorded.read_text()), "prompt_hash": "others"}))
    arguments = ["--data", DATA, "--model", MODEL]
    done = run(STOCK, arguments, tmp_path, env)
    assert done.returncode == 1
    assert f"FindIt: {MODEL} on {DATA}: " in done.stdout
    done = run(RUN_FINDIT, arguments, tmp_path, env)
    assert done.returncode == 2, "refused before the host starts"
    assert "hash of the prompts: recorded others" in done.stdout
    pascal = "FindIt_Pascal_xyxy_json"
    done = run(STOCK, ["--data", pascal, "--model", MODEL], tmp_path, env)
    assert done.returncode == 1, "its images are missing"
    assert f"FindIt: any model on {pascal}: " in done.stdout


def test_switched_off_the_host_knows_nothing_of_us(lmu: Path, tmp_path: Path) -> None:
    env = environment(lmu, VLMEVAL_FINDIT="0")
    code = f"from vlmeval.dataset import build_dataset; print('built', build_dataset('{DATA}'))"
    done = run(["-W", "ignore", "-c", code], [], tmp_path, env)
    assert "built None" in done.stdout, done.stdout


@pytest.mark.parametrize("module", ["inference", "vlmevalkit_backends"])
def test_our_modules_may_be_imported_before_the_host(
    module: str, lmu: Path, tmp_path: Path
) -> None:
    """The start-up hook asks for our classes while one of our own modules imports the host."""
    code = f"""
import warnings; warnings.filterwarnings('error', message='vlmeval_findit could not')
import vlmeval_findit.host.{module}
import vlmeval.dataset, vlmeval.config
dataset = vlmeval.dataset.build_dataset('{DATA}')
assert type(dataset).__name__ == 'FindItObjectDetection'
assert 'FullImage' in vlmeval.config.supported_VLM
"""
    done = run(["-c", code], [], tmp_path, environment(lmu))
    assert done.returncode == 0, done.stdout
