"""Charts in the grammar of Vega-Lite (plain dicts that contain their data).

``usermeta`` fits a chart to the page; see :class:`Fit`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil
from textwrap import wrap
from typing import Any, NamedTuple

from ..core import counted, printable, shorten_names
from ..leaderboard import range_of
from ..protocol import Metric
from ..statistics import Interval
from .standings import (
    BEST_STANDING,
    LOWER_STANDING,
    NOT_WORSE,
    NOTHING_STANDING,
    STANDINGS,
    UNTESTED_STANDING,
    Dot,
    Panel,
)
from .value_text import ends as ends_of
from .value_text import spread, with_unit

Spec = Mapping[str, Any]  # A chart in the grammar of Vega-Lite, or a part of it

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
        **_LABELS, "columns": 4, "labelLimit": 300, "titleFontWeight": "normal", "titleLimit": 400,
    },
    "header": {"labelColor": INK, "labelFontSize": 13, "labelFontWeight": "bold"},
    "title": {"color": INK},
}  # fmt: skip

# Of middle lightness, so that they stand out from light and from dark
COLOURS = (
    "#3b86c8", "#d97b20", "#2b9a73", "#c9618f", "#8f7bd8", "#9a8a34", "#d0695f", "#3f9aab",
)  # fmt: skip

MAPS = 12  # Most models whose heat maps are in a chart
DRAWN_MAPS = 4 * MAPS  # Most models of a dataset whose formats are drawn; formats.csv has all

_LONGEST = 40
AXIS_NAME = 22  # Beside an axis of 190 pixels, or above a panel as wide
LEGEND_NAME = 34  # In a legend of 300
_NAME_LETTER = 8  # Pixels of a letter of a name: capitals are wider than others
_PANEL_TITLE = 24  # Letters of a line below a panel
_TITLE_LETTER = 8  # Pixels of a letter above a panel, which is bold
_WIDE = 1150  # Width of a page in pixels, before the script fits a chart to it


class Fit(NamedTuple):
    """How a chart fits the page: its panels, their width and that of labels left of them.

    Widths are in pixels; panels that ``stretch`` fill the width of the page, up to the ``widest``.
    A ``gap`` is between panels; it is wide where each has an axis of its own.
    """

    panels: int
    panel: int
    labels: int
    stretch: bool = True
    widest: int = 420
    gap: int = 20

    @property
    def columns(self) -> int:
        """Return the number of panels in a row; all rows have about the same."""
        most = max(1, (_WIDE - self.labels) // self.panel)
        return ceil(self.panels / ceil(self.panels / most))


def chart(alt: str, fit: Fit, rows: Sequence[Spec], **body: Any) -> dict[str, Any]:
    """Return a chart with its text for screen readers, its fit to the page, and its data."""
    return {
        "description": printable(alt), "usermeta": fit._asdict(), "config": dict(CONFIG),
        "data": {"values": rows}, **body,
    }  # fmt: skip


def nominal(field: str, **more: Any) -> dict[str, Any]:
    """Return the channel of a field of names."""
    return {"field": field, "type": "nominal", **more}


def number(field: str, **more: Any) -> dict[str, Any]:
    """Return the channel of a field of numbers."""
    return {"field": field, "type": "quantitative", **more}


def layer(mark: str, encoding: Spec, **look: Any) -> dict[str, Any]:
    """Return a layer of marks."""
    return {"mark": {"type": mark, **look}, "encoding": encoding}


def have_ends(rows: Sequence[Spec]) -> bool:
    """Tell whether any row has an interval: a scale of none has no ends, so none is drawn."""
    return any(row["low"] is not None for row in rows)


TEXT: Spec = {"description": {"field": "text"}}  # The channel of a mark's text for screen readers


def names_of(texts: Iterable[str], most: int = _LONGEST) -> dict[str, str]:
    """Return names as a chart shows them, by themselves: different ones stay different."""
    plain = {text: printable(text) for text in texts}
    short = shorten_names(plain.values(), most)
    return {text: short[shown] for text, shown in plain.items()}


def svg(spec: Spec) -> str:
    """Draw a chart as an ``<svg>`` element, for a file: the script of a page draws its own."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(dict(spec))
    # The library's ids depend on earlier charts: the same runs would not give the same file.
    ids = dict.fromkeys(re.findall(r'\bid="([^"]+)"', drawn))
    for at, old in enumerate(ids):
        drawn = re.sub(rf'(\bid="|url\(#){re.escape(old)}(?=["\)])', rf"\g<1>chart-{at}", drawn)
    label = escape(str(spec.get("description", "")))
    return drawn.replace("<svg", f'<svg role="graphics-document" aria-label="{label}"', 1)


# --- standings ------------------------------------------------------------------------------------

