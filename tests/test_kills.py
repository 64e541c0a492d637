"""Killed at any moment (kill -9), again and again: the files of an undisturbed run, byte for byte.

Batches and Ray are killed in ``test_batches.py`` and ``test_ray.py``, VLMEvalKit's runner in
``test_host_inference.py``.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, Asked, ChatServer, completion
from engine_fakes import CALLS, FakeHost, FakeModel, answered_keys, demo_sweep, files, go

from vlmeval_findit.engine.backend import Inference, LocalBackend, ThreadedBackend
from vlmeval_findit.engine.servers import ServersHost
from vlmeval_findit.models.model_asker import ModelAsker

HERE = Path(__file__).parent
KILLS = 3
SECONDS = 0.01
"""Of a call: slow enough to be killed in the middle."""


def asker(*anything: Any) -> ModelAsker:
    return ModelAsker(FakeModel(lambda number, text: time.sleep(SECONDS)))


HOSTS: dict[str, Callable[[str], Any]] = {
    "local": lambda url: FakeHost(None, lambda _: LocalBackend(asker)),
    "threads": lambda url: FakeHost(None, lambda _: ThreadedBackend(asker, 3)),
    "http": lambda url: ServersHost([url], Inference(threads=3)),
}
"""By the kind of backend the host; the URL is of a server."""


def slow(asked: Asked, number: int) -> Answer:
    """The same words to the same message, after a while."""
    time.sleep(SECONDS)
    words = str(asked.body["messages"][-1]["content"][-1]["text"])
    return completion(f"[10, 20, {100 + len(words) % 800}, 900]")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(slow) as made:
        yield made


@pytest.mark.parametrize("kind", HOSTS)
def test_killed_again_and_again_it_ends_with_the_same_files(
    kind: str, server: ChatServer, tmp_path: Path
) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    for made in (whole, folder):
        made.mkdir()
    go(demo_sweep(whole), HOSTS[kind](server.url))
    when = random.Random(kind)
    kept = 0
    for _ in range(KILLS):
        kept = killed(kind, folder, server.url, kept + when.randint(2, CALLS // 4), when.random())
    assert 0 < kept < CALLS
    paid = len(server.asked)
    go(demo_sweep(folder), HOSTS[kind](server.url))
    assert files(folder / "out") == files(whole / "out")
    keys = answered_keys(folder / "calls.jsonl")
    assert len(keys) == len(set(keys)) == CALLS
    assert len(server.asked) - paid in (0, CALLS - kept), "no finished call is repeated"


def killed(kind: str, folder: Path, url: str, answers: int, more: float) -> int:
    """Start a sweep, and kill it a part of a call after its journal has so many answers.

    Returns:
        How many answers it then has.
    """
    journal = folder / "calls.jsonl"
    places = [str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH", "")]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, __file__, kind, str(folder), url],
            stdout=said,
            stderr=said,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        )
    while not journal.exists() or journal.read_bytes().count(b"\n") < answers:
        assert process.poll() is None, (folder / "said").read_text()
        time.sleep(0.001)
    time.sleep(more * SECONDS)
    process.kill()
    process.wait()
    return journal.read_bytes().count(b"\n")


if __name__ == "__main__":  # the sweep that is killed
    kind, folder, url = sys.argv[1:]
    go(demo_sweep(Path(folder)), HOSTS[kind](url))
