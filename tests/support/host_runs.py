"""Runs of the real VLMEvalKit in other processes, for the end-to-end tests."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from paths import ROOT
from warm_process import OF_A_RUN, WarmRun, can_run, warm_process

RUN_FINDIT = [str(ROOT / "run_findit.py")]
STOCK = ["-m", "vlmeval"]

# Read when packages are imported, so equal in all runs: one process is warm for all.
OF_EVERY_RUN = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}

_OF_THE_SESSION = {each: os.environ[each] for each in ("PATH", "PYTHONPATH") if each in os.environ}


def require_host() -> None:
    """Skip without VLMEvalKit; fail where the environment promises it (FINDIT_REQUIRE_HOST=1)."""
    if importlib.util.find_spec("vlmeval") is None:
        reason = "VLMEvalKit is not installed: pip install '.[run]'"
        if os.environ.get("FINDIT_REQUIRE_HOST") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


def environment(lmu: Path, **more: str) -> dict[str, str]:
    """Return the environment of a run: a separate LMUData, none of the user's FindIt settings."""
    outside = {k: v for k, v in os.environ.items() if not k.startswith(("FINDIT_", "PRED_FORMAT"))}
    lmu.mkdir(parents=True, exist_ok=True)
    return {**outside, "LMUData": str(lmu), **OF_EVERY_RUN, **more}


def environment_of_warm() -> dict[str, str]:
    """Return the environment of the process that runs are forked from."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(OF_A_RUN)}
    return {**inherited, **_OF_THE_SESSION, **OF_EVERY_RUN}


def run(
    program: Sequence[str], arguments: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run Python on a program with arguments; output and errors together in ``stdout``."""
    if can_run(program, env, environment_of_warm()):
        command = [*program, *arguments]
        with tempfile.NamedTemporaryFile("r", errors="replace") as output:
            status = _start_warm(command, cwd, env, Path(output.name)).wait()
            text = output.read()
        return subprocess.CompletedProcess(command, status, text)
    return run_anew(program, arguments, cwd, env)


def run_anew(
    program: Sequence[str], arguments: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run Python as :func:`run` does, in a process that has imported nothing."""
    return subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=cwd,
        env=dict(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


def _start_warm(command: Sequence[str], cwd: Path, env: Mapping[str, str], output: Path) -> WarmRun:
    warm = environment_of_warm()
    return warm_process(tuple(sorted(warm.items()))).start(command, cwd, env, output)


def predictions(work_dir: Path, model: str, dataset: str) -> Path:
    """Return the prediction file of a run, in whichever folder this version of the host."""
    paths = list(work_dir.glob(f"{model}/**/{model}_{dataset}.*"))
    # Upstream links the files of a run's folder into the model's.
    assert len({path.resolve() for path in paths}) == 1, paths
    return min(paths, key=lambda path: len(path.parts))


def metric_values(predictions_file: Path) -> dict[str, float]:
    """Return the metrics in the provenance of a prediction file."""
    path = predictions_file.with_name(f"{predictions_file.stem}_provenance.json")
    return json.loads(path.read_text())["metrics"]


def digest(predictions_file: Path) -> str:
    """Return the digest in the provenance of a prediction file."""
    path = predictions_file.with_name(f"{predictions_file.stem}_provenance.json")
    return json.loads(path.read_text())["digest"]


def kill_midway(command: Sequence[str], cwd: Path, env: Mapping[str, str], answers: int) -> int:
    """Start Python on a command, and kill -9 it when so many answers are in a journal.

    Returns:
        The number of answers when it was dead.
    """
    kill_when(command, cwd, env, lambda: _answers_in(cwd) >= answers)
    return _answers_in(cwd)


def kill_when(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], is_so: Callable[[], bool]
) -> None:
    """Start Python on a command, and kill -9 it when something is so."""
    assert can_run(command, env, environment_of_warm())
    process = _start_warm(command, cwd, env, cwd / "killed.log")
    deadline = time.monotonic() + 240
    while not is_so():
        assert not process.has_ended(), (cwd / "killed.log").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.wait()


def _answers_in(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*calls.jsonl"))


def replies(predictions_file: Path) -> dict[int, str]:
    """Return the replies of a JSON prediction file by index."""
    return {row["index"]: row["prediction"] for row in json.loads(predictions_file.read_text())}