GREY = "#7d8896"  # Of what stands back
# In a legend, beside names a phone has room for no more
_SHORT_STANDINGS = {
    BEST_STANDING: "best",
    NOT_WORSE: "may be the best",
    LOWER_STANDING: "not the best",
    UNTESTED_STANDING: "not tested",
    NOTHING_STANDING: "scores nothing",
}
# Fill, stroke and shape of dots
_LOOKS = {
    BEST_STANDING: (COLOURS[0], COLOURS[0], "diamond"),
    NOT_WORSE: (COLOURS[0], COLOURS[0], "circle"),
    LOWER_STANDING: ("transparent", GREY, "circle"),
    UNTESTED_STANDING: ("transparent", GREY, "triangle-up"),
    NOTHING_STANDING: ("transparent", GREY, "cross"),
}


def _standing(dot: Dot) -> str:
    """Say where a model stands: ``rank 1–3, no model is significantly better``."""
    if dot.entry.ranks is None:
        return dot.standing
    return f"rank {range_of(dot.entry.ranks)}, {dot.standing}"


def forest(metric: Metric, models: Sequence[str], panels: Sequence[Panel]) -> Spec:
    """Draw a dot with its interval for each model in each panel.

    Dots are filled where no model of the panel is significantly better.
    """
    order = list(dict.fromkeys(dot.model for panel in panels for dot in panel.dots))
    order.sort(key=models.index)
    names = names_of(order, AXIS_NAME)
    # Longer ones would be wider than their panels, and the chart wider than the page.
    titles = names_of((panel.name for panel in panels), AXIS_NAME)
    alone = len(models) == 1  # It is in no contest
    rows = []
    for panel in panels:
        for dot in panel.dots:
            stands = "" if alone else f"; {_standing(dot)}"
            low, high = ends_of(dot.entry.tested_interval)
            tested = with_unit(metric, dot.entry.tested)
            value = f"{tested}{spread(dot.entry.tested_interval)}"
            rows.append({
                "panel": titles[panel.name], "model": names[dot.model],
                "standing": _SHORT_STANDINGS[dot.standing],
                "value": round(dot.entry.tested, 4), "low": low, "high": high,
                "text": f"{printable(dot.model)}, {printable(panel.name)}: {value}{stands}",
            })  # fmt: skip
    met = {dot.standing for panel in panels for dot in panel.dots}
    shown = [standing for standing in STANDINGS if standing in met]
    short = [_SHORT_STANDINGS[standing] for standing in shown]
    key = {"title": None, "orient": "top", "symbolSize": 110, "symbolStrokeWidth": 2}
    legend = None if alone else key
    fill, stroke, shape = (
        nominal("standing", scale={"domain": short, "range": list(looks)}, legend=legend)
        for looks in zip(*(_LOOKS[standing] for standing in shown), strict=True)
    )
    plain = {"grid": True, "ticks": False, "domain": False, "labelPadding": 8}
    y = nominal("model", title=None, sort=[*names.values()], axis=plain)
    title, scale = score_axis(metric, _lowest(rows))
    ticks = _even_ticks(*scale["domain"]) if "domain" in scale else None
    axis = {
        **({"values": ticks} if ticks else {"tickCount": 4}),
        "labelFlush": True, "labelOverlap": True, "labelSeparation": 6,
    }  # fmt: skip
    # On a phone a panel is no wider.
    x = {"title": wrap(title, _PANEL_TITLE), "scale": scale, "axis": axis}
    with_best = [] if alone else [panel for panel in panels if panel.has_best]
    best = "; ".join(f"{panel.name}: {panel.dots[0].model}" for panel in with_best)
    labels = min(210, 30 + _NAME_LETTER * max(map(len, names.values())))
    fit = Fit(len(panels), 190, labels, widest=420 if len(panels) > 1 else 800)
    dots = {"x": number("value", **x), "fill": fill, "stroke": stroke, "shape": shape, **TEXT}
    bounds = {"x": number("low", **x), "x2": {"field": "high"}, "stroke": stroke}
    rules = [layer("rule", bounds, strokeWidth=2.5, aria=False)] if have_ends(rows) else []
    return chart(
        f"{metric.title} with 95 % intervals{f'; best: {best}' if best else ''}", fit, rows,
        facet=nominal("panel", title=None, sort=[*titles.values()]),
        columns=fit.columns,
        spec={
            "width": min(fit.widest, (_WIDE - labels) // fit.columns - fit.gap),
            "height": {"step": 26},
            "encoding": {"y": y},
            "layer": [
                *rules,
                layer("point", dots, size=110, strokeWidth=2, opacity=1),
            ],
        },
    )  # fmt: skip


def _even_ticks(start: int, end: int) -> list[int]:
    """Return the ticks of an axis: its ends, its middle and, where they are whole, its quarters.

    Of an odd number Vega leaves out every other where there is no room, and keeps both ends.

    >>> _even_ticks(0, 100), _even_ticks(10, 100)
    ([0, 25, 50, 75, 100], [10, 55, 100])
    """
    parts = 2 if (end - start) % 4 else 4
    return [start + (end - start) * at // parts for at in range(parts + 1)]


def _lowest(rows: Sequence[Spec]) -> float:
    return min(float(row["value"] if row["low"] is None else row["low"]) for row in rows)


def axis_title(title: str, metric: Metric) -> str:
    """Return the title of an axis of a metric: ``mIoU (%)``."""
    return f"{title} ({metric.unit})" if metric.unit else title


def score_axis(metric: Metric, lowest: float) -> tuple[str, Spec]:
    """Return title and scale of an axis of scores and their intervals, the same in all panels.

    That of a share ends at 100. Where it does not begin at 0 the title says so: lengths mean
    nothing there.
    """
    title = axis_title(metric.title, metric)
    if not metric.share:
        return title, {"zero": False}
    start = min(90, 10 * int(lowest // 10))
    if start:
        title += f", from {start}"
    return title, {"domain": [start, 100]}


# --- formats --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FormatCell:
    """A model's value in one format."""

    model: str
    row: str
    column: str
    value: float
    bounds: Interval | None
    queries: int
    reported: bool


# Colours from the lowest to the highest value, by equal steps
COLOUR_RAMP = ("#eaf2fa", "#9cc7e8", "#3f88c5", "#14457c")

_ROW = 30  # Height of a row in pixels
_AXIS_LETTER = 7  # Pixels of a letter of an axis's title

READ_IN_WHITE = 0.74  # From this share of the scale on, values are white


def _heat_map_value(metric: Metric, cell: FormatCell, model: str) -> Spec:
    text = f"{model}, {cell.row} {cell.column}: {with_unit(metric, cell.value)}"
    text += f"{spread(cell.bounds)}, {counted(cell.queries, 'query', 'queries')}"
    if cell.reported:
        text += ", reported"
    return {
        "model": model,
        "row": cell.row,
        "column": cell.column,
        "value": round(cell.value, 4),
        "reported": cell.reported,
        "text": text,
    }


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
    names = names_of(models, AXIS_NAME)
    values = [_heat_map_value(metric, cell, names[cell.model]) for cell in cells]
    # From here on white is easier to read than black.
    middle = ends[0] + READ_IN_WHITE * (ends[1] - ends[0])
    reported = [f"{cell.model} {cell.row} {cell.column}" for cell in cells if cell.reported]
    plain = {"domain": False, "ticks": False}
    beside: dict[str, Any] = dict(plain)
    if _ROW * len(rows) < _AXIS_LETTER * len(axes[0]):
        # Turned, its title would be longer than the map is high.
        beside |= {
            "titleAngle": 0,
            "titleAlign": "right",
            "titleBaseline": "bottom",
            "titleX": -8,
            "titleY": -6,
        }
    split = {"labelAngle": 0, "labelExpr": "split(datum.label, ' ')", "titlePadding": 16, **plain}
    colour = number(
        "value",
        scale={"domain": list(ends), "range": list(COLOUR_RAMP), "clamp": True},
        legend={"title": axis_title(metric.title, metric),
                "orient": "bottom", "gradientLength": 240, "gradientThickness": 12},
    )  # fmt: skip
    white = {"value": "black", "condition": {"test": f"datum.value > {middle}", "value": "white"}}
    # A title that is wider than its map makes the map's place as wide.
    title = _TITLE_LETTER * max(map(len, names.values()))
    fit = Fit(len(models), max(step * len(columns), title) + 24, 110, stretch=False)
    axis_names = " and ".join(filter(None, axes)) or "format"
    return chart(
        f"{metric.title} by {axis_names}; reported: {', '.join(reported)}", fit, values,
        facet=nominal("model", title=None, sort=[*names.values()],
                      header={"labelAnchor": "start"}),
        columns=fit.columns,
        spacing=24,
        spec={
            "width": {"step": step}, "height": {"step": _ROW},
            "encoding": {"x": nominal("column", title=axes[1] or None, sort=columns, axis=split),
                         "y": nominal("row", title=axes[0] or None, sort=rows, axis=beside)},
            "layer": [
                layer("rect", {"fill": colour, **TEXT}, stroke="white", strokeWidth=1),
                layer("text", {"text": {"field": "value", "format": ".1f"}, "color": white},
                      fontSize=12, aria=False),
                {"transform": [{"filter": "datum.reported"}],
                 "mark": {"type": "rect", "fill": None, "stroke": "#d9480f", "strokeWidth": 3.5,
                          "aria": False}},
            ],
        },
    )  # fmt: skip
