"""The charts of score against cost: axes, points and the Pareto front.

A page holds a chart without points for each cost, and the points of each panel once; the script
``costs.js`` puts them together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from ..analysis import counted_score, pareto_front, shared_costs
from ..core import printable
from ..leaderboard import (
    Board,
    Column,
    Field,
    FieldType,
    FormatRow,
    Table,
    TableCell,
    amount_column,
    cost_words,
    group_by,
    table_of,
    text_of,
    value_column,
)
from ..protocol import COSTS, Cost, Metric, RunCosts, mean_costs
from ..scoring import Run
from ..statistics import Interval
from .charts import (
    COLOURS,
    DRAWN_MAPS,
    GREY,
    INK,
    TEXT,
    Fit,
    Spec,
    chart,
    layer,
    names_of,
    nominal,
    number,
    score_axis,
)
from .standings import MODELS, Panel
from .value_text import ends

_WIDTH, _HEIGHT = 1060, 340  # In pixels, before the script fits a chart to the page
_PADDING = 24  # Pixels between the points and the edges
_FAR_APART = 20  # From this ratio of the highest to the lowest cost on, their axis is logarithmic
LOGARITHMIC = ", logarithmic"  # Behind the title of such an axis
_FEWEST_DRAWN = 3  # Points of a panel: a front of one or two is read in the table
# What a point is in a chart
STANDINGS = ("on the Pareto front", "behind it", "known of some answers: not compared")
_ON, _BEHIND, _IN_PART = STANDINGS


@dataclass(frozen=True)
class CostCharts:
    """Score against cost, for one panel and one cost at a time.

    ``key`` is unique on a page. ``preferred`` is the key of the axis that is shown first, unless
    more points know another.
    """

    key: str
    panels: tuple[CostPanel, ...]  # At least one
    preferred: str

    @cached_property
    def axes(self) -> list[int]:
        """The places of those of :data:`.COST_AXES` of which something is known."""
        return known_axes(self.panels)

    @property
    def is_worth_drawing(self) -> bool:
        """Whether a panel has so many points that a chart says more than the table."""
        return any(len(panel.points) >= _FEWEST_DRAWN for panel in self.panels)

    @property
    def choices(self) -> list[str]:
        """The names of the costs that can be chosen."""
        return [COST_AXES[axis].axis for axis in self.axes]

    @property
    def first(self) -> int:
        """The place among :attr:`axes` of the one that is shown first."""

        def rank(place: int) -> tuple[int, bool]:
            axis = self.axes[place]
            return len(self.panels[0].known(axis)), COST_AXES[axis].words == self.preferred

        return max(range(len(self.axes)), key=rank)

    @property
    def lacking(self) -> list[str]:
        """The names of the points that the first chart lacks."""
        panel = self.panels[0]
        costs = panel.costs(self.axes[self.first])
        named = zip(panel.points, costs, strict=True)
        names = names_of(point.label for point in panel.points)
        return [names[point.label] for point, cost in named if cost is None]

    @property
    def front(self) -> list[str]:
        """The points on the front of the first chart, with score and cost."""
        unit = _unit(self.panels[0].metric)
        rows = (row for row in self._first_rows if row["front"])
        return [f"{row['name']} ({row['score']:.1f}{unit}, {row['digits']})" for row in rows]

    @property
    def _first_rows(self) -> list[dict[str, Any]]:
        """The points of the first chart, the cheapest first."""
        rows = []
        for point in _points(self.panels[0], [self.axes[self.first]]):
            (cost,) = point.pop("costs")
            if cost is not None:
                rows.append({**point, **cost})
        return sorted(rows, key=lambda row: row["cost"])

    @cached_property
    def _score_axis(self) -> tuple[str, Spec]:
        """Title and scale of the axis of scores, the same for all panels."""
        lows = []
        for panel in self.panels:
            for point in panel.points:
                low, _ = ends(point.interval)
                lows.append(point.score if low is None else low)
        return score_axis(self.panels[0].metric, min(lows))

    @property
    def _standings(self) -> Sequence[str]:
        """The standings that a chart of these has: the same in all, as is their legend."""
        in_part = (panel.in_part(axis) for panel in self.panels for axis in self.axes)
        return STANDINGS if any(in_part) else STANDINGS[:2]

    def values(self) -> dict[str, Any]:
        """Return what the page's script draws the charts from."""
        metric = self.panels[0].metric
        panels = []
        for panel in self.panels:
            is_log = [is_far_apart(panel.known(axis)) for axis in self.axes]
            points = _points(panel, self.axes)
            panels.append({"title": printable(panel.title), "is_log": is_log, "points": points})
        return {
            "charts": [
                cost_chart(metric, choice, self._score_axis, self._standings)
                for choice in self.choices
            ],
            "choices": self.choices,
            "logarithmic": LOGARITHMIC,
            "panels": panels,
            "unit": _unit(metric),
        }


