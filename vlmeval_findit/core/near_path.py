"""Says that a path is not there, and which was meant."""

from __future__ import annotations

import os
from collections.abc import Collection
from itertools import islice
from pathlib import Path

from .formatting import closest

_LIKENESS = 0.7  # "review.html" and "report.html" are less alike
_MOST_NAMES = 10_000  # of a folder that are looked at


def near_path(path: Path, typed: Collection[Path] = ()) -> Path | None:
    """Return the path that was probably meant by one that is not there; None if none is near.

    ``typed``: other paths of the command, which are not meant again.
    """
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
    others = {os.path.abspath(each) for each in typed}
    shown = []
    for each in names:
        is_typed = not below and os.path.abspath(missing.with_name(each)) in others
        if not each.startswith(".") and not is_typed:
            shown.append(each)
    name = closest(missing.name, sorted(shown), _LIKENESS)
    if name is None:
        return None
    near = missing.with_name(name)
    whole = near.joinpath(*below)
    if not below or whole.exists():
        return whole
    return near_path(whole, typed) or near


def not_there(path: Path, otherwise: str = "", typed: Collection[Path] = ()) -> str:
    """Write ``does not exist``, and the path that was meant, or else what else to do.

    ``typed``: as of :func:`near_path`.
    """
    near = near_path(path, typed)
    if near is not None:
        return f"does not exist: did you mean {near}?"
    return f"does not exist{otherwise}"
