"""The whole path through the real VLMEvalKit, as its users start it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from host_runs import (
    REPOSITORY,
    RUN_FINDIT,
    STOCK,
    environment,
    figures,
    predictions,
    replies,
    require_host,
    run,
)

pytestmark = pytest.mark.host

DATA = "FindIt_Demo_xyxy_json"
MODEL = "OpenCV-Detector"


@pytest.fixture(scope="module")
def lmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_host()
    return tmp_path_factory.mktemp("lmu")


@pytest.fixture(scope="module")
def finished(lmu: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work folder of an undisturbed run through run_findit.py."""
    cwd = tmp_path_factory.mktemp("finished")
    done = run(
        RUN_FINDIT,
        ["--data", DATA, "FindIt_Demo_video_f8_all_text", "--model", MODEL, "FullImage"],
        cwd,
        environment(lmu),
    )
    assert done.returncode == 0, done.stdout
    return cwd / "outputs"


def test_a_run_leaves_score_details_and_provenance(finished: Path) -> None:
    path = predictions(finished, MODEL, DATA)
    assert path.suffix == ".json", "xlsx would cut replies"
    details = [
        json.loads(line)
        for line in path.with_name(f"{path.stem}_details.jsonl").read_text().splitlines()
    ]
    provenance = json.loads(path.with_name(f"{path.stem}_provenance.json").read_text())
    assert len(details) == len(replies(path)) == provenance["predictions"]["rows"] == 19
    assert provenance["spaces"] == [{"kind": "grid1000", "source": "recorded by the run"}]
    assert provenance["asked"]["prompts"].startswith("findit-own-")
    assert provenance["sizes_recorded"] == 19
    assert provenance["versions"]["ms-vlmeval"]
    assert sum(d["tp"] for d in details) == provenance["totals"]["tp"] > 24


def test_the_run_summary_shows_f1(finished: Path) -> None:
    status = json.loads(next(finished.glob(f"{MODEL}/**/status.json")).read_text())
    entry = status["datasets"][DATA]
    assert entry["primary_metric"] == "F1@0.5"
    assert entry["metrics"][entry["primary_metric"]] == pytest.approx(
        figures(predictions(finished, MODEL, DATA))["f1"], abs=1e-3
    )


def test_full_image_is_the_floor(finished: Path) -> None:
    for data in (DATA, "FindIt_Demo_video_f8_all_text"):
        floor = figures(predictions(finished, "FullImage", data))
        assert 0 < floor["f1"] < figures(predictions(finished, MODEL, data))["f1"]
        assert floor["adherence"] == 100


def test_the_stock_runner_gives_the_same(finished: Path, lmu: Path, tmp_path: Path) -> None:
    done = run(STOCK, ["--data", DATA, "--model", MODEL], tmp_path, environment(lmu))
    assert done.returncode == 0, done.stdout
    stock = predictions(tmp_path / "outputs", MODEL, DATA)
    assert replies(stock) == replies(predictions(finished, MODEL, DATA))
    assert figures(stock) == figures(predictions(finished, MODEL, DATA))


