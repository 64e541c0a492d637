"""``run_findit.py prepare``: files as authors publish them into annotation tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..benchmarks.findit.annotation_tables import Prepared
from ..benchmarks.findit.release_subsets import prepare_subset, tables_of
from ..benchmarks.refl4 import table as ref_l4
from ..benchmarks.refl4.table import table_name
from ..benchmarks.selfretrieval import pairs as self_retrieval
from ..benchmarks.vpbench import release as vp_bench
from ..benchmarks.vpbench.release import is_at
from ..benchmarks.vpbench.stage2_release import parts_in
from ..benchmarks.vpbench.stage2_release import prepare as prepare_stage_2
from ..core.places import lmu_data_root
from ..core.table_files import meta_path
from .parsing import Parser
from .printing import TABLES_EPILOG, where_tables_are


class Wanted(NamedTuple):
    """What is to be made of a source, and where to.

    ``names`` are the tables that are asked for (None: all that there are); ``force``: also of
    other annotations than the authors'.
    """

    source: Path
    out: Path
    names: Sequence[str] | None
    force: bool


class Made(NamedTuple):
    """A table that was made; ``more`` is what it has beside queries, ``notes`` are printed."""

    path: Path
    queries: int
    more: str = ""
    notes: tuple[str, ...] = ()


class Source(NamedTuple):
    """Files of one benchmark: how help shows them, and what makes tables of them."""

    metavar: str
    help: str
    make: Callable[[Wanted], Iterable[Made]]


def main(argv: Sequence[str]) -> int:
    """Tables from files as authors publish them."""
    parser = Parser(prog="run_findit.py prepare", description=__doc__, epilog=TABLES_EPILOG)
    for flag, source in SOURCES.items():
        parser.add_argument(flag, type=Path, metavar=source.metavar, help=source.help)
    parser.add_argument("--demo", action="store_true", help="the demonstration's tables")
    parser.add_argument("--only", help="datasets, separated by commas: Pascal,RefCOCO")
    parser.add_argument("--out", type=Path, help="folder for tables (default: LMUData)")
    parser.add_argument(
        "--force",
        action="store_true",
        help="also of other annotations than the authors'; the .meta.json says how they differ",
    )
    args = parser.parse_args(argv)
    places = {flag: getattr(args, flag.strip("-").replace("-", "_")) for flag in SOURCES}
    given = {flag: place for flag, place in places.items() if place is not None}
    if len(given) + args.demo != 1:
        named = [f"{flag} {source.metavar}" for flag, source in SOURCES.items()]
        parser.error(f"name one of {', '.join(named)} and --demo")
    names = args.only.split(",") if args.only else None
    done = [] if given else list(_demo())
    for flag, place in given.items():
        wanted = Wanted(place, args.out or lmu_data_root(), names, args.force)
        done = list(SOURCES[flag].make(wanted))
    for one in done:
        size = one.path.stat().st_size
        print(f"{one.path.stem:<24}{one.queries:>6} queries{one.more}{size:>10} bytes")
    for one in done:
        for note in one.notes:
            print(f"{one.path.stem}: {note}")
    print(where_tables_are([one.path for one in done]))
    return 0


def _demo() -> Iterator[Made]:
    from ..data.demo.tables import prepare_demo

    return map(_with_boxes, prepare_demo())


def _findit(wanted: Wanted) -> Iterable[Made]:
    tables = tables_of(wanted.names)
    return [_with_boxes(prepare_subset(wanted.source, wanted.out, *table)) for table in tables]


def _ref_l4(wanted: Wanted) -> Iterable[Made]:
    """The tables of Ref-L4 that are asked for, else all that the folder has the files of.

    Every file is read and checked before the first table is written.
    """
    folder, names = wanted.source, wanted.names
    splits = ref_l4.splits_in(folder) if names is None else list(map(ref_l4.split_of, names))
    releases = [ref_l4.read_release(folder, split, wanted.force) for split in splits]
    for release in releases:
        if release.unlike:
            unlike = "; ".join(release.unlike)
            print(f"{table_name(release.split)}: not the authors' annotations: {unlike}")
    return [_with_boxes(ref_l4.prepare(release, wanted.out)) for release in releases]


def _self_retrieval(wanted: Wanted) -> Iterable[Made]:
    path, pairs, notes = self_retrieval.prepare(wanted.source, wanted.out, wanted.force)
    return [Made(path, pairs, notes=notes)]


def _vp_bench(wanted: Wanted) -> Iterable[Made]:
    """Stage 2, where a part of it is there, and stage 1, where it is, or nothing is."""
    parts = parts_in(wanted.source)
    if parts:
        path, queries, notes = prepare_stage_2(parts, wanted.out)
        yield Made(path, queries, notes=notes)
    if not parts or is_at(wanted.source):
        path, queries, notes = vp_bench.prepare(wanted.source, wanted.out)
        yield Made(path, queries, notes=notes)


def _with_boxes(one: Prepared) -> Made:
    odd = Counter(oddity.what for oddity in one.oddities)
    notes = [
        f"{count} boxes {what}, left as they are: {meta_path(one.path)}"
        for what, count in sorted(odd.items())
    ]
    return Made(one.path, one.queries, f"{one.boxes:>8} boxes", tuple(notes))


SOURCES = {
    "--subsets": Source("DIR", "folder of FindIt's Parquet files", _findit),
    "--ref-l4": Source(
        "DIR",
        "folder of Ref-L4's ref-l4-val.parquet and ref-l4-test.parquet, or one of them",
        _ref_l4,
    ),
    "--vp-bench": Source(
        "PATH",
        "VP-Bench as its authors publish it: a TSV or Parquet files, of both stages",
        _vp_bench,
    ),
    "--self-retrieval": Source("FILE", "the dataset.json of D3 self-retrieval", _self_retrieval),
}
"""By its flag every kind of files that tables are made of."""
