"""A sweep over a local Ray cluster of two workers, one of which dies in the middle."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_fakes import FakeHost, FakeModel, answered_keys, demo_sweep, files, go

from vlmeval_findit.engine.asking import ModelAsker
from vlmeval_findit.engine.config import Inference
from vlmeval_findit.engine.ray_executor import RayExecutor

pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")

HERE = Path(__file__).parent
TWO = Inference(replicas=2, cpus=0.5)


@pytest.fixture(autouse=True)
def _workers_find_us(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, places)))


def load_fragile(marks: Path) -> ModelAsker:
    """A model that takes its whole process with it: once at its 20th call, always at a word."""

    def on_call(number: int, text: str) -> None:
        (marks / f"{os.getpid()}").touch()
        if number == 20 and not (marks / "died").exists():
            (marks / "died").touch()
            os._exit(1)
        if (marks / "poison").exists() and '"horse"' in text:
            os._exit(1)

    return ModelAsker(FakeModel(on_call))


def ray_host(load: Callable[[], Any]) -> FakeHost:
    return FakeHost(None, lambda _: RayExecutor(load, TWO))


def test_a_worker_that_dies_changes_no_file(tmp_path: Path) -> None:
    go(demo_sweep(tmp_path / "alone"), FakeHost(FakeModel()))
    undisturbed = files(tmp_path / "alone" / "out")
    marks = tmp_path / "marks"
    marks.mkdir()
    go(demo_sweep(tmp_path), ray_host(lambda: load_fragile(marks)))
    assert (marks / "died").exists()
    assert len(list(marks.iterdir())) - 1 >= 3, "two workers and one in place of the dead"
    assert files(tmp_path / "out") == undisturbed
    keys = answered_keys(tmp_path / "calls.jsonl")
    assert len(keys) == len(set(keys)) == 100

    # Work that always kills its worker is a failure in the end, and takes nothing else with it.
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "calls.jsonl").unlink()
    (marks / "poison").touch()
    results = go(demo_sweep(tmp_path, POISONED), ray_host(lambda: load_fragile(marks)))
    failed = sum(result.totals.failed for result in results)
    assert 0 < failed < 19
    (marks / "poison").unlink()
    results = go(demo_sweep(tmp_path, POISONED), ray_host(lambda: load_fragile(marks)))
    assert sum(result.totals.failed for result in results) == 0
    ours = files(tmp_path / "out")
    assert ours == {name: undisturbed[name] for name in ours}


POISONED = "models: FullImage\ndatasets: Demo\nrepresentations: xyxy\noutputs: text"


def test_a_model_that_cannot_be_loaded_stops_it(tmp_path: Path) -> None:
    def load() -> ModelAsker:
        raise OSError("no such checkpoint")

    with pytest.raises(ValueError, match="cannot be loaded"):
        go(demo_sweep(tmp_path), ray_host(load))
    assert not answered_keys(tmp_path / "calls.jsonl")
