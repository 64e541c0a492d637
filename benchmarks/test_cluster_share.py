"""What a call costs the driver of a cluster: two replicas on a local Ray answer.

The model answers at once.  Starting Ray and the replicas costs the same for few calls and for many,
so a call's share is what more calls cost more; and to plan, keep and score them costs the same in
one process, which is taken off.  Seconds are those of the driver's processor: what replicas do is
not its fault.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from engine_fakes import FakeBackends, FakeModel, Message, Silent, answered_keys, demo_sweep, go
from scale_runs import GRID, import_table

from vlmeval_findit.engine.backend import CallOptions, LocalBackend
from vlmeval_findit.models.model_client import GenerateClient

pytest.importorskip("ray", reason="Ray is not installed: pip install '.[cluster]'")

MOST = 100e-6
"""Seconds of the driver's processor a call, at most."""

ROWS, LEAST = (100, 600), (2, 4)
"""Rows of the table when it is measured, and when it is only run; each is asked in 40 formats."""


class AtOnce(FakeModel):
    """Answers without a thought."""

    def generate(self, message: Message, dataset: str) -> str:
        return "[10, 20, 300, 900]"


def load() -> GenerateClient:
    return GenerateClient(AtOnce())


def test_what_a_call_costs_the_driver(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measures: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from vlmeval_findit.engine.ray_backend import RayBackend

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    few, many = ROWS if measures else LEAST
    import_table(tmp_path, many, monkeypatch)
    two = CallOptions(replicas=2, cpus=0.5)
    factories = {
        "one process": FakeBackends(None, lambda _: LocalBackend(load)),
        "Ray": FakeBackends(None, lambda _: RayBackend(load, two)),
    }
    took: dict[str, float] = {}
    for kind, host in factories.items():
        before = 0.0
        for rows in (1, few, many):  # the first of all imports Ray
            folder = tmp_path / kind / str(rows)
            folder.mkdir(parents=True)
            watcher, start, began = Silent(), time.process_time(), time.monotonic()
            results = go(demo_sweep(folder, GRID, limit=rows), host, watcher=watcher)
            seconds = time.process_time() - start
            took[kind], before = seconds - before, seconds
            calls = len(answered_keys(folder / "calls.jsonl"))
            assert calls == len(watcher.answers) == sum(result.rows for result in results)
            assert calls == rows * len(results)
            with capsys.disabled():
                whole = time.monotonic() - began
                print(f"\n{kind}, {calls:,} calls: {seconds:.2f} s of processor, {whole:.1f} s")
    share = (took["Ray"] - took["one process"]) / ((many - few) * len(results))
    with capsys.disabled():
        print(f"a call more costs the driver {1e6 * share:.0f} µs")
    assert not measures or share <= MOST
