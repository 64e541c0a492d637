"""``run_findit.py prepare``: the release's Parquet subsets into tables."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..benchmarks.findit.release_subsets import prepare_subset, tables_of
from ..benchmarks.findit.table_facts import meta_path
from ..core.data_root import lmu_data_root
from .printing import TABLES_EPILOG, where_tables_are


def main(argv: Sequence[str]) -> int:
    """Tables from Parquet subsets."""
    parser = argparse.ArgumentParser(
        prog="run_findit.py prepare", description=__doc__, epilog=TABLES_EPILOG
    )
    parser.add_argument("--subsets", type=Path, help="folder of the release's Parquet files")
    parser.add_argument("--only", help="datasets, separated by commas: Pascal,RefCOCO")
    parser.add_argument("--out", type=Path, help="folder for tables (default: LMUData)")
    parser.add_argument("--demo", action="store_true", help="the demonstration's tables")
    args = parser.parse_args(argv)
    if args.demo == (args.subsets is not None):
        parser.error("name either --subsets DIR or --demo")
    if args.demo:
        from ..data.demo.tables import prepare_demo

        done = prepare_demo()
    else:
        names = args.only.split(",") if args.only else None
        out = args.out or lmu_data_root()
        done = [prepare_subset(args.subsets, out, *table) for table in tables_of(names)]
    for one in done:
        print(f"{one.table:<24}{one.queries:>6} queries{one.boxes:>8} boxes{one.size:>10} bytes")
    for one in done:
        for what, count in sorted(Counter(odd.what for odd in one.oddities).items()):
            print(f"{one.table}: {count} boxes {what}, left as they are: {meta_path(one.path)}")
    print(where_tables_are([one.path for one in done]))
    return 0
