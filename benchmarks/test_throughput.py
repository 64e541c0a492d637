"""How much of what servers could answer they are asked, and what a call costs this machine.

Servers are processes of their own that answer after a while.  Without ``--benchmark-enable`` the
runs are short, and nothing is said of their time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scale_runs import import_table
from stub_servers import Seen, stubs

SCRIPT = Path(__file__).with_name("throughput.py")
PEER_SCRIPT = Path(__file__).with_name("peer_clients.py")

PEERS = "FINDIT_PEERS"
"""Names a folder with environments ``inspect_ai`` and ``lmms_eval``, which have these projects;
VLMEvalKit is asked in this one."""

FORMATS = 40
"""In which each picture is asked about."""

SMALL, LARGE = (56, 64), (210, 156)
"""Pixels of noise: PNG files of 11 and of 98 KB."""

LEAST_SHARE = 0.9
"""Of the calls in flight divided by the latency."""

MOST_MS = 1.0
"""Of the processor for a call with a picture of 98 KB."""

MOST_SLOWED = 1.5
"""Times as long as without, where one call in twenty is refused or fails."""


class Run(NamedTuple):
    """What a run said of itself, and its servers of it."""

    said: Mapping[str, float]
    seen: Seen


class Bench:
    """Runs over tables with a picture a row; says what came of them."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capsys: Any) -> None:
        self.folder = folder
        self._patch = patch
        self._capsys = capsys

    def table(self, pictures: int, size: tuple[int, int]) -> None:
        """Make the table."""
        import_table(self.folder, pictures, self._patch, pictures=pictures, size=size)

    def asked(self, pictures: int, at_once: int, **manner: float) -> Run:
        """Every picture in all formats, so many calls at once at each server; nothing is kept."""
        with stubs(**manner) as servers:
            asks = [SCRIPT, self.folder, pictures, at_once, *servers.urls]
            done = subprocess.run(
                [sys.executable, *map(str, asks)], check=True, capture_output=True, text=True
            )
            said: dict[str, float] = json.loads(done.stdout)
            run = Run(said, servers.seen())
        shutil.rmtree(self.folder / "run")
        assert said["failed"] == 0
        assert said["calls"] == FORMATS * pictures == run.seen.said["200"]
        return run

    def say(self, what: str) -> None:
        with self._capsys.disabled():
            print(f"\n{what}", end="")


@pytest.fixture
def bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Bench:
    return Bench(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("servers", "at_once", "pictures"), [(1, 128, 100), (8, 64, 300), (16, 64, 600)]
)
def test_calls_are_kept_in_flight(
    servers: int, at_once: int, pictures: int, bench: Bench, measures: bool
) -> None:
    if not measures:
        at_once, pictures = 4, max(2, servers // 2)
    delay = 1.0 if measures else 0.01
    bench.table(pictures, SMALL)
    said, seen = bench.asked(pictures, at_once, servers=servers, delay=delay)
    share = seen.said["200"] * delay / (servers * at_once) / seen.span
    bench.say(
        f"{servers} x {at_once}, {pictures} pictures: {100 * share:.0f} % of calls in flight "
        f"/ latency ({seen.span:.1f} s), {said['ms_a_call']:.2f} ms of processor a call, "
        f"{seen.connections} connections, {seen.readings} readings, {said['peak_mib']:.0f} MiB"
    )
    assert seen.most <= servers * at_once
    if measures:
        assert share >= LEAST_SHARE
        assert seen.connections <= 1.1 * servers * at_once


def test_a_picture_is_read_once(bench: Bench, measures: bool) -> None:
    pictures, delay, each = (100, 0.5, 16) if measures else (8, 0.05, 4)
    bench.table(pictures, SMALL)
    seen = bench.asked(pictures, each, servers=8, delay=delay, cold=4 * delay).seen
    bench.say(f"{seen.readings} readings of {pictures} pictures on 8 servers")
    assert not measures or seen.readings == pictures


def test_processor_a_call(bench: Bench, measures: bool) -> None:
    pictures = 100 if measures else 2
    bench.table(pictures, LARGE)
    said, seen = bench.asked(pictures, 64, delay=0.5 if measures else 0.01)
    bench.say(
        f"{said['calls']:.0f} calls with pictures of 98 KB: {said['ms_a_call']:.2f} ms of "
        f"processor a call, {seen.connections} connections, {said['peak_mib']:.0f} MiB"
    )
    assert not measures or said["ms_a_call"] <= MOST_MS


def test_a_few_refusals_and_failures_hardly_slow_a_run(bench: Bench, measures: bool) -> None:
    pictures, delay = (25, 0.2) if measures else (2, 0.01)
    bench.table(pictures, SMALL)
    plain, broken = (
        bench.asked(pictures, 32, delay=delay, refused=share, failed=share).seen.span
        for share in (0.0, 0.025)
    )
    bench.say(
        f"{FORMATS * pictures} calls, 32 in flight: {plain:.1f} s; with 2.5 % of 429 and "
        f"2.5 % of 500 {broken:.1f} s, {broken / plain:.2f} times as long"
    )
    assert not measures or broken <= MOST_SLOWED * plain


@pytest.mark.parametrize("peer", ["vlmevalkit", "inspect_ai", "lmms_eval"])
def test_less_processor_than_a_peer(peer: str, bench: Bench, measures: bool) -> None:
    if not measures:
        pytest.skip("measures only with --benchmark-enable")
    python = Path(sys.executable)
    if peer != "vlmevalkit":
        python = Path(os.environ.get(PEERS, "none")) / peer / "bin" / "python"
    elif find_spec("vlmeval") is None:
        pytest.skip("no VLMEvalKit here")
    if not python.is_file():
        pytest.skip(f"no environment of {peer}: {PEERS} names the folder that has it")
    bench.table(25, LARGE)
    with stubs(delay=0.2) as servers:
        asks = [
            PEER_SCRIPT,
            peer,
            bench.folder / "pictures",
            32,
            *servers.urls,
        ]
        command = [str(python), *map(str, asks)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        theirs, their_seen = json.loads(done.stdout), servers.seen()
    ours = bench.asked(25, 32, delay=0.2)
    bench.say(
        f"{theirs['calls']} calls, 32 at once, 98 KB: {peer} {theirs['ms_a_call']:.2f} ms of "
        f"processor a call, {their_seen.span:.1f} s, {their_seen.readings} readings; ours "
        f"{ours.said['ms_a_call']:.2f} ms, {ours.seen.span:.1f} s, {ours.seen.readings}"
    )
    assert ours.said["ms_a_call"] < theirs["ms_a_call"]
