"""Share of the calls that servers could answer at once, and the cost of a call on this machine.

Servers are other processes, which answer after a while. Without ``--benchmark-enable`` runs are
short, and their time is not judged.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scale_runs import import_table
from stub_servers import Seen, stubs

SCRIPT = Path(__file__).with_name("throughput.py")
BARE_CLIENT = Path(__file__).with_name("bare_client.py")

FORMATS = 40
"""Formats in which each picture is asked about."""

SMALL, LARGE = (56, 64), (210, 156)
"""Pixels of noise: PNG files of 11 and of 98 KB."""

LEAST_SHARE = 0.85
"""Least share of the calls in flight divided by the latency.

Two cores with other work reached 95 and 90 % (1 x 128), 90 and 89 % (8 x 64), and twice 86 %
(16 x 64, of 256 pictures). A server of eight that is left out costs 12 %.
"""

SPARE = 20
"""As many calls of aiohttp alone fit into the time that this machine has for each call.

So servers answer the later, the more there are and the slower this machine is. With a fixed second
two cores cannot keep 8 x 64 calls in flight (79 %) or 16 x 64 (58 %): the servers need one of them.
"""

SPREAD = 0.25
"""Share of the latency by which calls differ: those that end together are all late together."""

MOST_TIMES = 3.2
"""Most times what a call with a picture of 98 KB costs aiohttp alone, of this machine's processor.

Measured were 2.28 and 2.57 (1.35 and 1.40 ms; aiohttp 0.59 and 0.54) on two cores with other work,
by ``pytest benchmarks/test_throughput.py -k processor --benchmark-enable -s``; it was 4.25 with the
picture decoded for each call.
"""

MOST_SLOWED = 1.5
"""Most times as long, if one call in twenty is refused or fails."""


class Run(NamedTuple):
    """A run: what it reports itself, and what its servers saw."""

    report: Mapping[str, float]
    seen: Seen


class Bench:
    """Runs over tables with a picture a row; prints their results."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capsys: Any) -> None:
        self.folder = folder
        self._patch = patch
        self._capsys = capsys

    def table(self, pictures: int, size: tuple[int, int]) -> None:
        """Make the table."""
        import_table(self.folder, pictures, self._patch, pictures=pictures, size=size)

    def asked(self, pictures: int, at_once: int, **manner: float) -> Run:
        """Ask about every picture in all formats, with ``at_once`` calls at each server."""
        with stubs(**manner) as servers:
            asks = [SCRIPT, self.folder, pictures, at_once, *servers.urls]
            done = subprocess.run(
                [sys.executable, *map(str, asks)], check=True, capture_output=True, text=True
            )
            run = Run(json.loads(done.stdout), servers.seen())
        shutil.rmtree(self.folder / "run")
        assert run.report["failed"] == 0
        assert run.report["calls"] == FORMATS * pictures == run.seen.statuses["200"]
        return run

    def floor(self, at_once: int = 64, **manner: float) -> float:
        """Return the milliseconds that a call about these pictures costs aiohttp alone."""
        with stubs(**manner) as servers:
            asks = [BARE_CLIENT, self.folder / "pictures", FORMATS, at_once, *servers.urls]
            done = subprocess.run(
                [sys.executable, *map(str, asks)], check=True, capture_output=True, text=True
            )
        return float(done.stdout)

    def say(self, what: str) -> None:
        with self._capsys.disabled():
            print(f"\n{what}", end="")


@pytest.fixture
def bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Bench:
    return Bench(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("servers", "at_once", "pictures"), [(1, 128, 192), (8, 64, 192), (16, 64, 384)]
)
def test_calls_are_kept_in_flight(
    servers: int, at_once: int, pictures: int, bench: Bench, measures: bool
) -> None:
    if not measures:
        at_once, pictures = 4, max(2, servers // 2)
    bench.table(pictures, SMALL)
    delay = 0.01
    if measures:
        delay = SPARE * bench.floor(delay=0.0) / 1000 * servers * at_once
    report, seen = bench.asked(pictures, at_once, servers=servers, delay=delay, spread=SPREAD)
    share = seen.statuses["200"] * delay / (servers * at_once) / seen.span
    bench.say(
        f"{servers} x {at_once}, {pictures} pictures, {delay:.2f} s a call: {100 * share:.0f} % of "
        f"calls in flight / latency ({seen.span:.1f} s), {report['ms_a_call']:.2f} ms of "
        f"processor a call, {seen.connections} connections, {seen.readings} readings, "
        f"{report['peak_mib']:.0f} MiB"
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
    """Replies come at once: a client that waits is woken for each, which costs more."""
    pictures, delay = (100, 0.02) if measures else (2, 0.01)
    bench.table(pictures, LARGE)
    before = bench.floor(delay=delay)
    report, seen = bench.asked(pictures, 64, delay=delay)
    floor = (before + bench.floor(delay=delay)) / 2
    times = report["ms_a_call"] / floor
    bench.say(
        f"{report['calls']:.0f} calls with pictures of 98 KB: {report['ms_a_call']:.2f} ms of "
        f"processor a call, {times:.2f} times aiohttp's {floor:.2f} ms, "
        f"{seen.connections} connections, {report['peak_mib']:.0f} MiB"
    )
    assert not measures or times <= MOST_TIMES


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
