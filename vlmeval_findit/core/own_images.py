"""Image folders that somebody made known with ``run_findit.py import``: one file of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from .data_root import own_datasets_file


class DatasetFileError(ValueError):
    """The file of one's own datasets cannot be read; the message names file, name and key."""


def own_folders(path: Path | None = None) -> Mapping[str, str]:
    """The image folder of every dataset of one's own, by its name; none without the file.

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
def _read(path: Path, mtime: int, size: int) -> Mapping[str, str]:
    """``mtime`` and ``size`` are there for the cache: a changed file is read again."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetFileError(f"{path}: {error}") from None
    if not isinstance(values, dict):
        raise DatasetFileError(f"{path}: should be an object, one key a dataset")
    return MappingProxyType({name: _folder(path, name, row) for name, row in values.items()})


def _folder(path: Path, name: str, row: object) -> str:
    folder = row.get("folder") if isinstance(row, dict) else None
    if not isinstance(folder, str):
        raise DatasetFileError(f"{path}, {name}: no key 'folder' that names the image folder")
    return folder
