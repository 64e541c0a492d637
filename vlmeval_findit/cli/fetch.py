"""``run_findit.py fetch``: annotations, and only those images that they name."""

from __future__ import annotations

import argparse
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..core.command import as_called
from ..core.lock import Lock
from ..core.places import image_folder
from ..data.fetch.annotations import (
    AnnotationFile,
    Fetched,
    fetched_tables,
    has_file,
    parquet_folder,
    wanted_images,
)
from ..data.fetch.sources import Source, bases
from ..data.fetch.store import Store
from .parsing import Parser
from .printing import TABLES_EPILOG, console, where_tables_are

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
    tables = fetched_tables(None if args.datasets == ["all"] else args.datasets)
    # All of them before anything is brought: a dataset without one is refused, not half fetched.
    for table in tables:
        _ = table.source
    try:
        if args.check:
            lines = _check(tables, args.out)
        else:
            lines = _fetch(tables, args.subsets, args.out, args.videos)
    except KeyboardInterrupt:
        print("interrupted; what has arrived is kept: the same command goes on from there")
        return 130
    _print_lines(lines)
    return 1 if any(line.failed for line in lines) else 0


def _flags() -> argparse.ArgumentParser:
    parser = Parser(
        prog="run_findit.py fetch",
        description=__doc__,
        epilog="Addresses can be replaced under `sources` in configs/datasets.yaml; image folders "
        f"are those of the runs. What is there and right is not fetched again. {TABLES_EPILOG}",
    )
    parser.add_argument(
        "datasets", nargs="+", metavar="DATASET", help="Pascal RefL4Full_val …; all: FindIt's"
    )
    parser.add_argument("--check", action="store_true", help="only look; uses no network")
    parser.add_argument("--subsets", type=Path, help="folder of the Parquet files")
    parser.add_argument("--out", type=Path, help="folder for tables (default: LMUData)")
    parser.add_argument("--videos", type=Path, help="folder of videos to cut named frames from")
    return parser


# --- looking --------------------------------------------------------------------------------------


def _check(tables: Sequence[Fetched], out: Path | None) -> list[TableLine]:
    ready = {table: table.ready(out) for table in tables}
    lacking = {
        table.name: "no table of the release's annotations: fetch makes it"
        for table, path in ready.items()
        if path is None
    }
    lines = [TableLine(ANNOTATIONS, len(tables), len(tables) - len(lacking), lacking)]
    paths = {table: path for table, path in ready.items() if path is not None}
    for source, group in _by_source(paths).items():
        store = _store(group, paths)
        missing = store.look()
        if missing and source.steps:
            print(_steps(source, store.folder))
        lines += [_line(table, paths[table], missing, missing) for table in group]
    return lines


def _by_source(paths: Mapping[Fetched, Path]) -> dict[Source, list[Fetched]]:
    groups: dict[Source, list[Fetched]] = {}
    for table in paths:
        groups.setdefault(table.source, []).append(table)
    return groups


def _store(tables: Sequence[Fetched], paths: Mapping[Fetched, Path]) -> Store:
    queries = [query for table in tables for query in table.queries(paths[table])]
    return Store(image_folder(tables[0].folder).path, wanted_images(queries))


def _line(
    table: Fetched, path: Path, missing: Mapping[str, str], failed: Mapping[str, str]
) -> TableLine:
    names = wanted_images(table.queries(path))
    return TableLine(
        table.name,
        len(names),
        sum(name not in missing for name in names),
        {name: why for name, why in failed.items() if name in names},
    )


# --- fetching -------------------------------------------------------------------------------------


def _fetch(
    tables: Sequence[Fetched], subsets: Path | None, out: Path | None, videos: Path | None
) -> list[TableLine]:
    paths, line = _annotations(tables, subsets, out)
    lines = [line]
    for source, group in _by_source(paths).items():
        store = _store(group, paths)
        missing = store.look()
        failed = _bring(source, store, missing, videos) if missing else {}
        lines += [_line(table, paths[table], missing, failed) for table in group]
    return lines


def _annotations(
    tables: Sequence[Fetched], subsets: Path | None, out: Path | None
) -> tuple[dict[Fetched, Path], TableLine]:
    """Every table that can be had, and what became of the others."""
    ready = {table: table.ready(out) for table in tables}
    there = {table: path for table, path in ready.items() if path is not None}
    lacking = [table for table in tables if table not in there]
    whys = _fetch_files(lacking) if subsets is None else {}
    failed = {
        table.name: whys[file.name]
        for table in lacking
        for file in table.files
        if file.name in whys
    }
    made = {
        table: table.make(subsets or parquet_folder(), out)
        for table in lacking
        if table.name not in failed
    }
    if made:
        print(where_tables_are(list(made.values())))
    paths = {table: {**there, **made}[table] for table in tables if table in {**there, **made}}
    return paths, TableLine(ANNOTATIONS, len(tables), len(there), failed)


def _fetch_files(tables: Sequence[Fetched]) -> dict[str, str]:
    """Bring the Parquet files of tables; returns why not, by the name of the file."""
    wanted: dict[str, AnnotationFile] = {file.name: file for t in tables for file in t.files}
    lacking = [file for file in wanted.values() if not has_file(file)]
    if not lacking:
        return {}
    from ..data.fetch.annotations import fetch_file_of
    from ..data.fetch.download import Client, DownloadError
    from .meter import meter

    known = bases()
    for terms, base in dict.fromkeys((file.terms, file.base) for file in lacking):
        print(f"Annotations: {terms}.\n  from {known[base]}")
    failed = {}
    parquet_folder().mkdir(parents=True, exist_ok=True)
    with meter(ANNOTATIONS, len(lacking), _TYPICAL_SUBSET) as progress:
        client = Client(got=progress.got)
        for file in lacking:
            try:
                fetch_file_of(client, known[file.base] or "", file)
            except DownloadError as error:
                failed[file.name] = f"{error} (sources.{file.base} in configs/datasets.yaml)"
            progress.finished(file.name)
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
    known = bases()
    if videos is None or source.frame is None:
        for base in source.over_plain_http(missing, known):
            print(
                f"  {base} is plain http: nothing proves that what comes is its owner's; "
                "checked is only that an image decodes and has the annotated size"
            )
    with _locked(store), meter(source.images, len(missing), source.typical) as progress:
        errand = Errand(Client(got=progress.got), known, store, progress)
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
    with Lock(store.parts() / "lock", "another fetch is at work there"):
        yield


# --- printing -------------------------------------------------------------------------------------


def _steps(source: Source, folder: Path) -> str:
    text = source.steps.format(folder=folder)
    then = f"Then: python run_findit.py fetch --check, for the datasets of {source.images}."
    said = as_called(f"{source.images}, by hand: {text} {then}")
    return textwrap.fill(said, 100, subsequent_indent="  ")


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
