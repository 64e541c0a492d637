"""A sweep in another process whose calls hang after a few, for the tests of signals.

``python hanging_sweep.py KIND FOLDER URL`` writes a line into the file ``asked`` for every call
that begins; from a model's sixth on, a call hangs until the file ``release`` exists.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chat_server import ChatServer, completion
from engine_fakes import FakeDeployment, Message, demo_sweep, deployments, records, servers
from paths import SUPPORT, python_path

from vlmeval_findit.cli import run_and_print
from vlmeval_findit.engine import CallOptions, LocalBackend, ThreadedBackend
from vlmeval_findit.models import GenerateClient

QUICK, THREADS, RAY_REPLICAS = 5, 3, 2


class Hanging:
    """Answers a few calls, then hangs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._calls = 0

    def generate(self, message: Message, dataset: str) -> str:
        with self._lock:
            self._calls += 1
            number = self._calls
        with (self._folder / "asked").open("a") as f:
            f.write("asked\n")
        while number > QUICK and not (self._folder / "release").exists():
            time.sleep(0.02)
        return f"[{number}]"


def host(kind: str, folder: Path, url: str) -> Any:
    """Return the host of a sweep; ``url`` is of a server that hangs."""
    if kind == "http":
        return servers(url, threads=THREADS)
    return FakeDeployment(None, lambda _: backend(kind, folder))


def backend(kind: str, folder: Path) -> Any:
    def load() -> GenerateClient:
        return GenerateClient(Hanging(folder))

    if kind == "ray":
        from vlmeval_findit.engine import RayBackend

        return RayBackend(load, CallOptions(replicas=RAY_REPLICAS, cpus=0.5))
    return LocalBackend(load) if kind == "local" else ThreadedBackend(load, THREADS)


class Sweep:
    """The process of a sweep."""

    def __init__(self, kind: str, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.process = subprocess.Popen(
            [sys.executable, str(SUPPORT / "hanging_sweep.py"), kind, str(folder), url],
            stdout=subprocess.DEVNULL,
            stderr=(folder / "stderr").open("wb"),
            env={**os.environ, "PYTHONPATH": python_path(), "TMPDIR": str(folder)},
            start_new_session=True,
        )

    def asked(self) -> int:
        path = self.folder / "asked"
        return path.read_text().count("asked") if path.exists() else 0

    def answered(self) -> int:
        journal = self.folder / "calls.jsonl"
        stored = list(records(journal)) if journal.exists() else []
        assert not any(record["error"] for record in stored), "cancelled calls have not failed"
        return len(stored)

    def errors(self) -> str:
        return (self.folder / "stderr").read_text()

    def until(self, happened: Callable[[], bool]) -> None:
        while not happened():
            assert self.process.poll() is None, self.errors()
            time.sleep(0.02)

    def stop(self, number: int, everybody: bool = False) -> None:
        """Send the first signal, to it or to all that it started, and wait for its answer."""
        (os.killpg if everybody else os.kill)(self.process.pid, number)
        self.until(lambda: "stopping" in self.errors())

    def release(self) -> None:
        """Let the hanging calls end."""
        (self.folder / "release").touch()

    def ends(self) -> int:
        return self.process.wait(timeout=120)


@contextmanager
def hanging(kind: str, folder: Path) -> Iterator[Sweep]:
    """Yield a sweep of a kind; end it afterwards."""
    model = Hanging(folder)
    with ChatServer(lambda asked, number: completion(model.generate([], ""))) as server:
        sweep = Sweep(kind, folder, server.url)
        try:
            yield sweep
        finally:
            if sweep.process.poll() is None:
                os.killpg(sweep.process.pid, signal.SIGKILL)
                sweep.process.wait()
            if kind == "http":
                sweep.release()  # so that the server's threads end


def stop_line(sweep: Sweep) -> str:
    """Return its line after the first signal."""
    assert "Traceback" not in sweep.errors()
    after = sweep.errors().split("stopping: ")[1].splitlines()[1:]
    # A slow machine adds a line of progress, Ray perhaps another.
    lines = [line for line in after if line.startswith("stopped")]
    assert len(lines) == 1, sweep.errors()
    return lines[0]


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    sweep = demo_sweep(folder)
    asked = deployments(sweep, host(sys.argv[1], folder, sys.argv[3]))
    sys.exit(run_and_print(sweep, asked, folder / "best.yaml"))
