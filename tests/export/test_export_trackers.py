"""``export --to mlflow | wandb | trackio``: every scored run in a tracker, once."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from boards import JSON
from costly_runs import with_records
from paths import ROOT
from PIL import Image
from scored_runs import World, failing, saying, speaking

from vlmeval_findit.api import load_scores, open_runs
from vlmeval_findit.cli import main
from vlmeval_findit.core import EXTRAS, install_command
from vlmeval_findit.export import (
    CURVE_TAG,
    RUN_TAG,
    TARGETS,
    Private,
    exporter,
    plain_name,
    tracker_key,
    worst_answers,
)
from vlmeval_findit.protocol import Settings
from vlmeval_findit.report import gather_transcripts
from vlmeval_findit.scoring import load_run, load_runs, score_file, write_score
from vlmeval_findit.storage import RunFiles

SECRET = "sk-or-" + "v1-0123456789abcdef"


@pytest.fixture
def store(tmp_path, monkeypatch) -> str:
    """Return a store in a folder: a store in SQL takes a second to make."""
    pytest.importorskip("mlflow", reason="mlflow-skinny is not installed (extra: mlflow)")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    where = (tmp_path / "tracked").as_uri()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", where)
    return where


def good(world: World) -> Path:
    return world.predict("Good", JSON, speaking(JSON, 0.6, 10))


def score_again(path: Path, **settings: Any) -> None:
    write_score(score_file(path, Settings(force=True, **settings)), path)


def track(world: World, *more: str, to: str = "mlflow") -> int:
    return main(["export", str(world.runs), "--to", to, *more])


def client(store: str) -> Any:
    import mlflow

    return mlflow.MlflowClient(tracking_uri=store)


def logged(store: str, experiment: str = "findit") -> list[Any]:
    entry = client(store).get_experiment_by_name(experiment)
    return list(client(store).search_runs([entry.experiment_id]))


def files_of(run: Any) -> Path:
    return Path(run.info.artifact_uri.removeprefix("file://"))


# --- with MLflow ----------------------------------------------------------------------------------


def test_values_intervals_files_and_the_worst_answers(world: World, store: str, capsys) -> None:
    with_records(good(world), lambda index: {"call": {"cost": 0.002}})
    world.predict("Failing", JSON, failing)
    assert track(world, "--pictures", "3") == 0
    assert "2 of 2 runs logged now" in capsys.readouterr().out
    run = next(run for run in logged(store) if run.data.tags["model"] == "Good")
    (known,) = (run for run in open_runs(world.runs) if run.model == "Good")
    (row,) = load_scores(known.path).to_dict("records")
    for name in ("F1@0.5", "F1@0.5 low", "F1@0.5 high", "mIoU", "Adherence", "queries"):
        assert run.data.metrics[plain_name(name)] == row[name]
    assert run.data.metrics["USD per 1000"] == pytest.approx(2.0)
    assert run.data.params["USD source"] == "stated by the service"
    assert run.data.params["digest"] == known.provenance.digest
    assert run.data.params["space"] == "grid1000 (recorded by the run)"
    folder = files_of(run)
    copy = load_run(RunFiles(folder / "run" / known.path.name).provenance)
    assert copy.metric_values == known.metric_values
    answers = json.loads((folder / "worst" / "answers.json").read_text())
    assert len(answers) == 3
    assert [a["score"] for a in answers] == sorted(a["score"] for a in answers)
    for answer in answers:
        assert Image.open(folder / "worst" / answer["picture"]).size == (200, 100)


def test_twice_is_once(world: World, store: str, capsys) -> None:
    path = good(world)
    assert track(world) == 0
    first = logged(store)
    assert track(world) == 0
    assert "0 of 1 run logged now; the others were logged before" in capsys.readouterr().out
    assert [r.to_dictionary() for r in logged(store)] == [r.to_dictionary() for r in first]
    # Scored again with the same result it is the same run; with other values it is another.
    for settings, runs in (({}, 1), ({"space": {"kind": "pixels"}}, 2)):
        score_again(path, **settings)
        assert track(world) == 0
        assert len(logged(store)) == runs
    # Another experiment has separate runs.
    assert track(world, "--project", "mine") == 0
    assert len(logged(store, "mine")) == 1


@pytest.mark.slow
def test_an_unfinished_run_is_logged_again(world: World, store: str, monkeypatch, capsys) -> None:
    good(world)

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["mlflow"].MlflowClient, "log_artifacts", full)
        assert track(world) == 1
        assert "No space left on device" in capsys.readouterr().err
    assert [run.info.status for run in logged(store)] == ["RUNNING"]
    assert track(world) == 0
    assert [run.info.status for run in logged(store)] == ["FINISHED"]


def test_no_secret_and_no_path_is_logged(world: World, store: str, monkeypatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", SECRET)
    world.predict("Leaky", JSON, saying(f"{SECRET} lies in {world.folder}/pictures/0.jpg"))
    assert track(world) == 0
    (run,) = logged(store)
    for path in files_of(run).rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert SECRET.encode() not in data, path
        assert str(world.folder).encode() not in data, path


def test_a_missing_store_is_reported(world: World, store: str, capsys, monkeypatch) -> None:
    good(world)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "ftp://nowhere")
    assert track(world) == 2
    assert "MLFLOW_TRACKING_URI=ftp://nowhere: " in capsys.readouterr().err
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    assert track(world) == 1
    message = capsys.readouterr().err
    assert "error: " in message
    assert "run the same command again to go on" in message


def test_a_store_in_a_folder_has_values_and_files(world: World, store: str, capsys) -> None:
    good(world)
    out = world.folder / "store"
    uri = f"sqlite:///{out}/mlflow.db"
    assert track(world, "--out", str(out)) == 0
    assert f"mlflow ui --backend-store-uri {uri}" in capsys.readouterr().out
    (run,) = client(uri).search_runs(["1"])
    assert run.data.metrics["F1 at 0.5"] > 0
    assert list(out.glob("files/*/artifacts/worst/*.png"))


# --- in folders -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_offline_runs_of_wandb_have_values_and_nothing_private(
    world: World, monkeypatch, capsys
) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed (extra: wandb)")
    monkeypatch.setenv("OPENROUTER_API_KEY", SECRET)
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setattr(socket, "gethostname", lambda: "somebodys-machine")
    world.predict("Leaky", JSON, saying(f"{SECRET} lies in {world.folder}/pictures/0.jpg"))
    out = world.folder / "store"
    flags = ("--out", str(out), "--pictures", "2")
    assert track(world, *flags, to="wandb") == 0
    assert f"wandb sync {out}/wandb/offline-run-*" in capsys.readouterr().out
    (run,) = open_runs(world.runs)
    (folder,) = (out / "wandb").iterdir()
    assert folder.name.endswith(f"-{tracker_key(run)}")
    files = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert sorted(Path(name).suffix for name in files) == [".png", ".png", ".wandb"]
    recorded = files[f"run-{tracker_key(run)}.wandb"]
    for there in ("F1 at 0.5", "grid1000 (recorded by the run)", "*** lies in …/0.jpg"):
        assert there.encode() in recorded.replace(b"\\u2026", "…".encode()), there
    for private in (SECRET, str(world.folder), "somebodys-machine"):
        assert not [name for name, data in files.items() if private.encode() in data], private
    assert track(world, *flags, to="wandb") == 0
    assert "0 of 1 run logged now" in capsys.readouterr().out
    assert list((out / "wandb").iterdir()) == [folder]


@pytest.mark.slow
def test_a_damaged_offline_run_is_written_again(world: World, capsys) -> None:
    """Without its record a folder is no run: wandb would send nothing of it."""
    pytest.importorskip("wandb", reason="wandb is not installed (extra: wandb)")
    good(world)
    out = world.folder / "store"
    flags = ("--out", str(out), "--pictures", "0")
    assert track(world, *flags, to="wandb") == 0
    (folder,) = (out / "wandb").iterdir()
    (record,) = folder.glob("*.wandb")
    whole = record.stat().st_size

    def into_file(record: Path) -> None:
        shutil.rmtree(record.parent)
        record.parent.write_text("no folder")

    def to_header(record: Path) -> None:
        record.write_bytes(record.read_bytes()[:7])

    for damage in (Path.unlink, lambda record: record.write_bytes(b""), to_header, into_file):
        damage(record)
        capsys.readouterr()
        assert track(world, *flags, to="wandb") == 0
        assert "1 of 1 run logged now" in capsys.readouterr().out
        (folder,) = (out / "wandb").iterdir()
        (record,) = folder.glob("*.wandb")
        assert abs(record.stat().st_size - whole) < 100


def test_a_project_that_wandb_does_not_take_is_refused(world: World, capsys) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed (extra: wandb)")
    good(world)
    out = world.folder / "store"
    for project in ("team/boxes", "50%", "a:b"):
        assert track(world, "--out", str(out), "--project", project, to="wandb") == 2
        message = capsys.readouterr().err
        assert message.startswith(f"error: --project {project}: Invalid project name")
    assert not out.exists()


@pytest.mark.sees("export --project", "export --pictures")
@pytest.mark.slow
def test_trackio_has_every_run_once(world: World, capsys) -> None:
    pytest.importorskip("trackio", reason="trackio is not installed (extra: trackio)")
    path, out = good(world), world.folder / "store"
    flags = ("--out", str(out), "--project", "mine", "--pictures", "2")
    assert track(world, *flags, to="trackio") == 0
    output = capsys.readouterr().out
    assert f"TRACKIO_DIR={out} trackio show --project mine" in output
    assert "Trackio" not in output, "its output is suppressed"
    assert track(world, *flags, to="trackio") == 0
    assert "0 of 1 run logged now" in capsys.readouterr().out
    score_again(path, space={"kind": "pixels"})
    assert track(world, *flags, to="trackio") == 0
    keys = {run.config[RUN_TAG] for run in sys.modules["trackio"].Api().runs("mine")}
    (run,) = open_runs(world.runs)
    assert len(keys) == 2
    assert tracker_key(run) in keys
    assert len(list((out / "media").rglob("*.png"))) == 4


# --- learning curves ------------------------------------------------------------------------------


def add_checkpoint(world: World, step: int) -> None:
    world.predict(f"ft-step-{step}", JSON, speaking(JSON, step / 30))


def test_mlflow_has_one_curve_of_a_training_with_all_checkpoints(
    world: World, store: str, capsys
) -> None:
    for step, curves in ((10, 0), (20, 1), (30, 1)):
        add_checkpoint(world, step)
        for new in (True, False):
            assert track(world, "--pictures", "0") == 0
            assert ("checkpoints logged" in capsys.readouterr().out) == (new and curves == 1)
            assert sum(CURVE_TAG in run.data.tags for run in logged(store)) == curves
    (curve,) = (run for run in logged(store) if CURVE_TAG in run.data.tags)
    for name in ("F1 at 0.5", "F1 at 0.5 low", "F1 at 0.5 high"):
        history = client(store).get_metric_history(curve.info.run_id, name)
        assert [metric.step for metric in history] == [10, 20, 30]
    assert history[-1].value == 100.0


@pytest.mark.slow
@pytest.mark.parametrize("target", ["wandb", "trackio"])
def test_local_stores_have_one_curve_of_a_training(world: World, capsys, target: str) -> None:
    pytest.importorskip(target, reason=f"{target} is not installed (extra: {target})")
    out = world.folder / "store"
    flags = ("--out", str(out), "--pictures", "0")
    for step in (10, 20, 30):
        add_checkpoint(world, step)
        assert track(world, *flags, to=target) == 0
    assert "curve of 3 checkpoints logged" in capsys.readouterr().out
    assert track(world, *flags, to=target) == 0
    assert "checkpoints logged" not in capsys.readouterr().out
    if target == "wandb":
        assert len(list((out / "wandb").iterdir())) == 4  # Three runs and a curve
    else:
        runs = sys.modules["trackio"].Api().runs("findit")
        assert sum(CURVE_TAG in run.config for run in runs) == 1


# --- without a tracker ----------------------------------------------------------------------------


def test_a_missing_package_is_named(world: World, monkeypatch, capsys) -> None:
    good(world)
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert track(world, "--out", str(world.folder / "store"), to="wandb") == 2
    assert install_command("wandb") in capsys.readouterr().err
    monkeypatch.delitem(EXTRAS, "wandb")  # As of a tracker that no extra brings
    assert track(world, "--out", str(world.folder / "store"), to="wandb") == 2
    assert "wandb is not installed: pip install wandb" in capsys.readouterr().err


# --- a new tracker --------------------------------------------------------------------------------

# All of it, but for its row in TARGETS
TOY = """
import json
from pathlib import Path
from vlmeval_findit.export.export_folder import make_store
from vlmeval_findit.export.trackers import TrackedCurve, TrackedRun, log_new

