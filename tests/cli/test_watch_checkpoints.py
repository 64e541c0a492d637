"""``watch-checkpoints``: every checkpoint evaluated once, and the best named."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from few_fast import every_nth_fast
from scored_runs import World, failing, speaking

from vlmeval_findit.cli import main, watch_checkpoints
from vlmeval_findit.models import SHIPPED, read_header, refuse_missing
from vlmeval_findit.protocol import FAILED_ANSWER
from vlmeval_findit.sweeps import Checkpoint

NANO = Path(SHIPPED["FindIt-Nano"])
DATA = "FindIt_Pascal_xyxy_json_bbox_2d"
FLAGS = ("--like", "FindIt-Nano", "--data", DATA)


@pytest.fixture
def evaluated(world: World, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Sequence[str]]]:
    """Two checkpoints in ``training``, evaluated by a stand-in that notes its calls."""
    calls = []

    def evaluate(checkpoint: Checkpoint, name: str, flags: Sequence[str]) -> int:
        calls.append((checkpoint.step, flags))
        answer = failing if checkpoint.step == 30 else speaking(DATA, checkpoint.step / 30)
        model = checkpoint.model(name)
        world.predict(model, DATA, answer, folder=f"../outputs/{model}")
        return int(checkpoint.step == 30)

    monkeypatch.chdir(world.folder)
    monkeypatch.setattr(watch_checkpoints, "evaluate_checkpoint", evaluate)
    for step in (20, 10):
        add_checkpoint(world.folder / "training", step)
    return calls


def add_checkpoint(folder: Path, step: int) -> None:
    shutil.copytree(NANO, folder / f"checkpoint-{step}")


@pytest.mark.sees(
    "watch-checkpoints folder",
    "watch-checkpoints --data",
    "watch-checkpoints --once",
    "watch-checkpoints --work-dir",
    "watch-checkpoints rest",
)
def test_each_checkpoint_is_evaluated_and_the_best_named(
    evaluated: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    text = "FindIt_Pascal_xyxy_text"
    command = ["watch-checkpoints", "training", *FLAGS, text, "--limit", "12", "--once"]
    assert main(command) == 0
    flags = ["--data", DATA, "--data", text, "--work-dir", "outputs", "--like", "FindIt-Nano"]
    assert evaluated == [(step, [*flags, "--limit", "12"]) for step in (10, 20)]
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"training on {DATA}"
    assert max(map(len, shown)) <= 100
    assert any(line.startswith("best: step 20 (F1@0.5 ") for line in shown)


def log_rewards(checkpoint: Path, steps: int) -> None:
    """Write what TRL's GRPO logs: a line each two steps, of two rewards, and other lines."""
    lines: list[dict[str, Any]] = [{"step": steps, "train_loss": 0.1}]
    for step in range(2, steps + 1, 2):
        means = {"rewards/findit_f1/mean": step / 100, "rewards/findit_f1/std": 0.5}
        if step > steps / 2:
            means["rewards/near/mean"] = 0.25
        lines.append({"step": step, "loss": 0.0, "reward": 9.0, **means})
    lines.append({"step": steps, "rewards/near/mean": float("nan")})
    (checkpoint / "trainer_state.json").write_text(json.dumps({"log_history": lines, "epoch": 1.0}))


