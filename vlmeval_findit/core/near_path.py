"""Says that a path is not there, and which was meant."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from .formatting import closest

_LIKENESS = 0.7  # "review.html" and "report.html" are less alike
_MOST_NAMES = 10_000  # of a folder that are looked at


def near_path(path: Path) -> Path | None:
    """Return the path that was probably meant by one that is not there; None if none is near."""
    missing = path
    below: list[str] = []
    while not missing.parent.is_dir():
        if missing.parent == missing:
            return None
        below.insert(0, missing.name)
        missing = missing.parent
    try:
        names = list(islice(os.listdir(missing.parent), _MOST_NAMES))
    except OSError:
        return None
    shown = [name for name in names if not name.startswith(".")]
    name = closest(missing.name, sorted(shown), _LIKENESS)
    if name is None:
        return None
    near = missing.with_name(name)
    whole = near.joinpath(*below)
    if not below or whole.exists():
        return whole
    return near_path(whole) or near


def not_there(path: Path, otherwise: str = "") -> str:
    """Write ``does not exist``, and the path that was meant, or else what else to do."""
    near = near_path(path)
    if near is not None:
        return f"does not exist: did you mean {near}?"
    return f"does not exist{otherwise}"