class Lines:
    def __init__(self, out: Path) -> None:
        self.file = out / "runs.jsonl"

    def has(self, key: str) -> bool:
        return self.file.is_file() and f'"{key}"' in self.file.read_text()

    def log(self, tracked: TrackedRun) -> None:
        self.write({"key": tracked.key, "name": tracked.name, **tracked.metric_values})

    def log_curve(self, curve: TrackedCurve) -> None:
        self.write({"key": curve.key, "curve": curve.curve, "points": curve.points})

    def write(self, values: dict) -> None:
        with self.file.open("a") as file:
            file.write(json.dumps(values) + "\\n")

def to_lines(runs, out, project="findit", pictures=8):
    make_store(out, "lines")
    yield from log_new(runs, Lines(out), pictures)
"""


def test_a_new_tracker_is_a_module_and_a_row(world: World, monkeypatch) -> None:
    module = ModuleType("vlmeval_findit.export.lines")
    exec(TOY, module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(TARGETS, "lines", replace(TARGETS["wandb"], module="lines"))
    (run,) = load_runs([good(world)])
    out = world.folder / "lines"
    assert [*exporter("lines")([run], out)] == ["1 of 1 run logged now"]
    assert [*exporter("lines")([run], out)] == [
        "0 of 1 run logged now; the others were logged before"
    ]
    (line,) = (out / "runs.jsonl").read_text().splitlines()
    metric = run.benchmark.metrics[0]
    assert json.loads(line)[plain_name(metric.name)] == pytest.approx(run.value(metric))


def test_the_worst_come_first_and_failed_calls_are_none(world: World) -> None:
    (transcript,), _ = gather_transcripts([world.run("Mixed", JSON, failing)])
    (world.folder / "pictures" / "0.jpg").write_bytes(b"spoilt")
    worst = {each.row.index: each.picture for each in worst_answers(transcript, 20, Private())}
    assert [*worst] == [1, 2, 4, 5, 7, 8, 10, 11]
    assert worst[1] is None
    assert worst[2] is not None


LOGS = """
import sys
from pathlib import Path
from vlmeval_findit.export.mlflow import to_mlflow
from vlmeval_findit.export.targets import ExportError, NotExportableError
try:
    list(to_mlflow([], Path(sys.argv[1])))
except (ExportError, NotExportableError) as error:
    sys.exit(str(error))
"""
"""In a process of its own: MLflow keeps opened stores."""


def tracked_in(store: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LOGS, str(store)]
    return subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def store_in_sql(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store that MLflow has made: it takes seconds."""
    pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    made = tmp_path_factory.mktemp("made")
    done = tracked_in(made)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "why"),
    [("BEGIN EXCLUSIVE", "locked"), ("UPDATE alembic_version SET version_num='f'", "schema")],
)
def test_a_locked_or_newer_store_is_refused(
    store_in_sql: Path, tmp_path: Path, spoil: str, why: str
) -> None:
    store = shutil.copytree(store_in_sql, tmp_path / "store")
    with closing(sqlite3.connect(store / "mlflow.db", isolation_level=None)) as database:
        database.execute(spoil)
        refused = tracked_in(store)
    assert refused.returncode == 1
    last = refused.stderr.splitlines()[-1]
    assert why in last
    assert "Traceback" not in refused.stderr
