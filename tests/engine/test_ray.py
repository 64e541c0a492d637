"""A sweep over a local Ray of two workers: who kills it loses nothing, and it leaves nothing."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from engine_fakes import FakeDeployment, FakeModel, Silent, assert_answered_once, demo_sweep, go
from hanging_sweep import QUICK, RAY_REPLICAS, hanging, stop_line
from paths import python_path

from vlmeval_findit.engine import CallOptions, RayBackend
from vlmeval_findit.models import GenerateClient
from vlmeval_findit.protocol import CallResult

psutil = pytest.importorskip("psutil")
pytest.importorskip("ray", reason="Ray is not installed: pip install '.[cluster]'")

pytestmark = pytest.mark.slow

TWO = CallOptions(replicas=2, cpus=0.5)
SMALL = "models: FullImage\ndatasets: Demo\nrepresentations: xyxy\noutputs: text"


@pytest.fixture(autouse=True)
def _workers_find_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", python_path())


@pytest.fixture
def short_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder for temporary files whose path is short, as Ray's sockets need it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def listening() -> set[str]:
    """Return the addresses that this process and its children listen on."""
    me = psutil.Process()
    return {
        str(ip_address(connection.laddr.ip.removeprefix("::ffff:")))
        for process in (me, *me.children(recursive=True))
        for connection in process.net_connections("inet")
        if connection.status in (psutil.CONN_LISTEN, psutil.CONN_NONE)
    }


def test_it_listens_on_this_machine_alone_and_leaves_nothing(
    short_tmp: Path, tmp_path: Path
) -> None:
    before = dict(os.environ), signal.getsignal(signal.SIGTERM)
    assert not listening()
    heard: set[str] = set()
    handlers: list[Any] = []

    class Watching(Silent):
        def answered(self, answers: Sequence[CallResult]) -> None:
            heard.update(listening())
            handlers.append(signal.getsignal(signal.SIGTERM))
            super().answered(answers)

    host = FakeDeployment(None, lambda _: RayBackend(lambda: GenerateClient(FakeModel()), TWO))
    go(demo_sweep(tmp_path, SMALL), host, watcher=Watching())
    assert heard == {"127.0.0.1"}
    assert set(handlers) == {before[1]}, "Ray's own handler of SIGTERM ends the process at once"
    assert not list(short_tmp.iterdir())
    changed = {name for name, _ in os.environ.items() ^ before[0].items()}
    # The others Ray sets itself, and leaves.
    assert changed <= {"RAY_USAGE_STATS_ENABLED", "RAY_AUTH_MODE", "PYTHONBREAKPOINT"}


def rays(folder: Path) -> list[str]:
    """Return the processes that were started with a folder of Ray's below another."""
    commands = (" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"]))
    return [command[:200] for command in commands if f"{folder}/findit-ray-" in command]


@pytest.mark.parametrize(
    ("number", "times"), [(signal.SIGINT, 1), (signal.SIGTERM, 2), (signal.SIGKILL, 1)]
)
def test_signals_end_it_and_no_answer_is_lost(number: int, times: int, short_tmp: Path) -> None:
    begun = RAY_REPLICAS * (QUICK + 1)
    answered = RAY_REPLICAS * QUICK
    with hanging("ray", short_tmp) as run:
        run.until(lambda: run.asked() == begun and run.answered() == answered)
        assert rays(short_tmp)
        if number == signal.SIGKILL:
            os.killpg(run.process.pid, number)
            assert run.ends() == -number
        else:
            # A terminal sends Ctrl-C to every process of the group.
            run.stop(number, everybody=number == signal.SIGINT)
            if times == 2:
                os.kill(run.process.pid, number)
            else:
                run.release()
            assert run.ends() == 130
            if times == 1:
                # The word to stop travels: on a slow machine a replica begins more calls before.
                assert begun <= run.asked() < 100
                begun = answered = run.asked()
            assert stop_line(run)
            assert not list(short_tmp.glob("findit-ray-*"))
            assert not rays(short_tmp)
    assert run.answered() == answered
    assert run.asked() == begun, "nothing else began"
    model = FakeModel()
    go(demo_sweep(short_tmp), FakeDeployment(model))
    assert model.calls == 100 - answered
    assert_answered_once(short_tmp / "calls.jsonl", 100)
