"""``run_findit.py data get``: datasets ready to run, from the network or from your files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..core.command import INTERRUPTED
from ..core.folders import lmu_data_root
from ..core.lock import Lock
from ..core.table_files import WrittenTable
from ..data.fetch.annotations import (
    AnnotationFile,
    FetchableTable,
    is_fetched,
    parquet_folder,
)
from ..data.fetch.store import ImageStore
from ..data.published.importing import ImportOptions
from ..data.sources import NOTHING, DataSource, base_addresses, made_sources, published_sets
from .data_check import (
    ANNOTATIONS,
    FilesLine,
    by_source,
    line_of,
    manual_steps,
    names_argument,
    print_lines,
    store_of,
    tables_named,
)
from .data_import import make_set
from .options import PATH, Command
from .printing import print_folded, print_text, where_tables_are


@dataclass(frozen=True, slots=True)
class _GetOptions:
    """The flags, as their help describes them."""

    folder: Path | None
    no_images: bool
    out: Path | None
    videos: Path | None
    force: bool


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py data get Pascal",
        "python run_findit.py data get VPBench --from DIR",
    ],
    sections={
        "Made from files that you have (--from PATH), without the network": lambda: [
            *((name, row.holds) for name, row in made_sources().items()),
            ("others", "the published sets: data import --sets"),
        ]
    },
)
@names_argument
@click.option(
    "--from",
    "folder",
    type=PATH,
    metavar="PATH",
    help="The annotations as published: a folder of Parquet files, or the file named below.",
)
@click.option("--no-images", is_flag=True, help="Make the tables only.")
@click.option("--out", type=PATH, metavar="DIR", help="Folder for tables (LMUData).")
@click.option(
    "--videos", type=PATH, metavar="DIR", help="Folder of videos to cut named frames from."
)
@click.option(
    "--force",
    is_flag=True,
    help="Also use annotations that differ from the authors'; the .meta.json has the differences.",
)
def command(names: tuple[str, ...], **flags: Any) -> int:
    """Get datasets ready to run: annotations, tables, and only the images that queries name.

    NAME is Pascal, RefL4Full_val … (all names: data list); all: those of FindIt. What is there and
    whole is not fetched again. Addresses can be replaced under `sources` in configs/datasets.yaml.
    Every run looks for tables in the folder that FINDIT_TABLES names, in datasets_tsv here and of
    the clone, and in VLMEvalKit's data folder (LMUData), in this order.

    Exit status 1: something is missing; 130: interrupted, and the same command goes on from there.
    """
    options = _GetOptions(**flags)
    given = {**made_sources(), **published_sets()}
    if name := next((name for name in names if name in given), None):
        row = given[name]
        if len(names) > 1:
            raise ValueError(f"{name} is made from your files: name it alone")
        if row.holds != NOTHING and options.folder is None:
            at = f" ({row.address})" if row.address else ""
            raise ValueError(
                f"{name} is not fetched. Get {row.holds}{at}, then type: "
                f"python run_findit.py data get {name} --from PATH"
            )
        folder = options.folder or Path()
        if row.make is None:
            return make_set(name, ImportOptions(folder, partial=options.force))
        _print_written(row.make(folder, options.out or lmu_data_root(), options.force))
        return 0
    tables = tables_named(names)
    try:
        return print_lines(_get(tables, options))
    except KeyboardInterrupt:
        print("Interrupted. Downloaded files stay: the same command fetches the rest.")
        return INTERRUPTED


# --- tables ---------------------------------------------------------------------------------------


def _get(tables: Sequence[FetchableTable], options: _GetOptions) -> list[FilesLine]:
    paths, line = _annotations(tables, options)
    lines = [line]
    for source, group in by_source(paths).items() if not options.no_images else ():
        store = store_of(group, paths)
        missing = store.problems()
        failed = _fetch_missing(source, store, missing, options.videos) if missing else {}
        lines += [line_of(table, paths[table], missing, failed) for table in group]
    return lines


def _annotations(
    tables: Sequence[FetchableTable], options: _GetOptions
) -> tuple[dict[FetchableTable, Path], FilesLine]:
    """Return the path of every table that can be made, and a line with the failures."""
    ready = {table: table.ready(options.out) for table in tables if options.folder is None}
    paths = {table: path for table, path in ready.items() if path is not None}
    present = len(paths)
    missing = [table for table in tables if table not in paths]
    reasons = _fetch_files(missing) if options.folder is None else {}
    failed = {
        table.name: reasons[file.name]
        for table in missing
        for file in table.files
        if file.name in reasons
    }
    folder, out = options.folder or parquet_folder(), options.out or lmu_data_root()
    written = {
        table: table.make(folder, out, options.force)
        for table in missing
        if table.name not in failed
    }
    if written:
        _print_written(table.written for table in written.values())
    paths |= {table: prepared.path for table, prepared in written.items()}
    in_order = {table: paths[table] for table in tables if table in paths}
    return in_order, FilesLine(ANNOTATIONS, len(tables), present, failed)


def _print_written(tables: Iterable[WrittenTable]) -> None:
    tables = list(tables)
    for table in tables:
        size = table.path.stat().st_size
        print(f"{table.path.stem:<24}{table.queries:>6} queries{table.more}{size:>10} bytes")
    for table in tables:
        for note in table.notes:
            print_folded(f"{table.path.stem}: {note}")
    print_folded(where_tables_are([table.path for table in tables]))


def _fetch_files(tables: Sequence[FetchableTable]) -> dict[str, str]:
    """Fetch the Parquet files of tables; returns the reason of each that failed, by its name."""
    files: dict[str, AnnotationFile] = {file.name: file for t in tables for file in t.files}
    missing = [file for file in files.values() if not is_fetched(file)]
    if not missing:
        return {}
    from ..data.fetch.annotations import fetch_annotations
    from ..data.fetch.download import Client, DownloadError
    from .progress import download_progress

    addresses = base_addresses()
    for terms, base in dict.fromkeys((file.terms, file.base) for file in missing):
        print_text(f"Annotations: {terms}.\n  from {addresses[base]}")
    failed = {}
    parquet_folder().mkdir(parents=True, exist_ok=True)
    with download_progress(ANNOTATIONS, len(missing), _TYPICAL_SUBSET) as progress:
        client = Client(received=progress.got)
        for file in missing:
            try:
                fetch_annotations(client, addresses[file.base] or "", file)
            except DownloadError as error:
                failed[file.name] = f"{error} (sources.{file.base} in configs/datasets.yaml)"
            progress.finished(file.name)
    return failed


_TYPICAL_SUBSET, _TYPICAL_IMAGE = 60_000, 160_000
"""Typical bytes of a Parquet file and of an image, used until the first file has arrived."""


def _fetch_missing(
    source: DataSource, store: ImageStore, missing: Mapping[str, str], videos: Path | None
) -> dict[str, str]:
    """Fetch the missing images of a folder; returns the reason of each that failed, by its name."""
    from ..data.fetch.download import Client
    from ..data.fetch.fetch_images import BY_HAND, FetchJob, fetch_images
    from .progress import download_progress

    print_text(
        f"{source.name}: {len(missing)} of {len(store.sizes)} images are missing in "
        f"{store.folder}\n  licence: {source.licence}\n  download: {source.download}"
    )
    # Two at once would write the same partial files.
    lock = Lock(store.parts / "lock", "another data get is downloading there")
    with lock, download_progress(source.name, len(missing), _TYPICAL_IMAGE) as progress:
        job = FetchJob(Client(received=progress.got), base_addresses(), store, progress)
        failed = fetch_images(job, source, list(missing), videos)
    store.clean_up()
    if BY_HAND in failed.values() or (failed and source.steps):
        print(manual_steps(source, store.folder))
    # "damaged" says more than "not fetched".
    return {
        name: missing[name] if why == BY_HAND and missing[name] != "is missing" else why
        for name, why in failed.items()
    }
