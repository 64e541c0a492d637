"""``run_findit.py data check``: whether annotations and images are there, and whole."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from ..benchmarks.findit.findit_datasets import DATASETS
from ..core.command import SOME_FAILED, as_called
from ..core.places import image_folder
from ..data.fetch.annotations import FetchableTable, fetched_tables, wanted_images
from ..data.fetch.store import ImageStore
from ..data.sources import DataSource
from .options import PATH, Command
from .printing import console

ANNOTATIONS = "annotations"

_REASONS = 8
"""Reasons that are listed for one line of the table."""


def complete_data_names(
    _: click.Context, __: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a dataset that can be fetched."""
    return [CompletionItem(name) for name in DATASETS if name.startswith(incomplete)]


@dataclass(frozen=True, slots=True)
class TableLine:
    """One line of the table at the end.  ``failed`` gives the reason by what failed."""

    what: str
    wanted: int
    there: int
    failed: Mapping[str, str]

    @property
    def fetched(self) -> int:
        return self.wanted - self.there - len(self.failed)


names_argument = click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_data_names
)


@click.command(cls=Command, examples=["python run_findit.py data check Pascal"])
@names_argument
@click.option("--out", type=PATH, metavar="DIR", help="Folder of the tables (LMUData).")
def command(names: tuple[str, ...], out: Path | None) -> int:
    """Look at the tables and images of datasets, without a network.

    NAME is as of data get; all: FindIt's. Exit status 1: something is missing.
    """
    lines = _check(tables_named(names), out)
    print_lines(lines)
    return SOME_FAILED if any(line.failed for line in lines) else 0


def tables_named(names: Sequence[str]) -> list[FetchableTable]:
    """Return the tables of names.

    Raises:
        ValueError: one is unknown, or nothing says where its images come from.
    """
    return fetched_tables(None if tuple(names) == ("all",) else names)


def _check(tables: Sequence[FetchableTable], out: Path | None) -> list[TableLine]:
    ready = {table: table.ready(out) for table in tables}
    lacking = {
        table.name: "no table of the release's annotations: data get makes it"
        for table, path in ready.items()
        if path is None
    }
    lines = [TableLine(ANNOTATIONS, len(tables), len(tables) - len(lacking), lacking)]
    paths = {table: path for table, path in ready.items() if path is not None}
    for source, group in by_source(paths).items():
        store = store_of(group, paths)
        missing = store.problems()
        if missing and source.steps:
            print(steps(source, store.folder))
        lines += [line_of(table, paths[table], missing, missing) for table in group]
    return lines


def by_source(paths: Mapping[FetchableTable, Path]) -> dict[DataSource, list[FetchableTable]]:
    """Group tables by where their images come from."""
    groups: dict[DataSource, list[FetchableTable]] = {}
    for table in paths:
        groups.setdefault(table.source, []).append(table)
    return groups


def store_of(tables: Sequence[FetchableTable], paths: Mapping[FetchableTable, Path]) -> ImageStore:
    """Return the image folder that tables share, with the images that they name."""
    queries = [query for table in tables for query in table.queries(paths[table])]
    return ImageStore(image_folder(tables[0].folder).path, wanted_images(queries))


def line_of(
    table: FetchableTable, path: Path, missing: Mapping[str, str], failed: Mapping[str, str]
) -> TableLine:
    """Count a table's images: of all that are missing, ``failed`` did not come."""
    names = wanted_images(table.queries(path))
    return TableLine(
        table.name,
        len(names),
        sum(name not in missing for name in names),
        {name: why for name, why in failed.items() if name in names},
    )


def steps(source: DataSource, folder: Path) -> str:
    """Say what a person has to do where no image can be fetched."""
    text = source.steps.format(folder=folder)
    then = f"Then: python run_findit.py data check, for the datasets of {source.name}."
    said = as_called(f"{source.name}, by hand: {text} {then}")
    return textwrap.fill(said, 100, subsequent_indent="  ")


def print_lines(lines: Sequence[TableLine]) -> None:
    """Print what is there and what is not, with the reasons."""
    from rich.table import Table as RichTable

    table = RichTable(box=None, header_style="bold", pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in ("wanted", "there", "fetched", "failed"):
        table.add_column(name, justify="right")
    for line in lines:
        counts = (line.wanted, line.there, line.fetched, len(line.failed))
        table.add_row(line.what, *map(str, counts))
    console().print(table)
    for line in lines:
        for text in _reasons(line):
            print(text)


def _reasons(line: TableLine) -> Iterator[str]:
    """Every reason once, with how many it holds for and the first of them."""
    kinds: dict[str, list[str]] = {}
    for name, why in line.failed.items():
        kinds.setdefault(why.replace(Path(name).name, "…"), []).append(name)
    counts = Counter({kind: len(names) for kind, names in kinds.items()})
    for kind, count in counts.most_common(_REASONS):
        first = kinds[kind][0]
        more = f" and {count - 1} more" if count > 1 else ""
        yield f"{line.what}: {first}{more}: {line.failed[first]}"
    if len(counts) > _REASONS:
        yield f"{line.what}: {len(counts) - _REASONS} more reasons"
