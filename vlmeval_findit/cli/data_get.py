"""``run_findit.py data get``: datasets ready to run, from the network or from files at hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click

from ..benchmarks.findit.annotation_tables import PreparedTable
from ..benchmarks.selfretrieval import image_pairs as self_retrieval
from ..benchmarks.vpbench import stage1_release as vp_bench
from ..benchmarks.vpbench.stage2_release import parts_in
from ..benchmarks.vpbench.stage2_release import prepare as prepare_stage_2
from ..core.command import INTERRUPTED, SOME_FAILED
from ..core.lock import Lock
from ..core.places import lmu_data_root
from ..core.table_files import meta_path
from ..data.fetch.annotations import (
    AnnotationFile,
    FetchableTable,
    is_fetched,
    parquet_folder,
)
from ..data.fetch.store import ImageStore
from ..data.published.importing import ImportOptions
from ..data.sources import SOURCES, DataSource, base_addresses
from .data_check import (
    ANNOTATIONS,
    TableLine,
    by_source,
    line_of,
    names_argument,
    print_lines,
    steps,
    store_of,
    tables_named,
)
from .data_import import make_set
from .options import PATH, Command
from .printing import where_tables_are


class Made(NamedTuple):
    """A table that was made; ``more`` is what it has beside queries, ``notes`` are printed."""

    path: Path
    queries: int
    more: str = ""
    notes: tuple[str, ...] = ()


class _Get(Command):
    """Its help ends with the benchmarks whose files the user brings."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Made of files that you have (--from PATH), without the network"):
            formatter.write_dl([(name, SOURCES[name].holds) for name in FROM_FILES])
            formatter.write_text("and the published sets (data import --sets)")


@dataclass(frozen=True, slots=True)
class _Options:
    """What the flags say, as their help describes it."""

    folder: Path | None
    no_images: bool
    out: Path | None
    videos: Path | None
    force: bool


@click.command(
    cls=_Get,
    examples=[
        "python run_findit.py data get Pascal",
        "python run_findit.py data get VPBench --from DIR",
    ],
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
    help="Also of annotations that differ from the authors'; the .meta.json says how.",
)
def command(names: tuple[str, ...], **flags: Any) -> int:
    """Get datasets ready to run: annotations, tables, and only the images that queries name.

    NAME is Pascal, RefL4Full_val … (all names: data list); all: those of FindIt. What is there and
    whole is not fetched again. Addresses can be replaced under `sources` in configs/datasets.yaml.
    Every run looks for tables in the folder that FINDIT_TABLES names, in datasets_tsv here and of
    the clone, and in VLMEvalKit's data folder (LMUData), in this order.

    Exit status 1: something is missing; 130: interrupted, and the same command goes on from there.
    """
    options = _Options(**flags)
    by_hand = [name for name in names if name in FROM_FILES or _is_set(name)]
    if by_hand:
        name = by_hand[0]
        _refuse_others(name, names, options)
        folder = options.folder or Path()
        if _is_set(name):
            return make_set(name, ImportOptions(folder, partial=options.force))
        made = FROM_FILES[name](folder, options.out or lmu_data_root(), options.force)
        _print_made(list(made))
        return 0
    tables = tables_named(names)
    try:
        lines = _get(tables, options)
    except KeyboardInterrupt:
        print("interrupted; what has arrived is kept: the same command goes on from there")
        return INTERRUPTED
    print_lines(lines)
    return SOME_FAILED if any(line.failed for line in lines) else 0


def _is_set(name: str) -> bool:
    """Whether a name is that of a published set."""
    row = SOURCES.get(name)
    return row is not None and row.read is not None


def _refuse_others(name: str, names: Sequence[str], options: _Options) -> None:
    """Refuse to make a benchmark of files beside other datasets, or of no files."""
    if len(names) > 1:
        raise ValueError(f"{name} is made of files of its own: ask for it alone")
    if name != DEMO and options.folder is None:
        row = SOURCES[name]
        at = f" ({row.address})" if row.address else ""
        raise ValueError(
            f"{name} is not fetched. Get {row.holds}{at}, then type: "
            f"python run_findit.py data get {name} --from PATH"
        )


# --- tables ---------------------------------------------------------------------------------------


def _get(tables: Sequence[FetchableTable], options: _Options) -> list[TableLine]:
    paths, line = _annotations(tables, options)
    lines = [line]
    for source, group in by_source(paths).items() if not options.no_images else ():
        store = store_of(group, paths)
        missing = store.problems()
        failed = _bring(source, store, missing, options.videos) if missing else {}
        lines += [line_of(table, paths[table], missing, failed) for table in group]
    return lines


