"""The demonstration as tables: shipped as TSV, their images made on first use."""

from __future__ import annotations

from ...benchmarks.findit.annotation_tables import PreparedTable, read_table, write_table
from ...benchmarks.findit.findit_datasets import BENCHMARK, Dataset
from ...core.files import sha256_of, write_once
from ...core.places import image_folder, lmu_data_root
from ...core.table_files import made_of
from .photos import PARTS, PHOTOS, SHIPPED, image, png

IMAGES = "Demo"  # key of the image folder


def demo_tables() -> list[tuple[Dataset, bool]]:
    """List the demonstration's tables, as (dataset, multi-label)."""
    return [
        (row, multilabel)
        for row in BENCHMARK.values()
        if row.images == IMAGES
        for multilabel in (False, True)[: 1 + row.has_multilabel]
    ]


def prepare_demo() -> list[PreparedTable]:
    """Write the demonstration's images and tables below the LMUData root.

    Raises:
        FileNotFoundError: a package whose photographs are shown is not installed.
        ValueError: a photograph is not the one that was annotated.
    """
    origin = {"source": "demo", "source_sha256": recipe_sha256()}
    folder = image_folder(IMAGES).path
    names = [dataset.table_name(multilabel) for dataset, multilabel in demo_tables()]
    tables = {name: read_table(SHIPPED / f"{name}.tsv") for name in names}
    queries = [query for rows in tables.values() for query in rows]
    for name in dict.fromkeys(name for q in queries for name in (*q.images, *q.support)):
        write_once(folder / name, png(image(name)))
    return [write_table(lmu_data_root(), name, rows, origin) for name, rows in tables.items()]


def recipe_sha256() -> str:
    """Return a checksum of the shipped tables and of what their images are."""
    files = (PHOTOS, PARTS, *sorted(SHIPPED.glob("*.tsv")))
    return sha256_of(*(path.read_bytes() for path in files))


def ensure(dataset: Dataset) -> None:
    """Make the demonstration, all of it, unless its tables are up to date."""
    wanted = recipe_sha256()
    tables = (
        lmu_data_root() / f"{row.table_name(multilabel)}.tsv" for row, multilabel in demo_tables()
    )
    if any(made_of(table) != wanted for table in tables):
        prepare_demo()
