"""``run_findit.py errors``: what a run's score lost, by error type."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ..core.command import as_called
from ..core.files import atomic_write
from ..core.spelling import visible
from ..core.statistics import INTERVALS, Difference
from ..leaderboard.errors import (
    loss_differences_table,
    losses_table,
    parts_table,
    rejection_table,
    salvaged_table,
    syntax_table,
)
from ..leaderboard.table import Cell, Field, Kind, Table, text_of
from ..runs.anatomy import Loss, NoAnatomyError, Part, anatomy_of, compare, parts_of
from ..runs.intervals import StatisticsError
from ..runs.scored_run import Keep, Run, load_runs, with_details
from ..runs.twins import Syntax, syntax, twin_of
from .options import PATH, Command, json_option, runs_argument
from .printing import console, print_lines, print_table

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
        anatomy_of(other)  # what it lacks is said once, and not of every run beside it
    refused = False
    print(f"Intervals: {INTERVALS}.")
    scored = load_runs(runs, keep=Keep.SUMS)
    beside = scored if other is None else [*scored, other]
    several = len(scored) > 1 and by is None and other is None
    brief: list[str] | None = [] if several and console().is_terminal else None
    with _list_in(json_file) as tell:
        for run in scored:
            try:
                losses = anatomy_of(run)
                tables, told = _told(run, losses, beside, other, by)
            except (NoAnatomyError, StatisticsError) as error:
                # What one run lacks is no reason to say nothing of the others.
                print(f"error: {error}", file=sys.stderr)
                refused = True
                continue
            if brief is not None:
                brief.append(_line(run, losses))
                tell(told)
                continue
            print(f"\n{visible(run.model)} on {run.question.name}")
            for at, table in enumerate(tables):
                if at:
                    print(f"\n{visible(table.title)}")
                print_table(table, "--json FILE")
                print_lines([note.text for note in table.notes], "--json FILE")
            tell(told)
    if brief:
        print_lines(brief, "--json FILE")
        print(as_called("all that a run lost: python run_findit.py errors FILE"))
    return REFUSED if refused else 0


_LARGEST = 3
"""Error types of a run that stand in its line."""


def _line(run: Run, losses: Sequence[Loss]) -> str:
    """Write a run's score and its largest losses as a line."""
    score = run.benchmark.anatomy.score
    value = text_of(Field(score.name, Kind.VALUE), Cell(score.value(run.sums)))
    points = Field("points", Kind.DIFFERENCE)
    largest = sorted(losses, key=lambda loss: -loss.points)[:_LARGEST]
    lost = [
        f"{one.cause.name} {text_of(points, Cell(-one.points))}"
        for one in largest
        if one.points > 0
    ]
    return f"{visible(run.model)} on {run.question.name}: " + ", ".join(
        [f"{score.title} {value}", *lost]
    )


def _told(
    run: Run, losses: Sequence[Loss], beside: Iterable[Run], other: Run | None, by: str | None
) -> tuple[list[Table], dict[str, Any]]:
    """What there is to say of a run, for people and for programs.

    Only here are its details in memory; values need none.
    """
    whole = with_details(run)
    parts = parts_of(whole, by) if by else ()
    differences = compare(run, other) if other is not None else {}
    tables = [losses_table(run, losses)]
    if other is not None:
        tables.append(loss_differences_table(other, losses, differences))
    twin = twin_of(run, beside)
    held = None if twin is None else syntax(run, twin)
    if held is not None:
        tables.append(syntax_table(held))
    if by:
        tables.append(parts_table(run.benchmark.anatomy, by, parts))
    tables += [table for table in (salvaged_table(whole), rejection_table(run)) if table.rows]
    told = _as_dict(run, losses, parts, other, differences)
    if held is not None:
        told["constrained"] = _held_as_dict(held)
    return tables, told


def _one(path: Path) -> Run:
    runs = load_runs([path], keep=Keep.SUMS)
    if len(runs) != 1:
        raise ValueError(f"--against {path}: {len(runs)} runs, and one is needed: name its file")
    return runs[0]


# --- for programs ---------------------------------------------------------------------------------


@contextmanager
def _list_in(path: Path | None) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A file that lists in JSON what it is told, one after the other; none where there is no path.

    The parts of a thousand runs are not held together.
    """
    if path is None:
        yield lambda one: None
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as f:
        before = "[\n "

        def tell(one: Mapping[str, Any]) -> None:
            nonlocal before
            f.write(before + json.dumps(one, indent=1, ensure_ascii=False).replace("\n", "\n "))
            before = ",\n "

        yield tell
        f.write("[]\n" if before.startswith("[") else "\n]\n")


def _as_dict(
    run: Run,
    losses: Sequence[Loss],
    parts: Sequence[Part],
    other: Run | None,
    differences: Mapping[str, Difference],
) -> dict[str, Any]:
    anatomy = run.benchmark.anatomy
    names = {one.key: one.name for one in anatomy.causes}
    told: dict[str, Any] = {
        "run": str(run.path),
        "model": run.model,
        "dataset": run.question.name,
        "score": {"name": anatomy.score.name, "value": anatomy.score.value(run.sums)},
        "causes": [
            {
                "cause": loss.cause.name,
                "meaning": loss.cause.meaning,
                "events": loss.events,
                "points": loss.points,
                "low": loss.interval.low if loss.interval else None,
                "high": loss.interval.high if loss.interval else None,
            }
            for loss in losses
        ],
    }
    if parts:
        told["parts"] = [
            {
                "part": part.name,
                "points": part.total,
                "causes": {
                    names[key]: {"events": part.events[key], "points": points}
                    for key, points in part.points.items()
                },
            }
            for part in parts
        ]
    if other is not None:
        told["against"] = {
            "run": str(other.path),
            "causes": {
                names[key]: {
                    "points": d.value,
                    "low": d.interval.low if d.interval else None,
                    "high": d.interval.high if d.interval else None,
                    "p": d.p_value,
                    "p (Holm)": d.corrected,
                }
                for key, d in differences.items()
            },
        }
    return told


def _held_as_dict(found: Syntax) -> dict[str, Any]:
    bounds = found.gain.interval
    return {
        "score": found.held,
        "syntax": {
            "points": found.gain.value,
            "low": bounds.low if bounds else None,
            "high": bounds.high if bounds else None,
            "p": found.gain.p_value,
        },
        "sight": found.sight,
    }