def _annotations(
    tables: Sequence[FetchableTable], options: _Options
) -> tuple[dict[FetchableTable, Path], TableLine]:
    """Every table that can be had, and what became of the others."""
    ready = {table: table.ready(options.out) for table in tables if options.folder is None}
    there = {table: path for table, path in ready.items() if path is not None}
    lacking = [table for table in tables if table not in there]
    whys = _fetch_files(lacking) if options.folder is None else {}
    failed = {
        table.name: whys[file.name]
        for table in lacking
        for file in table.files
        if file.name in whys
    }
    folder, out = options.folder or parquet_folder(), options.out or lmu_data_root()
    made = {
        table: table.make(folder, out, options.force)
        for table in lacking
        if table.name not in failed
    }
    if made:
        _print_made([_with_boxes(one) for one in made.values()])
    found = {**there, **{table: one.path for table, one in made.items()}}
    paths = {table: found[table] for table in tables if table in found}
    return paths, TableLine(ANNOTATIONS, len(tables), len(there), failed)


def _print_made(made: Sequence[Made]) -> None:
    for one in made:
        size = one.path.stat().st_size
        print(f"{one.path.stem:<24}{one.queries:>6} queries{one.more}{size:>10} bytes")
    for one in made:
        for note in one.notes:
            print(f"{one.path.stem}: {note}")
    print(where_tables_are([one.path for one in made]))


def _with_boxes(one: PreparedTable) -> Made:
    odd = Counter(oddity.what for oddity in one.odd_boxes)
    notes = [
        f"{count} boxes {what}, left as they are: {meta_path(one.path)}"
        for what, count in sorted(odd.items())
    ]
    return Made(one.path, one.queries, f"{one.boxes:>8} boxes", (*one.notes, *notes))


def _fetch_files(tables: Sequence[FetchableTable]) -> dict[str, str]:
    """Bring the Parquet files of tables; returns why not, by the name of the file."""
    wanted: dict[str, AnnotationFile] = {file.name: file for t in tables for file in t.files}
    lacking = [file for file in wanted.values() if not is_fetched(file)]
    if not lacking:
        return {}
    from ..data.fetch.annotations import fetch_annotations
    from ..data.fetch.download import Client, DownloadError
    from .progress import download_progress

    known = base_addresses()
    for terms, base in dict.fromkeys((file.terms, file.base) for file in lacking):
        print(f"Annotations: {terms}.\n  from {known[base]}")
    failed = {}
    parquet_folder().mkdir(parents=True, exist_ok=True)
    with download_progress(ANNOTATIONS, len(lacking), _TYPICAL_SUBSET) as progress:
        client = Client(received=progress.got)
        for file in lacking:
            try:
                fetch_annotations(client, known[file.base] or "", file)
            except DownloadError as error:
                failed[file.name] = f"{error} (sources.{file.base} in configs/datasets.yaml)"
            progress.finished(file.name)
    return failed


_TYPICAL_SUBSET = 60_000
"""Bytes of a Parquet file of images; those of videos have more."""


def _bring(
    source: DataSource, store: ImageStore, missing: Mapping[str, str], videos: Path | None
) -> dict[str, str]:
    """Bring what is missing below one image folder; returns what failed."""
    from ..data.fetch.download import Client
    from ..data.fetch.images import BY_HAND, FetchJob, fetch_images
    from .progress import download_progress

    print(
        f"{source.name}: {len(missing)} of {len(store.sizes)} images are missing in "
        f"{store.folder}\n  licence: {source.licence}\n  download: {source.download}"
    )
    with _locked(store), download_progress(source.name, len(missing), source.typical) as progress:
        job = FetchJob(Client(received=progress.got), base_addresses(), store, progress)
        failed = fetch_images(job, source, list(missing), videos)
    store.clean_up()
    if BY_HAND in failed.values() or (failed and source.steps):
        print(steps(source, store.folder))
    # What lies there already and is wrong is the better reason than that it is not fetched.
    return {
        name: missing[name] if why == BY_HAND and missing[name] != "is missing" else why
        for name, why in failed.items()
    }


@contextmanager
def _locked(store: ImageStore) -> Iterator[None]:
    """One fetch at a time in a folder: two would write the same partial files."""
    with Lock(store.parts / "lock", "another fetch is at work there"):
        yield


# --- of files that the user has -------------------------------------------------------------------


def _vp_bench(files: Path, out: Path, _force: bool) -> Iterator[Made]:
    """Make stage 2, where a part of it is there, and stage 1, where it is, or nothing is."""
    parts = parts_in(files)
    if parts:
        path, queries, notes = prepare_stage_2(parts, out)
        yield Made(path, queries, notes=notes)
    if not parts or vp_bench.is_at(files):
        path, queries, notes = vp_bench.prepare(files, out)
        yield Made(path, queries, notes=notes)


def _self_retrieval(file: Path, out: Path, force: bool) -> Iterator[Made]:
    path, pairs, notes = self_retrieval.prepare(file, out, force)
    yield Made(path, pairs, notes=notes)


def _demo(_files: Path, _out: Path, _force: bool) -> Iterator[Made]:
    from ..data.demo.tables import prepare_demo

    return map(_with_boxes, prepare_demo())


DEMO = "Demo"

FROM_FILES: Mapping[str, Callable[[Path, Path, bool], Iterator[Made]]] = {
    "VPBench": _vp_bench,
    "SelfRetrieval": _self_retrieval,
    DEMO: _demo,
}
"""What makes tables of files that are not fetched: of files, the tables' folder, and force."""