def _unit(metric: Metric) -> str:
    """Return what follows a score."""
    return f" {metric.unit}".rstrip()


def _points(panel: CostPanel, axes: Sequence[int]) -> list[dict[str, Any]]:
    """Return the points of a panel for charts, each with its ``costs`` on some axes."""
    names = names_of(point.label for point in panel.points)
    points = []
    for at, point in enumerate(panel.points):
        costs: list[Spec | None] = []
        for axis in axes:
            cost = COST_AXES[axis].of_run(point.costs)
            if cost is None:
                costs.append(None)
                continue
            note = cost_note(COST_AXES[axis], point.costs)
            costs.append({
                "cost": float(f"{cost:.6g}"), "digits": cost_text(COST_AXES[axis], point.costs),
                "note": f" ({note})" if note else "", "front": at in panel.fronts[axis],
                "standing": panel.standing(at, axis),
            })  # fmt: skip
        low, high = ends(point.interval)
        asked = printable(point.format) if point.format != point.label else ""
        points.append({
            "name": names[point.label], "format": asked, "score": round(point.score, 4),
            "low": low, "high": high, "costs": costs,
        })  # fmt: skip
    return points


def is_far_apart(costs: Sequence[float]) -> bool:
    """Tell whether costs need a logarithmic axis, which has no place for 0.

    >>> is_far_apart([1.0, 30.0]), is_far_apart([1.0, 3.0]), is_far_apart([0.0, 30.0])
    (True, False, False)
    """
    return bool(costs) and min(costs) > 0 and max(costs) / min(costs) >= _FAR_APART


# --- the chart ------------------------------------------------------------------------------------


def cost_chart(
    metric: Metric,
    cost: str,
    scores: tuple[str, Spec],
    standings: Sequence[str] = STANDINGS,
) -> Spec:
    """Draw points of score and cost with the intervals of scores, and the front as a stair.

    The page's script fills in the points, and makes the axis of costs logarithmic where they are
    far apart.

    Args:
        metric: the metric of the scores.
        cost: the title of the axis of costs.
        scores: title and scale of the axis of scores.
        standings: those of :data:`STANDINGS` that points may have.
    """
    plain = {"nice": False, "padding": _PADDING}
    # Costs that are about equal must not look far apart.
    linear = {**plain, "zero": True}
    ticks = {"tickCount": 6}
    x = number("cost", title=cost, scale=linear,
               axis={**ticks, "format": ",~r", "grid": False, "labelLimit": 120})  # fmt: skip
    title, scale = scores
    y = number("score", title=title, scale={**plain, **scale}, axis=ticks)
    place = {"x": x, "y": y}
    looks = {
        channel: nominal("standing",
                         scale={"domain": list(standings), "range": each[: len(standings)]},
                         legend=_LEGEND)
        for channel, each in _LOOKS.items()
    }  # fmt: skip
    # The script fills in the rows, of which none may have an interval: a scale of none has no ends.
    known = [
        {"calculate": f"isValid(datum.{end}) ? datum.{end} : datum.score", "as": f"{end} end"}
        for end in ("low", "high")
    ]
    bounds = {"y": {**y, "field": "low end"}, "y2": {"field": "high end"}}
    spec = chart(
        f"{metric.title} against {cost}, with 95 % intervals and the Pareto front",
        Fit(1, 420, 60, widest=1100), (),
        transform=[
            {"calculate": _text_of_points(metric, cost), "as": "text"},
            *known,
        ],
        width=_WIDTH,
        height=_HEIGHT,
        layer=[
            {"transform": [{"filter": "datum.front"}],
             **layer("line", place, interpolate="step-after", stroke=COLOURS[0], strokeWidth=1.5,
                     opacity=0.7, aria=False)},
            layer("rule", {**place, **bounds, "stroke": looks["stroke"]}, strokeWidth=2,
                  opacity=0.5, aria=False),
            layer("point", {**place, **looks, **TEXT}, size=110, strokeWidth=2, opacity=1),
            layer("text", {**place, "text": {"field": "name"}}, fontSize=12, fill=INK, aria=False,
                  limit={"expr": "width / 2"}),
        ],
    )  # fmt: skip
    spec["usermeta"]["embedOptions"] = {"patch": [_LABELS_WITH_ROOM]}
    return spec


_LEGEND: Spec = {
    "title": None, "orient": "top", "symbolSize": 110, "symbolStrokeWidth": 2, "symbolOpacity": 1,
    "labelLimit": 260,
}  # fmt: skip

