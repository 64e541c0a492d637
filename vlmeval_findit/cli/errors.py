"""``run_findit.py errors``: the lost points of runs by error type."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..analysis import (
    ErrorCost,
    StatisticsError,
    adherence_note,
    compare_errors,
    errors_by_slice,
    errors_of,
    nothing_found_note,
)
from ..boxes import BoxError
from ..core import EXIT_REFUSED, as_called, printable
from ..leaderboard import (
    Field,
    FieldType,
    Table,
    TableCell,
    error_differences_table,
    lenient_table,
    rejection_table,
    run_errors_table,
    slice_errors_table,
    text_of,
    to_json,
)
from ..scoring import RowData, Run, load_runs, with_details
from ..statistics import INTERVALS_LEGEND
from .command_base import PATH, Command, json_option, option, results_argument, say
from .printing import console, print_lines, print_table, write_json

_LARGEST = 3
"""Most error types in the line of a run."""


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py errors outputs --by size",
        "python run_findit.py errors RUN --against OTHER_RUN  # yours",
    ],
    sections={"Error types of boxes": lambda: [(each.value, each.meaning) for each in BoxError]},
)
@results_argument
@option("--by", "SLICE", "Split by size, objects, label or a kind of slices.")
@option("--against", "RUN", "A run of the same rows: print the paired difference.", type=PATH)
@json_option
def command(
    runs: tuple[Path, ...], by: str | None, against: Path | None, json_file: Path | None
) -> int:
    """Print which error types cost each run its points; no model is needed.

    The points between the score, failed calls as misses, and 100 are divided among error types, and
    add up. On a terminal several runs get a line each, unless --by or --against asks for more.

    Exit status 2: a run does not record them, or has no answers; the others are printed.
    """
    other = None
    if against is not None:
        others = load_runs([against], keep=RowData.SUMS)
        if len(others) != 1:
            raise ValueError(
                f"--against {against}: {len(others)} runs in it: name the file of a single run"
            )
        other = others[0]
        errors_of(other)  # Refused once, and not with every run
    refused = False
    scored = load_runs(runs, keep=RowData.SUMS)
    say(f"Intervals: {INTERVALS_LEGEND}.")
    is_brief = len(scored) > 1 and by is None and other is None and console().is_terminal
    brief: list[str] = []
    written: list[dict[str, Any]] = []
    for run in scored:
        try:
            costs = errors_of(run)
            tables = _tables(run, costs, other, by)
        except StatisticsError as error:
            # The errors of the other runs are printed all the same.
            say(as_called(f"error: {error}"), file=sys.stderr)
            refused = True
            continue
        if json_file is not None:
            who = {"run": str(run.path), "model": run.model, "dataset": run.dataset_name}
            written.append({**who, "tables": [to_json(table) for table in tables]})
        known = (run.provenance.reply_note, adherence_note(run), nothing_found_note(run))
        notes = list(filter(None, known))
        if is_brief:
            brief.append(_line(run, costs))
            brief += [f"  {note}" for note in notes]
            continue
        say(f"\n{printable(run.model)} on {run.dataset_name}")
        for at, table in enumerate(tables):
            if at:
                say(f"\n{printable(table.title)}")
            print_table(table, "--json FILE")
            print_lines([each.text for each in table.notes], "--json FILE")
        print_lines(notes, "--json FILE")
    if json_file is not None:
        write_json(json_file, written)
    if brief:
        print_lines(brief, "--json FILE")
        say(as_called("all error types of a run: python run_findit.py errors FILE"))
    return EXIT_REFUSED if refused else 0


def _line(run: Run, costs: Sequence[ErrorCost]) -> str:
    score = run.benchmark.errors.score
    value = text_of(Field(score.name, FieldType.VALUE), TableCell(run.value(score)))
    points = Field("points", FieldType.DIFFERENCE)
    largest = sorted(costs, key=lambda cost: -cost.points)[:_LARGEST]
    lost = [
        f"{cost.error_type.name} {text_of(points, TableCell(-cost.points))}"
        for cost in largest
        if cost.points > 0
    ]
    line = ", ".join([f"{score.title} {value}", *lost])
    return f"{printable(run.model)} on {run.dataset_name}: {line}"


def _tables(run: Run, costs: Sequence[ErrorCost], other: Run | None, by: str | None) -> list[Table]:
    """Make the tables of a run, whose details are in memory only here."""
    detailed = with_details(run)
    tables = [run_errors_table(run, costs)]
    if other is not None:
        tables.append(error_differences_table(other, costs, compare_errors(run, other)))
    if by:
        tables.append(slice_errors_table(run.benchmark.errors, by, errors_by_slice(detailed, by)))
    return [*tables, *(t for t in (lenient_table(detailed), rejection_table(run)) if t.rows)]
