"""Killed at any moment (kill -9), again and again: the files of an undisturbed run, byte for byte.

Batches and Ray are killed in ``test_batches.py`` and ``test_ray.py``, VLMEvalKit's runner in
``test_host_inference.py``.
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, Asked, ChatServer, completion
from engine_fakes import (
    CALLS,
    FakeBackends,
    FakeModel,
    answered_keys,
    demo_sweep,
    files,
    go,
    threaded,
)
from paths import python_path

from vlmeval_findit.engine.backend import CallOptions
from vlmeval_findit.engine.server_backends import ServerBackends

pytestmark = pytest.mark.slow

KILLS = 2
SECONDS = 0.01
"""Of a call: slow enough to be killed in the middle."""


class Slow(FakeModel):
    """The same words to the same message, after a while; hangs after so many calls.

    However late a process is killed, it is in the middle of its sweep.
    """

    def __init__(self, most: float = math.inf) -> None:
        super().__init__(lambda number, text: time.sleep(SECONDS if number <= most else 3600))


HOSTS: dict[str, Callable[[str, float], Any]] = {
    "local": lambda url, most: FakeBackends(Slow(most)),
    "threads": lambda url, most: FakeBackends(Slow(most), threaded(3)),
    "http": lambda url, most: ServerBackends([url], CallOptions(threads=3)),
}
"""By the kind of backend the host; the URL is of a server."""


class SlowServer(ChatServer):
    """Hangs like the model after ``most`` calls."""

    most = math.inf

    def __init__(self) -> None:
        super().__init__(self._slow)

    def _slow(self, asked: Asked, number: int) -> Answer:
        words = str(asked.body["messages"][-1]["content"][-1]["text"])
        reply = completion(f"[10, 20, {100 + len(words) % 800}, 900]")
        return replace(reply, delay=SECONDS, never=number >= self.most)


@pytest.fixture
def server() -> Iterator[SlowServer]:
    with SlowServer() as made:
        yield made


@pytest.mark.parametrize("kind", HOSTS)
def test_killed_again_and_again_it_ends_with_the_same_files(
    kind: str, server: SlowServer, tmp_path: Path
) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    for made in (whole, folder):
        made.mkdir()
    go(demo_sweep(whole), HOSTS[kind](server.url, math.inf))
    when = random.Random(kind)
    kept = 0
    for _ in range(KILLS):
        kept = killed(kind, folder, server, kept, when.randint(2, CALLS // 4), when.random())
    assert 0 < kept < CALLS
    paid = len(server.asked)
    server.most = math.inf
    go(demo_sweep(folder), HOSTS[kind](server.url, math.inf))
    assert files(folder / "out") == files(whole / "out")
    keys = answered_keys(folder / "calls.jsonl")
    assert len(keys) == len(set(keys)) == CALLS
    assert len(server.asked) - paid in (0, CALLS - kept), "no finished call is repeated"


def killed(
    kind: str, folder: Path, server: SlowServer, kept: int, answers: int, more: float
) -> int:
    """Start a sweep, and kill it a part of a call after so many answers beyond those it kept.

    Returns:
        How many answers its journal then has.
    """
    journal = folder / "calls.jsonl"
    most = answers + 5
    server.most = len(server.asked) + most
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, __file__, kind, str(folder), server.url, str(most)],
            stdout=said,
            stderr=said,
            env={**os.environ, "PYTHONPATH": python_path()},
        )
    while not journal.exists() or journal.read_bytes().count(b"\n") < kept + answers:
        assert process.poll() is None, (folder / "said").read_text()
        time.sleep(0.001)
    time.sleep(more * SECONDS)
    process.kill()
    process.wait()
    return journal.read_bytes().count(b"\n")


if __name__ == "__main__":  # the sweep that is killed
    kind, folder, url, most = sys.argv[1:]
    go(demo_sweep(Path(folder)), HOSTS[kind](url, int(most)))
