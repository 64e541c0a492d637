"""Where tables and images lie: the environment, a configuration, VLMEvalKit's data folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .data_root import lmu_data_root as lmu_data_root
from .datasets import DATASETS, Dataset


class PlaceError(ValueError):
    """A configuration that cannot be read; the message names it."""


def table_folders() -> list[Path]:
    """Where tables are looked for, in order."""
    beside_package = Path(__file__).resolve().parent.parent / "datasets_tsv"
    named = os.environ.get("FINDIT_TABLES")
    first = [Path(named)] if named else []
    return [*first, Path("datasets_tsv"), beside_package, lmu_data_root()]


def find_table(table: str) -> Path:
    """The TSV of a table.

    Raises:
        FileNotFoundError: it is nowhere; the message says how to make it.
    """
    folders = table_folders()
    for folder in folders:
        path = folder / f"{table}.tsv"
        if path.is_file():
            return path
    how = _how_to_make(DATASETS.get(table.removesuffix("_multilabel")), table)
    raise FileNotFoundError(
        f"no table {table}.tsv in {', '.join(map(str, folders))}; make it with: {how}"
    )


def _how_to_make(dataset: Dataset | None, table: str) -> str:
    if dataset is not None and dataset.folder is not None:
        return f"python run_findit.py import --replace --name {dataset.name} …"
    if dataset is not None and dataset.subset is None:
        return "python run_findit.py prepare --demo"
    return f"python run_findit.py fetch {table}, or prepare --subsets DIR --only {table}"


@dataclass(frozen=True, slots=True)
class Folder:
    """The image folder of a dataset, and what says so."""

    key: str
    path: Path
    source: str


def config_file() -> Path | None:
    """``configs/datasets.yaml``: the one that FINDIT_CONFIG names, here, or beside the package."""
    named = os.environ.get("FINDIT_CONFIG")
    if named:
        return Path(named)
    beside_package = Path(__file__).resolve().parent.parent
    for base in (Path(), beside_package):
        path = base / "configs" / "datasets.yaml"
        if path.is_file():
            return path
    return None


def image_folder(key: str) -> Folder:
    """The folder of an image key: FINDIT_IMAGES, the configuration, a dataset's own, LMUData.

    Raises:
        PlaceError: the configuration cannot be read.
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
    own = DATASETS.get(key)
    if own is not None and own.folder is not None:
        return Folder(key, Path(own.folder), "run_findit.py import")
    return Folder(key, lmu_data_root() / "images" / key, "LMUData")


def read_config(path: Path) -> Mapping[str, Any]:
    """The sections of a configuration file: ``root``, ``images`` and ``sources``.

    Raises:
        PlaceError: the file cannot be read as such.
    """
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        return {
            "root": values.get("root"),
            "images": dict(values.get("images") or {}),
            "sources": dict(values.get("sources") or {}),
        }
    except (OSError, AttributeError, TypeError, ValueError, yaml.YAMLError) as error:
        raise PlaceError(f"{path}: {error}") from None
