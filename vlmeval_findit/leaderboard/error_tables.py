"""Tables of lost points: of a leaderboard, and of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from ..analysis import (
    ELSEWHERE,
    ErrorCost,
    SliceErrors,
    StatisticsError,
    errors_of,
    gain_by_repair,
    lenient_gain,
    lenient_replies,
    points_of,
    rejection_shares,
    run_intervals,
)
from ..benchmarks.findit import FALSE_ALARM_RATE, REJECTION_ACCURACY
from ..protocol import Better, ErrorAnalysis, Metric
from ..scoring import Run
from ..statistics import TOO_FEW_IMAGES, Difference
from .board import Board
from .board_tables import RUN_FIELDS, run_cells
from .comparable import by_model
from .legends import STAR, PValues
from .result_table import (
    NONE,
    Field,
    FieldType,
    FieldValue,
    Note,
    Table,
    TableCell,
    count_column,
    value_column,
)

_POINTS = Field("points", FieldType.DIFFERENCE, interval=True)
_TYPES_OF_SLICE = 2  # Most error types that a row names
_TYPES_OF_MODEL = 3
_SMALLEST = 0.05  # Points; less is shown as 0.0

# --- of a leaderboard -----------------------------------------------------------------------------


def lost_table(board: Board) -> Table:
    """Make a row for each model: its score, and its costliest errors; means over all datasets.

    A model that lacks a dataset has no mean: those of models would be over different queries. A
    model with a run without error types has no row.
    """
    analysis = board.benchmark.errors
    names = {each.key: each.name for each in analysis.error_types}
    rows: list[list[FieldValue]] = []
    names_of_datasets = board.counted_datasets
    on_datasets = (cell for cell in board.ordered_cells() if cell.dataset in names_of_datasets)
    reported = by_model(cell.run for cell in on_datasets if cell.run is not None)
    for model, runs in reported.items():
        try:
            lost = [points_of(run) for run in runs]
        except StatisticsError:
            continue
        datasets = f"{len(runs)}/{len(names_of_datasets)}"
        if len(runs) < len(names_of_datasets):
            rows.append([model, None, None, "", datasets])
            continue
        means = {key: fmean(points[key] for points in lost) for key in names}
        most = sorted((-points, names[key]) for key, points in means.items() if points >= _SMALLEST)
        score = fmean(run.value(analysis.score) or 0 for run in runs)
        mostly = ", ".join(f"{name} {-points:.1f}" for points, name in most[:_TYPES_OF_MODEL])
        rows.append([model, score, sum(means.values()), mostly, datasets])
    fields = [Field("model"), *(Field(name, FieldType.VALUE) for name in ("score", "lost"))]
    fields += [Field("mostly by"), Field("datasets")]
    # Ranks are of other values then, and a reader sees two.
    signs = {"score": f"in the reported format, not {ELSEWHERE}"} if board.elsewhere else {}
    return Table("What was lost", fields, rows, signs=signs)


def errors_table(board: Board) -> Table:
    """Make a row for each comparable run: its score, and the cost of every error type.

    Types that no run has are left out; a run that was scored before there were any has no costs.
    """
    analysis = board.benchmark.errors
    costs: list[Mapping[str, ErrorCost]] = []
    for row in board.runs:
        try:
            costs.append({cost.error_type.name: cost for cost in errors_of(row.run)})
        except StatisticsError:
            costs.append({})
    occurring = {name for by_name in costs for name, cost in by_name.items() if cost.events}
    names = [each.name for each in analysis.error_types if each.name in occurring]
    rows: list[list[FieldValue]] = []
    for row, by_name in zip(board.runs, costs, strict=True):
        cells = [*run_cells(row), row.run.value(analysis.score)]
        for name in names:
            if (cost := by_name.get(name)) is None:
                cells += [None, None]
            else:
                cells += [TableCell(cost.points, cost.interval), cost.events]
        rows.append(cells)
    fields = [*RUN_FIELDS, Field(analysis.score.name, FieldType.VALUE)]
    for name in names:
        fields += [value_column(name), count_column(f"{name} events")]
    return Table("Errors", fields, rows)


# --- of a run -------------------------------------------------------------------------------------


def run_errors_table(run: Run, costs: Sequence[ErrorCost]) -> Table:
    """Make a row for each error type of a run: its events, and its cost in points."""
    score = run.benchmark.errors.score
    reached = run.value(score)
    lost = sum(cost.points for cost in costs)
    rows: list[list[FieldValue]] = [[score.title, "", reached]]
    rows += [
        [cost.error_type.name, cost.events, TableCell(cost.points, cost.interval)]
        for cost in costs
        if cost.events
    ]
    notes = []
    if not lost and not reached:
        notes.append(Note("", ["nothing to find, and nothing answered: nothing is lost"]))
    elif score.better is Better.HIGHER:
        rows.append(["sum", "", (reached or 0) + lost])
    return Table(
        "Errors", [Field("error type"), count_column("events"), value_column("points")], rows, notes
    )


def error_differences_table(
    other: Run, costs: Sequence[ErrorCost], differences: Mapping[str, Difference]
) -> Table:
    """Make a row for each error type: its cost in a run minus its cost in another."""
    rows: list[list[FieldValue]] = [
        [
            cost.error_type.name,
            TableCell(difference.value, difference.interval),
            TableCell(difference.corrected, sign=STAR if difference.significant else ""),
        ]
        for cost in costs
        if (difference := differences.get(cost.error_type.key)) is not None
    ]
    rows.append(["lost in all", sum(each.value for each in differences.values()), ""])
    fields = [Field("error type"), _POINTS, Field("p (Holm)", FieldType.P)]
    signs = {STAR: "significant", "p (Holm)": PValues.ERRORS.value, NONE: TOO_FEW_IMAGES}
    return Table(f"against {other.model} on {other.variant.name}", fields, rows, signs=signs)


def slice_errors_table(analysis: ErrorAnalysis, by: str, slices: Sequence[SliceErrors]) -> Table:
    """Make a row for each slice of a run's queries, the whole first: points and main errors."""
    names = {each.key: each.name for each in analysis.error_types}
    rows: list[list[FieldValue]] = [["lost in all", "", sum(each.total for each in slices), ""]]
    for each in slices:
        most = sorted(each.points.items(), key=lambda item: -item[1])[:_TYPES_OF_SLICE]
        mostly = ", ".join(names[key] for key, points in most if points)
        rows.append([each.name, sum(each.events.values()), each.total, mostly])
    fields = [
        Field(f"by {by}"),
        count_column("events"),
        Field("points", FieldType.VALUE),
        Field("mostly"),
    ]
    return Table(f"Errors by {by}", fields, rows)


