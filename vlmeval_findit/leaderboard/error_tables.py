"""Tables of lost points: of a leaderboard, and of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from ..boxes import BoxError
from ..core import counted
from ..protocol import FAILED_CALL, Better, ErrorAnalysis, Metric
from ..scoring import Run
from ..statistics import INTERVALS_ALONE, TOO_FEW_IMAGES, Difference, FamilyOfTests
from .board import Board
from .board_tables import RUN_COLUMNS
from .columns import (
    Column,
    count_column,
    difference_column,
    p_column,
    plain_value_column,
    table_of,
    value_column,
)
from .comparable import by_model
from .legends import INTERVAL, STAR, STAR_MEANING, difference_cell, p_cell
from .reported_formats import FormatRow
from .result_table import NONE, FieldValue, Note, Table, TableCell

_TYPES_OF_SLICE = 2  # Most error types that a row names
_TYPES_OF_MODEL = 3
_SMALLEST = 0.05  # Points; less is shown as 0.0

# --- of a leaderboard -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Lost:
    """What a model lost over all datasets; no score: it lacks some."""

    model: str
    datasets: str
    score: float | None = None
    points: Mapping[str, float] = field(default_factory=dict)  # By the keys of error types

    @property
    def total(self) -> float | None:
        return None if self.score is None else sum(self.points.values())


def lost_table(board: Board) -> Table:
    """Make a row for each model: its score, and its costliest errors; means over all datasets.

    A model that lacks a dataset has no mean: those of models would be over different queries. A
    model with a run without error types has no row.
    """
    analysis = board.benchmark.errors
    names = {each.key: each.name for each in analysis.error_types}

    def mostly(lost: _Lost) -> str:
        most = sorted((-n, names[key]) for key, n in lost.points.items() if n >= _SMALLEST)
        return ", ".join(f"{name} {-points:.1f}" for points, name in most[:_TYPES_OF_MODEL])

    columns: list[Column[_Lost]] = [
        Column("model", lambda lost: lost.model),
        plain_value_column("score", lambda lost: lost.score),
        plain_value_column("lost", lambda lost: lost.total),
        Column("mostly by", mostly),
        Column("datasets", lambda lost: lost.datasets),
    ]
    # Ranks are of other values then, and a reader sees two.
    signs = {"score": f"in the reported format, not {ELSEWHERE}"} if board.elsewhere else {}
    return table_of("What was lost", columns, _lost_by_models(board), signs=signs)


def _lost_by_models(board: Board) -> Iterator[_Lost]:
    analysis = board.benchmark.errors
    counted = board.counted_datasets
    on_datasets = (cell for cell in board.ordered_cells() if cell.dataset in counted)
    reported = by_model(cell.run for cell in on_datasets if cell.run is not None)
    for model, runs in reported.items():
        try:
            lost = [points_of(run) for run in runs]
        except StatisticsError:
            continue
        datasets = f"{len(runs)}/{len(counted)}"
        if len(runs) < len(counted):
            yield _Lost(model, datasets)
            continue
        keys = [each.key for each in analysis.error_types]
        means = {key: fmean(points[key] for points in lost) for key in keys}
        yield _Lost(model, datasets, fmean(run.value(analysis.score) or 0 for run in runs), means)


@dataclass(frozen=True, slots=True)
class _RunErrors:
    """A comparable run, and the costs of error types by their names."""

    row: FormatRow
    costs: Mapping[str, ErrorCost]


def errors_table(board: Board) -> Table:
    """Make a row for each comparable run: its score, and the cost of every error type.

    Types that no run has are left out; a run that was scored before there were any has no costs.
    """
    analysis = board.benchmark.errors
    items = [_RunErrors(row, _costs_by_name(row.run)) for row in board.runs]
    occurring = {name for each in items for name, cost in each.costs.items() if cost.events}
    columns = [each.by(lambda errors: errors.row) for each in RUN_COLUMNS]
    columns.append(
        plain_value_column(analysis.score.name, lambda errors: errors.row.run.value(analysis.score))
    )
    for error_type in analysis.error_types:
        if error_type.name in occurring:
            columns += _error_columns(error_type.name)
    return table_of("Errors", columns, items)


def _costs_by_name(run: Run) -> dict[str, ErrorCost]:
    try:
        return {cost.error_type.name: cost for cost in errors_of(run)}
    except StatisticsError:
        return {}


def _error_columns(name: str) -> list[Column[_RunErrors]]:
    """Return the columns of an error type: its cost, and its events."""
    of_cost: list[Column[ErrorCost]] = [
        value_column(name, lambda cost: TableCell(cost.points, cost.interval)),
        count_column(f"{name} events", lambda cost: cost.events),
    ]
    return [each.by(lambda errors: errors.costs.get(name)) for each in of_cost]


# --- of a run -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a short table of a run: a name, numbers, and a value in points or percent."""

    name: str
    value: FieldValue
    counts: Sequence[float] = ()  # None of a line that sums up, or is of a metric
    mostly: str = ""


def _count_of_line(name: str, place: int) -> Column[_Line]:
    return count_column(name, lambda line: line.counts[place] if line.counts else "")


def _value_of_line(line: _Line) -> FieldValue:
    return line.value


