"""``run_findit.py errors``: what a run's score lost, by error type."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from ..core.command import as_called
from ..core.spelling import visible
from ..core.statistics import INTERVALS
from ..leaderboard.error_tables import (
    error_differences_table,
    lenient_table,
    rejection_table,
    run_errors_table,
    slice_errors_table,
    syntax_table,
)
from ..leaderboard.render import to_json
from ..leaderboard.table import Cell, Field, FieldType, Table, text_of
from ..runs.run_errors import ErrorCost, compare_errors, errors_by_slice, errors_of
from ..runs.run_statistics import StatisticsError, constrained_twin, syntax_cost
from ..runs.scored_run import RowData, Run, load_runs, with_details
from .options import PATH, Command, json_option, runs_argument
from .printing import console, print_lines, print_table, write_json

REFUSED = 2
"""The exit status where a run has to be scored again first."""


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py errors outputs --by size",
        "python run_findit.py errors RUN --against OTHER_RUN",
    ],
)
@runs_argument
@click.option(
    "--by", metavar="SLICE", help="Where it was lost: size, objects, label or a kind of slices."
)
@click.option(
    "--against", type=PATH, metavar="RUN", help="A run of the same rows: what differs, paired."
)
@json_option
def command(
    runs: tuple[Path, ...], by: str | None, against: Path | None, json_file: Path | None
) -> int:
    """Print which error types cost each run its points; no model is needed.

    The points between the score, failed calls as misses, and 100 are divided among error types, and
    add up. On a terminal several runs get a line each, unless --by or --against asks for more.

    Exit status 2: a run does not record them; the others are printed.
    """
    other = _one(against) if against is not None else None
    if other is not None:
        errors_of(other)  # what it lacks is said once, and not of every run beside it
    refused = False
    print(f"Intervals: {INTERVALS}.")
    scored = load_runs(runs, keep=RowData.SUMS)
    beside = scored if other is None else [*scored, other]
    several = len(scored) > 1 and by is None and other is None
    brief: list[str] | None = [] if several and console().is_terminal else None
    told: list[dict[str, Any]] = []
    for run in scored:
        try:
            losses = errors_of(run)
            tables = _tables(run, losses, beside, other, by)
        except StatisticsError as error:
            # What one run lacks is no reason to say nothing of the others.
            print(f"error: {error}", file=sys.stderr)
            refused = True
            continue
        if json_file is not None:
            who = {"run": str(run.path), "model": run.model, "dataset": run.question.name}
            told.append({**who, "tables": [to_json(table) for table in tables]})
        if brief is not None:
            brief.append(_line(run, losses))
            continue
        print(f"\n{visible(run.model)} on {run.question.name}")
        for at, table in enumerate(tables):
            if at:
                print(f"\n{visible(table.title)}")
            print_table(table, "--json FILE")
            print_lines([note.text for note in table.notes], "--json FILE")
    if json_file is not None:
        write_json(json_file, told)
    if brief:
        print_lines(brief, "--json FILE")
        print(as_called("all that a run lost: python run_findit.py errors FILE"))
    return REFUSED if refused else 0


_LARGEST = 3
"""Error types of a run that stand in its line."""


def _line(run: Run, losses: Sequence[ErrorCost]) -> str:
    """Write a run's score and its largest losses as a line."""
    score = run.benchmark.errors.score
    value = text_of(Field(score.name, FieldType.VALUE), Cell(score.value(run.sums)))
    points = Field("points", FieldType.DIFFERENCE)
    largest = sorted(losses, key=lambda loss: -loss.points)[:_LARGEST]
    lost = [
        f"{one.error_type.name} {text_of(points, Cell(-one.points))}"
        for one in largest
        if one.points > 0
    ]
    return f"{visible(run.model)} on {run.question.name}: " + ", ".join(
        [f"{score.title} {value}", *lost]
    )


def _tables(
    run: Run, losses: Sequence[ErrorCost], beside: Iterable[Run], other: Run | None, by: str | None
) -> list[Table]:
    """Make the tables of a run: its errors, then what was asked for and what it has.

    Only here are its details in memory.
    """
    whole = with_details(run)
    tables = [run_errors_table(run, losses)]
    if other is not None:
        tables.append(error_differences_table(other, losses, compare_errors(run, other)))
    twin = constrained_twin(run, beside)
    constrained = None if twin is None else syntax_cost(run, twin)
    if constrained is not None:
        tables.append(syntax_table(constrained))
    if by:
        tables.append(slice_errors_table(run.benchmark.errors, by, errors_by_slice(whole, by)))
    return [*tables, *filter(lambda one: one.rows, (lenient_table(whole), rejection_table(run)))]


def _one(path: Path) -> Run:
    runs = load_runs([path], keep=RowData.SUMS)
    if len(runs) != 1:
        raise ValueError(f"--against {path}: {len(runs)} runs, and one is needed: name its file")
    return runs[0]
