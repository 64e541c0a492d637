"""The charts of the report in the grammar of Vega-Lite: plain dicts that contain their data.

``usermeta`` fits a chart to the page: the number of ``panels``, the width of a ``panel`` in pixels,
whether they ``stretch`` to the width of the page, and the width of ``labels`` left of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from ..boxes.confidences import MEANS
from ..core.drawing import Curve
from ..core.formatting import printable, short
from ..core.metric import Metric
from ..leaderboard.learning_curve import LearningCurve
from ..runs.run_calibration import Bin
from .standings import ALIKE, BEST, LOWER, STANDINGS, UNTESTED, Panel, with_unit
from .vega import CONFIG, INK, Spec

COLOURS = (
    "#3b86c8", "#d97b20", "#2b9a73", "#c9618f", "#8f7bd8", "#9a8a34", "#d0695f", "#3f9aab",
)  # fmt: skip
"""Of middle lightness, so that they stand out from light and dark alike."""

_SHAPES = ("circle", "square", "diamond", "cross", "triangle-up", "triangle-down")

CURVES = 2 * len(COLOURS)
"""Most models whose curves a chart shows, the best: more are not readable. No two share both colour
and shape."""

MAPS = 12
"""Most models whose heat maps are in a chart."""

_LONGEST = 40
_WIDE = 1150
"""Width of a page in pixels, for the pictures that it shows until the script draws."""


def name(text: str) -> str:
    """Return a name as charts show it."""
    return short(printable(text), _LONGEST)


def _chart(alt: str, fit: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "description": printable(alt), "usermeta": dict(fit), "config": dict(CONFIG), **body
    }  # fmt: skip


def _columns(count: int, panel: int, labels: int) -> int:
    most = max(1, (_WIDE - labels) // panel)
    return ceil(count / ceil(count / most))  # Rows of about the same length


# --- standings ------------------------------------------------------------------------------------

_FILLED = {BEST: COLOURS[0], ALIKE: COLOURS[0], LOWER: "transparent", UNTESTED: "transparent"}
_STROKES = {BEST: COLOURS[0], ALIKE: COLOURS[0], LOWER: "#7d8896", UNTESTED: "#7d8896"}
_DOTS = {BEST: "diamond", ALIKE: "circle", LOWER: "circle", UNTESTED: "triangle-up"}


def forest(metric: Metric, models: Sequence[str], panels: Sequence[Panel]) -> Spec:
    """Draw a dot with its interval for each model in each panel.

    Dots that are not significantly worse than the best of their panel are filled.
    """
    order = list(dict.fromkeys(dot.model for panel in panels for dot in panel.dots))
    order.sort(key=models.index)
    rows = []
    for panel in panels:
        for dot in panel.dots:
            bounds = dot.entry.interval
            spread = f" ({bounds.low:.1f} to {bounds.high:.1f})" if bounds else ""
            rows.append({
                "panel": name(panel.name), "model": name(dot.model), "standing": dot.standing,
                "value": round(dot.entry.value, 2),
                "low": round(bounds.low, 2) if bounds else None,
                "high": round(bounds.high, 2) if bounds else None,
                "text": f"{name(dot.model)}, {name(panel.name)}: "
                f"{with_unit(metric, dot.entry.value)}{spread}; {dot.standing}",
            })  # fmt: skip
    shown = [standing for standing in STANDINGS if any(row["standing"] == standing for row in rows)]
    y = {"field": "model", "type": "nominal", "title": None, "sort": [*map(name, order)],
         "axis": {"grid": True, "ticks": False, "domain": False, "labelPadding": 8}}  # fmt: skip
    best = "; ".join(f"{panel.name}: {panel.dots[0].model}" for panel in panels)
    fill, stroke, shape = (
        {"field": "standing", "type": "nominal", "scale": {"domain": shown,
         "range": [table[standing] for standing in shown]},
         "legend": {"title": None, "orient": "top", "symbolSize": 110, "symbolStrokeWidth": 2}}
        for table in (_FILLED, _STROKES, _DOTS)
    )  # fmt: skip
    x = {"field": "low", "type": "quantitative", "title": None, "scale": {"zero": False},
         "axis": {"tickCount": 4, "labelFlush": False}}  # fmt: skip
    labels = min(200, 30 + 7 * max(len(name(model)) for model in order))
    across = _columns(len(panels), 190, labels)
    return _chart(
        f"{metric.title} with 95 % intervals; best: {best}",
        {"panel": 190, "panels": len(panels), "labels": labels, "stretch": True},
        {
            "data": {"values": rows},
            "facet": {"field": "panel", "type": "nominal", "title": None,
                      "sort": [name(panel.name) for panel in panels]},
            "columns": across,
            "spec": {
                "width": min(420, (_WIDE - labels) // across - 20),
                "height": {"step": 26},
                "encoding": {"y": y},
                "layer": [
                    {"mark": {"type": "rule", "strokeWidth": 2.5, "aria": False},
                     "encoding": {"x": x, "x2": {"field": "high"}, "stroke": stroke}},
                    {"mark": {"type": "point", "size": 110, "strokeWidth": 2, "opacity": 1},
                     "encoding": {"x": {**x, "field": "value"}, "fill": fill, "stroke": stroke,
                                  "shape": shape, "description": {"field": "text"}}},
                ],
            },
        },
    )  # fmt: skip


def _unit(metric: Metric) -> str:
    return f"{metric.title} (%)" if metric.share else metric.title


# --- formats --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FormatCell:
    """A model's value in one format."""

    model: str
    row: str
    column: str
    value: float
    bounds: str  # "" without an interval
    queries: int
    reported: bool


