"""What commands print: tables of scores, and where tables of annotations lie."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..benchmarks import benchmark_of
from ..core.places import find_table, is_looked_in
from ..core.spelling import visible
from ..models.http.spending import Budget

if TYPE_CHECKING:
    from rich.console import Console

SPENT = 3
"""The exit status of a run that a spending limit stopped."""
TABLES_EPILOG = (
    "Every runner looks for tables in the folder that FINDIT_TABLES names, in datasets_tsv here "
    "and of the clone, and in VLMEvalKit's data folder (LMUData), in this order."
)


def where_tables_are(tables: Sequence[Path]) -> str:
    """One line: the folder that tables were written to, and whether runs find them there."""
    folder = tables[0].parent
    if not is_looked_in(folder):
        return (
            f"{len(tables)} tables in {folder}, where no run looks: "
            f"set FINDIT_TABLES={folder.resolve()}"
        )
    for table in tables:
        find_table(table.stem, "")  # warns where another table of this name goes before it
    return f"{len(tables)} tables in {folder}, where every run finds them"


_ENDLESS = 100_000
"""A pipe has no width: nothing is ever folded or cut there."""


def console() -> Console:
    """Where tables go."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=_ENDLESS)


def print_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """A table a benchmark: the columns that a reader looks at first."""
    by_benchmark: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_benchmark.setdefault(benchmark_of(row["dataset"]).name, []).append(row)
    for mine in by_benchmark.values():
        _print_table(mine)


def _print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """The scores of one benchmark."""
    from rich.table import Table
    from rich.text import Text

    metrics = benchmark_of(rows[0]["dataset"]).metrics
    shown = [metric.name for metric in metrics if metric.in_short_tables]
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("dataset", no_wrap=True)
    table.add_column("model", no_wrap=True)
    for name in (*shown, "scored", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row["dataset"],
            # Not markup, whatever it is called.
            Text(visible(row["model"])),
            *(_figure(row[name]) for name in shown),
            f"{row['scored']}/{row['rows']}",
            str(row["failed calls"]),
        )
    console().print(table)


def _figure(value: object) -> str:
    """A figure of a score or of its file; a dash where there is none."""
    return "–" if value in (None, "") else f"{float(str(value)):.1f}"


def report_spending(budget: Budget) -> int:
    """Say what was spent; status 3 where the limit stopped the run, else 0."""
    if budget.spent:
        print(f"spent: ${budget.spent:.4f}", file=sys.stderr)
    if not budget.exhausted:
        return 0
    print(
        f"stopped at --max-usd {budget.limit:g}. What was paid for is kept: run the same command "
        "again to go on; --max-usd counts afresh.",
        file=sys.stderr,
    )
    return SPENT
