"""``--serve``: servers of this machine are started, waited for, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import fake_program
import pytest
from every_pair import every_pair
from fake_program import Machine, ends
from waits import until

from vlmeval_findit.cli import main
from vlmeval_findit.engine import ServedModel
from vlmeval_findit.models import ANY_CHECKPOINT, RunSettings
from vlmeval_findit.serving import (
    PROGRAMS,
    LocalServers,
    ServeOptions,
    ServerProcess,
    ServingError,
    end_servers,
    guard,
)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    built = Machine(tmp_path)
    for name, value in built.environment.items():
        monkeypatch.setenv(name, value)
    yield built
    assert built.ends()


def servers(machine: Machine, how: ServeOptions, **more: str) -> LocalServers:
    built = LocalServers(how, "org/model", "Qwen3-VL", machine.folder / "servers", **more)
    built.start()
    return built


def living(running: LocalServers, count: int) -> list[ServerProcess]:
    until(lambda: len(running.living()) == count)
    return running.living()


@pytest.mark.sees("key arguments")
@pytest.mark.parametrize("program", ["vllm", "sglang"])
def test_servers_share_out_the_gpus(program: str, machine: Machine) -> None:
    how = ServeOptions(program, 4, ("--max-model-len", "8192"), tensor_parallel=2)
    with closing(servers(machine, how, revision="abc", dtype="half")) as running:
        actual = living(running, 2)
        assert [item.name for item in actual] == [f"{program} 0", f"{program} 1"]
        record = machine.started
        assert sorted(item["cuda"] for item in record) == ["0,1", "GPU-5b,3"]
        assert {item["url"] for item in record} == {item.url for item in actual}
        assert {item["parallel"] for item in record} == {2}
        more = ["--revision", "abc", "--dtype", "half", "--max-model-len", "8192"]
        assert all(item["argv"][-6:] == more for item in record)
        assert len({os.getsid(item["pid"]) for item in record} | {os.getsid(0)}) == 3
    assert machine.ends(0.1)
    names = {path.name for path in (machine.folder / "servers").iterdir()}
    assert names == {"Qwen3-VL-0.log", "Qwen3-VL-1.log"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fake", "victim"), [("stubborn", "run"), ("children", "run"), ("stubborn", "guard")]
)
def test_nothing_is_left_when_we_are_killed(
    fake: str, victim: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE", fake)
    # The guard's patience is too long for a test.
    quick = machine.folder / "guard.py"
    text = Path(guard.__file__).read_text(encoding="utf-8")
    quick.write_text(text.replace("GRACE = 20.0", "GRACE = 1.0"), encoding="utf-8")
    code = f"""
import time
from pathlib import Path
from vlmeval_findit.serving import guard, server_process
from vlmeval_findit.serving.programs import ServeOptions
guard.__file__ = {str(quick)!r}
how = ServeOptions("vllm", 1)
running = server_process.LocalServers(how, "org/model", "M", Path({str(machine.folder)!r}))
running.start()
while not running.living():
    time.sleep(0.1)
print(running._servers[0]._guard.pid, flush=True)
time.sleep(600)
"""
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    guarding = int(run.stdout.readline())
    (record,) = machine.started
    if victim == "guard":
        os.kill(guarding, signal.SIGKILL)
        assert ends([record["pid"]])
    run.kill()
    run.wait()
    assert ends([pid for pid in (record["pid"], record["child"]) if pid])


def test_a_server_that_fails_leaves_its_work_to_the_others(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(servers(machine, ServeOptions("vllm", 2))) as running:
        first, second = living(running, 2)
        pids = {item["url"]: item["pid"] for item in machine.started}
        os.kill(pids[first.url], signal.SIGKILL)
        assert living(running, 1) == [second]
        until(lambda: "vllm 0 ended with SIGKILL. The last lines of" in caplog.text)
        os.kill(pids[second.url], signal.SIGKILL)
        with pytest.raises(ServingError, match="server of Qwen3-VL ended with SIGKILL"):
            living(running, 2)


def test_a_server_whose_model_lacks_weights_answers_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    why = r"the server of M has not the whole model: weights are missing \(model.norm.weight\): "
    for fake, ends_so in (("lacks", pytest.raises(ServingError, match=why)), ("", nullcontext())):
        monkeypatch.setenv("FAKE", fake)
        model = ServedModel(
            "M", "org/model", ANY_CHECKPOINT, ServeOptions("vllm", 1), RunSettings()
        )
        with ends_so:
            until(model.started(tmp_path / f"logs{fake}"))
        end_servers()


LINES = (
    "run --data FindIt_Scenes_mini_xyxy_json",
    "run --data SelfRetrieval_Scenes_mini",
    "search --data Scenes_mini",
    "coords",
)


@every_pair("line, program", LINES, PROGRAMS, fast=4)
def test_a_dry_run_needs_no_program(
    line: str, program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.chdir(tmp_path)
    asked = f"{line} --model Qwen3-VL-8B --serve {program}"
    assert main([*asked.split(), "--dry-run"]) == 0
    assert main(asked.split()) == 2


@pytest.mark.parametrize("flags", ["", "--dry-run"])
@pytest.mark.parametrize(
    "line",
    [
        "run --data FindIt_RefCOCO_xyxy_json",
        "run --data FindIt_RefCOCO_xyxy_json --samples 2 --temperature 1",
        "search --data RefCOCO",
    ],
)
def test_a_missing_table_comes_before_a_missing_program(
    line: str,
    flags: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nobody installs a program to be told that the data set is not there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LMUData", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.chdir(tmp_path)
    asked = f"{line} --model Qwen3-VL-8B --serve vllm {flags}"
    assert main(asked.split()) == 2
    assert "no table RefCOCO.tsv" in capsys.readouterr().err


def test_a_missing_program_is_refused_with_what_to_type(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="no program vllm on the PATH: pip install vllm"):
        ServeOptions("vllm").check()
    fake_program.install(tmp_path, "transformers")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(ValueError, match=r"fastapi, uvicorn .* pip install 'transformers\[serving"):
        ServeOptions("transformers").check()
