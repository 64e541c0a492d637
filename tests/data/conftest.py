"""A web server for tests of downloads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from web import Web, web_server


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server
