"""The memory of a plan does not grow with its calls: neither calls nor keys are held together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("plan_memory.py")

MOST_BYTES = 32
"""A call may have: what a cell itself takes, spread over its thousand rows."""


def planned(cells: int) -> dict[str, float]:
    """What a process said that planned so many cells of a thousand rows."""
    made = subprocess.run(
        [sys.executable, str(SCRIPT), str(cells)], check=True, capture_output=True, text=True
    )
    found: dict[str, float] = json.loads(made.stdout)
    assert found["calls"] == found["done"] == 1000 * cells
    return found


def test_memory_of_a_plan_by_its_calls(measures: bool, capsys: pytest.CaptureFixture[str]) -> None:
    few, many = (planned(cells) for cells in ((100, 1000) if measures else (5, 25)))
    if not few["peak_mib"]:
        pytest.skip("this system does not say how much memory a process had")
    with capsys.disabled():
        for one in (few, many):
            each = 1e6 * one["took"] / one["calls"]
            print(f"\n{one['calls']:,} calls: {one['peak_mib']:.0f} MiB, {each:.1f} µs a call")
    grown = (many["peak_mib"] - few["peak_mib"]) * 2**20 / (many["calls"] - few["calls"])
    # A hundred thousand calls of before took 150 MB; less than a megabyte is not measured well.
    assert grown <= (MOST_BYTES if measures else 100)
