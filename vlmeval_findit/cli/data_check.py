"""``run_findit.py data check``: check that annotations and images exist and are complete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

import click

from ..benchmarks.findit.findit_datasets import DATASETS
from ..core.command import SOME_FAILED, as_called
from ..core.folders import image_folder
from ..data.fetch.annotations import FetchableTable, fetched_tables, images_of
from ..data.fetch.store import ImageStore
from ..data.sources import DataSource
from .options import PATH, Command, completion
from .printing import print_columns, print_folded

ANNOTATIONS = "annotations"

_REASONS = 8
"""Reasons that are listed for a line of the table."""


@dataclass(frozen=True, slots=True)
class FilesLine:
    """A line of the table of files; ``failed`` has the reason by file."""

    what: str
    needed: int
    present: int
    failed: Mapping[str, str]


names_argument = click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=completion(lambda: DATASETS)
)


@click.command(cls=Command, examples=["python run_findit.py data check Pascal"])
@names_argument
@click.option("--out", type=PATH, metavar="DIR", help="Folder of the tables (LMUData).")
def command(names: tuple[str, ...], out: Path | None) -> int:
    """Check the tables and images of datasets, without a network.

    NAME is as in data get; all: FindIt's. Exit status 1: something is missing.
    """
    tables = tables_named(names)
    ready = {table: table.ready(out) for table in tables}
    missing_tables = {
        table.name: "no table of the release's annotations: type data get"
        for table, path in ready.items()
        if path is None
    }
    present = len(tables) - len(missing_tables)
    lines = [FilesLine(ANNOTATIONS, len(tables), present, missing_tables)]
    paths = {table: path for table, path in ready.items() if path is not None}
    for source, group in by_source(paths).items():
        store = store_of(group, paths)
        missing = store.problems()
        if missing and source.steps:
            print(manual_steps(source, store.folder))
        lines += [line_of(table, paths[table], missing, missing) for table in group]
    return print_lines(lines)


def tables_named(names: Sequence[str]) -> list[FetchableTable]:
    """Return the tables of names.

    Raises:
        ValueError: a name is unknown, or the source of its images is.
    """
    return fetched_tables(None if tuple(names) == ("all",) else names)


def by_source(paths: Mapping[FetchableTable, Path]) -> dict[DataSource, list[FetchableTable]]:
    """Group tables by the source of their images."""
    groups: dict[DataSource, list[FetchableTable]] = {}
    for table in paths:
        groups.setdefault(table.source, []).append(table)
    return groups


def store_of(tables: Sequence[FetchableTable], paths: Mapping[FetchableTable, Path]) -> ImageStore:
    """Return the image folder that tables share, with the images that they name."""
    queries = [query for table in tables for query in table.queries(paths[table])]
    return ImageStore(image_folder(tables[0].folder).path, images_of(queries))


def line_of(
    table: FetchableTable, path: Path, missing: Mapping[str, str], failed: Mapping[str, str]
) -> FilesLine:
    """Count a table's images: of all that were missing, ``failed`` were not fetched."""
    images = images_of(table.queries(path))
    reasons = {name: why for name, why in failed.items() if name in images}
    return FilesLine(table.name, len(images), sum(n not in missing for n in images), reasons)


def manual_steps(source: DataSource, folder: Path) -> str:
    """Return the manual steps for images that cannot be fetched."""
    text = source.steps.format(folder=folder)
    then = f"Then: python run_findit.py data check, for the datasets of {source.name}."
    return fill(as_called(f"{source.name}, by hand: {text} {then}"), 80, subsequent_indent="  ")


def print_lines(lines: Sequence[FilesLine]) -> int:
    """Print numbers of files and the reasons of failures; return the exit status."""
    numbers = ("needed", "there", "fetched", "failed")
    counts = [
        (x.what, x.needed, x.present, x.needed - x.present - len(x.failed), len(x.failed))
        for x in lines
    ]
    print_columns([tuple(map(str, row)) for row in counts], "", *numbers, numbers=numbers)
    for line in lines:
        for text in _reasons(line):
            print_folded(text)
    return SOME_FAILED if any(line.failed for line in lines) else 0


def _reasons(line: FilesLine) -> Iterator[str]:
    """Yield every reason once, with its first file and the number of others."""
    kinds: dict[str, list[str]] = {}
    for name, why in line.failed.items():
        kinds.setdefault(why.replace(Path(name).name, "…"), []).append(name)
    for names in sorted(kinds.values(), key=len, reverse=True)[:_REASONS]:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"{line.what}: {names[0]}{more}: {line.failed[names[0]]}"
    if len(kinds) > _REASONS:
        yield f"{line.what}: {len(kinds) - _REASONS} more reasons"