# Of points by their standing
_LOOKS = {
    "fill": [COLOURS[0], "transparent", "transparent"],
    "stroke": [COLOURS[0], GREY, GREY],
    "shape": ["diamond", "circle", "cross"],
}

# Labels move to where they have room, and the front has the choice. It is a transform of Vega that
# Vega-Lite has no name for, and needs a canvas.
_LABELS_WITH_ROOM: Spec = {
    "op": "add",
    "path": "/marks/3/transform",
    "value": [{
        "type": "label", "size": [{"signal": "width"}, {"signal": "height"}],
        "sort": {"field": "datum.front", "order": "descending"},
        "avoidMarks": ["layer_0_marks", "layer_2_marks"],
        "anchor": ["right", "left", "top", "bottom", "top-right", "bottom-right"],
        "offset": [8, 8, 8, 8, 13, 13],
        "padding": 0,
    }],
}  # fmt: skip


def _text_of_points(metric: Metric, cost: str) -> str:
    """Return the expression of a point's text, for screen readers and the tip."""
    return (
        "datum.name + (datum.format ? ', ' + datum.format : '')"
        f" + ': ' + format(datum.score, '.1f') + {json.dumps(_unit(metric))}"
        " + (isValid(datum.low) ? ' (' + format(datum.low, '.1f') + ' to '"
        " + format(datum.high, '.1f') + ')' : '')"
        f" + ', ' + datum.digits + ' ' + {json.dumps(cost)} + datum.note"
        f" + (datum.standing === '{_BEHIND}' ? '' : '; ' + datum.standing)"
    )


# Costs that a chart may have as its horizontal axis
COST_AXES = tuple(cost for cost in COSTS if cost.axis)


def cost_text(cost: Cost, costs: RunCosts) -> str:
    """Return a cost of a run as tables write it.

    >>> cost_text(COST_AXES[1], RunCosts(tokens_out=45.25))
    '45.2'
    """
    return text_of(Field(cost.axis, FieldType.AMOUNT), TableCell(cost.of_run(costs)))


def cost_note(cost: Cost, costs: RunCosts) -> str:
    """Return who states a cost of a run, and of how few answers; empty without a need.

    >>> cost_note(COST_AXES[2], RunCosts(queries=9, usd_known=8, usd_source="given prices"))
    'given prices, of 8 of 9 answers'
    """
    known = cost.known(costs)
    few = f"of {known:,} of {costs.queries:,} answers" if known < costs.queries else ""
    return ", ".join(filter(None, (cost.source(costs), few)))


@dataclass(frozen=True, slots=True)
class CostPoint:
    """A model, or a format of one: its score and its costs."""

    model: str
    format: str  # "": several
    label: str  # In a chart
    score: float
    interval: Interval | None
    costs: RunCosts
    # Over the queries that all points of its panel answered: what is compared
    shared: RunCosts


@dataclass(frozen=True)
class CostPanel:
    """The points of one choice, and which of them are on the front."""

    title: str
    dataset: str  # Or the name of an average
    metric: Metric
    points: tuple[CostPoint, ...]

    @cached_property
    def fronts(self) -> list[frozenset[int]]:
        """The places of the points that are on the front, for each of :data:`COST_AXES`.

        Costs are compared over the queries that all points answered. A point whose cost is known of
        some of these only is on none, and beats none; nor is one that scores nothing.
        """
        scores = [self._score_on_front(point) for point in self.points]
        fronts = []
        for axis in COST_AXES:
            costs = [axis.of_all(point.shared) for point in self.points]
            front = pareto_front(scores, costs, self.metric.better)
            fronts.append(frozenset(front))
        return fronts

    def _score_on_front(self, point: CostPoint) -> float | None:
        return point.score if self.metric.can_be_best(point.score) else None

    def standing(self, at: int, axis: int) -> str:
        """Return what a point is by a cost, of :data:`STANDINGS`."""
        if at in self.fronts[axis]:
            return _ON
        return _BEHIND if COST_AXES[axis].of_all(self.points[at].shared) is not None else _IN_PART

    def in_part(self, axis: int) -> bool:
        """Return whether a cost of a point is known of some of its answers only."""
        pairs = zip(self.points, self.costs(axis), strict=True)
        compared = COST_AXES[axis].of_all
        return any(cost is not None and compared(point.shared) is None for point, cost in pairs)

    def costs(self, axis: int) -> list[float | None]:
        """Return the cost of every point; None where it is not known."""
        return [COST_AXES[axis].of_run(point.costs) for point in self.points]

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
    ranked: dict[str, list[Run]] = {}
    for model in board.models:
        entry = board.entry(model, panel.name, headline.name)
        runs = [run for name in panel.datasets if (run := board.run(model, name)) is not None]
        if entry is not None and entry.rank is not None and runs:
            ranked[model] = runs
    shared = _shared_costs(ranked)
    for model, runs in ranked.items():
        entry = board.cells[model, panel.name].entries[headline.name]
        formats = {run.variant.format for run in runs}
        one_format = formats.pop() if len(formats) == 1 else ""
        yield CostPoint(
            model=model,
            format=one_format,
            label=model,
            score=entry.tested,
            interval=entry.tested_interval,
            costs=mean_costs([run.provenance.costs for run in runs]),
            shared=mean_costs(shared[model]),
        )