def test_run_py_of_an_unmodified_clone_gives_the_same(
    finished: Path, lmu: Path, tmp_path: Path
) -> None:
    """Upstream is used from a clone: ``run.py`` at its root beside the package ``vlmeval``."""
    import importlib.util

    spec = importlib.util.find_spec("vlmeval")
    package = Path(spec.submodule_search_locations[0])
    clone = tmp_path / "VLMEvalKit"
    shutil.copytree(package, clone / "vlmeval", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(package / "run.py", clone / "run.py")
    done = run(["run.py"], ["--data", DATA, "--model", MODEL], clone, environment(lmu))
    assert done.returncode == 0, done.stdout
    path = predictions(clone / "outputs", MODEL, DATA)
    assert figures(path) == figures(predictions(finished, MODEL, DATA))


def test_score_again_needs_no_model(finished: Path, lmu: Path, tmp_path: Path) -> None:
    before = figures(predictions(finished, MODEL, DATA))
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    path = predictions(copy, MODEL, DATA)
    for beside in path.parent.glob(f"{path.stem}_*"):
        beside.unlink()
    blocked = "import sys; sys.modules.update(torch=None, vlmeval=None);"
    program = ["-c", f"{blocked} from vlmeval_findit.cli import main; sys.exit(main())"]
    done = run(program, ["score", str(path)], REPOSITORY, environment(lmu))
    assert done.returncode == 0, done.stdout
    assert f"{before['f1']:.1f}" in done.stdout
    assert figures(path) == before


def test_a_killed_run_goes_on_where_it_was(finished: Path, lmu: Path, tmp_path: Path) -> None:
    """kill -9 after the host's first save: the rest is answered, and nothing twice."""
    command = [sys.executable, *RUN_FINDIT, "--data", DATA, "--model", MODEL]
    with (tmp_path / "first.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment(lmu), stdout=log, stderr=log
        )
        saved = tmp_path / "outputs" / MODEL / f"01_{DATA}.pkl"
        deadline = time.monotonic() + 120
        while not saved.exists() or saved.stat().st_size == 0:
            assert process.poll() is None, (tmp_path / "first.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = run(RUN_FINDIT, ["--data", DATA, "--model", MODEL], tmp_path, environment(lmu))
    assert done.returncode == 0, done.stdout
    assert "/9 [" in done.stdout, "ten of nineteen rows had been saved"
    resumed = predictions(tmp_path / "outputs", MODEL, DATA)
    assert replies(resumed) == replies(predictions(finished, MODEL, DATA))
    assert figures(resumed) == figures(predictions(finished, MODEL, DATA))


def test_a_config_file_names_classes(finished: Path, lmu: Path, tmp_path: Path) -> None:
    config = {
        "model": {
            "Recorded": {
                "class": "FindItReplay",
                "predictions": str(predictions(finished, MODEL, DATA)),
            }
        },
        "data": {DATA: {"class": "FindItObjectDetection", "dataset": DATA}},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = run(STOCK, ["--config", "config.json"], tmp_path, environment(lmu))
    assert done.returncode == 0, done.stdout
    again = predictions(tmp_path / "outputs", "Recorded", DATA)
    assert again.suffix == ".json"
    assert replies(again) == replies(predictions(finished, MODEL, DATA))
    assert figures(again) == figures(predictions(finished, MODEL, DATA))


def test_replay_on_the_command_line(finished: Path, lmu: Path, tmp_path: Path) -> None:
    source = predictions(finished, "FullImage", DATA).parent
    done = run(
        RUN_FINDIT, ["--data", DATA, "--model", f"Replay={source}"], tmp_path, environment(lmu)
    )
    assert done.returncode == 0, done.stdout
    again = predictions(tmp_path / "outputs", "Replay", DATA)
    assert figures(again) == figures(predictions(finished, "FullImage", DATA))


def test_predictions_of_others_in_xlsx_are_scored(
    finished: Path, lmu: Path, tmp_path: Path
) -> None:
    import pandas as pd

    path = tmp_path / f"{MODEL}_{DATA}.xlsx"
    rows = json.loads(predictions(finished, MODEL, DATA).read_text())
    pd.DataFrame(rows).to_excel(path, index=False)
    done = run(RUN_FINDIT, ["score", str(path)], tmp_path, environment(lmu))
    assert done.returncode == 0, done.stdout
    assert figures(path) == figures(predictions(finished, MODEL, DATA))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["--data", "FindIt_Demo_xyxx_json", "--model", MODEL],
            "no representation 'xyxx': did you mean xyxy?",
            id="misspelt variant",
        ),
        pytest.param(
            ["--data", DATA, "--model", "Qwen2-VL-7B-Instruct"],
            "the coordinate space of the model 'Qwen2-VL-7B-Instruct' is not known",
            id="unknown space",
        ),
        pytest.param(
            ["--data", DATA, "--model", "Qwen3-VL-8B-Instrukt", "--judge-args", '{"space":"unit"}'],
            "VLMEvalKit has no model 'Qwen3-VL-8B-Instrukt': did you mean Qwen3-VL-8B-Instruct?",
            id="unknown model",
        ),
        pytest.param(
            ["--data", DATA, "--model", MODEL, "--judge-args", '{"space": "gird1000"}'],
            "no coordinate space 'gird1000': did you mean grid1000?",
            id="misspelt space",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_before_any_call(
    arguments: list[str], message: str, lmu: Path, tmp_path: Path
) -> None:
    done = run(RUN_FINDIT, arguments, tmp_path, environment(lmu))
    assert done.returncode == 2
    assert message in done.stdout
    assert "Infer" not in done.stdout
    assert not list(tmp_path.glob("outputs/**/*.json"))


def test_the_stock_runner_refuses_an_unknown_space_before_any_call(
    lmu: Path, tmp_path: Path
) -> None:
    arguments = ["--data", DATA, "--model", "Qwen2-VL-7B-Instruct"]
    done = run(STOCK, arguments, tmp_path, environment(lmu))
    assert "it is not guessed" in done.stdout
    assert "Infer" not in done.stdout


def test_other_prompts_are_not_mixed_into_a_run(finished: Path, lmu: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "outputs")
    asked = next((tmp_path / "outputs").glob(f"{MODEL}/{MODEL}_{DATA}_asked.json"))
    record = json.loads(asked.read_text())
    asked.write_text(json.dumps({**record, "prompt_hash": "of other words"}))
    done = run(RUN_FINDIT, ["--data", DATA, "--model", MODEL], tmp_path, environment(lmu))
    assert done.returncode == 2
    assert "holds replies to other prompts" in done.stdout


def test_switched_off_the_host_knows_nothing_of_us(lmu: Path, tmp_path: Path) -> None:
    env = environment(lmu, VLMEVAL_FINDIT="0")
    code = f"from vlmeval.dataset import build_dataset; print('built', build_dataset('{DATA}'))"
    done = run(["-W", "ignore", "-c", code], [], tmp_path, env)
    assert "built None" in done.stdout, done.stdout


@pytest.mark.shared
def test_the_photographs_of_pascal(shared: Path, lmu: Path, tmp_path: Path) -> None:
    """Thirteen photographs are there: the run is refused, or leaves rows out and says so."""
    tables = tmp_path / "tables"
    env = environment(lmu, FINDIT_TABLES=str(tables))
    subsets = ["--subsets", str(shared / "findit-subsets"), "--only", "Pascal"]
    done = run(RUN_FINDIT, ["prepare", *subsets, "--out", str(tables)], tmp_path, env)
    assert done.returncode == 0, done.stdout

    data = ["--data", "FindIt_Pascal_xyxy_json", "FindIt_Pascal_multilabel_xyxy_json"]
    images = ["--images", f"Pascal={shared / 'images' / 'pascal'}"]
    done = run(RUN_FINDIT, [*data, "--model", MODEL, *images], tmp_path, env)
    assert done.returncode == 2
    assert "991 of 1000 rows have no usable image" in done.stdout
    assert "images.Pascal in configs/datasets.yaml" in done.stdout

    skip = [*images, "--skip-missing-images"]
    done = run(RUN_FINDIT, [*data, "--model", MODEL, *skip], tmp_path, env)
    assert done.returncode == 0, done.stdout
    for name, rows in (("FindIt_Pascal_xyxy_json", 9), ("FindIt_Pascal_multilabel_xyxy_json", 7)):
        path = predictions(tmp_path / "outputs", MODEL, name)
        provenance = json.loads(path.with_name(f"{path.stem}_provenance.json").read_text())
        assert provenance["predictions"]["rows"] == rows
        assert len(provenance["asked"]["left_out"]) == 1000 - rows
        before = figures(path)
        assert run(RUN_FINDIT, ["score", str(path)], tmp_path, env).returncode == 0
        assert figures(path) == before

    stock_env = {
        **env,
        "FINDIT_IMAGES": f"Pascal={shared / 'images' / 'pascal'}",
        "FINDIT_SKIP_MISSING": "1",
    }
    arguments = [*data[:2], "--model", MODEL, "--work-dir", "stock"]
    done = run(STOCK, arguments, tmp_path, stock_env)
    assert done.returncode == 0, done.stdout
    stock = predictions(tmp_path / "stock", MODEL, "FindIt_Pascal_xyxy_json")
    ours = predictions(tmp_path / "outputs", MODEL, "FindIt_Pascal_xyxy_json")
    assert figures(stock) == figures(ours)


@pytest.mark.parametrize("module", ["datasets", "models", "local", "api", "engine"])
def test_our_modules_may_be_imported_before_the_host(
    module: str, lmu: Path, tmp_path: Path
) -> None:
    """The start-up hook asks for our classes while one of our own modules imports the host."""
    code = (
        "import warnings; warnings.filterwarnings('error', message='vlmeval_findit could not')\n"
        f"import vlmeval_findit.host.{module}\n"
        "import vlmeval.dataset, vlmeval.config\n"
        f"dataset = vlmeval.dataset.build_dataset('{DATA}')\n"
        "assert type(dataset).__name__ == 'FindItObjectDetection'\n"
        "assert 'FullImage' in vlmeval.config.supported_VLM"
    )
    done = run(["-c", code], [], tmp_path, environment(lmu))
    assert done.returncode == 0, done.stdout
