"""The dataset Demo: shipped tables, and images of photographs in installed packages.

Packages are located without being imported (scikit-image would cost seconds).  The tables were
annotated by hand: each box was read off an enlarged copy and checked by drawing it back; a hidden
part of an object counts only as far as it can be seen.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml
from PIL import Image

from ...benchmarks.findit import BENCHMARK_DATASETS, PreparedTable, read_table, write_table
from ...core import install_command, sha256_of, write_once
from ...storage import (
    decode_image,
    image_folder,
    make_lmu_data_root,
    shipped_table,
    source_checksum,
)

Pixels = npt.NDArray[np.uint8]  # height x width x 3, RGB

PHOTOS = Path(__file__).with_name("photos.yaml")
# Photo, corners and size of each demo image
PHOTO_PARTS = Path(__file__).with_name("parts.json")
IMAGES = "Demo"  # Key of the image folder


@dataclass(frozen=True)
class Photo:
    """A photograph inside an installed package."""

    name: str
    package: str  # as imported
    path: str  # inside the package
    pip: str  # the package's name for pip
    width: int
    height: int
    sha256: str
    licence: str
    credit: str


@cache
def photos() -> Mapping[str, Photo]:
    """Return the photographs by name."""
    listed = yaml.safe_load(PHOTOS.read_text(encoding="utf-8"))["photos"]
    return {name: Photo(name=name, **entry) for name, entry in listed.items()}


@lru_cache(maxsize=32)
def read_photo(photo: Photo) -> Pixels:
    """Read a photograph; grey ones have three equal channels.

    Raises:
        FileNotFoundError: its package is not installed, or does not have it.
        ValueError: the file is not what was annotated: its SHA-256 differs.
    """
    data = _locate(photo).read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != photo.sha256:
        raise ValueError(
            f"photo {photo.name!r}: {photo.path} of the package {photo.package!r} has the sha256 "
            f"{digest}, but {photo.sha256} was annotated; try: pip install --upgrade {photo.pip}"
        )
    return np.asarray(decode_image(io.BytesIO(data)))


def _locate(photo: Photo) -> Path:
    spec = importlib.util.find_spec(photo.package)
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    for folder in folders:
        path = Path(folder) / photo.path
        if path.is_file():
            return path
    what = f"photo {photo.name!r} is {photo.path} of the package {photo.package!r}"
    if folders:
        raise FileNotFoundError(
            f"{what}, which does not have it: pip install --upgrade {photo.pip}"
        )
    raise FileNotFoundError(f"{what}, which is not installed: {install_command('data')}")


def demo_image(name: str) -> Image.Image:
    """Make an image of the tables: ``photos/<name>.png``, or a part of a photograph."""
    path = PurePosixPath(name)
    if path.parent.name == "photos":
        return Image.fromarray(read_photo(photos()[path.stem]))
    photo, (x1, y1, x2, y2), size = _parts()[name]
    part = Image.fromarray(read_photo(photos()[photo])[y1:y2, x1:x2])
    return part.resize(size, Image.Resampling.BICUBIC)


def image_file(name: str) -> bytes:
    """Return an image of the tables as a PNG file."""
    encoded = io.BytesIO()
    demo_image(name).save(encoded, format="PNG")
    return encoded.getvalue()


@cache
def _parts() -> Mapping[str, Any]:
    """Return photograph, corners in its pixels and (width, height) of images, by their names."""
    parts: Mapping[str, Any] = json.loads(PHOTO_PARTS.read_text(encoding="utf-8"))
    return parts


# --- the tables ----------------------------------------------------------------------------------


def demo_tables() -> list[str]:
    """Return the names of the tables."""
    datasets = [row for row in BENCHMARK_DATASETS.values() if row.images == IMAGES]
    return list(chain.from_iterable(dataset.tables for dataset in datasets))


def prepare_demo() -> list[PreparedTable]:
    """Write images and tables below the LMUData root.

    Raises:
        FileNotFoundError: a package whose photographs are shown is not installed.
        ValueError: a photograph is not what was annotated.
    """
    root = make_lmu_data_root()
    origin = {"source": "demo", "source_sha256": recipe_sha256()}
    folder = image_folder(IMAGES).path
    tables = {name: read_table(shipped_table(name)) for name in demo_tables()}
    names: dict[str, None] = {}
    for query in chain.from_iterable(tables.values()):
        names.update(dict.fromkeys((*query.images, *query.support)))
    for name in names:
        write_once(folder / name, image_file(name))
    return [write_table(root, name, rows, origin) for name, rows in tables.items()]


def recipe_sha256() -> str:
    """Return a checksum of the shipped tables and of what their images are."""
    files = (PHOTOS, PHOTO_PARTS, *sorted(map(shipped_table, demo_tables())))
    return sha256_of(*(path.read_bytes() for path in files))


def ensure_demo() -> None:
    """Make all tables and images, unless the tables are up to date."""
    recipe = recipe_sha256()
    root = make_lmu_data_root()
    paths = (root / f"{name}.tsv" for name in demo_tables())
    if any(source_checksum(path) != recipe for path in paths):
        prepare_demo()
