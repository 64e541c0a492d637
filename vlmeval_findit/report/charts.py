"""Charts in the grammar of Vega-Lite (plain dicts that contain their data), and their pictures.

``usermeta`` fits a chart to the page: the number of ``panels``, the width of a ``panel`` in pixels,
whether they ``stretch`` to the width of the page, and the width of ``labels`` left of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from math import ceil
from typing import Any

from ..core.formatting import printable, short
from ..core.metric import Metric
from .standings import ALIKE, BEST, LOWER, STANDINGS, UNTESTED, Panel, with_unit

Spec = Mapping[str, Any]
"""A chart in the grammar of Vega-Lite."""

# Text and lines have the colour of the text around them; in a file that is black.
INK = "currentColor"
_LABELS = {"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12}

CONFIG: Spec = {
    "font": "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif",
    "background": "white",  # Of files; the page has another
    "view": {"stroke": None},
    "axis": {
        **_LABELS, "domainColor": INK, "tickColor": INK, "gridColor": INK, "gridOpacity": 0.13,
        "domainOpacity": 0.4, "tickOpacity": 0.4, "labelLimit": 190, "titleFontWeight": "normal",
    },
    "legend": {
        **_LABELS, "columns": 4, "labelLimit": 240, "titleFontWeight": "normal", "titleLimit": 400,
    },
    "header": {"labelColor": INK, "labelFontSize": 13, "labelFontWeight": "bold"},
    "title": {"color": INK},
}  # fmt: skip


COLOURS = (
    "#3b86c8", "#d97b20", "#2b9a73", "#c9618f", "#8f7bd8", "#9a8a34", "#d0695f", "#3f9aab",
)  # fmt: skip
"""Of middle lightness, so that they stand out from light and dark alike."""

MAPS = 12
"""Most models whose heat maps are in a chart."""

_LONGEST = 40
_WIDE = 1150
"""Width of a page in pixels, for the pictures that it shows until the script draws."""


def name(text: str) -> str:
    """Return a name as charts show it."""
    return short(printable(text), _LONGEST)


def chart(alt: str, fit: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chart with its text for screen readers, its fit to the page, and its contents."""
    return {
        "description": printable(alt), "usermeta": dict(fit), "config": dict(CONFIG), **body
    }  # fmt: skip


def _columns(count: int, panel: int, labels: int) -> int:
    most = max(1, (_WIDE - labels) // panel)
    return ceil(count / ceil(count / most))  # Rows of about the same length


@cache
def script() -> str:
    """Return the script that draws charts in a page; it sets ``vegaEmbed``.

    It takes a second and a half, once for each process.
    """
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # Its names are private, and nothing in it ends its element.
    return "(() => {\n" + re.sub(r"<(?=/script|!--)", r"\\x3c", bundle) + "\n})();\n"


def svg(spec: Spec, name: str = "chart") -> str:
    """Draw a chart as an ``<svg>`` element; its ids begin with ``name``, unique on a page."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(dict(spec))
    # The library's ids depend on earlier charts: the same runs would not give the same page.
    ids = dict.fromkeys(re.findall(r'\bid="([^"]+)"', drawn))
    for at, old in enumerate(ids):
        drawn = re.sub(rf'(\bid="|url\(#){re.escape(old)}(?=["\)])', rf"\g<1>{name}-{at}", drawn)
    label = escape(str(spec.get("description", "")))
    return drawn.replace("<svg", f'<svg role="graphics-document" aria-label="{label}"', 1)


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
                "value": round(dot.entry.value, 4),
                "low": round(bounds.low, 4) if bounds else None,
                "high": round(bounds.high, 4) if bounds else None,
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
    return chart(
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
    metric: Metric, axes: tuple[str, str], cells: Sequence[FormatCell], ends: tuple[float, float]
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
            "value": round(cell.value, 4), "reported": cell.reported,
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
    return chart(
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
