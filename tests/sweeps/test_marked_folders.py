"""Folders of probes, experiments and the demonstration are marked, unless a model is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_fakes import FakeDeployment, FakeModel, demo_sweep, go

from vlmeval_findit.storage import DEMO_FILE, PROBE_FILE


class Absent(FakeDeployment):
    """A model that is not there."""

    def check(self) -> None:
        raise ValueError("not here")


@pytest.mark.parametrize("name", [PROBE_FILE, DEMO_FILE])
def test_a_sweep_marks_its_folder(name: str, tmp_path: Path) -> None:
    mark = tmp_path / "runs" / name
    go(demo_sweep(tmp_path, limit=1, mark=mark), FakeDeployment(FakeModel()))
    assert mark.is_file()


def test_a_refused_sweep_leaves_nothing(tmp_path: Path) -> None:
    sweep = demo_sweep(tmp_path, mark=tmp_path / "runs" / PROBE_FILE)
    with pytest.raises(ValueError, match="not here"):
        go(sweep, Absent(FakeModel()))
    assert list(tmp_path.iterdir()) == []
