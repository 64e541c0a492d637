"""``data get`` and ``data check``: tables and images of datasets, made or fetched, and complete."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import click

from ..benchmarks.findit import DATASETS
from ..core import (
    EXIT_INTERRUPTED,
    EXIT_SOME_FAILED,
    Lock,
    LockedError,
    agreeing,
    as_called,
    counted,
)
from ..data import (
    NO_FILES,
    AnnotationFile,
    BoxForm,
    DataSource,
    ExifPixels,
    FetchableTable,
    ImageStore,
    ImportOptions,
    Units,
    base_addresses,
    fetched_tables,
    images_of,
    is_fetched,
    made_sources,
    parquet_folder,
    published_sets,
)
from ..storage import (
    WrittenTable,
    find_table,
    image_folder,
    lmu_data_root,
    make_lmu_data_root,
)
from .command_base import PATH, Command, box_option, completion, option, print_note, say, switch
from .data_import import exif_option, make_set, units_option
from .early_checks import note_of_shared_names, note_unknown_image_keys
from .printing import print_columns, print_folded, print_text

ANNOTATIONS = "annotations"

# Typical bytes, used until the first file has arrived
_TYPICAL_SUBSET = 60_000  # Of a Parquet file
_TYPICAL_IMAGE = 160_000  # Of an image

_LOOK_SECONDS = 0.5  # Between looks at who else fetches

_REASONS = 8
"""Reasons that are listed for a line of the table."""


class FilesLine(NamedTuple):
    """A line of the table of files; ``failed`` has the reason by file."""

    what: str
    needed: int
    present: int
    failed: Mapping[str, str]


_names_argument = click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=completion(lambda: DATASETS)
)


_limit_option = option(
    "--limit", "N", "The images of the first N rows of each table only.", type=click.IntRange(min=1)
)


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py data get Pascal  # downloads",
        "python run_findit.py data get OpenImages --limit 50  # downloads",
        "python run_findit.py data get VPBench --from DIR  # yours",
    ],
    sections={
        "Made from files that you have (--from PATH), without the network": lambda: [
            *((name, row.holds) for name, row in made_sources().items()),
            ("others", "the published sets: data import --sets"),
        ]
    },
)
@_names_argument
@click.option(
    "--from",
    "folder",
    type=PATH,
    metavar="PATH",
    help="The annotations as published: a folder of Parquet files, or the file named below.",
)
@switch("--no-images", "Make the tables only.")
@_limit_option
@option("--videos", "DIR", "Folder of videos to cut named frames from.", type=PATH)
@switch(
    "--force",
    "Also use annotations that differ from the authors'; the .meta.json has the differences.",
)
@units_option
@box_option
@exif_option
def command(
    names: tuple[str, ...],
    folder: Path | None,
    no_images: bool,
    limit: int | None,
    videos: Path | None,
    force: bool,
    units: Units | None,
    box: BoxForm | None,
    exif: ExifPixels | None,
) -> int:
    """Get datasets ready to run: annotations, tables, and only the images that queries name.

    NAME is Pascal, RefL4Full_val … (all names: data list), or a file of the release as it is called
    there (refcoco_g_test); all: those of FindIt. What is there and whole is not fetched again.
    Addresses can be replaced under `sources` in configs/datasets.yaml.
    Tables are written to VLMEvalKit's data folder (LMUData).

    Exit status 1: something is missing; 130: interrupted, and the same command goes on from there.
    """
    if no_images and limit is not None:
        raise ValueError("--limit N gets the images of N rows, --no-images none. Leave one out")
    make_lmu_data_root()
    sets = published_sets()
    names_of_sets = {known.casefold() for known in sets}
    has_a_set = any(name.casefold() in names_of_sets for name in names)
    for flag, value in (("--units", units), ("--box", box), ("--exif", exif)):
        if value is not None and not has_a_set:
            raise ValueError(f"{flag} is for published sets (data import --sets). Leave it out")
    given = {**made_sources(), **sets}
    by_case = {known.casefold(): known for known in (*given, "all")}
    names = tuple(by_case.get(name.casefold(), name) for name in names)
    if name := next((name for name in names if name in given), None):
        row = given[name]
        if len(names) > 1:
            raise ValueError(f"{name} is made from your files: get it in a separate command")
        if limit is not None:
            raise ValueError(
                f"--limit is for images that are fetched: those of {name} come from your files. "
                "Leave it out"
            )
        if row.holds != NO_FILES and folder is None:
            at = f" ({row.address})" if row.address else ""
            raise ValueError(
                f"{name} cannot be downloaded by FindIt. Get {row.holds}{at}, then type: "
                f"python run_findit.py data get {name} --from PATH"
            )
        files = folder or Path()
        if row.make is None:
            options = ImportOptions(files, partial=force, exif=exif, units=units, form=box)
            return make_set(name, options)
        _print_written(row.make(files, lmu_data_root(), force))
        return 0
    tables = _tables_named(names)
    if note := note_of_shared_names(name for name in names if name != "all"):
        print_note(note)
    try:
        paths, line = _make_tables(tables, folder, force)
        fetch = partial(_fetch_missing, videos=videos)
        return _print_lines([line, *(_image_lines(paths, fetch, limit) if not no_images else ())])
    except KeyboardInterrupt:
        say("Interrupted. Downloaded files stay: the same command fetches the rest.")
        return EXIT_INTERRUPTED


@click.command(cls=Command, examples=["python run_findit.py data check Pascal  # once it is here"])
@_names_argument
@_limit_option
def check(names: tuple[str, ...], limit: int | None) -> int:
    """Check the tables and images of datasets, without a network.

    NAME is as in data get; all: FindIt's. Exit status 1: something is missing.
    """
    tables = _tables_named(names)
    paths = _ready(tables)
    get = as_called("python run_findit.py data get")
    missing = {
        table.name: f"no table of the release's annotations: type {get} {table.name}"
        for table in tables
        if table not in paths
    }
    line = FilesLine(ANNOTATIONS, len(tables), len(paths), missing)
    images = _image_lines(paths, lambda source, store, missing: missing, limit)
    return _print_lines([line, *images])


def _tables_named(names: Sequence[str]) -> list[FetchableTable]:
    """Return the tables of names; a ValueError if a name or the source of its images is unknown."""
    return fetched_tables(None if tuple(names) == ("all",) else names)


# --- tables ---------------------------------------------------------------------------------------


def _ready(tables: Iterable[FetchableTable]) -> dict[FetchableTable, Path]:
    ready = {table: table.ready() for table in tables}
    return {table: path for table, path in ready.items() if path is not None}


def _make_tables(
    tables: Sequence[FetchableTable], folder: Path | None, force: bool
) -> tuple[dict[FetchableTable, Path], FilesLine]:
    """Return the path of every table that can be made, and a line with the failures."""
    paths = _ready(tables if folder is None else ())
    present = len(paths)
    missing = [table for table in tables if table not in paths]
    reasons: Mapping[str, str] = {}
    if folder is None:
        there, reasons = _fetch_files(missing)
        present += sum(all(file.name in there for file in table.files) for table in missing)
    failed = {
        table.name: reasons[file.name]
        for table in missing
        for file in table.files
        if file.name in reasons
    }
    written = {
        table: table.make(folder or parquet_folder(), lmu_data_root(), force)
        for table in missing
        if table.name not in failed
    }
    if written:
        _print_written(written.values())
    paths |= {table: prepared.path for table, prepared in written.items()}
    in_order = {table: paths[table] for table in tables if table in paths}
    return in_order, FilesLine(ANNOTATIONS, len(tables), present, failed)


def _print_written(tables: Iterable[WrittenTable]) -> None:
    tables = list(tables)
    for table in tables:
        size = table.path.stat().st_size
        say(f"{table.path.stem:<24}{table.queries:>6} queries{table.more}{size:>10} bytes")
    for table in tables:
        for note in table.notes:
            print_folded(f"{table.path.stem}: {note}")
        find_table(table.path.stem, "")  # Warns where another table of this name goes before it
    made = counted(len(tables), "table")
    print_folded(f"{made} in {tables[0].path.parent}, where runs find them")


def _fetch_files(tables: Sequence[FetchableTable]) -> tuple[set[str], Mapping[str, str]]:
    """Fetch the Parquet files of tables.

    Returns the names of those that were there when its turn came, and the reason of each that
    failed, by its name.
    """
    files: dict[str, AnnotationFile] = {file.name: file for t in tables for file in t.files}
    if all(map(is_fetched, files.values())):
        return set(files), {}
    with _only_fetcher(parquet_folder() / ".lock"):
        # Another may have fetched them meanwhile.
        missing = {name: file for name, file in files.items() if not is_fetched(file)}
        return files.keys() - missing.keys(), _fetch(list(missing.values()))


@contextmanager
def _only_fetcher(path: Path) -> Iterator[None]:
    """Wait until no other data get writes the same partial files."""
    lock = None
    is_said = False
    while lock is None:
        try:
            lock = Lock(path, "another data get is downloading there")
        except LockedError as error:
            if not is_said:
                print_note(f"{error}: waiting for it; Ctrl-C stops")
            is_said = True
            time.sleep(_LOOK_SECONDS)
    with lock:
        yield


def _fetch(missing: Sequence[AnnotationFile]) -> dict[str, str]:
    if not missing:
        return {}
    from ..data import Client, DownloadError, fetch_annotations
    from .progress import download_progress

    addresses = base_addresses()
    for terms, base in dict.fromkeys((file.terms, file.base) for file in missing):
        print_text(f"Annotations: {terms}.\n  from {addresses[base]}")
    failed = {}
    with download_progress(ANNOTATIONS, len(missing), _TYPICAL_SUBSET) as progress:
        client = Client(received=progress.got)
        for file in missing:
            try:
                fetch_annotations(client, addresses[file.base] or "", file)
            except DownloadError as error:
                failed[file.name] = f"{error} (sources.{file.base} in configs/datasets.yaml)"
            progress.finished(file.name)
    return failed


# --- images ---------------------------------------------------------------------------------------


def _image_lines(
    paths: Mapping[FetchableTable, Path],
    fetch: Callable[[DataSource, ImageStore, Mapping[str, str]], Mapping[str, str]],
    limit: int | None,
) -> Iterator[FilesLine]:
    """Yield a line for the images of each table; ``fetch`` returns what of the missing failed.

    Only those of the first ``limit`` rows are needed (None: of all rows).
    """
    note_unknown_image_keys()
    by_source: dict[DataSource, list[FetchableTable]] = {}
    for table in paths:
        by_source.setdefault(table.source, []).append(table)
    for source, tables in by_source.items():
        queries = {table: table.queries(paths[table]) for table in tables}
        folder = image_folder(tables[0].folder).path
        store = ImageStore(folder, images_of(chain.from_iterable(queries.values())))
        needed = {table: images_of(queries[table][:limit]) for table in tables}
        missing = store.problems(dict.fromkeys(chain.from_iterable(needed.values())))
        failed = fetch(source, store, missing) if missing else {}
        if failed and source.steps:
            steps = source.steps.format(folder=folder)
            then = f"Then: python run_findit.py data check, for the datasets of {source.name}."
            text = as_called(f"{source.name}, by hand: {steps} {then}")
            say(fill(text, 80, subsequent_indent="  "))
        for table in tables:
            named = needed[table]
            present = sum(name not in missing for name in named)
            reasons = {name: why for name, why in failed.items() if name in named}
            yield FilesLine(table.name, len(named), present, reasons)


def _fetch_missing(
    source: DataSource, store: ImageStore, missing: Mapping[str, str], videos: Path | None
) -> Mapping[str, str]:
    """Fetch the missing images of a folder; returns the reason of each that failed, by its name."""
    from ..data import FETCHED_BY_HAND, Client, FetchJob, fetch_images
    from .progress import download_progress

    are = agreeing(len(missing), "is", "are")
    print_text(
        f"{source.name}: {counted(len(missing), 'image')} {are} missing in {store.folder}\n"
        f"  licence: {source.licence}\n  download: {source.download}"
    )
    # Two at once would write the same partial files.
    lock = Lock(store.parts / "lock", "another data get is downloading there")
    with lock, download_progress(source.name, len(missing), _TYPICAL_IMAGE) as progress:
        job = FetchJob(Client(received=progress.got), base_addresses(), store, progress)
        failed = fetch_images(job, source, list(missing), videos)
    store.clean_up()
    # "damaged" says more than "not fetched".
    return {
        name: missing[name] if why == FETCHED_BY_HAND and missing[name] != "is missing" else why
        for name, why in failed.items()
    }


# --- what is printed ------------------------------------------------------------------------------


def _print_lines(lines: Sequence[FilesLine]) -> int:
    """Print numbers of files and the reasons of failures; return the exit status."""
    numbers = ("needed", "there", "fetched", "failed")
    rows = []
    for what, needed, present, failed in lines:
        counts = needed, present, needed - present - len(failed), len(failed)
        rows.append([what, *map(str, counts)])
    print_columns(rows, "", *numbers, numbers=numbers)
    for line in lines:
        for text in _reasons(line):
            print_folded(text)
    return EXIT_SOME_FAILED if any(line.failed for line in lines) else 0


def _reasons(line: FilesLine) -> Iterator[str]:
    """Yield every reason once, with its first file and the number of others."""
    kinds: dict[str, list[str]] = {}
    for name, why in line.failed.items():
        kinds.setdefault(why.replace(Path(name).name, "…"), []).append(name)
    for first, *others in sorted(kinds.values(), key=len, reverse=True)[:_REASONS]:
        more = f" and {len(others)} more" if others else ""
        yield f"{line.what}: {first}{more}: {line.failed[first]}"
    if len(kinds) > _REASONS:
        yield f"{line.what}: {len(kinds) - _REASONS} more reasons"
