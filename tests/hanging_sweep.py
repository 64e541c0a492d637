"""A sweep in a process of its own whose calls hang after a few, for the tests of signals.

``python hanging_sweep.py KIND FOLDER`` writes a line into the file ``asked`` for every call that
begins; from the sixth of a model on, a call hangs until there is a file ``release``.
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

from engine_fakes import FakeHost, Message, demo_sweep

from vlmeval_findit.cli.sweep import run
from vlmeval_findit.core.work import Answer, Work
from vlmeval_findit.engine.backend import LocalBackend
from vlmeval_findit.engine.config import Inference
from vlmeval_findit.engine.executors import ThreadsExecutor
from vlmeval_findit.engine.journal.reading import records
from vlmeval_findit.engine.model_asker import ModelAsker

HERE = Path(__file__).parent
QUICK, THREADS, RAY_REPLICAS = 5, 3, 2


class Hanging:
    """Answers a few calls, then hangs; as a model and as an asker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._calls = 0
        self._given_up = threading.Event()

    def generate(self, message: Message, dataset: str) -> str:
        with self._lock:
            self._calls += 1
            number = self._calls
        with (self._folder / "asked").open("a") as f:
            f.write("asked\n")
        release = self._folder / "release"
        while number > QUICK and not release.exists() and not self._given_up.wait(0.02):
            pass
        return f"[{number}]"

    def ask(self, work: Work) -> list[Answer]:
        answers = [Answer(self.generate(message, "")) for message in work.messages]
        return [Answer("", error="cancelled")] if self._given_up.is_set() else answers

    def answers_together(self, *, shares_images: bool) -> bool:
        return False


class Cancelled(Hanging):
    """Its calls can be given up: they come home as failures."""

    def cancel(self) -> None:
        self._given_up.set()


def executor(kind: str, folder: Path) -> Any:
    if kind == "ray":
        from vlmeval_findit.engine.cluster.executor import RayExecutor

        inference = Inference(replicas=RAY_REPLICAS, cpus=0.5)
        return RayExecutor(lambda: ModelAsker(Hanging(folder)), inference)
    if kind == "local":
        return LocalBackend(lambda: ModelAsker(Hanging(folder)))
    asker = Cancelled(folder) if kind == "cancelled" else Hanging(folder)
    return ThreadsExecutor(lambda: [asker], THREADS)


class Sweep:
    """Such a process."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.folder = folder
        places = [str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH", "")]
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "hanging_sweep.py"), kind, str(folder)],
            stdout=(folder / "said").open("wb"),
            stderr=(folder / "err").open("wb"),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(places), "TMPDIR": str(folder)},
            start_new_session=True,
        )

    def asked(self) -> int:
        path = self.folder / "asked"
        return path.read_text().count("asked") if path.exists() else 0

    def said(self) -> str:
        return (self.folder / "err").read_text()

    def until(self, happened: Callable[[], bool]) -> None:
        while not happened():
            assert self.process.poll() is None, self.said()
            time.sleep(0.02)

    def stop(self, number: int, everybody: bool = False) -> None:
        """The first signal, to it or to all that it started too, and its answer."""
        (os.killpg if everybody else os.kill)(self.process.pid, number)
        self.until(lambda: "stopping" in self.said())

    def release(self) -> None:
        """Let the calls that hang come home."""
        (self.folder / "release").touch()

    def ends(self) -> int:
        return self.process.wait(timeout=120)

    def answered(self) -> int:
        kept = list(records(self.folder / "calls.jsonl"))
        assert not any(record["error"] for record in kept), "what was given up did not fail"
        return len(kept)


@contextmanager
def hanging(kind: str, folder: Path) -> Iterator[Sweep]:
    """A sweep of a kind, which is gone in the end."""
    sweep = Sweep(kind, folder)
    try:
        yield sweep
    finally:
        if sweep.process.poll() is None:
            os.killpg(sweep.process.pid, signal.SIGKILL)
            sweep.process.wait()


def one_line(sweep: Sweep) -> str:
    """What it said after the first signal."""
    assert "Traceback" not in sweep.said()
    after = sweep.said().split("stopping; ")[1].splitlines()[1:]
    # A slow machine adds a line of progress, Ray perhaps one of its own.
    found = [line for line in after if line.startswith("stopped")]
    assert len(found) == 1, sweep.said()
    (line,) = found
    return line


if __name__ == "__main__":
    kind, folder = sys.argv[1], Path(sys.argv[2])
    host = FakeHost(None, lambda _: executor(kind, folder))
    status = run(demo_sweep(folder), host, None, folder / "best.yaml")
    print("ended", flush=True)
    sys.exit(status)