def _shared_costs(runs: Mapping[str, Sequence[Run]]) -> dict[str, list[RunCosts]]:
    """Return the costs of models on each dataset, over the queries that all of them answered."""
    costs: dict[str, list[RunCosts]] = {model: [] for model in runs}
    by_dataset = group_by(chain.from_iterable(runs.values()), lambda run: run.board_dataset)
    for of_dataset in by_dataset.values():
        for run, shared in zip(of_dataset, shared_costs(of_dataset), strict=True):
            costs[run.model].append(shared)
    return costs


def format_panels(board: Board) -> list[CostPanel]:
    """Return the formats of each model on each dataset that it was run on in several.

    Those of most formats come first, of as many those whose points are the most apart.
    """
    runs = group_by(board.runs, lambda row: (row.dataset, row.run.model))
    panels = []
    for dataset in board.datasets:
        for model in board.models[:DRAWN_MAPS]:
            title = model if len(board.datasets) == 1 else f"{model} on {dataset.name}"
            rows = runs.get((dataset.name, model), [])
            scored = [row for row in rows if counted_score(row.run) is not None]
            shared = shared_costs([row.run for row in scored])
            points = [
                _format_point(board, row, costs) for row, costs in zip(scored, shared, strict=True)
            ]
            panels.append(CostPanel(title, dataset.name, board.headline, tuple(points)))
    return sorted(_with_costs(panels), key=lambda panel: (-len(panel.points), -_places(panel)))


def _places(panel: CostPanel) -> int:
    """Return how many of a panel's points lie apart, by score and tokens out."""
    return len({(round(point.score, 1), point.costs.tokens_out) for point in panel.points})


def _format_point(board: Board, row: FormatRow, shared: RunCosts) -> CostPoint:
    """Return the point of a run that has a score, labelled by its format."""
    run = row.run
    return CostPoint(
        model=run.model,
        format=run.variant.format,
        label=run.variant.format,
        score=counted_score(run) or 0.0,
        interval=row.intervals.get(board.metrics[0].name),
        costs=run.provenance.costs,
        shared=shared,
    )


def _with_costs(panels: Sequence[CostPanel]) -> list[CostPanel]:
    return [panel for panel in panels if len(panel.points) > 1 and known_axes([panel])]


def known_axes(panels: Sequence[CostPanel]) -> list[int]:
    """Return the places of those of :data:`COST_AXES` of which something is known."""
    places = range(len(COST_AXES))
    return [at for at in places if any(panel.known(at) for panel in panels)]


def front_table(board: Board, panels: Sequence[CostPanel]) -> Table:
    """Make a row for each point: its score, its costs, and by which of them it is on the front.

    Where a reader of the costs must know more, the last column says what.
    """
    axes = known_axes(panels)
    items = [_Placed(panel, at) for panel in panels for at in range(len(panel.points))]

    def fronts(item: _Placed) -> str | None:
        on = [COST_AXES[axis].words for axis in axes if item.at in item.panel.fronts[axis]]
        return ", ".join(on) or None

    def words(item: _Placed) -> str:
        return "; ".join(cost_words(item.point.costs))

    columns: list[Column[_Placed]] = [
        Column("model", lambda item: item.point.model),
        Column("format", lambda item: item.point.format or None),
        Column("dataset", lambda item: item.panel.dataset),
        value_column(
            board.headline.name, lambda item: TableCell(item.point.score, item.point.interval)
        ),
    ]
    for axis in axes:
        cost: Column[RunCosts] = amount_column(COST_AXES[axis].axis, COST_AXES[axis].of_run)
        columns.append(cost.by(lambda item: item.point.costs))
    columns.append(Column("on the front by", fronts))
    if any(map(words, items)):
        columns.append(Column("costs", words))
    return table_of("Score and cost", columns, items)


class _Placed(NamedTuple):
    """A point of a panel."""

    panel: CostPanel
    at: int

    @property
    def point(self) -> CostPoint:
        return self.panel.points[self.at]
