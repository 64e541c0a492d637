"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(happened: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait for a condition; an assertion fails if it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.01)
