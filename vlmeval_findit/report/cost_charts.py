"""The charts of score against cost: points, the Pareto front, and a cost that the reader chooses.

A page holds a chart without points for each cost, and the points of each panel once; the script
``costs.js`` puts them together as :meth:`CostCharts.picture` does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Any

from markupsafe import Markup

from ..core import printable
from ..protocol import Metric
from .charts import COLOURS, GREY, INK, TEXT, Fit, Spec, chart, layer, name, nominal, number, svg
from .cost_points import COST_AXES, CostPanel, known_axes
from .label_places import place_labels
from .value_text import ends

_WIDTH, _HEIGHT = 1060, 340  # In pixels, of a picture that no script has fitted to the page
_PADDING = 24  # Pixels between the points and the edges
_FAR_APART = 20  # From this ratio of the highest to the lowest cost on, their axis is logarithmic
_ON, _BEHIND = "on the Pareto front", "behind it"


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
    def choices(self) -> list[str]:
        """The names of the costs that can be chosen."""
        return [COST_AXES[axis].name for axis in self.axes]

    @property
    def first(self) -> int:
        """The place among :attr:`axes` of the one that is shown first."""

        def rank(place: int) -> tuple[int, bool]:
            axis = self.axes[place]
            return len(self.panels[0].known(axis)), COST_AXES[axis].key == self.preferred

        return max(range(len(self.axes)), key=rank)

    @property
    def lacking(self) -> list[str]:
        """The names of the points that the first picture lacks."""
        panel = self.panels[0]
        costs = panel.costs(self.axes[self.first])
        named = zip(panel.points, costs, strict=True)
        return [name(point.label) for point, cost in named if cost is None]

    @property
    def front(self) -> list[str]:
        """The points on the front of the first picture, with score and cost."""
        unit = _unit(self.panels[0].metric)
        rows = (row for row in self._first_rows if row["front"])
        return [f"{row['name']} ({row['score']:.1f}{unit}, {row['digits']})" for row in rows]

    @property
    def _first_rows(self) -> list[dict[str, Any]]:
        """The points of the first picture, the cheapest first."""
        rows = []
        for point in _points(self.panels[0], [self.axes[self.first]]):
            (cost,) = point.pop("costs")
            if cost is not None:
                rows.append({**point, **cost})
        return sorted(rows, key=lambda row: row["cost"])

    def picture(self) -> Markup:
        """Return the first chart as a picture, shown until the script draws, and in print."""
        panel, axis = self.panels[0], self.axes[self.first]
        is_log = is_far_apart(panel.known(axis))
        rows = _with_label_places(self._first_rows, is_log)
        return Markup(svg(cost_chart(panel.metric, COST_AXES[axis].name, rows, is_log), self.key))

    def values(self) -> dict[str, Any]:
        """Return what the page's script draws the charts from."""
        metric = self.panels[0].metric
        panels = []
        for panel in self.panels:
            is_log = [is_far_apart(panel.known(axis)) for axis in self.axes]
            points = _points(panel, self.axes)
            panels.append({"title": printable(panel.title), "is_log": is_log, "points": points})
        return {
            "charts": [cost_chart(metric, choice) for choice in self.choices],
            "choices": self.choices,
            "panels": panels,
            "unit": _unit(metric),
        }


def _unit(metric: Metric) -> str:
    """Return what follows a score."""
    return f" {metric.unit}".rstrip()


def _points(panel: CostPanel, axes: Sequence[int]) -> list[dict[str, Any]]:
    """Return the points of a panel for charts, each with its ``costs`` on some axes."""
    points = []
    for at, point in enumerate(panel.points):
        costs: list[Spec | None] = []
        for axis in axes:
            cost = COST_AXES[axis].value(point.costs)
            if cost is None:
                costs.append(None)
                continue
            note = COST_AXES[axis].note(point.costs)
            costs.append({
                "cost": float(f"{cost:.6g}"), "digits": COST_AXES[axis].text(point.costs),
                "note": f" ({note})" if note else "", "front": at in panel.fronts[axis],
            })  # fmt: skip
        low, high = ends(point.interval)
        points.append({
            "name": name(point.label), "score": round(point.score, 4), "low": low, "high": high,
            "costs": costs,
        })  # fmt: skip
    return points


def is_far_apart(costs: Sequence[float]) -> bool:
    """Tell whether costs need a logarithmic axis, which has no place for 0.

    >>> is_far_apart([1.0, 30.0]), is_far_apart([1.0, 3.0]), is_far_apart([0.0, 30.0])
    (True, False, False)
    """
    return bool(costs) and min(costs) > 0 and max(costs) / min(costs) >= _FAR_APART


# --- the chart ------------------------------------------------------------------------------------


