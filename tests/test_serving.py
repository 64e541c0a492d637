"""``--serve``: servers of this machine are started, waited for, and never left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import fake_program
import pytest

from vlmeval_findit.engine import server_guard, serving
from vlmeval_findit.engine.server_programs import PROGRAMS, Serving
from vlmeval_findit.engine.serving import LocalServers, ServingError


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[dict[str, Any]]]:
    """Fake programs on the PATH and four GPUs; what servers were started with."""
    programs = fake_program.install(tmp_path / "bin", "vllm", "sglang")
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,GPU-5b,3")
    monkeypatch.setenv("FAKE_RECORD", str(tmp_path / "record"))
    return lambda: [json.loads(line) for line in (tmp_path / "record").read_text().splitlines()]


def servers(tmp_path: Path, how: Serving) -> LocalServers:
    return LocalServers(how, "org/model", "Qwen3-VL", tmp_path / "servers")


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def ends(pids: list[int], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(is_alive, pids))


@pytest.mark.parametrize("program", ["vllm", "sglang"])
def test_servers_share_out_the_gpus(
    program: str, started: Callable[[], list[dict[str, Any]]], tmp_path: Path
) -> None:
    how = Serving(program, 4, 2, ("--max-model-len", "8192"))
    with closing(servers(tmp_path, how)) as running:
        running.start()
        urls = [one.base_url for one in running.living()]
        assert [one.name for one in running.living()] == [f"{program} 0", f"{program} 1"]
        assert len(set(urls)) == 2
        record = started()
        assert sorted(one["cuda"] for one in record) == ["0,1", "GPU-5b,3"]
        assert {one["url"] for one in record} == set(urls)
        assert {one["parallel"] for one in record} == {2}
        assert all(one["argv"][-2:] == ["--max-model-len", "8192"] for one in record)
        assert len({os.getpgid(one["pid"]) for one in record} | {os.getpgrp()}) == 3
    assert ends([one["pid"] for one in record])
    assert sorted(path.name for path in (tmp_path / "servers").iterdir()) == [
        "Qwen3-VL-0.log",
        "Qwen3-VL-1.log",
    ]


def test_a_server_that_answers_no_call_is_not_taken_for_ready(
    started: Callable[[], list[dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE", "refuses")
    with pytest.raises(ServingError, match=r"answers with HTTP 500: .*the engine is broken"):
        servers(tmp_path, Serving("vllm", 1)).start()
    assert ends([one["pid"] for one in started()])


@pytest.mark.parametrize("fake", ["stubborn", "children"])
def test_nothing_is_left_when_we_are_killed(
    fake: str,
    started: Callable[[], list[dict[str, Any]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE", fake)
    code = f"""
import sys, time
from pathlib import Path
from vlmeval_findit.engine import serving, server_guard
LocalServers = serving.LocalServers
running = LocalServers(serving.Serving("vllm", 1), "org/model", "M", Path({str(tmp_path)!r}))
running.start()
print("ready", flush=True)
time.sleep(600)
"""
    # The guard's own patience is too long for a test.
    guard = tmp_path / "guard.py"
    text = Path(server_guard.__file__).read_text(encoding="utf-8")
    guard.write_text(text.replace("GRACE = 20.0", "GRACE = 1.0"), encoding="utf-8")
    code = f"import vlmeval_findit.engine.server_guard as g; g.__file__ = {str(guard)!r}\n{code}"
    ours = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert ours.stdout is not None
    assert ours.stdout.readline() == "ready\n"
    (record,) = started()
    ours.kill()
    ours.wait()
    assert ends([pid for pid in (record["pid"], record["child"]) if pid])


def test_starting_can_be_given_up(
    started: Callable[[], list[dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_LOOK_SECONDS", 600.0)
    running = servers(tmp_path, Serving("vllm", 1))

    def never(url: str) -> None:
        raise OSError("loading")

    monkeypatch.setattr(running, "_ask", never)
    threading.Timer(0.5, running.close).start()
    with pytest.raises(ServingError, match="was told to end before it answered"):
        running.start()
    assert ends([one["pid"] for one in started()])


def test_servers_that_died_are_no_addresses(
    started: Callable[[], list[dict[str, Any]]], tmp_path: Path
) -> None:
    with closing(servers(tmp_path, Serving("vllm", 2))) as running:
        running.start()
        first, second = sorted(started(), key=lambda one: one["cuda"])
        os.kill(first["pid"], signal.SIGKILL)
        running._servers[0].wait()
        assert [one.base_url for one in running.living()] == [second["url"]]
        os.kill(second["pid"], signal.SIGKILL)
        running._servers[1].wait()
        with pytest.raises(ServingError, match="ended with SIGKILL"):
            running.living()


def test_a_program_that_is_not_there_is_refused_with_what_to_type(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="no program vllm on the PATH: pip install vllm"):
        Serving("vllm").check()
    fake_program.install(tmp_path, "transformers")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(ValueError, match=r"fastapi, uvicorn .* pip install 'transformers\[serving"):
        Serving("transformers").check()


def test_the_version_is_that_of_the_executables_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_program.install(tmp_path / "bin", "vllm")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert PROGRAMS["vllm"].described == "vllm"
    (tmp_path / "lib/python3.12/site-packages/vllm-0.33.1.dist-info").mkdir(parents=True)
    assert PROGRAMS["vllm"].described == "vllm 0.33.1"
