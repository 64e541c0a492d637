"""A web server for tests of downloads, and an empty data folder for those of imports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from custom_data import data_folder
from web import Web, web_server


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


@pytest.fixture
def data_root(tmp_path, monkeypatch) -> Path:
    return data_folder(tmp_path, monkeypatch)
