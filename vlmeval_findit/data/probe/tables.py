"""The table of the probe and its images: made when they are first asked for."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from ...benchmarks.findit.annotation_tables import PreparedTable, write_table
from ...benchmarks.findit.findit_datasets import Dataset
from ...benchmarks.findit.findit_query import FindItQuery
from ...boxes.records import Truth
from ...core.files import sha256_of, write_once
from ...core.places import image_folder, lmu_data_root
from ...core.table_files import made_of
from ..rendered import drawing
from ..rendered.drawing import Pixels
from . import scenes
from .scenes import COUNT, probe_scene


def ensure(dataset: Dataset) -> None:
    """Make the table and its images unless they are there, made by this very code."""
    if made_of(lmu_data_root() / f"{dataset.table_name(False)}.tsv") != recipe_sha256():
        prepare(dataset)


def prepare(dataset: Dataset) -> PreparedTable:
    """Draw the images and write the table, below the LMUData root."""
    folder = image_folder(dataset.images).path
    queries = [_query(folder, index) for index in range(COUNT)]
    origin = {"source": "rendered", "source_sha256": recipe_sha256()}
    return write_table(lmu_data_root(), dataset.table_name(False), queries, origin)


def recipe_sha256() -> str:
    """A checksum of the code that decides what is drawn and asked."""
    sources = (*(module.__file__ for module in (drawing, scenes)), __file__)
    return sha256_of(*(Path(str(source)).read_bytes() for source in sources))


def _query(folder: Path, index: int) -> FindItQuery:
    scene = probe_scene(index)
    width, height = scene.size
    name = f"{index:02d}-{width}x{height}.png"
    write_once(folder / name, _png(scene.pixels))
    return FindItQuery(index, scene.label, width, height, (name,), Truth((scene.box,), (0,)))


def _png(pixels: Pixels) -> bytes:
    """A compressed PNG: servers limit what they are sent, and stored these were 20 MB each."""
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()
