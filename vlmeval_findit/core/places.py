"""Where tables and images lie: the environment, a configuration, VLMEvalKit's data folder."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from .data_root import lmu_data_root
from .files import file_sha256, write_once
from .own_images import own_rows
from .shipped import clone
from .spelling import nearest

log = logging.getLogger(__name__)


class PlaceError(ValueError):
    """A configuration that cannot be read; the message names it."""


def table_folders() -> list[Path]:
    """Where tables are looked for, in order."""
    named = os.environ.get("FINDIT_TABLES")
    first = [Path(named)] if named else []
    beside = clone()
    in_clone = [beside / "datasets_tsv"] if beside else []
    return [*first, Path("datasets_tsv"), *in_clone, lmu_data_root()]


def find_table(table: str, how_to_make: str) -> Path:
    """The TSV of a table: that of the first folder that has one.

    Where another folder has another table of this name, a warning says which is taken.

    Args:
        table: its name.
        how_to_make: what makes it, for the message.

    Raises:
        FileNotFoundError: it is nowhere.
    """
    folders = table_folders()
    found = [path for folder in folders if (path := folder / f"{table}.tsv").is_file()]
    if not found:
        raise FileNotFoundError(
            f"no table {table}.tsv in {', '.join(map(str, folders))}; make it with: {how_to_make}"
        )
    first, *others = found
    for other in others:
        if not first.samefile(other) and file_sha256(first) != file_sha256(other):
            _say_once(f"FindIt: two tables {table}: {first} is taken, {other} is another")
    return first


@cache
def _say_once(warning: str) -> None:
    log.warning("%s", warning)


def is_looked_in(folder: Path) -> bool:
    """Whether tables in a folder are found without being told where."""
    return folder.resolve() in [known.resolve() for known in table_folders()]


@dataclass(frozen=True, slots=True)
class Folder:
    """The image folder of a dataset, and what says so."""

    key: str
    path: Path
    source: str


def config_file() -> Path | None:
    """``configs/datasets.yaml``: the one that FINDIT_CONFIG names, here, or of the clone."""
    named = os.environ.get("FINDIT_CONFIG")
    if named:
        return Path(named)
    for base in filter(None, (Path(), clone())):
        path = base / "configs" / "datasets.yaml"
        if path.is_file():
            return path
    return None


def image_folder(key: str) -> Folder:
    """The folder of an image key: FINDIT_IMAGES, the configuration, one's own, LMUData.

    Raises:
        PlaceError: the configuration cannot be read.
        DatasetFileError: the file of one's own datasets cannot be read.
    """
    for pair in filter(None, os.environ.get("FINDIT_IMAGES", "").split(",")):
        name, _, folder = pair.partition("=")
        if name == key:
            return Folder(key, Path(folder), "FINDIT_IMAGES")
    config = config_file()
    if config is not None:
        values = read_config(config)
        base = config.resolve().parent
        folder = values["images"].get(key)
        if folder:
            return Folder(key, base / Path(folder).expanduser(), str(config))
        if values["root"]:
            return Folder(key, base / Path(values["root"]).expanduser() / key, str(config))
    own = own_rows().get(key)
    if own is not None:
        return Folder(key, Path(own.folder), "run_findit.py import")
    return Folder(key, lmu_data_root() / "images" / key, "LMUData")


def keep_below(folder: Folder, name: str, data: bytes) -> Path:
    """Keep a picture that we make of the folder's own ones, below it.

    Raises:
        PlaceError: the folder cannot be written to; the message says how to name another.
    """
    path = folder.path / name
    try:
        write_once(path, data)
        os.utime(path)  # one that was right all along is newer than its source from now on
    except OSError as error:
        raise PlaceError(
            f"{path} cannot be written ({error.strerror}): marked pictures are kept below the "
            f"image folder, which comes from {folder.source}. Make it writable, or name a copy: "
            f"images.{folder.key} in configs/datasets.yaml, or run_findit.py --images "
            f"{folder.key}=DIR, or FINDIT_IMAGES={folder.key}=DIR"
        ) from None
    return path


def read_config(path: Path) -> Mapping[str, Any]:
    """The sections of a configuration file: ``root``, ``images`` and ``sources``.

    Raises:
        PlaceError: the file cannot be read as such.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise PlaceError(f"{path}: {error}") from None
    return _sections(path, text)


@lru_cache(maxsize=8)
def _sections(path: Path, text: str) -> Mapping[str, Any]:
    import yaml

    try:
        values = yaml.safe_load(text) or {}
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise PlaceError(f"{path}: {error}") from None
    if not isinstance(values, dict):
        raise PlaceError(f"{path}: should be a mapping of {', '.join(_SECTIONS)}")
    for key in values:
        if key not in _SECTIONS:
            raise PlaceError(f"{path}: no section {key!r}{nearest(str(key), _SECTIONS)}")
    named = {name: _named(path, name, values.get(name)) for name in ("images", "sources")}
    return {"root": _text(path, "root", values.get("root")), **named}


_SECTIONS = ("root", "images", "sources")


def _named(path: Path, section: str, said: Any) -> Mapping[str, str | None]:
    """A section of names with a text, or nothing, behind each."""
    if not isinstance(said or {}, dict):
        raise PlaceError(f"{path}, {section}: {said!r:.40} is no mapping of names")
    return {
        str(_text(path, f"{section}, a name", name)): _text(path, f"{section}.{name}", value)
        for name, value in (said or {}).items()
    }


def _text(path: Path, where: str, said: Any) -> str | None:
    if said is None or isinstance(said, str):
        return said
    raise PlaceError(
        f'{path}, {where}: {said!r:.40} is no text: write it in quotes, "{said!s:.40}"'
    )
