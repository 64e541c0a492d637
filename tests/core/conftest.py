"""Plug-ins in a file, which are known to the tests that ask for them only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from plugin_package import MINE

from vlmeval_findit.core import plugin_rows


@pytest.fixture
def plugin_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    yield
    os.environ.pop(plugin_rows.FILES_VARIABLE, None)
    plugin_rows.forget()
