"""An empty data folder for each test that writes tables."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def lmu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """LMUData, empty, below the working directory."""
    folder = tmp_path / "lmu"
    folder.mkdir()
    monkeypatch.setenv("LMUData", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder
