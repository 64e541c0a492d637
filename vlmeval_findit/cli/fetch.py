"""``run_findit.py fetch``: annotations, and only those images that they name."""

from __future__ import annotations

import argparse
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..benchmarks.findit.annotation_tables import read_table
from ..benchmarks.findit.datasets import Dataset
from ..benchmarks.findit.release_subsets import tables_of
from ..core.lock import Lock
from ..core.places import image_folder
from ..data.fetch.annotations import (
    has_subset,
    make_table,
    ready_table,
    subsets_folder,
    wanted_images,
)
from ..data.fetch.sources import Source, bases, source_for
from ..data.fetch.store import PARTS, Store
from .printing import TABLES_EPILOG, console, where_tables_are

Table = tuple[Dataset, bool]
"""A dataset, and whether its multi-label table is meant."""

ANNOTATIONS = "annotations"


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


def main(argv: Sequence[str]) -> int:
    """Get datasets ready to run; returns 1 if something is missing at the end."""
    args = _flags().parse_args(argv)
    tables = list(tables_of(None if args.datasets == ["all"] else args.datasets))
    # All of them before anything is brought: a dataset without one is refused, not half fetched.
    sources = {dataset.images: source_for(dataset) for dataset, _ in tables}
    try:
        if args.check:
            lines = _check(tables, sources, args.out)
        else:
            lines = _fetch(tables, sources, args.subsets, args.out, args.videos)
    except KeyboardInterrupt:
        print("interrupted; what has arrived is kept: the same command goes on from there")
        return 130
    _print_lines(lines)
    return 1 if any(line.failed for line in lines) else 0


def _flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run_findit.py fetch",
        description=__doc__,
        epilog="Addresses can be replaced under `sources` in configs/datasets.yaml; image folders "
        f"are those of the runs. What is there and right is not fetched again. {TABLES_EPILOG}",
    )
    parser.add_argument("datasets", nargs="+", metavar="DATASET", help="Pascal RefCOCO …, or: all")
    parser.add_argument("--check", action="store_true", help="only look; uses no network")
    parser.add_argument("--subsets", type=Path, help="folder of the release's Parquet files")
    parser.add_argument("--out", type=Path, help="folder for tables (default: LMUData)")
    parser.add_argument("--videos", type=Path, help="folder of videos to cut named frames from")
    return parser


# --- looking --------------------------------------------------------------------------------------


def _check(
    tables: Sequence[Table], sources: Mapping[str, Source], out: Path | None
) -> list[TableLine]:
    ready = {table: ready_table(*table, out) for table in tables}
    lacking = {
        dataset.table_name(multilabel): "no table of the release's annotations: fetch makes it"
        for (dataset, multilabel), path in ready.items()
        if path is None
    }
    lines = [TableLine(ANNOTATIONS, len(tables), len(tables) - len(lacking), lacking)]
    paths = {table: path for table, path in ready.items() if path is not None}
    for key, group in _by_folder(paths).items():
        store = _store(key, group, paths)
        missing = store.look()
        if missing and sources[key].steps:
            print(_steps(sources[key], store.folder))
        lines += [_line(table, paths[table], missing, missing) for table in group]
    return lines


def _by_folder(paths: Mapping[Table, Path]) -> dict[str, list[Table]]:
    groups: dict[str, list[Table]] = {}
    for table in paths:
        groups.setdefault(table[0].images, []).append(table)
    return groups


def _store(key: str, tables: Sequence[Table], paths: Mapping[Table, Path]) -> Store:
    queries = [query for table in tables for query in read_table(paths[table])]
    return Store(image_folder(key).path, wanted_images(queries))


def _line(
    table: Table, path: Path, missing: Mapping[str, str], failed: Mapping[str, str]
) -> TableLine:
    names = wanted_images(read_table(path))
    return TableLine(
        table[0].table_name(table[1]),
        len(names),
        sum(name not in missing for name in names),
        {name: why for name, why in failed.items() if name in names},
    )


# --- fetching -------------------------------------------------------------------------------------


def _fetch(
    tables: Sequence[Table],
    sources: Mapping[str, Source],
    subsets: Path | None,
    out: Path | None,
    videos: Path | None,
) -> list[TableLine]:
    paths, line = _annotations(tables, subsets, out)
    lines = [line]
    for key, group in _by_folder(paths).items():
        store = _store(key, group, paths)
        missing = store.look()
        failed = _bring(sources[key], store, missing, videos) if missing else {}
        lines += [_line(table, paths[table], missing, failed) for table in group]
    return lines


def _annotations(
    tables: Sequence[Table], subsets: Path | None, out: Path | None
) -> tuple[dict[Table, Path], TableLine]:
    """Every table that can be had, and what became of the others."""
    ready = {table: ready_table(*table, out) for table in tables}
    there = {table: path for table, path in ready.items() if path is not None}
    failed: dict[str, str] = {}
    lacking = [table for table in tables if table not in there]
    if subsets is None:
        failed = _fetch_subsets(lacking)
    made = {
        table: make_table(*table, subsets or subsets_folder(), out)
        for table in lacking
        if table[0].table_name(table[1]) not in failed
    }
    if made:
        print(where_tables_are(list(made.values())))
    paths = {table: {**there, **made}[table] for table in tables if table in {**there, **made}}
    return paths, TableLine(ANNOTATIONS, len(tables), len(there), failed)


def _fetch_subsets(tables: Sequence[Table]) -> dict[str, str]:
    """Bring the Parquet files of tables; returns those that failed, by the table's name."""
    lacking = [
        (dataset.table_name(multilabel), known)
        for dataset, multilabel in tables
        if (known := dataset.subset_for(multilabel)) is not None and not has_subset(known)
    ]
    if not lacking:
        return {}
    from ..data.fetch.annotations import fetch_subset
    from ..data.fetch.download import Client, DownloadError
    from .meter import meter

    base = bases()["findit"] or ""
    print(
        "Annotations: the FindIt release, CC BY-NC-SA 4.0; each dataset's own terms hold too.\n"
        f"  from {base}"
    )
    failed = {}
    subsets_folder().mkdir(parents=True, exist_ok=True)
    with meter(ANNOTATIONS, len(lacking), _TYPICAL_SUBSET) as progress:
        client = Client(got=progress.got)
        for name, known in lacking:
            try:
                fetch_subset(client, base, known)
            except DownloadError as error:
                failed[name] = f"{error} (sources.findit in configs/datasets.yaml)"
            progress.finished(name)
    return failed


_TYPICAL_SUBSET = 60_000
"""Bytes of a Parquet file of images; those of videos have more."""


def _bring(
    source: Source, store: Store, missing: Mapping[str, str], videos: Path | None
) -> dict[str, str]:
    """Bring what is missing below one image folder; returns what failed."""
    from ..data.fetch.download import Client
    from ..data.fetch.images import BY_HAND, Errand, bring
    from .meter import meter

    print(
        f"{source.images}: {len(missing)} of {len(store.sizes)} images are missing in "
        f"{store.folder}\n  licence: {source.licence}\n  download: {source.download}"
    )
    with _locked(store), meter(source.images, len(missing), source.typical) as progress:
        errand = Errand(Client(got=progress.got), bases(), store, progress)
        failed = bring(errand, source, list(missing), videos)
    store.tidy()
    if BY_HAND in failed.values() or (failed and source.steps):
        print(_steps(source, store.folder))
    # What lies there already and is wrong is the better reason than that it is not fetched.
    return {
        name: missing[name] if why == BY_HAND and missing[name] != "is missing" else why
        for name, why in failed.items()
    }


@contextmanager
def _locked(store: Store) -> Iterator[None]:
    """One fetch at a time in a folder: two would write the same partial files."""
    with Lock(store.folder / PARTS / "lock", "another fetch is at work there"):
        yield


# --- printing -------------------------------------------------------------------------------------


def _steps(source: Source, folder: Path) -> str:
    text = source.steps.format(folder=folder)
    then = f"Then: python run_findit.py fetch --check, for the datasets of {source.images}."
    return textwrap.fill(f"{source.images}, by hand: {text} {then}", 100, subsequent_indent="  ")


def _print_lines(lines: Sequence[TableLine]) -> None:
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
    for kind, count in counts.most_common(_SHOWN):
        first = kinds[kind][0]
        more = f" and {count - 1} more" if count > 1 else ""
        yield f"{line.what}: {first}{more}: {line.failed[first]}"
    if len(counts) > _SHOWN:
        yield f"{line.what}: {len(counts) - _SHOWN} more reasons"


_SHOWN = 8
"""Reasons that are listed for one line of the table."""
