"""The sections of a page: heat maps and curves of one leaderboard, and reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.drawing import Curve
from ..core.metric import Metric
from ..core.scored_row import ScoredRow
from ..leaderboard.board import Board
from ..leaderboard.columns import Column
from ..runs.scored_run import Run
from .pairs import Key, key_of
from .plots import CURVES, HeatMap, curves, heat_map
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
    figures = {run.question.format_cell: board.headline.value(run.sums) for run in runs}
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


class Curves:
    """The curves of a board, which take the details of all rows of a run.

    Of every column they are those of the first :data:`.plots.CURVES` models in it.
    """

    def __init__(self, board: Board) -> None:
        self.board = board
        self._wanted = {key_of(run) for one in board.columns for run in _first(board, one)}
        self.made: dict[Key, Curve] = {}

    def see(self, one: Transcript, rows: Sequence[ScoredRow]) -> None:
        """Take note of a run; see :func:`.transcripts.gather`."""
        key = key_of(one.run)
        made = one.run.benchmark.curve(one.task, rows) if key in self._wanted else None
        if made is not None:
            self.made[key] = made

    def plots(self) -> Iterator[Plot]:
        """A plot of every column whose benchmark has a threshold that can be turned."""
        places = {model: place for place, model in enumerate(self.board.models)}
        for at, column in enumerate(self.board.columns):
            runs = _first(self.board, column)
            shown = {run.model: self.made[key_of(run)] for run in runs if key_of(run) in self.made}
            if shown:
                yield curves(f"curves{at}", column.name, shown, places)

    @property
    def note(self) -> str:
        """Whose curves are not drawn; empty where all are."""
        more = any(len(_reported(self.board, column)) > CURVES for column in self.board.columns)
        return f"Of every dataset the first {CURVES} models." if more else ""


def _first(board: Board, column: Column) -> list[Run]:
    return _reported(board, column)[:CURVES]


def _reported(board: Board, column: Column) -> list[Run]:
    """The reported runs of a column, by the rank of their models."""
    cells = (board.cells.get((model, column.name)) for model in board.models)
    return [cell.run for cell in cells if cell is not None and cell.run is not None]


def reasons_of(board: Board) -> list[tuple[Run, dict[str, float]]]:
    """Every run with replies that were not as asked: the shares of their reasons.

    In percent of its replies (failed calls are none), the commonest reason first.
    """
    shares = ((one.run, _reason_shares(one.run)) for one in board.sweep)
    return [(run, found) for run, found in shares if found]


def _reason_shares(run: Run) -> dict[str, float]:
    replies = [row for row in run.rows if not row.failed]
    counts = Counter(row.reason for row in replies if row.reason)
    return {reason: 100.0 * n / len(replies) for reason, n in counts.most_common()}
