"""A page of a test file, opened in the browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import report_browser as chrome


@pytest.fixture
def opened(browser: Any, page: Path) -> Iterator[Any]:
    """Return the browser with the file's page; nothing that a test did in it is left."""
    with chrome.opened_page(browser, page):
        yield browser
