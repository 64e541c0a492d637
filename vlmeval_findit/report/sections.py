"""The sections of a page: the charts of a leaderboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..core.benchmark_protocol import Curve
from ..core.metric import Metric
from ..core.scored_row import ScoredRow
from ..leaderboard.board import Board
from ..leaderboard.comparable import ComparableRuns
from ..leaderboard.formats import FormatRow
from ..leaderboard.learning_curve import LearningCurve, learning_curves
from ..runs.coco_boxes import boxes_of_rows, definitions_in
from ..runs.run_calibration import Bin, reliability
from ..runs.scored_run import Run
from .charts import MAPS, FormatCell, Spec, forest, heat_maps, svg
from .curve_charts import CURVES, curves, learning_chart, reliability_chart
from .pairs import Key, key_of
from .standings import Panel
from .transcripts import Transcript

_PAGES = 4
"""Most charts of heat maps of a dataset; formats.csv has all."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Charts by their titles, shown one at a time; ``key`` is unique on a page."""

    key: str
    charts: tuple[tuple[str, Spec], ...]

    def picture(self) -> Markup:
        """Return the first chart as a picture, shown until the script draws, and in print."""
        return Markup(svg(self.charts[0][1], self.key))


def short_metrics(board: Board) -> list[Metric]:
    """Return the metrics for places with little room."""
    return [metric for metric in board.shown if metric.in_short_tables]


def forest_of(board: Board, panels: Sequence[Panel]) -> Drawn | None:
    """Draw the dots of models; None if nothing can be compared."""
    if not panels:
        return None
    return Drawn("standings", (("", forest(board.headline, board.models, panels)),))


def heat_maps_of(board: Board) -> Drawn | None:
    """Draw the formats of models, the dataset with most formats first.

    None if no model was run in more than one format.
    """
    by_dataset: dict[str, dict[str, list[FormatRow]]] = {}
    for row in board.runs:
        by_dataset.setdefault(row.dataset, {}).setdefault(row.run.model, []).append(row)
    maps_by_dataset: dict[str, list[list[FormatCell]]] = {}
    for dataset, runs in by_dataset.items():
        maps = (
            _cells(board, runs[model]) for model in board.models if len(runs.get(model, ())) > 1
        )
        if filled := [cells for cells in maps if cells]:
            maps_by_dataset[dataset] = filled

    # With equally many formats, the order of the board.
    def formats(name: str) -> int:
        return len({cell.row + cell.column for map_ in maps_by_dataset[name] for cell in map_})

    order = sorted(maps_by_dataset, key=formats, reverse=True)
    values = [cell.value for maps in maps_by_dataset.values() for map_ in maps for cell in map_]
    ends = (0.0, 100.0) if board.headline.share or not values else (min(values), max(values))
    charts = []
    for dataset in order:
        maps_of = maps_by_dataset[dataset]
        for first in range(0, min(len(maps_of), _PAGES * MAPS), MAPS):
            some = maps_of[first : first + MAPS]
            which = f", models {first + 1}–{first + len(some)}" if len(maps_of) > MAPS else ""
            cells = [cell for map_ in some for cell in map_]
            spec = heat_maps(board.headline, board.benchmark.format_axes, cells, ends)
            charts.append((dataset + which, spec))
    return Drawn("formats", tuple(charts)) if charts else None


def _cells(board: Board, runs: Sequence[FormatRow]) -> list[FormatCell]:
    """Return the values of a model's formats, in the benchmark's order."""
    cells = []
    for row in sorted(runs, key=lambda row: row.run.question.format_place):
        value = board.headline.value(row.run.sums)
        if value is not None:
            bounds = row.intervals.get(board.headline.name)
            cells.append(
                FormatCell(
                    row.run.model, *row.run.question.format_cell, value,
                    f"{bounds.low:.1f} to {bounds.high:.1f}" if bounds else "",
                    len(row.run.rows), row.reported,
                )
            )  # fmt: skip
    return cells


class Details:
    """The charts of a board that need the details of all rows of a run.

    They show the first :data:`.curve_charts.CURVES` models of every dataset.
    """

    def __init__(self, board: Board) -> None:
        self.board = board
        self.keys = {key_of(run) for dataset in board.datasets for run in _first(board, dataset)}
        self.curves: dict[Key, Curve] = {}
        self.bins: dict[Key, dict[str, Sequence[Bin]]] = {}

    def add(self, transcript: Transcript, rows: Sequence[ScoredRow]) -> None:
        """Add the curve and the bins of a run; see :func:`.transcripts.gather`."""
        key = key_of(transcript.run)
        if key not in self.keys:
            return
        if (curve := transcript.run.benchmark.curve(transcript.task, rows)) is not None:
            self.curves[key] = curve
        if names := definitions_in(rows):
            self.bins[key] = {name: reliability(boxes_of_rows(rows, name)) for name in names}

    def drawn(self) -> list[tuple[str, Drawn]]:
        """Return the charts by their titles, of every dataset that has them."""
        thresholds: list[tuple[str, Spec]] = []
        calibration: list[tuple[str, Spec]] = []
        for dataset in self.board.datasets:
            runs = {key_of(run): run.model for run in _first(self.board, dataset)}
            if lines := {m: self.curves[key] for key, m in runs.items() if key in self.curves}:
                thresholds.append((dataset.name, curves(dataset.name, lines)))
            if bins := {m: self.bins[key] for key, m in runs.items() if key in self.bins}:
                calibration.append((dataset.name, reliability_chart(bins)))
        kinds = (("Checkpoints", "checkpoints", _learning_charts(self.board)),
                 ("IoU thresholds", "thresholds", thresholds),
                 ("Calibration", "calibration", calibration))  # fmt: skip
        return [(title, Drawn(key, tuple(charts))) for title, key, charts in kinds if charts]

    @property
    def note(self) -> str:
        """A sentence if models are left out of charts, else empty."""
        more = any(len(_reported(self.board, dataset)) > CURVES for dataset in self.board.datasets)
        return f"Of every dataset the first {CURVES} models." if more else ""


def _learning_charts(board: Board) -> list[tuple[str, Spec]]:
    """Draw the trainings whose checkpoints were run, by dataset and format."""
    by_dataset: dict[str, list[LearningCurve]] = {}
    for curve in learning_curves([row.run for row in board.runs]):
        if len(curve.points) > 1:
            by_dataset.setdefault(curve.dataset, []).append(curve)
    return [(dataset, learning_chart(curves)) for dataset, curves in by_dataset.items()]


def _first(board: Board, dataset: ComparableRuns) -> list[Run]:
    return _reported(board, dataset)[:CURVES]


def _reported(board: Board, dataset: ComparableRuns) -> list[Run]:
    """Return the reported runs of a dataset, by the rank of their models."""
    cells = (board.cells.get((model, dataset.name)) for model in board.models)
    return [cell.run for cell in cells if cell is not None and cell.run is not None]


def reasons_of(board: Board) -> Iterator[tuple[FormatRow, dict[str, float]]]:
    """Yield every run with replies that were not in the format, with the shares of the reasons.

    In percent of its replies (failed calls are none), the most frequent reason first.
    """
    for entry in board.runs:
        replies = [row for row in entry.run.rows if not row.failed]
        counts = Counter(row.reason for row in replies if row.reason)
        if counts:
            yield entry, {reason: 100.0 * n / len(replies) for reason, n in counts.most_common()}
