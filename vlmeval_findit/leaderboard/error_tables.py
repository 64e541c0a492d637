"""The tables of what scores lost: of a leaderboard, and of one run with what it can say more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from ..benchmarks.findit.box_metrics import FALSE_ALARM_RATE, REJECTION_ACCURACY
from ..core.error_analysis import ErrorAnalysis
from ..core.metric import Better, Metric
from ..core.statistics import Difference
from ..runs.intervals import intervals
from ..runs.rejection import shares_of
from ..runs.run_errors import ErrorCost, NoErrorsError, SliceErrors, error_points, errors_of
from ..runs.salvage import steps_of, taken
from ..runs.scored_run import Run
from ..runs.twins import Syntax
from .board import Board
from .board_tables import RUN_FIELDS, run_cells
from .formats import FormatRow
from .notes import cells_of
from .table import Cell, Field, FieldType, Note, Table, Value, count, value

_POINTS = Field("points", FieldType.DIFFERENCE, interval=True)
_MOSTLY, _MOSTLY_OF_MODEL = 2, 3
_LEAST = 0.05
"""Fewer points are shown as 0.0."""

# --- of a leaderboard -----------------------------------------------------------------------------


def lost_table(board: Board) -> Table:
    """Make one row a model: its score, and what it lost most points by; means over its datasets.

    A model with a run that was scored before errors were counted has no row.
    """
    analysis = board.benchmark.errors
    names = {one.key: one.name for one in analysis.error_types}
    runs: dict[str, list[Run]] = {}
    for cell in cells_of(board):
        if cell.run is not None:
            runs.setdefault(cell.model, []).append(cell.run)
    rows: list[list[Value]] = []
    for model, mine in runs.items():
        try:
            found = [error_points(run) for run in mine]
        except NoErrorsError:
            continue
        means = {key: fmean(points[key] for points in found) for key in names}
        most = sorted((-points, names[key]) for key, points in means.items() if points >= _LEAST)
        score = fmean(analysis.score.value(run.sums) or 0 for run in mine)
        mostly = ", ".join(f"{name} {-points:.1f}" for points, name in most[:_MOSTLY_OF_MODEL])
        rows.append([model, score, sum(means.values()), mostly])
    fields = [Field("model"), *(Field(name, FieldType.VALUE) for name in ("score", "lost"))]
    return Table("What was lost", [*fields, Field("mostly by")], rows)


def errors_table(board: Board) -> Table:
    """Make one row a comparable run: its score, and the points that every type took from it.

    Types that no run has are left out.  A run that was scored before events were counted has none.
    """
    analysis = board.benchmark.errors
    found = [_losses(one) for one in board.sweep]
    error_types = [
        error_type
        for error_type in analysis.error_types
        if any(losses[error_type.key].events for losses in found if losses)
    ]
    rows: list[list[Value]] = []
    for one, losses in zip(board.sweep, found, strict=True):
        rows.append([*run_cells(one), analysis.score.value(one.run.sums)])
        for error_type in error_types:
            loss = losses.get(error_type.key)
            rows[-1] += [Cell(loss.points, loss.interval), loss.events] if loss else [None, None]
    fields = [*RUN_FIELDS, Field(analysis.score.name, FieldType.VALUE)]
    for error_type in error_types:
        fields += [value(error_type.name), count(f"{error_type.name} events")]
    return Table("Errors", fields, rows)


def _losses(one: FormatRow) -> Mapping[str, ErrorCost]:
    """Return the losses of a run by the keys of their types; empty where none were counted."""
    try:
        return {loss.error_type.key: loss for loss in errors_of(one.run)}
    except NoErrorsError:
        return {}


# --- of one run -----------------------------------------------------------------------------------


def losses_table(run: Run, losses: Sequence[ErrorCost]) -> Table:
    """Make one row an error type that a run has: its events, and the points that it took."""
    score = run.benchmark.errors.score
    reached, lost = score.value(run.sums), sum(loss.points for loss in losses)
    rows: list[list[Value]] = [[score.title, "", reached]]
    rows += [
        [loss.error_type.name, loss.events, Cell(loss.points, loss.interval)]
        for loss in losses
        if loss.events
    ]
    notes = []
    if not lost and not reached:
        notes.append(Note("", ["nothing to find, and nothing answered: nothing is lost"]))
    elif score.better is Better.HIGHER:
        rows.append(["sum", "", (reached or 0) + lost])
    return Table("Errors", [Field("error type"), count("events"), value("points")], rows, notes)


def loss_differences_table(
    other: Run, losses: Sequence[ErrorCost], differences: Mapping[str, Difference]
) -> Table:
    """Make one row an error type: the points that it took of a run minus those of another."""
    rows: list[list[Value]] = [
        [
            loss.error_type.name,
            Cell(found.value, found.interval),
            Cell(found.corrected, sign="*" if found.significant else ""),
        ]
        for loss in losses
        if (found := differences.get(loss.error_type.key)) is not None
    ]
    rows.append(["lost in all", sum(found.value for found in differences.values()), ""])
    fields = [Field("error type"), _POINTS, Field("p (Holm)", FieldType.P)]
    return Table(f"against {other.model} on {other.question.name}", fields, rows)


def syntax_table(found: Syntax) -> Table:
    """Make the rows of what the format's grammar would have saved of a loss."""
    rows: list[list[Value]] = [
        ["held to the format's grammar", found.held, ""],
        ["syntax cost", "", Cell(found.gain.value, found.gain.interval)],
        ["sight costs the rest", "", found.sight],
    ]
    return Table(
        "constrained to the format", [Field("part"), Field("score", FieldType.VALUE), _POINTS], rows
    )