RAMP = ("#eaf2fa", "#9cc7e8", "#3f88c5", "#14457c")
"""Colours from the lowest to the highest value, by equal steps."""

READ_IN_WHITE = 0.74
"""From this share of the scale on, values are white."""


def heat_maps(
    metric: Metric,
    axes: tuple[str, str],
    cells: Sequence[FormatCell],
    ends: tuple[float, float],
) -> Spec:
    """Draw a metric by formats, a map for each model, all on one scale.

    Args:
        metric: the metric that colours show.
        axes: titles of rows and columns ("": none).
        cells: in the order of models and formats.
        ends: the ends of the scale.
    """
    rows, columns, models = (
        list(dict.fromkeys(getattr(cell, key) for cell in cells))
        for key in ("row", "column", "model")
    )
    step = max(48, 7 * max(len(word) for column in columns for word in [*column.split(), ""]) + 8)
    values = [
        {
            "model": name(cell.model), "row": cell.row, "column": cell.column,
            "value": round(cell.value, 2), "reported": cell.reported,
            "text": f"{name(cell.model)}, {cell.row} {cell.column}: {with_unit(metric, cell.value)}"
            + f" ({cell.bounds})" * bool(cell.bounds) + f", {cell.queries:,} queries"
            + ", reported" * cell.reported,
        }
        for cell in cells
    ]  # fmt: skip
    # From here on white is easier to read than black.
    middle = ends[0] + READ_IN_WHITE * (ends[1] - ends[0])
    reported = [f"{cell.model} {cell.row} {cell.column}" for cell in cells if cell.reported]
    x = {"field": "column", "type": "nominal", "title": axes[1] or None, "sort": columns,
         "axis": {"labelAngle": 0, "labelExpr": "split(datum.label, ' ')", "titlePadding": 16,
                  "domain": False, "ticks": False}}  # fmt: skip
    y = {"field": "row", "type": "nominal", "title": axes[0] or None, "sort": rows,
         "axis": {"domain": False, "ticks": False}}  # fmt: skip
    colour = {
        "field": "value", "type": "quantitative",
        "scale": {"domain": list(ends), "range": list(RAMP), "clamp": True},
        "legend": {"title": _unit(metric), "orient": "bottom", "gradientLength": 240,
                   "gradientThickness": 12},
    }  # fmt: skip
    frame = {"filter": "datum.reported"}
    return _chart(
        f"{metric.title} by {' and '.join(filter(None, axes)) or 'format'}; "
        f"reported: {', '.join(reported)}",
        {"panel": step * len(columns) + 24, "panels": len(models), "labels": 110,
         "stretch": False},
        {
            "data": {"values": values},
            "facet": {"field": "model", "type": "nominal", "title": None,
                      "sort": [*map(name, models)], "header": {"labelAnchor": "start"}},
            "columns": _columns(len(models), step * len(columns) + 24, 110),
            "spacing": 24,
            "spec": {
                "width": {"step": step}, "height": {"step": 30},
                "encoding": {"x": x, "y": y},
                "layer": [
                    {"mark": {"type": "rect", "stroke": "white", "strokeWidth": 1},
                     "encoding": {"fill": colour, "description": {"field": "text"}}},
                    {"mark": {"type": "text", "fontSize": 12, "aria": False},
                     "encoding": {"text": {"field": "value", "format": ".1f"},
                                  "color": {"value": "black", "condition": {
                                      "test": f"datum.value > {middle}", "value": "white"}}}},
                    {"transform": [frame],
                     "mark": {"type": "rect", "fill": None, "stroke": "#d9480f",
                              "strokeWidth": 3.5, "aria": False}},
                ],
            },
        },
    )  # fmt: skip