def cost_chart(metric: Metric, cost: str, rows: Sequence[Spec] = (), is_log: bool = False) -> Spec:
    """Draw points of score and cost with the intervals of scores, and the front as a stair.

    Args:
        metric: the metric of the scores.
        cost: the title of the axis of costs.
        rows: the points, the cheapest first; none: the page's script fills them in.
        is_log: whether the axis of costs is logarithmic.
    """
    plain = {"nice": False, "padding": _PADDING}
    linear = {**plain, "zero": False}
    ticks = {"tickCount": 6}
    x = number("cost", title=cost, scale={**plain, "type": "log"} if is_log else linear,
               axis={**ticks, "format": ",~r", "grid": False, "labelLimit": 120})  # fmt: skip
    title = f"{metric.title} (%)" if metric.share else metric.title
    y = number("score", title=title, scale=linear, axis=ticks)
    place = {"x": x, "y": y}
    looks = {
        channel: nominal("standing", scale={"domain": [_ON, _BEHIND], "range": both},
                         legend=_LEGEND)
        for channel, both in _LOOKS.items()
    }  # fmt: skip
    # The script fills in the rows, of which none may have an interval: a scale of none has no ends.
    known = [
        {"calculate": f"isValid(datum.{end}) ? datum.{end} : datum.score", "as": f"{end} end"}
        for end in ("low", "high")
    ]
    bounds = {"y": {**y, "field": "low end"}, "y2": {"field": "high end"}}
    spec = chart(
        f"{metric.title} against {cost}, with 95 % intervals and the Pareto front",
        Fit(1, 420, 60, widest=1100), rows,
        transform=[
            {"calculate": _text_of_points(metric, cost), "as": "text"},
            {"calculate": f"datum.front ? '{_ON}' : '{_BEHIND}'", "as": "standing"},
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
            {"transform": [{"filter": "!datum.crowded"}],
             **layer("text", {**place, "text": {"field": "name"}}, fontSize=12, fill=INK,
                     aria=False, limit={"expr": "width / 2"},
                     **{look: {"expr": f"datum.{look} || {usual}"}
                        for look, usual in (("align", "'left'"), ("dx", 0), ("dy", 0))})},
        ],
    )  # fmt: skip
    spec["usermeta"]["embedOptions"] = {"patch": [_LABELS_WITH_ROOM]}
    return spec


_LEGEND: Spec = {
    "title": None, "orient": "top", "symbolSize": 110, "symbolStrokeWidth": 2, "symbolOpacity": 1,
}  # fmt: skip

# Of points on the front, and of those behind it
_LOOKS = {
    "fill": [COLOURS[0], "transparent"],
    "stroke": [COLOURS[0], GREY],
    "shape": ["diamond", "circle"],
}

# In a browser labels move to where they have room, in a picture of any width, and the front has the
# choice. It is a transform of Vega that Vega-Lite has no name for, and needs a canvas.
_LABELS_WITH_ROOM: Spec = {
    "op": "add",
    "path": "/marks/3/transform",
    "value": [{
        "type": "label", "size": [{"signal": "width"}, {"signal": "height"}],
        "sort": {"field": "datum.front", "order": "descending"}, "avoidMarks": ["layer_2_marks"],
        "anchor": ["right", "left", "top", "bottom", "top-right", "bottom-right"],
        "offset": [8, 8, 8, 8, 13, 13],
        "padding": 0,
    }],
}  # fmt: skip


def _text_of_points(metric: Metric, cost: str) -> str:
    """Return the expression of a point's text, for screen readers and the tip."""
    return (
        f"datum.name + ': ' + format(datum.score, '.1f') + {json.dumps(_unit(metric))}"
        " + (isValid(datum.low) ? ' (' + format(datum.low, '.1f') + ' to '"
        " + format(datum.high, '.1f') + ')' : '')"
        f" + ', ' + datum.digits + ' ' + {json.dumps(cost)} + datum.note"
        f" + (datum.front ? '; {_ON}' : '')"
    )


def _with_label_places(rows: Sequence[Spec], is_log: bool) -> list[Spec]:
    """Place labels for a picture that no browser draws, the front first."""
    rows = sorted(rows, key=lambda row: not row["front"])
    across = _pixels([log(row["cost"]) if is_log else row["cost"] for row in rows], _WIDTH)
    scores = [row["score"] for row in rows]
    bounds = [row[end] for row in rows for end in ("low", "high") if row[end] is not None]
    up = _pixels([*scores, *bounds], _HEIGHT)[: len(rows)]
    points = [(x, _HEIGHT - y) for x, y in zip(across, up, strict=True)]
    places = place_labels(points, [row["name"] for row in rows], (_WIDTH, _HEIGHT))
    placed = []
    for row, place in zip(rows, places, strict=True):
        placed.append({**row, "crowded": True} if place is None else {**row, **place._asdict()})
    return sorted(placed, key=lambda row: row["cost"])


def _pixels(values: Sequence[float], size: int) -> list[float]:
    """Return how far values are from the origin of an axis of this length."""
    least, most = min(values, default=0.0), max(values, default=0.0)
    room = size - 2 * _PADDING
    if least == most:
        return [_PADDING + room / 2 for _ in values]
    return [_PADDING + room * (value - least) / (most - least) for value in values]
