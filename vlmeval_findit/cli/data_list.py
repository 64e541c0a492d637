"""``run_findit.py data list``: every dataset, its files on disk, and its licence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import fill

import click

from ..benchmarks import benchmarks
from ..benchmarks.findit.findit_datasets import BENCHMARK, DATASETS
from ..core.command import as_called
from ..core.folders import image_folder, table_folders
from ..core.table_files import TableError
from ..data.fetch.annotations import fetched_tables, images_of
from ..data.sources import SHIPPED, SOURCES, published_sets
from .options import Command
from .printing import print_columns

_NONE = "–"


Row = tuple[str, str, str, str]
"""A dataset, whether its table is on disk, its images on disk, and its licence."""


@click.command(cls=Command)
def command() -> int:
    """List the datasets: what of each is on disk, and the licence of its images."""
    rows = [*_findit(), *_others()]
    columns = ("dataset", "table", "images", "licence of the images")
    print_columns(rows, *columns, numbers=["images"])
    print(as_called("get a dataset: python run_findit.py data get NAME"))
    print(as_called("from files that you have: python run_findit.py data get NAME --from DIR"))
    print(fill(f"made from your files: {', '.join(published_sets())}", 80, subsequent_indent="  "))
    return 0


def _findit() -> Iterator[Row]:
    """Yield FindIt's datasets; rendered datasets have a row for each image folder."""
    rendered = {row.images for row in BENCHMARK.values() if row.maker is not None}
    for row in DATASETS.values():
        if row.folder is not None:
            yield row.name, _has_table(row.name), "yours", "yours"
        elif row.images not in rendered:
            yield row.name, *_on_disk(row.name), SOURCES[row.images].licence
        elif row.name == row.images:
            yield f"{row.name}, {row.name}_…", "made", "on first use", SHIPPED


def _on_disk(name: str) -> tuple[str, str]:
    """Return whether the table of a dataset exists, and how many of its images exist."""
    table = fetched_tables([name])[0]
    with suppress(OSError, TableError):
        if (path := table.ready(None)) is not None:
            folder = image_folder(table.folder).path
            images = images_of(table.queries(path))
            existing = sum((folder / image).is_file() for image in images)
            return "yes", f"{existing:,}/{len(images):,}"
    return _NONE, _NONE


def _others() -> Iterator[Row]:
    """Yield the tables of the other benchmarks, plug-ins' too."""
    questions = [each.parse(name) for each in benchmarks() for name in each.listed()]
    for question in questions:
        if question.table not in DATASETS and not question.table.endswith("_multilabel"):
            licence = SOURCES[question.images].licence if question.images in SOURCES else _NONE
            has_images = image_folder(question.images).path.is_dir()
            yield (
                question.table,
                _has_table(question.table),
                "yes" if has_images else _NONE,
                licence,
            )


def _has_table(table: str) -> str:
    exists = any(Path(folder, f"{table}.tsv").is_file() for folder in table_folders())
    return "yes" if exists else _NONE
