"""``track``: every scored run in an MLflow experiment, once."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from boards import JSON, TEXT, world
from PIL import Image
from scored_runs import World, failing, saying, speaking

from vlmeval_findit.api.frames import load_runs
from vlmeval_findit.cli import main
from vlmeval_findit.core.command import install
from vlmeval_findit.core.run_files import RunFiles
from vlmeval_findit.core.settings import Settings
from vlmeval_findit.publish.tracking import KEY, LOGGER, _is_left, _this_process, key_of, plain_name
from vlmeval_findit.publish.worst import worst_answers
from vlmeval_findit.report.transcripts import gather
from vlmeval_findit.runs.results import write_score
from vlmeval_findit.runs.score import score_file
from vlmeval_findit.runs.scored_run import load_run

__all__ = ["world"]

SECRET = "sk-or-" + "v1-0123456789abcdef"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A store that is a folder: that of a file in SQL takes a second to be made."""
    pytest.importorskip("mlflow", reason="mlflow-skinny is not installed (extra: track)")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    return (tmp_path / "tracked").as_uri()


def track(world: World, store: str, *more: str) -> int:
    return main(["track", str(world.runs), "--uri", store, *more])


def client(store: str) -> Any:
    import mlflow

    return mlflow.MlflowClient(tracking_uri=store)


def logged(store: str, experiment: str = "findit") -> list[Any]:
    found = client(store).get_experiment_by_name(experiment)
    return list(client(store).search_runs([found.experiment_id]))


def files_of(store: str, run: Any) -> Path:
    return Path(run.info.artifact_uri.removeprefix("file://"))


# --- with MLflow ----------------------------------------------------------------------------------


