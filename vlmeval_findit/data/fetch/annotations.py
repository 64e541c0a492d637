"""The release's annotations: a checked Parquet file of each table, and the table made of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ...benchmarks.findit.annotation_tables import TableError, read_table
from ...benchmarks.findit.datasets import Dataset, Subset
from ...benchmarks.findit.places import find_table
from ...benchmarks.findit.query import Query
from ...benchmarks.findit.release_subsets import prepare_subset
from ...benchmarks.findit.table_facts import made_of
from ...core.data_root import lmu_data_root
from ...core.files import file_sha256
from ...core.image_files import Size

if TYPE_CHECKING:
    from .download import Client


def subsets_folder() -> Path:
    """Where fetched Parquet files are kept."""
    return lmu_data_root() / "findit_subsets"


def ready_table(dataset: Dataset, multilabel: bool, out: Path | None) -> Path | None:
    """The table, if it is there and made of the release's file; ``out``: look there alone."""
    known = dataset.subset_for(multilabel)
    name = dataset.table_name(multilabel)
    try:
        path = find_table(name) if out is None else out / f"{name}.tsv"
        if known is None or made_of(path) != known.sha256:
            return None
        read_table(path)
    except (OSError, TableError):
        return None
    return path


def make_table(dataset: Dataset, multilabel: bool, subsets: Path, out: Path | None) -> Path:
    """Prepare a table from a folder of Parquet files; see :func:`.prepare_subset`."""
    return prepare_subset(subsets, out or lmu_data_root(), dataset, multilabel).path


def has_subset(known: Subset) -> bool:
    """Whether the Parquet file was fetched before."""
    return _problem(known, subsets_folder() / f"{known.file}.parquet") is None


def fetch_subset(client: Client, base: str, known: Subset) -> None:
    """Bring one Parquet file into :func:`subsets_folder`.

    Raises:
        DownloadError: it did not come, or it is not the release's.
    """
    from .download import address, fetch_file

    file = f"{known.file}.parquet"
    target = subsets_folder() / file
    part = subsets_folder() / f".{file}.part"
    fetch_file(client, (address(base, file),), part, target, lambda path: _problem(known, path))


def _problem(known: Subset, path: Path) -> str | None:
    if not path.is_file():
        return "is missing"
    checksum = file_sha256(path)
    if checksum != known.sha256:
        return f"SHA-256 is {checksum}, but the release's file has {known.sha256}"
    return None


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
