"""``run_findit.py data list``: every dataset, what of it is on disk, and its licence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import click

from ..benchmarks import benchmarks
from ..benchmarks.findit.findit_datasets import BENCHMARK, DATASETS, Dataset
from ..core.command import as_called
from ..core.places import image_folder, table_folders
from ..core.question import Question
from ..core.table_files import TableError
from ..data.fetch.annotations import fetched_tables, wanted_images
from ..data.sources import SHIPPED, SOURCES, published_sets
from .options import Command
from .printing import console

_NONE = "–"


class Row(NamedTuple):
    """A dataset: whether its table is on disk, how many of its images are, and its licence."""

    name: str
    table: str
    images: str
    licence: str


@click.command(cls=Command)
def command() -> int:
    """List the datasets: what of each is on disk, and the licence of its images."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("dataset", no_wrap=True)
    table.add_column("table", no_wrap=True)
    table.add_column("images", justify="right", no_wrap=True)
    table.add_column("licence of the images", overflow="fold")
    for row in (*_findit(), *_others()):
        table.add_row(*map(Text, row))
    console().print(table)
    sets = ", ".join(published_sets())
    print(as_called("bring one: python run_findit.py data get NAME"))
    print(as_called("of files that you have: python run_findit.py data get NAME --from DIR"))
    print(fill(f"so are made: {sets}", 80, subsequent_indent="  "))
    return 0


def _findit() -> Iterator[Row]:
    """Yield FindIt's datasets; those that this package makes are one row for each image folder."""
    made = {row.images for row in BENCHMARK.values() if row.maker is not None}
    for row in DATASETS.values():
        if row.images not in made:
            yield Row(row.name, *_on_disk(row), _licence(row))
        elif row.name == row.images:
            yield Row(f"{row.name}, {row.name}_…", "made", "when asked for", SHIPPED)


def _licence(row: Dataset) -> str:
    return "yours" if row.folder is not None else SOURCES[row.images].licence


def _on_disk(row: Dataset) -> tuple[str, str]:
    """Say whether the table of a dataset is there, and how many of the images that it names are."""
    if row.folder is not None:
        return _yes(row.name), "yours"
    table = fetched_tables([row.name])[0]
    try:
        path = table.ready(None)
    except (OSError, TableError):
        path = None
    if path is None:
        return _NONE, _NONE
    folder = image_folder(table.folder).path
    wanted = wanted_images(table.queries(path))
    there = sum((folder / name).is_file() for name in wanted)
    return "yes", f"{there:,}/{len(wanted):,}"


def _others() -> Iterator[Row]:
    """Yield the tables of the other benchmarks, plug-ins' too."""
    for benchmark in benchmarks():
        questions = [benchmark.parse(name) for name in benchmark.listed()]
        for question in questions:
            if question.table not in DATASETS and not question.table.endswith("_multilabel"):
                yield _other(question)


def _other(question: Question) -> Row:
    source = SOURCES.get(question.images)
    licence = _NONE if source is None else source.licence
    folder = image_folder(question.images).path
    return Row(question.table, _yes(question.table), "yes" if folder.is_dir() else _NONE, licence)


def _yes(table: str) -> str:
    there = any(Path(folder, f"{table}.tsv").is_file() for folder in table_folders())
    return "yes" if there else _NONE
