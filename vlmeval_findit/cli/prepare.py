"""``run_findit.py prepare``: Parquet files of FindIt's release, or of Ref-L4's, into tables."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..benchmarks.findit.annotation_tables import Prepared
from ..benchmarks.findit.release_subsets import prepare_subset, tables_of
from ..benchmarks.refl4 import table as ref_l4
from ..benchmarks.refl4.variant import table_name
from ..core.data_root import lmu_data_root
from ..core.table_facts import meta_path
from .printing import TABLES_EPILOG, where_tables_are


def main(argv: Sequence[str]) -> int:
    """Tables from Parquet files."""
    parser = argparse.ArgumentParser(
        prog="run_findit.py prepare", description=__doc__, epilog=TABLES_EPILOG
    )
    parser.add_argument("--subsets", type=Path, help="folder of FindIt's Parquet files")
    parser.add_argument(
        "--ref-l4",
        type=Path,
        metavar="DIR",
        help="folder of Ref-L4's ref-l4-val.parquet and ref-l4-test.parquet, or one of them",
    )
    parser.add_argument("--demo", action="store_true", help="the demonstration's tables")
    parser.add_argument("--only", help="datasets, separated by commas: Pascal,RefCOCO")
    parser.add_argument("--out", type=Path, help="folder for tables (default: LMUData)")
    parser.add_argument(
        "--force",
        action="store_true",
        help="with --ref-l4: other annotations than the authors'; the .meta.json says how",
    )
    args = parser.parse_args(argv)
    if (args.subsets, args.ref_l4, args.demo or None).count(None) != 2:
        parser.error("name one of --subsets DIR, --ref-l4 DIR and --demo")
    names = args.only.split(",") if args.only else None
    out = args.out or lmu_data_root()
    if args.demo:
        from ..data.demo.tables import prepare_demo

        done = prepare_demo()
    elif args.subsets is not None:
        done = [prepare_subset(args.subsets, out, *table) for table in tables_of(names)]
    else:
        done = _ref_l4(args.ref_l4, out, names, args.force)
    for one in done:
        print(f"{one.table:<24}{one.queries:>6} queries{one.boxes:>8} boxes{one.size:>10} bytes")
    for one in done:
        for what, count in sorted(Counter(odd.what for odd in one.oddities).items()):
            print(f"{one.table}: {count} boxes {what}, left as they are: {meta_path(one.path)}")
    print(where_tables_are([one.path for one in done]))
    return 0


def _ref_l4(folder: Path, out: Path, names: Sequence[str] | None, force: bool) -> list[Prepared]:
    """The tables of Ref-L4 that are asked for, else all that the folder has the files of.

    Every file is read and checked before the first table is written.
    """
    splits = ref_l4.splits_in(folder) if names is None else list(map(ref_l4.split_of, names))
    releases = [ref_l4.read_release(folder, split) for split in splits]
    for release in releases:
        if not force:
            ref_l4.refuse_unlike(release)
        elif release.unlike:
            unlike = "; ".join(release.unlike)
            print(f"{table_name(release.split)}: not the authors' annotations: {unlike}")
    return [ref_l4.prepare(release, out) for release in releases]
