"""Rendered pairs as tables of self-retrieval: made when they are first asked for.

``SelfRetrieval_Scenes`` has 500 pairs of the test split, ``SelfRetrieval_Scenes_mini`` 50 of the
validation split: the first seeds of each.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ...benchmarks.selfretrieval.pairs import Both, Pair, write_table
from ...core import stored_png
from ...core.files import sha256_of, write_once
from ...core.places import image_folder, lmu_data_root
from ...core.stored_png import png
from ...core.table_files import made_of
from . import drawing, pairs, scene
from .pairs import scene_pair
from .scene import SPLITS


class Size(NamedTuple):
    """How many pairs a set has, and the split that their seeds are of."""

    split: str
    pairs: int


SETS = {
    "SelfRetrieval_Scenes": Size("test", 500),
    "SelfRetrieval_Scenes_mini": Size("validation", 50),
}
"""By the name of the table, which is the key of its image folder too."""


def ensure(name: str) -> None:
    """Make a table and its pictures unless they are there, made by this very code."""
    if made_of(lmu_data_root() / f"{name}.tsv") != recipe_sha256():
        prepare(name)


def prepare(name: str) -> Path:
    """Render a table's pictures and write it, below the LMUData root."""
    size = SETS[name]
    folder = image_folder(name).path
    seeds = SPLITS[size.split][: size.pairs]
    rows = [_pair(folder, index, seed) for index, seed in enumerate(seeds)]
    origin = {"source": "rendered", "source_sha256": recipe_sha256()}
    return write_table(lmu_data_root(), name, rows, origin)


def recipe_sha256() -> str:
    """A checksum of the code that decides what is rendered and how it is described."""
    modules = (drawing, scene, pairs, stored_png)
    sources = (*(module.__file__ for module in modules), __file__)
    return sha256_of(*(Path(str(source)).read_bytes() for source in sources))


def _pair(folder: Path, index: int, seed: int) -> Pair:
    made = scene_pair(seed)
    images = (f"{seed}-left.png", f"{seed}-right.png")
    for name, shown in zip(images, (made.left, made.right), strict=True):
        write_once(folder / name, png(shown.pixels))
    captions = Both(made.left_caption, made.right_caption)
    return Pair(index, f"{seed}", images, captions, made.attribute)
