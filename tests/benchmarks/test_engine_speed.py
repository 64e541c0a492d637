"""What the engine costs a call beyond the model: planning, journal, prediction files, scores."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from engine_fakes import FakeHost, FakeModel, demo_sweep, go

TARGET_MS = 2.0

GRID = """
models: FullImage
datasets: [Demo, Demo_multilabel, Demo_refexp, Demo_described, Demo_insdet]
representations: all
outputs: all
keys: [bbox, bbox_2d]
"""


def best_of(tmp_path: Path, rounds: int) -> tuple[float, float, int]:
    """(seconds of a first run, of a second that has nothing to ask, calls), the least of rounds."""
    first = second = float("inf")
    for at in range(rounds):
        folder, model = tmp_path / str(at), FakeModel()
        start = time.perf_counter()
        go(demo_sweep(folder, GRID), FakeHost(model))
        middle = time.perf_counter()
        go(demo_sweep(folder, GRID), FakeHost(None))
        first = min(first, middle - start)
        second = min(second, time.perf_counter() - middle)
    return first, second, model.calls


def test_engine_cost_a_call(
    tmp_path: Path, measures: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    go(demo_sweep(tmp_path / "warm", limit=1), FakeHost(FakeModel()))
    first, second, calls = best_of(tmp_path, 3)
    cost = 1000 * first / calls
    with capsys.disabled():
        print(
            f"\nengine {cost:.2f} ms a call with everything but the model ({calls} calls, scores "
            f"included; {1000 * second / calls:.2f} ms where nothing is left to ask; target: "
            f"under {TARGET_MS:.0f} ms)"
        )
    assert not measures or cost < TARGET_MS
