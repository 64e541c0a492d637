"""The sections of a page: the charts of a leaderboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..analysis import boxes_of_rows, definitions_in
from ..leaderboard import (
    Ablation,
    Board,
    FormatRow,
    Table,
    find_ablations,
    group_by,
    learning_curves,
)
from ..protocol import ClassCounts, Curve, Metric, failed_calls, reasons
from ..scoring import Run, read_details
from ..statistics import Bin, reliability
from .charts import DRAWN_MAPS, MAPS, FormatCell, Spec, forest, heat_maps
from .class_tables import class_tables
from .cost_charts import CostCharts, format_panels, model_panels
from .curve_charts import (
    FEWEST_CLASSES,
    MOST_CURVES,
    class_curves,
    curves,
    learning_chart,
    reliability_chart,
)
from .pair_choice import Key, page_key
from .standings import Panel
from .transcripts import Transcript


@dataclass(frozen=True, slots=True)
class DrawnCharts:
    """Charts by their titles, shown one at a time; ``key`` is unique on a page."""

    key: str
    charts: tuple[tuple[str, Spec], ...]


def short_metrics(board: Board) -> list[Metric]:
    """Return the metrics for places with little room."""
    return [metric for metric in board.shown if metric.in_short_tables]


def forest_of(board: Board, panels: Sequence[Panel]) -> DrawnCharts | None:
    """Draw the dots of models; None if nothing can be compared."""
    if not panels:
        return None
    return DrawnCharts("standings", (("", forest(board.headline, board.models, panels)),))


def heat_maps_of(board: Board) -> DrawnCharts | None:
    """Draw the formats of models, the dataset with most formats first.

    None if no model was run in more than one format.
    """
    runs = group_by(board.runs, lambda row: (row.dataset, row.run.model))
    maps: dict[str, list[list[FormatCell]]] = {}
    for dataset in board.datasets:
        for model in board.models:
            rows = runs.get((dataset.name, model), [])
            if len(rows) > 1 and (cells := _cells(board, rows)):
                maps.setdefault(dataset.name, []).append(cells)

    # With equally many formats, the order of the board.
    def formats(name: str) -> int:
        return len({cell.row + cell.column for map_ in maps[name] for cell in map_})

    values: list[float] = []
    for maps_of_dataset in maps.values():
        for map_ in maps_of_dataset:
            values += [cell.value for cell in map_]
    ends = (0.0, 100.0)
    if values and not board.headline.share:
        ends = (min(values), max(values))
    charts = []
    for name in sorted(maps, key=formats, reverse=True):
        for first in range(0, min(len(maps[name]), DRAWN_MAPS), MAPS):
            some = maps[name][first : first + MAPS]
            which = f", models {first + 1}–{first + len(some)}" if len(maps[name]) > MAPS else ""
            cells = [cell for map_ in some for cell in map_]
            spec = heat_maps(board.headline, board.benchmark.format_axes, cells, ends)
            charts.append((name + which, spec))
    return DrawnCharts("formats", tuple(charts)) if charts else None


def _cells(board: Board, rows: Sequence[FormatRow]) -> list[FormatCell]:
    """Return the values of a model's formats, in the benchmark's order."""
    cells = []
    metric = board.headline
    for row in sorted(rows, key=lambda row: row.run.variant.format_place):
        if (value := row.run.value(metric)) is not None:
            bounds = row.intervals.get(metric.name)
            place = row.run.variant.format_cell
            queries = len(row.run.rows)
            cells.append(FormatCell(row.run.model, *place, value, bounds, queries, row.reported))
    return cells


def ablations_of(board: Board) -> list[Ablation]:
    """Find the only axis in which the comparable runs of a board differ; none of several."""
    rank = {model: at for at, model in enumerate(board.models)}
    runs = [row.run for row in board.runs]
    runs.sort(key=lambda run: (rank.get(run.model, len(rank)), run.variant.format_place))
    return find_ablations(runs, ascending=True)


def model_costs_of(board: Board, panels: Sequence[Panel]) -> CostCharts | None:
    """Draw score against cost of models; None unless a cost is known, and there are two models."""
    costs = model_panels(board, panels)
    return CostCharts("model-costs", tuple(costs), "seconds") if costs else None


def format_costs_of(board: Board) -> CostCharts | None:
    """Draw score against cost of the formats of each model; None as :func:`model_costs_of`."""
    costs = format_panels(board)
    # Formats that a model answers in one batch share its seconds.
    return CostCharts("format-costs", tuple(costs), "tokens out") if costs else None


class DetailedCharts:
    """The charts of a board that need the details of all rows of a run.

    They show the first :data:`.curve_charts.MOST_CURVES` models of every dataset.
    """

    def __init__(self, board: Board) -> None:
        self.board = board
        self.runs: dict[str, list[Run]] = {}  # By dataset, by the rank of their models
        for name in (dataset.name for dataset in board.datasets):
            shown = [run for model in board.models if (run := board.run(model, name))]
            # Of rows that random ones stand for only the sums are known.
            self.runs[name] = [run for run in shown if run.random is None]
        self.keys = {page_key(run) for runs in self.runs.values() for run in runs[:MOST_CURVES]}
        self.curves: dict[Key, Curve] = {}
        self.bins: dict[Key, dict[str, Sequence[Bin]]] = {}
        self.classes: dict[Key, ClassCounts] = {}

    def add(self, transcript: Transcript) -> None:
        """Add curve, bins and classes of a run that the page shows; its details are not kept.

        Raises:
            RunError: they are gone, or damaged.
        """
        key = page_key(transcript.run)
        if key not in self.keys:
            return
        rows = read_details(transcript.run)
        if (curve := transcript.run.benchmark.curve(transcript.dataset, rows)) is not None:
            self.curves[key] = curve
        benchmark = transcript.run.benchmark
        if (counts := benchmark.class_counts(transcript.dataset, rows)) is not None:
            self.classes[key] = counts
        if names := definitions_in(rows):
            self.bins[key] = {name: reliability(boxes_of_rows(rows, name)) for name in names}

    def drawn(self) -> list[tuple[str, DrawnCharts]]:
        """Return the charts by their titles, of every dataset that has them."""
        learning = learning_curves(self.board.datasets)
        with_curve = [curve for curve in learning if len(curve.points) > 1]
        by_dataset = group_by(with_curve, lambda curve: curve.dataset)
        checkpoints = [(name, learning_chart(group)) for name, group in by_dataset.items()]
        thresholds: list[tuple[str, Spec]] = []
        calibration: list[tuple[str, Spec]] = []
        classes: list[tuple[str, Spec]] = []
        for name, runs in self.runs.items():
            models = {page_key(run): run.model for run in runs[:MOST_CURVES]}
            lines = {models[key]: self.curves[key] for key in models if key in self.curves}
            if lines:
                thresholds.append((name, curves(name, lines)))
            with_bins = (key for key in models if any(self.bins.get(key, {}).values()))
            bins = {models[key]: self.bins[key] for key in with_bins}
            if bins:
                calibration.append((name, reliability_chart(bins)))
            by_class = {run.model: self._by_class(run) for run in runs[:MOST_CURVES]}
            known = {m: values for m, values in by_class.items() if len(values) >= FEWEST_CLASSES}
            if known:
                classes.append((name, class_curves(name, self._class_title, known)))
        kinds = {
            "Checkpoints": DrawnCharts("checkpoints", tuple(checkpoints)),
            "IoU thresholds": DrawnCharts("thresholds", tuple(thresholds)),
            "Classes, the best first": DrawnCharts("classes", tuple(classes)),
            "Calibration": DrawnCharts("calibration", tuple(calibration)),
        }
        return [(title, drawn) for title, drawn in kinds.items() if drawn.charts]

    @property
    def _class_title(self) -> str:
        """What the values of a class are."""
        metric = self.board.benchmark.class_metric
        return self.board.benchmark.metrics[0].title if metric is None else metric.title

    def _by_class(self, run: Run) -> dict[str, float]:
        """Return the values of a run by class; none where its objects have no classes."""
        metric = run.benchmark.class_metric
        if metric is not None:
            return metric.values_over(run.sums)
        counts = self.classes.get(page_key(run))
        if counts is None:
            return {}
        values = {name: counts.f1(name) for name in counts.objects}
        return {name: value for name, value in values.items() if value is not None}

    def class_tables(self) -> list[Table]:
        """Return the tables of classes, of every dataset that has them."""
        tables = []
        for name, runs in self.runs.items():
            by_model = {run.model: self.classes.get(page_key(run)) for run in runs[:MOST_CURVES]}
            known = {model: counts for model, counts in by_model.items() if counts is not None}
            tables += class_tables(name, known)
        return tables

    @property
    def note(self) -> str:
        """Sentences on what is left out of charts, else empty."""
        sentences = []
        if any(len(runs) > MOST_CURVES for runs in self.runs.values()):
            sentences.append(f"Of every dataset the first {MOST_CURVES} models.")
        if any(row.run.random is not None for row in self.board.runs):
            sentences.append(
                "Scores in which random rows stand for others have no curve over IoU thresholds "
                "and no calibration: of the others only sums are known."
            )
        return " ".join(sentences)


def reasons_of(board: Board) -> Iterator[tuple[FormatRow, dict[str, float]]]:
    """Yield every run with replies that were not in the format, with the shares of the reasons.

    In percent of its replies (failed calls are none), the most frequent reason first.
    """
    for entry in board.runs:
        rows = entry.run.rows
        why = zip(reasons(rows), failed_calls(rows), strict=True)
        counts = Counter(reason for reason, failed in why if reason and not failed)
        if counts:
            replies = len(rows) - entry.run.failed
            yield entry, {reason: 100.0 * n / replies for reason, n in counts.most_common()}