def test_the_rewards_of_a_training_are_a_curve(
    evaluated: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    log_rewards(Path("training/checkpoint-20"), 80)
    (Path("training/checkpoint-10") / "trainer_state.json").write_text('{"log_history": [1]}')
    assert main(["watch-checkpoints", "training", *FLAGS, "--once"]) == 0
    shown = capsys.readouterr().out
    assert "training/checkpoint-10: its rewards cannot be read" in " ".join(shown.split())
    lines = shown[shown.index("rewards of training, until step 80") :].splitlines()
    assert lines[1].split() == ["to", "step", "findit_f1", "near"]
    rows = [line.split() for line in lines[2:12]]
    assert [row[0] for row in rows] == [str(step) for step in range(8, 81, 8)]
    assert rows[0] == ["8", "0.050", "–"]
    assert rows[-1] == ["80", "0.770", "0.250"]


@pytest.mark.sees("watch-checkpoints --until")
def test_new_checkpoints_are_waited_for(
    evaluated: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = iter((30, 40))
    monkeypatch.setattr(
        watch_checkpoints.time, "sleep", lambda _: add_checkpoint(Path("training"), next(waits))
    )
    command = ["watch-checkpoints", "training", *FLAGS, "--name", "ft", "--until", "40"]
    assert main(command) == 1  # The calls of step 30 failed
    assert [step for step, _ in evaluated] == [10, 20, 30, 40]
    assert "checkpoint-30: not all of it was evaluated (status 1)" in capsys.readouterr().out


def test_a_checkpoint_whose_writing_was_ended_is_named_once(
    evaluated: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_checkpoint(Path("training"), 30)
    weights = Path("training", "checkpoint-30", "model.safetensors")
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1])
    (Path("training") / "events-7").mkdir()  # no checkpoint
    assert main(["watch-checkpoints", "training", *FLAGS, "--once"]) == 0
    assert [step for step, _ in evaluated] == [10, 20]
    said = capsys.readouterr().out
    assert "checkpoint-30 is not complete (model.safetensors: it has " in said
    assert "events-7" not in said
    looks = iter((whole[:-1], whole))
    monkeypatch.setattr(watch_checkpoints.time, "sleep", lambda _: weights.write_bytes(next(looks)))
    # The stand-in's runs are no runs of this model, so the watch has another name.
    assert main(["watch-checkpoints", "training", *FLAGS, "--name", "later", "--until", "30"]) == 1
    assert capsys.readouterr().out.count("checkpoint-30 is not complete") == 1
    assert [step for step, _ in evaluated][-1] == 30


def test_a_checkpoint_that_lacks_weights_keeps_no_other_waiting(evaluated: list[Any]) -> None:
    """Its own run refuses it; the watch goes on."""
    whole = read_header(NANO / "model.safetensors")
    tensors = {name: value for name, value in whole.values.items() if name != "__metadata__"}
    names = {f"module.{name}": value for name, value in tensors.items()}
    numbers = (NANO / "model.safetensors").read_bytes()[whole.end :]
    add_checkpoint(Path("training"), 5)
    header = json.dumps(names).encode()
    wrapped = Path("training", "checkpoint-5", "model.safetensors")
    wrapped.write_bytes(len(header).to_bytes(8, "little") + header + numbers)
    with pytest.raises(ValueError, match="begin with module"):
        refuse_missing(str(wrapped.parent))
    assert main(["watch-checkpoints", "training", *FLAGS, "--once"]) == 0
    assert [step for step, _ in evaluated] == [5, 10, 20]


def test_checkpoints_without_an_answer_are_not_on_the_curve(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither one whose calls all failed, nor one that was refused: 0.0 would be a guess."""

    def mute(query: Any, generator: Any) -> str:
        return f"{FAILED_ANSWER} via API."

    def evaluate(checkpoint: Checkpoint, name: str, flags: Sequence[str]) -> int:
        model = checkpoint.model(name)
        if checkpoint.step == 10:
            Path("outputs", model).mkdir(parents=True)
            return 2
        answer = mute if checkpoint.step == 20 else speaking(DATA, 0.9)
        world.predict(model, DATA, answer, folder=f"../outputs/{model}")
        return int(checkpoint.step == 20)

    monkeypatch.chdir(world.folder)
    monkeypatch.setattr(watch_checkpoints, "evaluate_checkpoint", evaluate)
    for step in (10, 20, 30, 40):
        add_checkpoint(Path("training"), step)
    assert main(["watch-checkpoints", "training", *FLAGS, "--once"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("training-step-10: its run has no replies") == 1
    assert said.count(": no call was answered") == 1
    assert "demo" not in said
    assert said.endswith("report outputs")
    last = said[said.rindex("training on") :]
    assert "best: step 30" in last
    assert "step 20" not in last


@pytest.mark.sees("watch-checkpoints --to")
def test_the_curve_is_logged_after_each_checkpoint(
    evaluated: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mlflow", reason="mlflow-skinny is not installed (extra: mlflow)")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", Path("tracked").resolve().as_uri())
    assert main(["watch-checkpoints", "training", *FLAGS, "--once", "--to", "mlflow"]) == 0
    shown = capsys.readouterr().out
    assert shown.index("1 of 1 run logged now") < shown.index("curve of 2 checkpoints logged")
    assert not Path("outputs", "export").exists()


def test_mistakes_are_refused_before_a_checkpoint_is_evaluated(
    evaluated: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty").mkdir()
    for arguments, message in (
        (["nowhere", *FLAGS, "--once"], "nowhere: the folder does not exist"),
        (["empty", *FLAGS, "--once"], "empty has no complete checkpoint"),
        (["empty", "--like", "FindIt-Nano", "--data", "FindIt_Pascl_xyxy_json"], "Pascal"),
        (["training", *FLAGS, "--name", "a/b"], "should have no slash"),
    ):
        assert main(["watch-checkpoints", *arguments]) == 2
        assert message in capsys.readouterr().err
    assert evaluated == []


def test_the_first_checkpoint_is_waited_for(
    evaluated: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files say which model it is, so that no ``--like`` is needed."""

    def save(_: float) -> None:
        add_checkpoint(Path("begun"), 10)
        processor = Path("begun", "checkpoint-10", "processor_config.json")
        values = processor.read_text(encoding="utf-8")
        as_qwen = values.replace('"patch_size": 12', '"patch_size": 16')
        processor.write_text(as_qwen, encoding="utf-8")

    monkeypatch.setattr(watch_checkpoints.time, "sleep", save)
    assert main(["watch-checkpoints", "begun", "--data", DATA, "--until", "10"]) == 0
    assert [step for step, _ in evaluated] == [10]


def test_the_first_checkpoint_is_checked_once_it_is_there(
    evaluated: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watch_checkpoints.time, "sleep", lambda _: add_checkpoint(Path("begun"), 7))
    assert main(["watch-checkpoints", "begun", "--like", "Qwen3-VL", "--data", DATA]) == 2
    assert "begun-step-7=begun/checkpoint-7: " in capsys.readouterr().err
    assert evaluated == []


@pytest.mark.parametrize(
    ("flags", "message"),
    every_nth_fast(
        [
            ("--data FindIt_Pascl_xyxy_json", "Pascal"),
            ("--limit 0", "--limit"),
            ("--like Qwen9-VL", "unknown model 'Qwen9-VL'"),
            ("--like GPT-5.4", "unknown local model 'GPT-5.4'"),
            ("--space thousandths", "unknown coordinate space 'thousandths'"),
            ("--device cuda:9", "--device cuda:9: not here"),
            ("--dtype int4", "unknown --dtype 'int4'"),
            ("--gpus 2", "--gpus has no effect"),
            ("--samples 3", "type --temperature 0.7"),
            ("--samples 3 --temperature 1 --device cuda:9", "--device cuda:9: not here"),
            ("--samples 3 --temperature 1 --like GPT-5.4", "unknown local model 'GPT-5.4'"),
            ("--image-root Other=.", "--image-root Other=."),
            ("--serve vllm", "no program vllm"),
            ("--serve vllm --like GPT-5.4", "unknown local model 'GPT-5.4'"),
            ("--base-url http://127.0.0.1:9/v1", "--space SPACE"),
            ("--system nowhere.txt", "nowhere.txt"),
            ("--no-such-flag 3", "no-such-flag"),
        ],
        4,
    ),
)
def test_flags_are_checked_before_there_is_a_checkpoint(
    flags: str,
    message: str,
    evaluated: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(watch_checkpoints.time, "sleep", lambda _: pytest.fail("it waits"))
    assert main(["watch-checkpoints", "begun", "--data", DATA, *flags.split()]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert not re.search(r"OWNER/NAME|step-\d", printed.out + printed.err)


@pytest.mark.slow
def test_a_real_checkpoint_is_evaluated(tmp_path: Path) -> None:
    add_checkpoint(tmp_path / "training", 10)
    command = [sys.executable, "-m", "vlmeval_findit", "watch-checkpoints", "training"]
    command += ["--like", "FindIt-Nano", "--data", "FindIt_Scenes_mini_xyxy_json", "--limit", "4"]
    env = {**os.environ, "HOME": str(tmp_path), "LMUData": str(tmp_path / "data")}
    with (tmp_path / "out").open("w+") as out:
        process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=out, stderr=out)
        while "best: step 10" not in (text := (tmp_path / "out").read_text()):
            assert process.poll() is None, text
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 130
    assert "1 checkpoint was evaluated; the same command goes on" in (tmp_path / "out").read_text()
