"""Points of score and cost: the models of a dataset or average, and the formats of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..analysis import counted_score, pareto_front
from ..leaderboard import (
    Board,
    Field,
    FieldType,
    FieldValue,
    FormatRow,
    Table,
    TableCell,
    cost_words,
    grouped,
    mean_costs,
    text_of,
)
from ..protocol import Metric
from ..scoring import RunCosts
from ..statistics import Interval
from .charts import DRAWN_MAPS
from .standings import MODELS, Panel


@dataclass(frozen=True, slots=True)
class CostAxis:
    """A cost that a chart can have as its axis.

    ``known`` is the number of answers that it is known of; ``source`` says who states it.
    """

    key: str
    name: str
    value: Callable[[RunCosts], float | None]
    known: Callable[[RunCosts], int]
    source: Callable[[RunCosts], str] = lambda costs: ""

    def text(self, costs: RunCosts) -> str:
        """Return the cost as tables write it.

        >>> COST_AXES[1].text(RunCosts(tokens_out=45.25))
        '45.2'
        """
        return text_of(Field(self.name, FieldType.AMOUNT), TableCell(self.value(costs)))

    def note(self, costs: RunCosts) -> str:
        """Return who states it, and of how few answers; empty without a need.

        >>> COST_AXES[2].note(RunCosts(queries=9, usd_known=8, usd_source="given prices"))
        'given prices, of 8 of 9 answers'
        """
        known = self.known(costs)
        few = f"of {known:,} of {costs.queries:,} answers" if known < costs.queries else ""
        return ", ".join(filter(None, (self.source(costs), few)))


# Costs that a chart may have as its horizontal axis
COST_AXES = (
    CostAxis(
        "seconds",
        "seconds a query (median)",
        lambda costs: costs.seconds_median,
        lambda costs: costs.seconds_known,
    ),
    CostAxis(
        "tokens out",
        "tokens out a query",
        lambda costs: costs.tokens_out,
        lambda costs: costs.tokens_out_known,
    ),
    CostAxis(
        "dollars",
        "dollars for 1,000 queries",
        lambda costs: costs.usd_per_1000,
        lambda costs: costs.usd_known,
        lambda costs: costs.usd_source,
    ),
    CostAxis(
        "pixels",
        "pixels sent a query",
        lambda costs: costs.pixels,
        lambda costs: costs.pixels_known,
    ),
    CostAxis(
        "GPU seconds",
        "GPU seconds a query",
        lambda costs: costs.gpu_seconds,
        lambda costs: costs.gpu_seconds_known,
    ),
    CostAxis(
        "CPU seconds",
        "CPU seconds a query",
        lambda costs: costs.cpu_seconds,
        lambda costs: costs.cpu_seconds_known,
    ),
)


@dataclass(frozen=True, slots=True)
class CostPoint:
    """A model, or a format of one: its score and its costs."""

    model: str
    format: str  # "": several
    label: str  # In a picture
    score: float
    interval: Interval | None
    costs: RunCosts


@dataclass(frozen=True)
class CostPanel:
    """The points of one choice, and which of them are on the front."""

    title: str
    dataset: str  # Or the name of an average
    metric: Metric
    points: tuple[CostPoint, ...]

    @cached_property
    def fronts(self) -> list[frozenset[int]]:
        """The places of the points that are on the front, for each of :data:`COST_AXES`."""
        scores = [point.score for point in self.points]
        fronts = []
        for axis in range(len(COST_AXES)):
            front = pareto_front(scores, self.costs(axis), self.metric.better)
            fronts.append(frozenset(front))
        return fronts

    def costs(self, axis: int) -> list[float | None]:
        """Return the cost of every point; None where it is not known."""
        return [COST_AXES[axis].value(point.costs) for point in self.points]

    def known(self, axis: int) -> list[float]:
        """Return the costs that are known."""
        return [cost for cost in self.costs(axis) if cost is not None]


# --- the points of a board ------------------------------------------------------------------------


def model_panels(board: Board, panels: Sequence[Panel]) -> list[CostPanel]:
    """Return the models of each panel of the standings, in their reported formats.

    They are those of the standings, and whoever is on a front: a cheap model may have a low rank.
    Panels without a known cost, or with a single model, are left out.
    """
    first = frozenset(board.models[:MODELS])
    drawn = []
    for panel in panels:
        every = CostPanel(
            panel.name, panel.name, board.headline, tuple(_model_points(board, panel))
        )
        on_a_front = frozenset().union(*every.fronts)
        points = [
            point
            for at, point in enumerate(every.points)
            if point.model in first or at in on_a_front
        ]
        drawn.append(CostPanel(panel.name, panel.name, board.headline, tuple(points)))
    return _with_costs(drawn)


def _model_points(board: Board, panel: Panel) -> Iterator[CostPoint]:
    headline = board.metrics[0]  # By which models have their rank: failed calls are misses
    for model in board.models:
        entry = board.entry(model, panel.name, headline.name)
        runs = [run for name in panel.datasets if (run := board.run(model, name)) is not None]
        if entry is None or entry.rank is None or not runs:
            continue
        formats = {run.variant.format for run in runs}
        one_format = formats.pop() if len(formats) == 1 else ""
        yield CostPoint(
            model=model,
            format=one_format,
            label=f"{model} · {one_format}" if one_format else model,
            score=entry.tested,
            interval=entry.tested_interval,
            costs=mean_costs([run.provenance.costs for run in runs]),
        )


def format_panels(board: Board) -> list[CostPanel]:
    """Return the formats of each model on each dataset that it was run on in several."""
    runs = grouped(board.runs, lambda row: (row.dataset, row.run.model))
    panels = []
    for dataset in board.datasets:
        for model in board.models[:DRAWN_MAPS]:
            title = model if len(board.datasets) == 1 else f"{model} on {dataset.name}"
            rows = runs.get((dataset.name, model), [])
            points = [point for row in rows if (point := _format_point(board, row)) is not None]
            panels.append(CostPanel(title, dataset.name, board.headline, tuple(points)))
    return _with_costs(panels)


def _format_point(board: Board, row: FormatRow) -> CostPoint | None:
    """Return the point of a run, labelled by its format; None if it has no score."""
    run = row.run
    score = counted_score(run)
    if score is None:
        return None
    return CostPoint(
        model=run.model,
        format=run.variant.format,
        label=run.variant.format,
        score=score,
        interval=row.intervals.get(board.metrics[0].name),
        costs=run.provenance.costs,
    )


def _with_costs(panels: Sequence[CostPanel]) -> list[CostPanel]:
    return [panel for panel in panels if len(panel.points) > 1 and known_axes([panel])]


def known_axes(panels: Sequence[CostPanel]) -> list[int]:
    """Return the places of those of :data:`COST_AXES` of which something is known."""
    places = range(len(COST_AXES))
    return [at for at in places if any(panel.known(at) for panel in panels)]


def cost_table(board: Board, panels: Sequence[CostPanel]) -> Table:
    """Make a row for each point: its score, its costs, and by which of them it is on the front.

    Where a reader of the costs must know more, the last column says what.
    """
    axes = known_axes(panels)
    fields = [
        Field("model"),
        Field("format"),
        Field("dataset"),
        Field(board.headline.name, FieldType.VALUE, interval=True),
        *(Field(COST_AXES[axis].name, FieldType.AMOUNT) for axis in axes),
        Field("on the front by"),
        Field("costs"),
    ]
    rows: list[list[FieldValue]] = []
    for panel in panels:
        for at, point in enumerate(panel.points):
            row: list[FieldValue] = [point.model, point.format or None, panel.dataset]
            row.append(TableCell(point.score, point.interval))
            row += [COST_AXES[axis].value(point.costs) for axis in axes]
            fronts = [COST_AXES[axis].key for axis in axes if at in panel.fronts[axis]]
            row.append(", ".join(fronts) or None)
            row.append("; ".join(cost_words(point.costs)))
            rows.append(row)
    table = Table("Score and cost", fields, rows)
    if any(row[-1] for row in rows):
        return table
    return table.only(*(field.name for field in fields[:-1]))