def parts_table(analysis: ErrorAnalysis, by: str, parts: Sequence[SliceErrors]) -> Table:
    """Make one row a part of a run's queries, the whole first: what it lost, and mostly by what."""
    names = {one.key: one.name for one in analysis.error_types}
    rows: list[list[Value]] = [["lost in all", "", sum(part.total for part in parts), ""]]
    for part in parts:
        most = sorted(part.points.items(), key=lambda item: -item[1])[:_MOSTLY]
        mostly = ", ".join(names[key] for key, points in most if points)
        rows.append([part.name, sum(part.events.values()), part.total, mostly])
    fields = [Field(f"by {by}"), count("events"), Field("points", FieldType.VALUE), Field("mostly")]
    return Table(f"Errors by {by}", fields, rows)


def salvaged_table(run: Run) -> Table:
    """Make one row a repair of lenient parsing; no rows where it takes no more than we do."""
    more, salvaged = taken(run.rows), run.benchmark.salvaged
    rows: list[list[Value]] = []
    if more.replies and salvaged is not None:
        steps = {**steps_of(run.rows), "in all (some need several)": more}
        rows = [[name, one.replies, one.boxes, one.objects, ""] for name, one in steps.items()]
        rows += _metric_rows(run, (run.benchmark.metrics[0], salvaged), 3)
    fields = [Field("repair"), count("replies"), count("boxes"), count("objects"), value("percent")]
    astray = sum(row.reason is not None and not row.failed for row in run.rows)
    title = f"what a tolerant reader would take of {astray:,} replies that do not adhere"
    return Table(title, fields, rows)


def rejection_table(run: Run) -> Table:
    """Make one row an outcome of queries with nothing to find; no rows where there are none."""
    shares = shares_of(run)
    rows: list[list[Value]] = [
        [one.outcome.value, one.queries, Cell(one.share, one.interval)] for one in shares
    ]
    if shares:
        rows += _metric_rows(run, (REJECTION_ACCURACY, FALSE_ALARM_RATE), 1)
    every = sum(one.queries for one in shares)
    title = f"{every:,} of {len(run.rows):,} queries have nothing to find"
    return Table(title, [Field("outcome"), count("queries"), value("percent")], rows)


def _metric_rows(run: Run, metrics: Sequence[Metric], empty: int) -> list[list[Value]]:
    spreads = intervals(run)
    return [
        [one.name, *[""] * empty, Cell(run.figures[one.name], spreads.get(one.name))]
        for one in metrics
    ]
