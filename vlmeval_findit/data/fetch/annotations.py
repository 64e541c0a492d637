"""Annotations: the checked Parquet files that each table is made of, and the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...benchmarks.findit.annotation_tables import Prepared, read_table
from ...benchmarks.findit.datasets import Dataset
from ...benchmarks.findit.query import Query
from ...benchmarks.findit.release_subsets import prepare_subset, tables_of
from ...benchmarks.refl4 import table as ref_l4
from ...benchmarks.refl4.annotations import RELEASE, Split, file_name, unlike_release
from ...benchmarks.refl4.table import BEGIN as REF_L4_TABLES
from ...benchmarks.refl4.table import IMAGES as REF_L4_IMAGES
from ...benchmarks.refl4.table import table_name
from ...core.files import file_sha256
from ...core.image_files import Size
from ...core.places import find_table, lmu_data_root
from ...core.table_files import TableError, made_of
from ..sources import SOURCES, WHOLE_REF_L4, Source, source_for

if TYPE_CHECKING:
    from .download import Client


@dataclass(frozen=True, slots=True)
class AnnotationFile:
    """A Parquet file of annotations."""

    name: str
    base: str  # Key of the address that it lies below
    terms: str  # Whose it is, and its licence
    problem: Callable[[Path], str | None]  # What is wrong with one on disk; None: nothing


@dataclass(frozen=True, eq=False, slots=True)
class Fetched:
    """A table that can be fetched."""

    name: str
    folder: str  # Key of the image folder
    source: Source  # Of the images
    files: Sequence[AnnotationFile]
    is_owners: Callable[[Path], bool]  # Whether a table is made of the owners' annotations
    make: Callable[[Path, Path, bool], Prepared]  # Of a folder of Parquet files, into one, by force
    queries: Callable[[Path], Sequence[Query]]  # Its rows

    def ready(self, out: Path | None) -> Path | None:
        """Return the table, in a folder (None: where runs look), if it is the owners'."""
        try:
            path = find_table(self.name, "data get") if out is None else out / f"{self.name}.tsv"
            return path if self.is_owners(path) else None
        except (OSError, TableError):
            return None


def fetched_tables(names: Sequence[str] | None) -> list[Fetched]:
    """Return the tables of names (None: all of FindIt's release), or raise a TableError."""
    if names is None:
        return [_subset_table(*table) for table in tables_of(None)]
    found: list[Fetched] = []
    for name in names:
        if name.startswith(REF_L4_TABLES):
            found.append(_ref_l4_table(ref_l4.split_of(name)))
        else:
            found += [_subset_table(*table) for table in tables_of([name])]
    return found


def parquet_folder() -> Path:
    """Where fetched Parquet files are kept."""
    return lmu_data_root() / "findit_subsets"


def has_file(file: AnnotationFile) -> bool:
    """Whether a Parquet file was fetched before."""
    return file.problem(parquet_folder() / file.name) is None


def fetch_file_of(client: Client, base: str, file: AnnotationFile) -> None:
    """Bring one Parquet file into :func:`parquet_folder`, or raise a DownloadError."""
    from .download import address, fetch_file

    part = parquet_folder() / f".{file.name}.part"
    target = parquet_folder() / file.name
    fetch_file(client, (address(base, file.name),), part, target, file.problem)


def _subset_table(dataset: Dataset, multilabel: bool) -> Fetched:
    """A table of FindIt's release."""
    name, known = dataset.table_name(multilabel), dataset.subset_for(multilabel)

    def problem(path: Path) -> str | None:
        checksum = file_sha256(path) if path.is_file() else None
        if checksum is None:
            return "is missing"
        if known is not None and checksum != known.sha256:
            return f"SHA-256 is {checksum}, but the release's file has {known.sha256}"
        return None

    def is_owners(path: Path) -> bool:
        return known is not None and made_of(path) == known.sha256 and bool(read_table(path))

    def make(parquet: Path, out: Path, force: bool) -> Prepared:
        return prepare_subset(parquet, out, dataset, multilabel)

    terms = "the FindIt release, CC BY-NC-SA 4.0; each dataset's own terms hold too"
    files = [AnnotationFile(f"{known.file}.parquet", "findit", terms, problem)] if known else []
    return Fetched(name, dataset.images, source_for(dataset), files, is_owners, make, read_table)


def _ref_l4_table(split: Split) -> Fetched:
    """A table of the whole of Ref-L4."""
    name = table_name(split)
    terms = "Ref-L4 by its authors (JierunChen/Ref-L4), CC BY-NC 4.0"

    def is_owners(path: Path) -> bool:
        return not unlike_release([row.annotation for row in ref_l4.read_table(path)], split)

    def make(parquet: Path, out: Path, force: bool) -> Prepared:
        return ref_l4.prepare(parquet, split, out, force)

    files = [
        AnnotationFile(
            file_name(part),
            "refl4",
            terms,
            partial(_row_problem, rows=RELEASE[f"expressions of {part.value}"]),
        )
        for part in split.parts
    ]
    source = SOURCES[WHOLE_REF_L4]
    return Fetched(name, REF_L4_IMAGES, source, files, is_owners, make, ref_l4.read_table)


def _row_problem(path: Path, rows: int) -> str | None:
    """The authors publish no checksum: whether it is theirs is said by its rows."""
    if not path.is_file():
        return "is missing"
    import pyarrow
    import pyarrow.parquet as pq

    try:
        found = pq.read_metadata(path).num_rows
    except (pyarrow.ArrowException, OSError) as error:
        return f"no Parquet file: {error}"
    return None if found == rows else f"{found} rows, the release has {rows}"


def wanted_images(queries: Iterable[Query]) -> dict[str, Size | None]:
    """Every image that queries name, with the size of their annotations.

    Reference shots have no annotations, so their size is not known.
    """
    wanted: dict[str, Size | None] = {}
    for query in queries:
        for name in query.support:
            wanted.setdefault(name, None)
        for name in query.images:
            wanted[name] = (query.width, query.height)
    return wanted