def run_errors_table(run: Run, costs: Sequence[ErrorCost]) -> Table:
    """Make a row for each error type of a run: its events, and its cost in points."""
    score = run.benchmark.errors.score
    reached = run.value(score)
    lost = sum(cost.points for cost in costs)
    lines = [_Line(score.title, reached)]
    for cost in costs:
        if cost.events:
            points = TableCell(cost.points, cost.interval)
            lines.append(_Line(cost.error_type.name, points, [cost.events]))
    notes = []
    if not lost and not reached:
        notes.append(Note("", ["nothing to find, and nothing answered: nothing is lost"]))
    elif score.better is Better.HIGHER:
        lines.append(_Line("sum", (reached or 0) + lost))
    failures = sum(cost.events for cost in costs if cost.error_type.key == FAILED_CALL.key)
    if failures and failures != run.failed:
        calls = counted(run.failed, "failed call")
        objects = counted(round(failures), "object")
        notes.append(Note("", [f"{calls} about {objects}: each object is an event"]))
    columns: list[Column[_Line]] = [
        Column("error type", lambda line: line.name),
        _count_of_line("events", 0),
        value_column("points", _value_of_line),
    ]
    return table_of("Errors", columns, lines, notes, _told_apart(run, costs))


def _told_apart(run: Run, costs: Sequence[ErrorCost]) -> dict[str, str]:
    """Return what the types mean of which a reader would expect as many, or one alone."""
    seen = {cost.error_type.name for cost in costs if cost.events}
    meanings = {}
    for types in _TAKEN_FOR_EACH_OTHER:
        if len(types & seen) > 1:
            named = [each for each in run.benchmark.errors.error_types if each.name in types]
            meanings.update({each.name: each.meaning for each in named})
    return meanings


_TAKEN_FOR_EACH_OTHER = (
    # A surplus box and a missed object are no pair.
    {BoxError.DUPLICATE.value, BoxError.BACKGROUND.value, BoxError.MISSED.value},
    # Equal replies may be of both: objects lie elsewhere.
    {BoxError.RECOVERABLE.value, BoxError.NOT_READABLE.value},
)


def error_differences_table(
    other: Run, costs: Sequence[ErrorCost], differences: Mapping[str, Difference]
) -> Table:
    """Make a row for each error type: its cost in a run minus its cost in another."""
    named = {each.error_type.key: each.error_type.name for each in costs}
    total = sum(each.value for each in differences.values())
    items: list[tuple[str, Difference | None]] = [
        (name, differences[key]) for key, name in named.items() if key in differences
    ]

    def points(item: tuple[str, Difference | None]) -> FieldValue:
        test = item[1]
        return total if test is None else difference_cell(test)

    def corrected(item: tuple[str, Difference | None]) -> FieldValue:
        test = item[1]
        if test is None:
            return ""
        return p_cell(test)

    columns: list[Column[tuple[str, Difference | None]]] = [
        Column("error type", lambda item: item[0]),
        difference_column("points", points),
        p_column("p (Holm)", corrected),
    ]
    signs = {
        STAR: STAR_MEANING,
        "p (Holm)": FamilyOfTests.ERRORS.value,
        INTERVAL: INTERVALS_ALONE,
        NONE: TOO_FEW_IMAGES,
    }
    title = f"against {other.model} on {other.variant.name}"
    return table_of(title, columns, [*items, ("lost in all", None)], signs=signs)


def slice_errors_table(analysis: ErrorAnalysis, by: str, slices: Sequence[SliceErrors]) -> Table:
    """Make a row for each slice of a run's queries, the whole first: points and main errors."""
    names = {each.key: each.name for each in analysis.error_types}
    lines = [_Line("lost in all", sum(each.total for each in slices))]
    for each in slices:
        most = sorted(each.points.items(), key=lambda item: -item[1])[:_TYPES_OF_SLICE]
        mostly = ", ".join(names[key] for key, points in most if points)
        lines.append(_Line(each.name, each.total, [sum(each.events.values())], mostly))
    columns: list[Column[_Line]] = [
        Column(f"by {by}", lambda line: line.name),
        _count_of_line("events", 0),
        plain_value_column("points", _value_of_line),
        Column("mostly", lambda line: line.mostly),
    ]
    return table_of(f"Errors by {by}", columns, lines)


def lenient_table(run: Run) -> Table:
    """Make a row for each repair of lenient parsing; no rows if it adds nothing."""
    gain = lenient_gain(run.rows)
    lenient = run.benchmark.lenient
    lines: list[_Line] = []
    if gain.replies and lenient is not None:
        gains = {**gain_by_repair(run.rows), "in all (some need several)": gain}
        lines = [
            _Line(name, "", (each.replies, each.boxes, each.objects))
            for name, each in gains.items()
        ]
        lines += _metric_lines(run, (run.benchmark.metrics[0], lenient))
    columns: list[Column[_Line]] = [
        Column("repair", lambda line: line.name),
        *(_count_of_line(name, at) for at, name in enumerate(("replies", "boxes", "objects"))),
        value_column("percent", _value_of_line),
    ]
    title = f"What lenient parsing would take of {lenient_replies(run.rows)}"
    return table_of(title, columns, lines)


def rejection_table(run: Run) -> Table:
    """Make a row for each outcome of queries with nothing to find; no rows without them."""
    shares = rejection_shares(run)
    lines = []
    for each in shares:
        share = TableCell(each.share, each.interval)
        lines.append(_Line(each.outcome.value, share, [each.queries]))
    if shares:
        lines += _metric_lines(run, (REJECTION_ACCURACY, FALSE_ALARM_RATE))
    columns: list[Column[_Line]] = [
        Column("outcome", lambda line: line.name),
        _count_of_line("queries", 0),
        value_column("percent", _value_of_line),
    ]
    total = sum(each.queries for each in shares)
    title = f"{total:,} of {len(run.rows):,} queries have nothing to find"
    return table_of(title, columns, lines)


def _metric_lines(run: Run, metrics: Sequence[Metric]) -> list[_Line]:
    bounds = run_intervals(run)
    values = run.metric_values
    names = [metric.name for metric in metrics]
    return [_Line(name, TableCell(values[name], bounds.get(name))) for name in names]