# --- curves ---------------------------------------------------------------------------------------

_HALF = 0.5
"""The threshold of scores; every curve has it."""


def curves(dataset: str, by_model: Mapping[str, Curve]) -> Spec:
    """Draw precision, recall and F1 by IoU threshold; at most :data:`CURVES` models."""
    rows = [
        {"model": name(model), "t": at, "precision": round(p, 2), "recall": round(r, 2),
         "F1": round(f1, 2)}
        for model, curve in by_model.items()
        for at, p, r, f1 in zip(
            curve.thresholds, curve.precision, curve.recall, curve.f1, strict=True
        )
    ]  # fmt: skip
    names = [*map(name, by_model)]
    at_half = ", ".join(
        f"{model} {curve.f1[curve.thresholds.index(_HALF)]:.1f} %"
        for model, curve in by_model.items()
    )
    of_model = {"field": "model", "type": "nominal", "sort": names, "title": None}
    colour = [COLOURS[at % len(COLOURS)] for at in range(len(names))]
    shape = [_SHAPES[(at + at // len(COLOURS)) % len(_SHAPES)] for at in range(len(names))]
    legend = {"orient": "bottom", "symbolSize": 80}
    faded = {"condition": {"param": "chosen", "value": 1}, "value": 0.12}
    return _chart(
        f"{dataset}: precision, recall and F1 by IoU threshold; F1 at {_HALF}: {at_half}",
        {"panel": 250, "panels": 3, "labels": 60, "stretch": True},
        {
            "data": {"values": rows},
            "transform": [
                {"fold": ["precision", "recall", "F1"], "as": ["what", "value"]},
                {"calculate": "datum.model + ', IoU ' + format(datum.t, '.2f') + ': ' + datum.what"
                 " + ' ' + format(datum.value, '.1f') + ' %'", "as": "text"},
            ],
            "facet": {"field": "what", "type": "nominal", "title": None,
                      "sort": ["precision", "recall", "F1"]},
            "columns": 3,
            "spec": {
                "width": 320, "height": 220,
                "layer": [
                    {"params": [{"name": "chosen", "bind": "legend",
                                 "select": {"type": "point", "fields": ["model"]}}],
                     "mark": {"type": "line", "strokeWidth": 2, "aria": False},
                     "encoding": {**_places(),
                                  "color": {**of_model, "legend": legend,
                                            "scale": {"domain": names, "range": colour}},
                                  "opacity": faded}},
                    {"mark": {"type": "point", "size": 42, "filled": True},
                     "encoding": {**_places(),
                                  "color": {**of_model, "scale": {"domain": names,
                                                                  "range": colour}},
                                  "shape": {**of_model, "legend": legend,
                                            "scale": {"domain": names, "range": shape}},
                                  "description": {"field": "text"}, "opacity": faded}},
                    {"data": {"values": [{"t": _HALF}]},
                     "mark": {"type": "rule", "strokeDash": [3, 3], "stroke": INK, "opacity": 0.6,
                              "aria": False},
                     "encoding": {"x": {"field": "t", "type": "quantitative"}}},
                ],
            },
        },
    )  # fmt: skip


def _places() -> dict[str, Any]:
    return {
        "x": {"field": "t", "type": "quantitative", "title": "IoU threshold",
              "scale": {"domain": [0, 1]}, "axis": {"values": [0, 0.2, 0.4, 0.6, 0.8, 1]}},
        "y": {"field": "value", "type": "quantitative", "title": "%",
              "scale": {"domain": [0, 100]}},
    }  # fmt: skip


# --- checkpoints ----------------------------------------------------------------------------------


def learning_chart(learning: Sequence[LearningCurve]) -> Spec:
    """Draw the checkpoints of trainings on a dataset, a line for each; at most :data:`CURVES`.

    The best checkpoint of a training is a diamond; the title has its verdict.
    """
    learning = learning[:CURVES]
    rows = [
        {"model": name(curve.name), "step": point.step, "value": round(point.value, 2),
         "low": round(point.interval.low, 2) if point.interval else None,
         "high": round(point.interval.high, 2) if point.interval else None,
         "best": point is curve.best,
         "text": f"{name(curve.name)}, step {point.step}: {with_unit(curve.metric, point.value)}"
         + (f" ({point.interval.low:.1f} to {point.interval.high:.1f})" if point.interval else "")
         + ", best" * (point is curve.best)}
        for curve in learning for point in curve.points
    ]  # fmt: skip
    names = [name(curve.name) for curve in learning]
    verdicts = [f"{name(curve.name)}: {curve.verdict}" for curve in learning]
    colour = {"field": "model", "type": "nominal", "sort": names, "title": None,
              "scale": {"domain": names, "range": [*COLOURS][: len(names)]},
              "legend": {"orient": "bottom"} if len(names) > 1 else None}  # fmt: skip
    x = {"field": "step", "type": "quantitative", "title": "step", "scale": {"zero": False}}
    y = {"field": "value", "type": "quantitative", "title": learning[0].title,
         "scale": {"zero": False}}  # fmt: skip
    return _chart(
        f"{learning[0].dataset}: {learning[0].title} by training step. {'; '.join(verdicts)}",
        {"panel": 420, "panels": 1, "labels": 60, "stretch": True},
        {
            "data": {"values": rows},
            "title": {"text": verdicts, "anchor": "start", "fontSize": 12,
                      "fontWeight": "normal", "limit": 640},
            "width": 640, "height": 260,
            "layer": [
                {"mark": {"type": "area", "opacity": 0.18, "aria": False},
                 "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"},
                              "color": colour}},
                {"mark": {"type": "line", "strokeWidth": 2, "aria": False},
                 "encoding": {"x": x, "y": y, "color": colour}},
                {"mark": {"type": "point", "size": 90, "filled": True, "opacity": 1},
                 "encoding": {"x": x, "y": y, "color": colour,
                              "shape": {"field": "best", "type": "nominal", "legend": None,
                                        "scale": {"domain": [False, True],
                                                  "range": ["circle", "diamond"]}},
                              "size": {"condition": {"test": "datum.best", "value": 200},
                                       "value": 50},
                              "description": {"field": "text"}}},
            ],
        },
    )  # fmt: skip


# --- confidences ----------------------------------------------------------------------------------


def reliability_chart(runs: Mapping[str, Mapping[str, Sequence[Bin]]]) -> Spec:
    """Draw the share of hits by confidence: a panel for each run, a line for each definition.

    Args:
        runs: bins by the names of runs and of definitions.
    """
    rows = [
        {"run": name(run), "by": by, "confidence": round(100 * bin_.confidence, 2),
         "hits": round(100 * bin_.hits, 2), "boxes": bin_.boxes,
         "text": f"{name(run)}, by {by}: confidence {100 * bin_.confidence:.0f} %, "
         f"{100 * bin_.hits:.0f} % right, {bin_.boxes:,} boxes"}
        for run, definitions in runs.items()
        for by, bins in definitions.items()
        for bin_ in bins
    ]  # fmt: skip
    percent = {"type": "quantitative", "scale": {"domain": [0, 100]}}
    x = {"field": "confidence", "title": "confidence (%)", **percent}
    y = {"field": "hits", "title": "hits (%)", **percent}
    return _chart(
        f"Share of hits by confidence: {', '.join(runs)}",
        {"panel": 250, "panels": len(runs), "labels": 60, "stretch": True},
        {
            "data": {"values": rows},
            "facet": {"field": "run", "type": "nominal", "title": None, "sort": [*map(name, runs)]},
            "columns": min(4, len(runs)),
            "spec": {
                "width": 300, "height": 200,
                "layer": [
                    _diagonal(),
                    {"mark": {"type": "line", "aria": False},
                     "encoding": {"x": x, "y": y, "color": definition(rows)}},
                    {"mark": {"type": "point", "filled": True, "opacity": 1},
                     "encoding": {"x": x, "y": y, "color": definition(rows),
                                  "size": {"field": "boxes", "type": "quantitative",
                                           "scale": {"range": [20, 160]}, "legend": None},
                                  "description": {"field": "text"}}},
                ],
            },
        },
    )  # fmt: skip


def _diagonal() -> dict[str, Any]:
    ends = {"values": [{"x": 0, "y": 0}, {"x": 100, "y": 100}]}
    return {
        "data": ends,
        "mark": {"type": "line", "stroke": INK, "strokeDash": [3, 3], "opacity": 0.5,
                 "aria": False},
        "encoding": {"x": {"field": "x", "type": "quantitative"},
                     "y": {"field": "y", "type": "quantitative"}},
    }  # fmt: skip


def definition(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the colour of a definition of confidence, the same in every chart."""
    drawn = {row["by"] for row in rows}
    known = [*MEANS]
    return {
        "field": "by", "type": "nominal", "title": None, "legend": {"orient": "bottom"},
        "scale": {"domain": [mean for mean in known if mean in drawn],
                  "range": [COLOURS[known.index(mean)] for mean in known if mean in drawn]},
    }  # fmt: skip