def test_figures_intervals_files_and_the_worst_answers(
    world: World, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.predict("Good", JSON, speaking(JSON, 0.6, 10))
    world.predict("Failing", JSON, failing)
    assert track(world, store, "--pictures", "3") == 0
    assert "findit: 2 of 2 runs logged now" in capsys.readouterr().out
    good = next(run for run in logged(store) if run.data.tags["model"] == "Good")
    (known,) = (run for run in load_runs(world.runs) if run.model == "Good")
    (row,) = load_runs(known.path).frame().to_dict("records")
    for name in ("F1@0.5", "F1@0.5 low", "F1@0.5 high", "mIoU", "Adherence", "queries"):
        assert good.data.metrics[plain_name(name)] == row[name]
    assert good.data.params["digest"] == known.basis.digest
    assert good.data.params["space"] == "grid1000 (recorded by the run)"
    folder = files_of(store, good)
    assert load_run(RunFiles(folder / "run" / known.path.name).provenance).figures == known.figures
    answers = json.loads((folder / "worst" / "answers.json").read_text())
    assert len(answers) == 3
    assert [one["goodness"] for one in answers] == sorted(one["goodness"] for one in answers)
    for one in answers:
        assert Image.open(folder / "worst" / one["picture"]).size == (200, 100)


def test_twice_is_once(world: World, store: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = world.predict("Good", JSON, speaking(JSON, 0.6, 10))
    assert track(world, store) == 0
    first = logged(store)
    assert track(world, store) == 0
    assert "logged before: nothing changes" in capsys.readouterr().out
    assert [r.to_dictionary() for r in logged(store)] == [r.to_dictionary() for r in first]
    # Scored again the same way it is the same run; with other figures it is another.
    write_score(score_file(path, Settings(force=True)), path)
    assert track(world, store) == 0
    assert len(logged(store)) == 1
    write_score(score_file(path, Settings(space={"kind": "pixels"}, force=True)), path)
    assert track(world, store) == 0
    assert len(logged(store)) == 2
    # Another experiment has runs of its own.
    assert track(world, store, "--experiment", "mine") == 0
    assert len(logged(store, "mine")) == 1


def test_what_a_kill_left_of_a_run_is_logged_anew(
    world: World, store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world.predict("Good", JSON, speaking(JSON, 0.6, 10))
    mlflow = sys.modules["mlflow"]

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "log_artifacts", full)
        assert track(world, store) == 1
        assert "No space left on device" in capsys.readouterr().err
    assert [run.info.status for run in logged(store)] == ["FAILED"]
    assert track(world, store) == 0
    assert [run.info.status for run in logged(store)] == ["FINISHED"]


def test_what_another_track_is_logging_is_left_to_it(
    world: World, store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world.predict("Good", JSON, speaking(JSON, 0.6, 10))
    mlflow = sys.modules["mlflow"]
    real = mlflow.MlflowClient.log_artifacts

    def meanwhile(client: Any, *arguments: Any) -> None:
        monkeypatch.setattr(mlflow.MlflowClient, "log_artifacts", real)
        assert track(world, store) == 0
        assert "another track is logging it" in capsys.readouterr().out
        real(client, *arguments)

    monkeypatch.setattr(mlflow.MlflowClient, "log_artifacts", meanwhile)
    assert track(world, store) == 0
    assert "1 of 1 run logged now" in capsys.readouterr().out
    (run,) = logged(store)
    assert run.info.status == "FINISHED"
    assert (files_of(store, run) / "run").is_dir()


def test_of_two_that_began_at_once_one_run_stays(
    world: World, store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world.predict("Good", JSON, speaking(JSON, 0.6, 10))
    mlflow = sys.modules["mlflow"]
    real = mlflow.MlflowClient.create_run

    def both(client: Any, *arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(mlflow.MlflowClient, "create_run", real)
        assert track(world, store) == 0
        return real(client, *arguments, **named)

    monkeypatch.setattr(mlflow.MlflowClient, "create_run", both)
    assert track(world, store) == 0
    assert [run.info.status for run in logged(store)] == ["FINISHED"]


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        ({}, False),
        ({"tags": {LOGGER: f"1 {socket.gethostname()}"}}, False),
        ({"tags": {LOGGER: f"{2**22 + 1} {socket.gethostname()}"}}, True),
        ({"tags": {LOGGER: "1 elsewhere"}}, False),
        ({"tags": {LOGGER: "1 elsewhere"}, "start_time": 0}, True),
        ({"tags": {}}, True),
        ({"status": "FAILED"}, True),
    ],
)
def test_who_goes_on_with_a_run_that_is_not_finished(changed: dict[str, Any], left: bool) -> None:
    said = {"tags": {LOGGER: _this_process()}, "start_time": time.time() * 1000, **changed}
    info = SimpleNamespace(status=said.get("status", "RUNNING"), start_time=said["start_time"])
    assert _is_left(SimpleNamespace(info=info, data=SimpleNamespace(tags=said["tags"]))) is left


def test_no_secret_and_no_path_is_logged(
    world: World, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", SECRET)
    world.predict("Leaky", JSON, saying(f"{SECRET} lies in {world.folder}/pictures/0.jpg"))
    assert track(world, store) == 0
    (run,) = logged(store)
    for path in files_of(store, run).rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert SECRET.encode() not in data, path
        assert str(world.folder).encode() not in data, path


def test_without_pictures_the_figures_are_logged(
    world: World, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.predict("Good", JSON, speaking(JSON, 0.6, 10))
    (world.folder / "Pascal.tsv").unlink()
    assert track(world, store) == 0
    assert "without pictures: " in capsys.readouterr().out
    assert logged(store)[0].data.metrics["F1 at 0.5"] > 0


def test_a_store_that_there_is_not(
    world: World, store: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.predict("Good", JSON, speaking(JSON, 0.6, 10))
    assert main(["track", str(world.runs), "--uri", "ftp://nowhere"]) == 2
    assert "--uri ftp://nowhere" in capsys.readouterr().err
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    assert main(["track", str(world.runs), "--uri", "http://127.0.0.1:9"]) == 1
    said = capsys.readouterr().err
    assert "error: " in said
    assert "run the same again" in said


# --- without --------------------------------------------------------------------------------------


def test_mlflow_that_is_not_there_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world.predict("Good", JSON, speaking(JSON, 0.6, 10))
    monkeypatch.setitem(sys.modules, "mlflow", None)
    assert main(["track", str(world.runs)]) == 2
    assert install("track") in capsys.readouterr().err


def test_the_key_is_of_the_answers_and_of_their_score(world: World) -> None:
    one = world.run("Good", JSON, speaking(JSON, 0.6, 10))
    other = world.run("Good", JSON, speaking(JSON, 0.1, 10), folder="other")
    text = world.run("Good", TEXT, speaking(TEXT, 0.6, 10))
    assert len({key_of(run) for run in (one, other, text)}) == 3
    assert key_of(one) == key_of(world.run("Good", JSON, speaking(JSON, 0.6, 10), folder="copy"))
    assert KEY == "findit.run"


def test_the_worst_come_first_and_failed_calls_are_none(world: World) -> None:
    run = world.run("Mixed", JSON, failing)
    (transcript,), _ = gather([run])
    found = list(worst_answers(transcript, 20))
    assert len(found) == 8
    assert all(one.index % 3 for one in found)
    (world.folder / "pictures" / "0.jpg").write_bytes(b"spoilt")
    again = {one.index: one.picture for one in worst_answers(transcript, 20)}
    assert again[1] is None
    assert again[2] is not None


def test_boxes_lie_where_they_are_on_a_picture_that_was_shrunk(world: World) -> None:
    from dataclasses import replace

    from scored_runs import query

    size = (4000, 2000)
    one = replace(query(0, "big.png", boxes=[(1000, 500, 3000, 1500)]), width=4000, height=2000)
    world.table("Pascal", [one])
    Image.new("RGB", size).save(world.folder / "pictures" / "big.png")
    run = world.run("Silent", JSON, saying("[]"))
    (transcript,), _ = gather([run])
    (answer,) = worst_answers(transcript, 1)
    import io

    drawn = Image.open(io.BytesIO(answer.picture or b""))
    assert drawn.size == (1024, 512)
    assert drawn.getpixel((256, 256)) == (255, 255, 255)
    assert drawn.getpixel((512, 128)) == (255, 255, 255)
    assert drawn.getpixel((512, 256)) == (0, 0, 0)
