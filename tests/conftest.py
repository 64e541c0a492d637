"""The fixture of most rooms: a small world of tables, pictures and runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from scored_runs import World, small_world


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world of the test's own, in its folder."""
    return small_world(tmp_path, monkeypatch)
