"""Fetch the Parquet files of annotations, and make tables of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...benchmarks.findit import (
    Dataset,
    FindItQuery,
    PreparedTable,
    prepare_subset,
    read_table,
    tables_of,
)
from ...benchmarks.refl4 import RELEASE_COUNTS, file_name, unlike_release
from ...benchmarks.refl4 import expression_tables as ref_l4
from ...core import file_sha256
from ...storage import Size, TableError, find_table, lmu_data_root, source_checksum
from ..sources import SOURCES, WHOLE_REF_L4, DataSource, source_for

if TYPE_CHECKING:
    from .download import Client


@dataclass(frozen=True, slots=True)
class AnnotationFile:
    """A Parquet file of annotations."""

    name: str
    base: str  # Key of its base address
    terms: str  # Owner and licence
    problem: Callable[[Path], str | None]  # Why a file is not it; None: it is


@dataclass(frozen=True, eq=False, slots=True)
class FetchableTable:
    """A table that `data get` can fetch or make of Parquet files."""

    name: str
    folder: str  # Key of the image folder
    source: DataSource  # Of the images
    files: Sequence[AnnotationFile]
    is_genuine: Callable[[Path], bool]  # Whether a table is made of the owners' annotations
    # From a folder of Parquet files, to a folder, by force
    make: Callable[[Path, Path, bool], PreparedTable]
    queries: Callable[[Path], Sequence[FindItQuery]]  # Reads its rows

    def ready(self) -> Path | None:
        """Return the table if it is where runs look for it, and genuine."""
        try:
            path = find_table(self.name, "data get")
            return path if self.is_genuine(path) else None
        except (OSError, TableError):
            return None


def fetched_tables(names: Sequence[str] | None) -> list[FetchableTable]:
    """Return the tables of names (None: all of FindIt's release), each once, or raise a TableError.

    Files of the release and variants are names of their tables, too; case does not matter.
    """
    if names is None:
        return [_subset_table(*table) for table in tables_of(None)]
    tables: dict[str, FetchableTable] = {}
    for name in names:
        if name.casefold().startswith(ref_l4.BEGIN.casefold()):
            named = [_ref_l4_table(ref_l4.BEGIN + name[len(ref_l4.BEGIN) :].lower())]
        else:
            named = [_subset_table(*table) for table in tables_of([name])]
        tables |= {table.name: table for table in named}
    return list(tables.values())


def parquet_folder() -> Path:
    """Return where fetched Parquet files are stored."""
    return lmu_data_root() / "findit_subsets"


def is_fetched(file: AnnotationFile) -> bool:
    """Tell whether a Parquet file was fetched before."""
    path = parquet_folder() / file.name
    return path.is_file() and file.problem(path) is None


def fetch_annotations(client: Client, base: str, file: AnnotationFile) -> None:
    """Fetch one Parquet file into :func:`parquet_folder`, or raise a DownloadError."""
    from .download import address_below, fetch_file

    part = parquet_folder() / f".{file.name}.part"
    target = parquet_folder() / file.name
    fetch_file(client, (address_below(base, file.name),), part, target, file.problem)


def _subset_table(dataset: Dataset, multilabel: bool) -> FetchableTable:
    subset = dataset.subset_for(multilabel)
    assert subset is not None, "tables_of names no other"

    def problem(path: Path) -> str | None:
        checksum = file_sha256(path)
        why = f"SHA-256 is {checksum}, but the release's file has {subset.sha256}"
        return None if checksum == subset.sha256 else why

    terms = "the FindIt release, CC BY-NC-SA 4.0; the terms of each dataset hold too"
    return FetchableTable(
        name=dataset.table_name(multilabel),
        folder=dataset.images,
        source=source_for(dataset),
        files=[AnnotationFile(f"{subset.file}.parquet", "findit", terms, problem)],
        is_genuine=lambda path: source_checksum(path) == subset.sha256 and bool(read_table(path)),
        make=lambda parquet, out, force: prepare_subset(parquet, out, dataset, multilabel),
        queries=read_table,
    )


def _ref_l4_table(name: str) -> FetchableTable:
    split = ref_l4.split_of(name)

    def is_genuine(path: Path) -> bool:
        return not unlike_release([row.annotation for row in ref_l4.read_table(path)], split)

    terms = "Ref-L4 by its authors (JierunChen/Ref-L4), CC BY-NC 4.0"
    problems = {
        part: partial(_row_problem, rows=RELEASE_COUNTS[f"expressions of {part.value}"])
        for part in split.parts
    }
    return FetchableTable(
        name=name,
        folder=ref_l4.IMAGES,
        source=SOURCES[WHOLE_REF_L4],
        files=[AnnotationFile(file_name(p), "refl4", terms, why) for p, why in problems.items()],
        is_genuine=is_genuine,
        make=lambda parquet, out, force: ref_l4.prepare(parquet, split, out, force),
        queries=ref_l4.read_table,
    )


def _row_problem(path: Path, rows: int) -> str | None:
    """Say why a file is not the authors', who publish no checksum, by its number of rows."""
    import pyarrow
    import pyarrow.parquet as pq

    try:
        count = pq.read_metadata(path).num_rows
    except (pyarrow.ArrowException, OSError) as error:
        return f"not a Parquet file: {error}"
    return None if count == rows else f"{count} rows, the release has {rows}"


def images_of(queries: Iterable[FindItQuery]) -> dict[str, Size | None]:
    """Return every image that queries name, with its stated size (of reference images: None)."""
    sizes: dict[str, Size | None] = {}
    for query in queries:
        for name in query.support:
            sizes.setdefault(name, None)
        for name in query.images:
            sizes[name] = (query.width, query.height)
    return sizes
