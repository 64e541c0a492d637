"""``run_findit.py compare``: what differs between two runs, or between two models' runs."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from ..core.spelling import counted, visible
from ..core.statistics import INTERVALS, Difference
from ..leaderboard.render import to_json
from ..leaderboard.run_tables import comparison_table, datasets_table
from ..runs.run_statistics import (
    FOUND,
    FoundQueries,
    compare,
    found_queries,
    pair_runs,
    scores_by_index,
)
from ..runs.scored_run import RowData, Run, load_runs
from .options import Command, json_option
from .printing import print_table, write_json

_PAGE = Path("outputs/compare.html")

_INDICES = 12
"""How many queries are named on the terminal, of those that one run finds only."""


@click.command(
    cls=Command, examples=["python run_findit.py compare outputs/FindIt-Nano outputs/FullImage"]
)
@click.argument("left", metavar="A", type=click.Path(path_type=Path))
@click.argument("right", metavar="B", type=click.Path(path_type=Path))
@click.option(
    "--show",
    type=click.Path(path_type=Path),
    is_flag=False,
    flag_value=_PAGE,
    metavar="[FILE]",
    help=f"Write a report of both ({_PAGE}) and open it, the queries that differ most first.",
)
@json_option
def command(left: Path, right: Path, show: Path | None, json_file: Path | None) -> int:
    """Print the difference of every metric, A minus B, and the queries only one of them finds.

    A and B are scored prediction files, or folders, over the same rows: two models, two formats of
    one, or the same twice. Folders with several datasets are paired dataset by dataset.
    """
    sides = (load_runs([path], keep=RowData.QUERY_SCORES) for path in (left, right))
    pairs = list(pair_runs(*sides))
    found = [compare(*pair) for pair in pairs]
    if len(pairs) == 1:
        _print_pair(*pairs[0], found[0])
    else:
        _print_pairs(pairs, found)
    if json_file is not None:
        told = [_as_dict(*pair, one) for pair, one in zip(pairs, found, strict=True)]
        write_json(json_file, told)
    return 0 if show is None else _show(left, right, show)


def _show(left: Path, right: Path, page: Path) -> int:
    """Write the report of both with this pair first, and open it where there is a browser."""
    from . import report  # It brings the plots

    sides = [_side(load_runs([path], keep=RowData.SUMS)) for path in (left, right)]
    status = report.write_report([left, right], page, sides)
    webbrowser.open(page.resolve().as_uri())
    return status


def _side(runs: Sequence[Run]) -> str:
    """What ``report --compare`` calls one side."""
    run = runs[0]
    written = run.question.format
    return f"{run.model}={written}" if written and len(runs) == 1 else run.model


# --- what is printed ------------------------------------------------------------------------------


def _print_pair(left: Run, right: Run, found: dict[str, Difference]) -> None:
    """Print the metrics of two runs, and who finds which queries."""
    for name, run in (("A", left), ("B", right)):
        failed = f"; {counted(run.failed, 'call')} failed" if run.failed else ""
        print(visible(f"{name}: {run.model} on {run.question.name}{failed}"))
    print(f"{len(left.rows):,} queries")
    print(f"Intervals: {INTERVALS}.")
    print_table(comparison_table(left, right, found), "--json FILE")
    for line in _queries(found_queries(scores_by_index(left), scores_by_index(right))):
        print(line)


def _print_pairs(pairs: Sequence[tuple[Run, Run]], found: Sequence[dict[str, Difference]]) -> None:
    """Print the headline of two models by dataset."""
    first = pairs[0][0].benchmark.metrics[0]
    print(visible(f"A: {pairs[0][0].model}; B: {pairs[0][1].model}. {first.title}."))
    print(f"Intervals: {INTERVALS}.")
    print_table(datasets_table(pairs, found), "--json FILE")
    print("Every metric of one dataset, and its queries: name the files of two runs.")


def _queries(found: FoundQueries) -> Iterator[str]:
    yield (
        f"Found (score from {FOUND:g} %): by both {len(found.both)}, only by A "
        f"{len(found.left)}, only by B {len(found.right)}, by neither {len(found.neither)}"
    )
    for name, indices in (("A", found.left), ("B", found.right)):
        if indices:
            more = f" … ({len(indices)})" if len(indices) > _INDICES else ""
            yield f"  only by {name}: index {', '.join(map(str, indices[:_INDICES]))}{more}"


def _as_dict(left: Run, right: Run, found: dict[str, Difference]) -> dict[str, Any]:
    who = found_queries(scores_by_index(left), scores_by_index(right))
    return {
        **{
            name: {"model": run.model, "dataset": run.question.name, "file": str(run.path)}
            for name, run in (("a", left), ("b", right))
        },
        "metrics": to_json(comparison_table(left, right, found)),
        "queries": {
            "found by both": who.both,
            "found by a only": who.left,
            "found by b only": who.right,
            "found by neither": who.neither,
        },
    }
