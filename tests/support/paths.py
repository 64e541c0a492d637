"""Folders that tests name, and how a subprocess finds package and helpers."""

from __future__ import annotations

import os
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
ROOT = SUPPORT.parents[1]
GOLDEN = ROOT / "tests" / "golden"


def python_path() -> str:
    """Return a ``PYTHONPATH`` for a subprocess that imports package and helpers."""
    return os.pathsep.join([str(ROOT), str(SUPPORT), os.environ.get("PYTHONPATH", "")])
