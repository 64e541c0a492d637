"""Files that a killed run of the host left half-written.

The host writes its intermediate and its prediction files in place.  Killed in that moment, it
leaves a torn file, and its next run stops at it.  Such a file is set aside, never deleted: what it
held is answered again, what other files hold is kept.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

log = logging.getLogger(__name__)

_PICKLE_STOP = b"."
"""The last byte of every whole pickle."""


def set_torn_aside(folder: Path, model: str, dataset: str) -> list[Path]:
    """Rename torn files of a run to ``<name>.torn``; returns the new paths."""
    pickles = [*folder.glob(f"*_{dataset}.pkl"), *folder.glob(f"{model}_{dataset}_*.pkl")]
    torn = [path for path in pickles if not _ends_in(path, _PICKLE_STOP)]
    predictions = folder / f"{model}_{dataset}.json"
    if predictions.is_file() and not _is_json(predictions):
        torn.append(predictions)
    moved = []
    for path in torn:
        aside = path.with_name(f"{path.name}.torn")
        path.replace(aside)
        log.warning("%s was half-written by a killed run; set aside as %s", path, aside.name)
        moved.append(aside)
    return moved


def _ends_in(path: Path, ending: bytes) -> bool:
    with path.open("rb") as f:
        f.seek(0, 2)
        if f.tell() < len(ending):
            return False
        f.seek(-len(ending), 2)
        return f.read() == ending


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return True
