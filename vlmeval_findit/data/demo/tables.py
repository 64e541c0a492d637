"""The demonstration as tables: built from installed packages when it is first asked for."""

from __future__ import annotations

from ...benchmarks.findit.annotation_tables import Prepared, write_table
from ...benchmarks.findit.datasets import BENCHMARK, Dataset
from ...benchmarks.findit.release_subsets import query_from_row
from ...core.files import file_sha256
from ...core.places import image_folder, lmu_data_root
from ...core.table_files import made_of
from .build import ANNOTATIONS, build_demo

IMAGES = "Demo"
"""The key of the demonstration's image folder."""


def demo_tables() -> list[tuple[Dataset, bool]]:
    """The demonstration's tables, as (dataset, multi-label)."""
    return [
        (row, multilabel)
        for row in BENCHMARK.values()
        if row.images == IMAGES
        for multilabel in (False, True)[: 1 + row.has_multilabel]
    ]


def prepare_demo() -> list[Prepared]:
    """Write the demonstration's images and tables below the LMUData root.

    Raises:
        FileNotFoundError: a package whose photographs are shown is not installed.
        ValueError: a photograph is not the one that was annotated.
    """
    folder = image_folder(IMAGES).path
    folder.mkdir(parents=True, exist_ok=True)
    rows = build_demo(folder)
    origin = {"source": f"demo/{ANNOTATIONS.name}", "source_sha256": file_sha256(ANNOTATIONS)}
    done = []
    for dataset, multilabel in demo_tables():
        name = dataset.table_name(multilabel)
        queries = [
            query_from_row(i, row, dataset, multilabel, name) for i, row in enumerate(rows[name])
        ]
        done.append(write_table(lmu_data_root(), name, queries, origin))
    return done


def ensure(dataset: Dataset) -> None:
    """Build the demonstration, all of it, unless its tables of these annotations are there."""
    wanted = file_sha256(ANNOTATIONS)
    tables = (
        lmu_data_root() / f"{row.table_name(multilabel)}.tsv" for row, multilabel in demo_tables()
    )
    if any(made_of(table) != wanted for table in tables):
        prepare_demo()
