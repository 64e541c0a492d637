"""How much of what servers could answer they are asked, and what a call costs this machine.

Servers are processes of their own that answer after a while.  Without ``--benchmark-enable`` the
runs are short, and nothing is said of their time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from scale_runs import import_table
from stub_servers import Seen, stubs

TESTS = Path(__file__).resolve().parent.parent
SCRIPT = TESTS / "throughput.py"

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


def asked(folder: Path, pictures: int, at_once: int, **manner: float) -> Run:
    """Every picture of a table in all formats, so many calls at once at each server."""
    with stubs(**manner) as servers:
        asks = [SCRIPT, folder, pictures, at_once, *servers.urls]
        done = subprocess.run(
            [sys.executable, *map(str, asks)], check=True, capture_output=True, text=True
        )
        said: dict[str, float] = json.loads(done.stdout)
        run = Run(said, servers.seen())
    assert said["failed"] == 0
    assert said["calls"] == FORMATS * pictures == run.seen.said["200"]
    return run


def table(folder: Path, rows: int, patch: pytest.MonkeyPatch, size: tuple[int, int]) -> Path:
    """A folder with a table, a picture a row."""
    import_table(folder, rows, patch, pictures=rows, size=size)
    return folder


@pytest.mark.parametrize(
    ("servers", "at_once", "pictures"), [(1, 128, 100), (8, 64, 300), (16, 64, 600)]
)
def test_calls_are_kept_in_flight(
    servers: int,
    at_once: int,
    pictures: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measures: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not measures:
        at_once, pictures = 4, 2 * servers
    delay = 1.0 if measures else 0.01
    folder = table(tmp_path, pictures, monkeypatch, SMALL)
    said, seen = asked(folder, pictures, at_once, servers=servers, delay=delay)
    share = seen.said["200"] * delay / (servers * at_once) / seen.span
    with capsys.disabled():
        print(
            f"\n{servers} x {at_once}, {pictures} pictures: {100 * share:.0f} % of calls in flight "
            f"/ latency ({seen.span:.1f} s), {said['ms_a_call']:.2f} ms of processor a call, "
            f"{seen.connections} connections, {seen.readings} readings, "
            f"{said['peak_mib']:.0f} MiB",
            end="",
        )
    assert seen.most <= servers * at_once
    if measures:
        assert share >= LEAST_SHARE
        assert seen.connections <= 1.1 * servers * at_once


def test_a_picture_is_read_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measures: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pictures, delay = (100, 0.5) if measures else (8, 0.05)
    folder = table(tmp_path, pictures, monkeypatch, SMALL)
    each = 16 if measures else 4
    seen = asked(folder, pictures, each, servers=8, delay=delay, cold=4 * delay).seen
    with capsys.disabled():
        print(f"\n{seen.readings} readings of {pictures} pictures on 8 servers", end="")
    assert not measures or seen.readings == pictures


def test_processor_a_call(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measures: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pictures = 100 if measures else 2
    folder = table(tmp_path, pictures, monkeypatch, LARGE)
    said, seen = asked(folder, pictures, 64, delay=0.5 if measures else 0.01)
    with capsys.disabled():
        print(
            f"\n{said['calls']:.0f} calls with pictures of 98 KB: {said['ms_a_call']:.2f} ms of "
            f"processor a call, {seen.connections} connections, {said['peak_mib']:.0f} MiB",
            end="",
        )
    assert not measures or said["ms_a_call"] <= MOST_MS


def test_a_few_refusals_and_failures_hardly_slow_a_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measures: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pictures, delay = (25, 0.2) if measures else (2, 0.01)
    folder = table(tmp_path, pictures, monkeypatch, SMALL)
    spans = []
    for at, share in enumerate((0.0, 0.025)):
        place = tmp_path / str(at)
        place.mkdir()
        run = asked(folder, pictures, 32, delay=delay, refused=share, failed=share)
        spans.append(run.seen.span)
        (folder / "run").rename(place / "run")
    with capsys.disabled():
        print(
            f"\n{FORMATS * pictures} calls, 32 in flight: {spans[0]:.1f} s; with 2.5 % of 429 and "
            f"2.5 % of 500 {spans[1]:.1f} s, {spans[1] / spans[0]:.2f} times as long",
            end="",
        )
    assert not measures or spans[1] <= MOST_SLOWED * spans[0]


@pytest.mark.parametrize("peer", ["vlmevalkit", "inspect_ai", "lmms_eval"])
def test_less_processor_than_a_peer(
    peer: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measures: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not measures:
        pytest.skip("measures only with --benchmark-enable")
    python = Path(sys.executable)
    if peer != "vlmevalkit":
        python = Path(os.environ.get(PEERS, "none")) / peer / "bin" / "python"
    elif find_spec("vlmeval") is None:
        pytest.skip("no VLMEvalKit here")
    if not python.is_file():
        pytest.skip(f"no environment of {peer}: {PEERS} names the folder that has it")
    folder = table(tmp_path, 25, monkeypatch, LARGE)
    with stubs(delay=0.2) as servers:
        asks = [TESTS / "peer_clients.py", peer, folder / "pictures", 32, *servers.urls]
        command = [str(python), *map(str, asks)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        theirs, their_seen = json.loads(done.stdout), servers.seen()
    ours = asked(folder, 25, 32, delay=0.2)
    with capsys.disabled():
        print(
            f"\n{theirs['calls']} calls, 32 at once, 98 KB: {peer} {theirs['ms_a_call']:.2f} ms of "
            f"processor a call, {their_seen.span:.1f} s, {their_seen.readings} readings; ours "
            f"{ours.said['ms_a_call']:.2f} ms, {ours.seen.span:.1f} s, {ours.seen.readings}",
            end="",
        )
    assert ours.said["ms_a_call"] < theirs["ms_a_call"]
