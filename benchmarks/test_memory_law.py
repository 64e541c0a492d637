"""The memory of a whole sweep: a million calls are below 400 MiB.

Calls at a server, each about another picture, are compared by how many there are.

``--benchmark-enable`` makes 100,000 calls, with ``FINDIT_MILLION=1`` a million, twice: over many
rows of one model, and over few rows of many models.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scale_runs import import_table
from stub_servers import stubs

SCRIPT = Path(__file__).with_name("sweep_memory.py")

FORMATS = 40
"""Formats in which each row is asked."""

MOST_MIB = 400
"""Most memory of a sweep with any number of calls."""

MOST_BYTES = 200
"""Most bytes for each further call. The journal's index has a hundred bytes a call, and a row takes
two kilobytes, which its 40 calls share."""


LARGE = (640, 480)
"""Pixels of noise: a file of 920 KB, which is sent as 1.2 MB."""

MOST_BYTES_A_PICTURE = 100_000
"""Most bytes for each further call about a large picture of its own; with few calls most of it is
the allocator's. It was 1.2 MB while encoded pictures stayed."""

HUGE = (2600, 2000)
"""Pixels of noise: a file of 15.6 MB, which is sent as 20.8 MB."""

MOST_MIB_IN_FLIGHT = 2048
"""Most memory of 128 calls at a time: a gibibyte is in flight, others are encoded."""

KEPT = 100
"""Calls about as many large pictures fill what a run keeps of the latest, and are in flight."""


def measured(folder: Path, *arguments: str) -> dict[str, float]:
    """Run a sweep in another process; return what it reports."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    report: dict[str, float] = json.loads(done.stdout)
    return report


def swept(folder: Path, rows: int, models: int, patch: pytest.MonkeyPatch) -> dict[str, float]:
    """Run a sweep over rows, ten of them about each picture."""
    folder.mkdir()
    import_table(folder, rows, patch, pictures=max(1, rows // 10))
    report = measured(folder, str(models))
    assert report["calls"] == FORMATS * rows * models
    return report


def test_memory_of_a_sweep_by_its_calls(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measures: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sizes = [(25, 1), (250, 1)]
    if measures:
        sizes += [(2500, 1), (250, 10)]
    if measures and os.environ.get("FINDIT_MILLION"):
        sizes += [(25_000, 1), (2500, 10)]
    first: dict[str, float] = {}
    for rows, models in sizes:
        report = swept(tmp_path / f"{rows}-{models}", rows, models, monkeypatch)
        if not report["peak_mib"]:
            pytest.skip("the system does not say how much memory a process needed")
        first = first or report
        more = report["calls"] - first["calls"]
        grown = (report["peak_mib"] - first["peak_mib"]) * 2**20 / more if more else 0.0
        with capsys.disabled():
            print(
                f"\n{report['calls']:,} calls, {rows:,} rows, {models} models, "
                f"{report['journal_mib']:.0f} MiB of journal: {report['peak_mib']:.1f} MiB "
                f"({report['before_mib']:.1f} before), {grown:.0f} bytes a call more, "
                f"{1e6 * report['took'] / report['calls']:.0f} µs a call",
                end="",
            )
        assert report["peak_mib"] <= MOST_MIB
        # With few calls most of it is the allocator's.
        assert more < 50_000 or grown <= MOST_BYTES


def test_pictures_of_answered_calls_are_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peaks = []
    for rows in (KEPT, 3 * KEPT):
        folder = tmp_path / f"{rows}"
        folder.mkdir()
        import_table(folder, rows, monkeypatch, pictures=rows, size=LARGE)
        with stubs(delay=0.0) as servers:
            report = measured(folder, "1", *servers.urls)
        assert report["calls"] == rows
        peaks.append(report["peak_mib"])
    if not peaks[0]:
        pytest.skip("the system does not say how much memory a process needed")
    grown = (peaks[1] - peaks[0]) * 2**20 / (2 * KEPT)
    with capsys.disabled():
        print(
            f"\n{3 * KEPT:,} calls at a server: {peaks[1]:.0f} MiB, {grown:.0f} bytes a call more"
        )
    assert grown <= MOST_BYTES_A_PICTURE


def test_pictures_in_flight_follow_their_bytes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measures: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Servers that are slow to answer are asked about no more than fits."""
    calls, size = (96, HUGE) if measures else (8, LARGE)
    import_table(tmp_path, calls, monkeypatch, pictures=calls, size=size)
    with stubs(delay=10.0 if measures else 0.1) as servers:
        report = measured(tmp_path, "1", *servers.urls, "128")
        most = servers.seen().most
    assert report["calls"] == calls
    with capsys.disabled():
        print(
            f"\n{calls} calls at a server, 128 allowed at a time, {most} were: "
            f"{report['peak_mib']:.0f} MiB"
        )
    assert report["peak_mib"] <= MOST_MIB_IN_FLIGHT
