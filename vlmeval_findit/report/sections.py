"""What the sections of a page draw of a leaderboard, as charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..core.drawing import Curve
from ..core.metric import Metric
from ..core.scored_row import ScoredRow
from ..leaderboard.board import Board
from ..leaderboard.comparable import ComparableRuns
from ..leaderboard.formats import FormatRow
from ..leaderboard.learning_curve import LearningCurve, learning_curves
from ..runs.box_confidences import boxes_of_rows, definitions_in
from ..runs.calibration import Bin, reliability
from ..runs.scored_run import Run
from .charts import (
    CURVES,
    MAPS,
    FormatCell,
    curves,
    forest,
    heat_maps,
    learning_chart,
    reliability_chart,
)
from .pairs import Key, key_of
from .standings import Panel
from .transcripts import Transcript
from .vega import Spec, svg

_PAGES = 4
"""Charts of heat maps of a dataset, at most; formats.csv has all."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Charts of which one is shown at a time, by their titles; ``key`` is unique on a page."""

    key: str
    charts: tuple[tuple[str, Spec], ...]

    def picture(self) -> Markup:
        """Return the first as it stands there until the script draws, and in print."""
        return Markup(svg(self.charts[0][1], self.key))


def short_metrics(board: Board) -> list[Metric]:
    """The metrics that stand where there is little room."""
    return [metric for metric in board.shown if metric.in_short_tables]


def forest_of(board: Board, panels: Sequence[Panel]) -> Drawn | None:
    """The dots of models; None where nothing can be compared."""
    if not panels:
        return None
    return Drawn("standings", (("", forest(board.headline, board.models, panels)),))


def heat_maps_of(board: Board) -> Drawn | None:
    """The formats of models, dataset by dataset, the one with most formats first; None where no
    model was run in more than one."""
    by_dataset: dict[str, dict[str, list[FormatRow]]] = {}
    for one in board.runs:
        by_dataset.setdefault(one.dataset, {}).setdefault(one.run.model, []).append(one)
    found: dict[str, list[list[FormatCell]]] = {}
    for dataset, runs in by_dataset.items():
        maps = (
            _cells(board, runs[model]) for model in board.models if len(runs.get(model, ())) > 1
        )
        if filled := [cells for cells in maps if cells]:
            found[dataset] = filled
    # Of as many formats the order of the board.
    order = sorted(found, key=lambda name: -len({c.row + c.column for m in found[name] for c in m}))
    values = [cell.value for maps in found.values() for one in maps for cell in one]
    ends = (0.0, 100.0) if board.headline.share or not values else (min(values), max(values))
    charts = []
    for dataset in order:
        maps_of = found[dataset]
        for first in range(0, min(len(maps_of), _PAGES * MAPS), MAPS):
            some = maps_of[first : first + MAPS]
            which = f", models {first + 1}–{first + len(some)}" if len(maps_of) > MAPS else ""
            cells = [cell for one in some for cell in one]
            spec = heat_maps(board.headline, board.benchmark.format_axes, cells, ends)
            charts.append((dataset + which, spec))
    return Drawn("formats", tuple(charts)) if charts else None


def _cells(board: Board, runs: Sequence[FormatRow]) -> list[FormatCell]:
    """The values of a model's formats, in the benchmark's order."""
    made = []
    for one in sorted(runs, key=lambda one: one.run.question.format_place):
        value = board.headline.value(one.run.sums)
        if value is not None:
            bounds = one.intervals.get(board.headline.name)
            row, column = one.run.question.format_cell
            made.append(
                FormatCell(
                    one.run.model, row, column, value,
                    f"{bounds.low:.1f} to {bounds.high:.1f}" if bounds else "",
                    len(one.run.rows), one.reported,
                )
            )  # fmt: skip
    return made


class Details:
    """The charts of a board that take the details of all rows of a run.

    Of every dataset they are those of the first :data:`.charts.CURVES` models in it.
    """

    def __init__(self, board: Board) -> None:
        self.board = board
        self.keys = {key_of(run) for one in board.datasets for run in _first(board, one)}
        self.curves: dict[Key, Curve] = {}
        self.bins: dict[Key, dict[str, Sequence[Bin]]] = {}

    def see(self, one: Transcript, rows: Sequence[ScoredRow]) -> None:
        """Take note of a run; see :func:`.transcripts.gather`."""
        key = key_of(one.run)
        if key not in self.keys:
            return
        if (made := one.run.benchmark.curve(one.task, rows)) is not None:
            self.curves[key] = made
        if names := definitions_in(rows):
            self.bins[key] = {name: reliability(boxes_of_rows(rows, name)) for name in names}

    def drawn(self) -> list[tuple[str, Drawn]]:
        """Return the charts by what they show, those of every dataset that has such."""
        thresholds: list[tuple[str, Spec]] = []
        calibration: list[tuple[str, Spec]] = []
        for column in self.board.datasets:
            runs = {key_of(run): run.model for run in _first(self.board, column)}
            if lines := {m: self.curves[key] for key, m in runs.items() if key in self.curves}:
                thresholds.append((column.name, curves(column.name, lines)))
            if bins := {m: self.bins[key] for key, m in runs.items() if key in self.bins}:
                calibration.append((column.name, reliability_chart(bins)))
        kinds = (("Checkpoints", "checkpoints", _learning_charts(self.board)),
                 ("IoU thresholds", "thresholds", thresholds),
                 ("Calibration", "calibration", calibration))  # fmt: skip
        return [(title, Drawn(key, tuple(found))) for title, key, found in kinds if found]

    @property
    def note(self) -> str:
        """Whose charts are not drawn; empty where all are."""
        more = any(len(_reported(self.board, column)) > CURVES for column in self.board.datasets)
        return f"Of every dataset the first {CURVES} models." if more else ""


def _learning_charts(board: Board) -> list[tuple[str, Spec]]:
    """The charts of the trainings whose checkpoints were run, by dataset and format."""
    by_dataset: dict[str, list[LearningCurve]] = {}
    for curve in learning_curves([each.run for each in board.runs]):
        if len(curve.points) > 1:
            by_dataset.setdefault(curve.dataset, []).append(curve)
    return [(dataset, learning_chart(curves)) for dataset, curves in by_dataset.items()]


def _first(board: Board, column: ComparableRuns) -> list[Run]:
    return _reported(board, column)[:CURVES]


def _reported(board: Board, column: ComparableRuns) -> list[Run]:
    """The reported runs of a column, by the rank of their models."""
    cells = (board.cells.get((model, column.name)) for model in board.models)
    return [cell.run for cell in cells if cell is not None and cell.run is not None]


def reasons_of(board: Board) -> Iterator[tuple[FormatRow, dict[str, float]]]:
    """Every run with replies that were not as asked: the shares of their reasons.

    In percent of its replies (failed calls are none), the commonest reason first.
    """
    for one in board.runs:
        replies = [row for row in one.run.rows if not row.failed]
        counts = Counter(row.reason for row in replies if row.reason)
        if counts:
            yield one, {reason: 100.0 * n / len(replies) for reason, n in counts.most_common()}
