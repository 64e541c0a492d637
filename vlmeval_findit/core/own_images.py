"""Datasets that somebody made known with ``run_findit.py import``: one file of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .data_root import own_datasets_file
from .spelling import nearest


class DatasetFileError(ValueError):
    """The file of one's own datasets cannot be read; the message names file, name and key."""


@dataclass(frozen=True, slots=True)
class OwnRow:
    """What the file says of one dataset: its image folder, and what is asked.

    ``family`` is a name that the benchmark knows.  Files of earlier versions have the folder only,
    which then meant object detection with a multi-label table.
    """

    folder: str
    family: str = "objdet"
    multilabel: bool = True
    captions: bool = False
    negatives: bool = False
    frames: int = 1

    def as_dict(self) -> dict[str, Any]:
        """The row as the file has it."""
        return asdict(self)


def own_rows(path: Path | None = None) -> Mapping[str, OwnRow]:
    """The datasets of one's own, by name; none without the file.

    Args:
        path: the file (None: the one in LMUData).

    Raises:
        DatasetFileError: the file is not one that ``import`` wrote.
    """
    path = own_datasets_file() if path is None else path
    try:
        state = path.stat()
    except OSError:
        return {}
    return _read(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=8)
def _read(path: Path, mtime: int, size: int) -> Mapping[str, OwnRow]:
    """``mtime`` and ``size`` are there for the cache: a changed file is read again."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetFileError(f"{path}: {error}") from None
    if not isinstance(values, dict):
        raise DatasetFileError(f"{path}: should be an object, one key a dataset")
    return MappingProxyType({name: _row(path, name, row) for name, row in values.items()})


def _row(path: Path, name: str, row: object) -> OwnRow:
    if not isinstance(row, dict) or not isinstance(row.get("folder"), str):
        raise DatasetFileError(f"{path}, {name}: no key 'folder' that names the image folder")
    kinds = {one.name: _KINDS[str(one.type)] for one in fields(OwnRow)}
    for key, value in row.items():
        if key not in kinds:
            raise DatasetFileError(f"{path}, {name}: no key {key!r}{nearest(key, kinds)}")
        kind, what = kinds[key]
        if type(value) is not kind:
            raise DatasetFileError(f"{path}, {name}, {key}: {value!r} is not {what}")
    made = OwnRow(**row)
    if made.frames < 1:
        raise DatasetFileError(f"{path}, {name}, frames: {made.frames} is no number of frames")
    return made


_KINDS = {
    "str": (str, "text"),
    "bool": (bool, "true or false"),
    "int": (int, "a whole number"),
}
"""By the type of a field what the file holds, and how messages call it."""
