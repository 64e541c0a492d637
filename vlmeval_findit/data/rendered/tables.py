"""Tables of rendered scenes: shipped as TSV, their images rendered on first use.

``Scenes`` has 1,000 scenes and 100 clips of the test split, ``Scenes_mini`` 50 scenes and 10 clips
of the validation split; all image families ask about the same scenes.  The files in ``shipped`` are
written by ``training.scene_tables``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ...benchmarks.findit.annotation_tables import PreparedTable, read_table, write_table
from ...benchmarks.findit.findit_datasets import Dataset
from ...benchmarks.findit.findit_query import FindItQuery
from ...core import stored_png
from ...core.files import sha256_of, write_once
from ...core.places import image_folder, lmu_data_root
from ...core.stored_png import png
from ...core.table_files import made_of
from . import drawing
from . import scene as scenes
from .drawing import Look
from .scene import Scene, clip, shot

one_scene = lru_cache(maxsize=1024)(scenes.scene)  # several tables ask about a scene


def shipped(table: str) -> Path:
    """Return the file from which a table is made."""
    return Path(__file__).with_name("shipped") / f"{table}.tsv"


def ensure(dataset: Dataset) -> None:
    """Make a dataset's tables and images, unless they are up to date."""
    for multilabel in (False, True)[: 1 + dataset.has_multilabel]:
        table = dataset.table_name(multilabel)
        if made_of(lmu_data_root() / f"{table}.tsv") != recipe_sha256(table):
            prepare(dataset, table)


def prepare(dataset: Dataset, table: str) -> PreparedTable:
    """Render a table's images and write it, below the LMUData root."""
    folder = image_folder(dataset.images).path
    queries = read_table(shipped(table))
    for query in queries:
        for name, shown in zip(query.images, _shown(query), strict=True):
            write_once(folder / name, png(shown.pixels))
        for name in query.support:
            texture, colour, shape = query.label.split()
            look = Look(shape, colour, texture)
            write_once(folder / name, png(shot(int(Path(name).stem), look).pixels))
    origin = {"source": "rendered", "source_sha256": recipe_sha256(table)}
    return write_table(lmu_data_root(), table, queries, origin)


def recipe_sha256(table: str, *more: Path) -> str:
    """Return a checksum of a table and of the code, and ``more`` files, that render its images."""
    modules = (drawing, scenes, stored_png)
    files = (*(Path(str(module.__file__)) for module in modules), *more, shipped(table))
    return sha256_of(*(path.read_bytes() for path in files))


def _shown(query: FindItQuery) -> Sequence[Scene]:
    """Render ``scenes/<seed>.png``, or the frames of ``clips/<seed>``."""
    kind, seed = Path(query.cluster).parts
    if kind == "clips":
        return clip(int(seed), len(query.images))
    return [one_scene(int(Path(seed).stem))]