def lenient_table(run: Run) -> Table:
    """Make a row for each repair of lenient parsing; no rows if it adds nothing."""
    gain = lenient_gain(run.rows)
    lenient = run.benchmark.lenient
    rows: list[list[FieldValue]] = []
    if gain.replies and lenient is not None:
        gains = {**gain_by_repair(run.rows), "in all (some need several)": gain}
        rows = [[name, each.replies, each.boxes, each.objects, ""] for name, each in gains.items()]
        rows += _metric_rows(run, (run.benchmark.metrics[0], lenient), ["", "", ""])
    fields = [
        Field("repair"),
        count_column("replies"),
        count_column("boxes"),
        count_column("objects"),
        value_column("percent"),
    ]
    title = f"What lenient parsing would take of {lenient_replies(run.rows)}"
    return Table(title, fields, rows)


def rejection_table(run: Run) -> Table:
    """Make a row for each outcome of queries with nothing to find; no rows without them."""
    shares = rejection_shares(run)
    rows: list[list[FieldValue]] = [
        [each.outcome.value, each.queries, TableCell(each.share, each.interval)] for each in shares
    ]
    if shares:
        rows += _metric_rows(run, (REJECTION_ACCURACY, FALSE_ALARM_RATE), [""])
    total = sum(each.queries for each in shares)
    title = f"{total:,} of {len(run.rows):,} queries have nothing to find"
    return Table(title, [Field("outcome"), count_column("queries"), value_column("percent")], rows)


def _metric_rows(
    run: Run, metrics: Sequence[Metric], empty: list[FieldValue]
) -> list[list[FieldValue]]:
    bounds, values = run_intervals(run), run.metric_values
    names = [metric.name for metric in metrics]
    return [[name, *empty, TableCell(values[name], bounds.get(name))] for name in names]
