"""The plots of a page: bars, heat maps, curves and reasons of one leaderboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.drawing import Curve
from ..core.metric import Metric
from ..leaderboard.board import OVERALL, Board
from ..leaderboard.columns import Column
from ..runs.scored_run import Run
from .plots import Bar, HeatMap, bars, curves, heat_map, reasons
from .svg import Plot
from .transcripts import Transcript


@dataclass(frozen=True, slots=True)
class Section:
    """The plots of one column."""

    name: str
    plots: tuple[Plot, ...]


def short_metrics(board: Board) -> list[Metric]:
    """The metrics that stand where there is little room."""
    return [metric for metric in board.shown if metric.in_short_tables]


def bar_plots(board: Board) -> Iterator[Plot]:
    """A plot of the average and of every column: models by metric."""
    for at, name in enumerate((OVERALL, *(column.name for column in board.columns))):
        figures = {
            metric.title: [_bar(board, model, name, metric.name) for model in board.models]
            for metric in board.shown
            if metric.in_short_tables
        }
        if any(bar is not None for values in figures.values() for bar in values):
            title = f"{name}: mean of {len(board.columns)} datasets" if not at else name
            yield bars(f"bars{at}", title, board.models, figures)


def _bar(board: Board, model: str, name: str, metric: str) -> Bar | None:
    cell = board.cells.get((model, name))
    entry = cell.entries.get(metric) if cell else None
    return Bar(entry.value, entry.interval) if entry else None


def heat_map_sections(board: Board) -> Iterator[Section]:
    """A section for every column in which a model was run in more than one format."""
    for at, column in enumerate(board.columns):
        plots = [
            plot
            for place, model in enumerate(board.models)
            if (plot := _heat_map(f"heat{at}-{place}", board, model, column)) is not None
        ]
        if plots:
            yield Section(column.name, tuple(plots))


def _heat_map(name: str, board: Board, model: str, column: Column) -> Plot | None:
    runs = [run for run in column.runs if run.model == model]
    if len(runs) < 2:
        return None
    runs.sort(key=lambda run: run.question.format_place)
    figures = {run.question.format_cell: run.figures[board.headline] for run in runs}
    cell = board.cells.get((model, column.name))
    shown = HeatMap(
        metric=board.headline,
        axes=board.benchmark.format_axes,
        rows=tuple(dict.fromkeys(row for row, _ in figures)),
        columns=tuple(dict.fromkeys(c for _, c in figures)),
        values={place: value for place, value in figures.items() if value is not None},
        reported=cell.run.question.format_cell if cell and cell.run else None,
    )
    return heat_map(name, model, shown) if shown.values else None


def curve_plots(board: Board, found: Sequence[Transcript]) -> Iterator[Plot]:
    """A plot of every column whose benchmark has a threshold that can be turned."""
    at_hand = {one.run.path: one for one in found}
    places = {model: place for place, model in enumerate(board.models)}
    for at, column in enumerate(board.columns):
        shown: dict[str, Curve] = {}
        for model in board.models:
            cell = board.cells.get((model, column.name))
            one = at_hand.get(cell.run.path) if cell and cell.run else None
            made = board.benchmark.curve(one.task, one.run.rows) if one is not None else None
            if made is not None:
                shown[model] = made
        if shown:
            yield curves(f"curves{at}", column.name, shown, places)


def reason_plots(board: Board) -> Iterator[Plot]:
    """One plot a model: every run of it with replies that were not as asked.

    A reason has one colour on the whole page: by the order in which they are met.
    """
    shares = {one.run.path: _reason_shares(one.run) for one in board.sweep}
    met = dict.fromkeys(reason for found in shares.values() for reason in found)
    places = {reason: at for at, reason in enumerate(met)}
    for at, model in enumerate(board.models):
        counts = {
            " · ".join(filter(None, (one.column, one.run.question.format))): found
            for one in board.sweep
            if one.run.model == model and (found := shares[one.run.path])
        }
        if counts:
            yield reasons(f"reasons{at}", model, counts, places)


def _reason_shares(run: Run) -> dict[str, float]:
    """Reasons of a run in percent of its replies (failed calls are none), the commonest first."""
    replies = [row for row in run.rows if not row.failed]
    counts = Counter(row.reason for row in replies if row.reason)
    return {reason: 100.0 * n / len(replies) for reason, n in counts.most_common()}
