"""The memory of a whole sweep: a million calls are below 400 MiB.

``--benchmark-enable`` makes 100,000 calls, ``FINDIT_MILLION=1`` beside it a million, twice: over
many rows of one model, and over few rows of many models.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scale_runs import import_table

SCRIPT = Path(__file__).with_name("sweep_memory.py")

FORMATS = 40
"""In which each row is asked."""

MOST_MIB = 400
"""That a sweep may need, however many calls it makes."""

MOST_BYTES = 200
"""That a call may add.  The journal knows where each lies by a hundred bytes, and a row takes two
kilobytes, which its 40 calls share."""


def swept(folder: Path, rows: int, models: int, patch: pytest.MonkeyPatch) -> dict[str, float]:
    """What a process said that ran a sweep over so many rows, ten of them about each picture."""
    folder.mkdir()
    import_table(folder, rows, patch, pictures=max(1, rows // 10))
    made = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), str(models)],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(made.stdout)
    assert found["calls"] == FORMATS * rows * models
    return found


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
        found = swept(tmp_path / f"{rows}-{models}", rows, models, monkeypatch)
        if not found["peak_mib"]:
            pytest.skip("this system does not say how much memory a process had")
        first = first or found
        more = found["calls"] - first["calls"]
        grown = (found["peak_mib"] - first["peak_mib"]) * 2**20 / more if more else 0.0
        with capsys.disabled():
            print(
                f"\n{found['calls']:,} calls, {rows:,} rows, {models} models, "
                f"{found['journal_mib']:.0f} MiB of journal: {found['peak_mib']:.1f} MiB "
                f"({found['before_mib']:.1f} before), {grown:.0f} bytes a call more, "
                f"{1e6 * found['took'] / found['calls']:.0f} µs a call",
                end="",
            )
        assert found["peak_mib"] <= MOST_MIB
        # Of few calls the allocator's own steps are most of it.
        assert more < 50_000 or grown <= MOST_BYTES
