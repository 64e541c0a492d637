"""The plots of the report: heat maps, bars, curves, reasons.  matplotlib draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import matplotlib as mpl
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..core.drawing import Curve
from ..core.statistics import Interval
from ..core.visible import short, visible
from .svg import INK, STYLE, Plot, as_plot

_COLOURS = (
    "#3b86c8",
    "#e08a2c",
    "#2fa37b",
    "#c9618f",
    "#8b73d6",
    "#a08f3c",
    "#c9574d",
    "#5aa9b8",
)
"""Of middle lightness, so that they stand out from light and dark alike."""

_MARKERS = "osD^vPX*"


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure in percent, with its interval."""

    value: float
    interval: Interval | None


_LONGEST = 40
"""Characters of a name in a plot."""


def _name(text: str) -> str:
    """A name as a plot shows it; matplotlib leaves names with an underscore in front out."""
    name = short(visible(text), _LONGEST)
    return f"\u200b{name}" if name.startswith("_") else name


def colour_of(place: int) -> str:
    """The colour of the model at a place of the leaderboard."""
    return _COLOURS[place % len(_COLOURS)]


# --- plots ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A metric in percent by formats: ``values`` by (row, column); what is not there stays empty.

    ``axes`` are what rows and columns are ("": nothing says it), ``reported`` the place that the
    leaderboard reports.
    """

    metric: str
    axes: tuple[str, str]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Mapping[tuple[str, str], float]
    reported: tuple[str, str] | None


def heat_map(name: str, title: str, shown: HeatMap) -> Plot:
    """One model's formats; ``name`` is the plot's, unique on its page."""
    rows, columns, values = shown.rows, shown.columns, shown.values
    with mpl.rc_context(STYLE):
        longest = max(len(word) for column in columns for word in (column.split() or [""]))
        width = 2.1 + max(0.62, 0.078 * longest) * len(columns)
        # Wide enough for its title, however few columns there are.
        width = max(width, 0.4 + 0.092 * len(_name(title)))
        figure = Figure(figsize=(width, 1.25 + 0.34 * len(rows)), layout="constrained")
        axes = figure.subplots()
        table = [[values.get((row, column), math.nan) for column in columns] for row in rows]
        mesh = axes.pcolormesh(table, cmap="viridis", vmin=0, vmax=100, edgecolors="none")
        for y, row in enumerate(table):
            for x, value in enumerate(row):
                if not math.isnan(value):
                    axes.text(x + 0.5, y + 0.5, f"{value:.1f}", color=_readable(value), **_MIDDLE)
        axes.set_xticks(
            [x + 0.5 for x in range(len(columns))], [c.replace(" ", "\n") for c in columns]
        )
        axes.set_yticks([y + 0.5 for y in range(len(rows))], rows)
        axes.tick_params(length=0)
        axes.invert_yaxis()
        axes.set(xlabel=shown.axes[1], ylabel=shown.axes[0])
        figure.suptitle(_name(title), fontsize=10, fontweight="bold")
        axes.spines[:].set_visible(False)
        bar = figure.colorbar(mesh, ax=axes, label=f"{shown.metric} (%)")
        bar.outline.set_visible(False)
        reported = values.get(shown.reported) if shown.reported else None
        chosen = (
            f"reported {' '.join(shown.reported)} with {reported:.1f} %, "
            if shown.reported and reported is not None
            else ""
        )
        by = " and ".join(filter(None, shown.axes)) or "format"
        alt = (
            f"{title}: {shown.metric} by {by}; {chosen}"
            f"highest {max(values.values()):.1f} %, lowest {min(values.values()):.1f} %"
        )
        return as_plot(figure, name, alt)


_MIDDLE: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8.5}


def _readable(value: float) -> str:
    """Black or white, whichever can be read on the colour of a value in percent."""
    red, green, blue, _ = colormaps["viridis"](value / 100)
    return "#ffffff" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.5 else "#000000"


_LABEL_WIDTH = 28
"""Characters in a line under one of four panels."""


def bars(
    name: str, title: str, models: Sequence[str], figures: Mapping[str, Sequence[Bar | None]]
) -> Plot:
    """Bars with 95 % intervals: one panel a metric, one bar a model.

    Args:
        name: of the plot, unique on its page.
        models: top to bottom.
        figures: by metric, one a model; None where the model has none.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 0.95 + 0.36 * len(models)), layout="constrained")
        panels = figure.subplots(1, len(figures), sharey=True, squeeze=False)[0]
        for axes, (metric, values) in zip(panels, figures.items(), strict=True):
            for y, bar in enumerate(values):
                if bar is not None:
                    _bar(axes, y, bar)
            axes.set_xlim(0, 118)
            axes.set_xticks(range(0, 101, 25))
            axes.set_xlabel(fill(f"{metric} (%)", _LABEL_WIDTH))
            axes.grid(axis="x")
            axes.set_axisbelow(True)
        panels[0].set_yticks(range(len(models)), [_name(model) for model in models])
        panels[0].set_ylim(len(models) - 0.4, -0.6)
        figure.suptitle(_name(title), fontsize=10, fontweight="bold")
        first, values = next(iter(figures.items()))
        shown = [
            f"{model} {bar.value:.1f} %"
            for model, bar in zip(models, values, strict=True)
            if bar is not None
        ]
        alt = f"{title}: {', '.join(figures)} with 95 % intervals; {first}: {', '.join(shown)}"
        return as_plot(figure, name, alt)


def _bar(axes: Axes, y: int, bar: Bar) -> None:
    axes.barh(y, bar.value, height=0.62, color=colour_of(y), alpha=0.85)
    end = bar.value
    if bar.interval is not None:
        low, high = bar.interval.low, bar.interval.high
        axes.plot([low, high], [y, y], color=INK, linewidth=1.3)
        for x in (low, high):
            axes.plot([x, x], [y - 0.14, y + 0.14], color=INK, linewidth=1.3)
        end = max(end, high)
    axes.text(end + 1.5, y, f"{bar.value:.1f}", va="center", fontsize=8)


_HALF = 0.5
"""The threshold of scores; every curve has it."""


def curves(name: str, title: str, found: Mapping[str, Curve], places: Mapping[str, int]) -> Plot:
    """Precision, recall and F1 by IoU threshold.

    Args:
        name: of the plot, unique on its page.
        found: by model.
        places: of models on the leaderboard; they say the colour.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 2.7), layout="constrained")
        panels = figure.subplots(1, 3, sharey=True)
        for axes, what in zip(panels, ("precision", "recall", "F1"), strict=True):
            for model, one in found.items():
                values = {"precision": one.precision, "recall": one.recall, "F1": one.f1}[what]
                _line(axes, one.thresholds, values, model, places[model])
            axes.axvline(_HALF, color=INK, linewidth=0.8, linestyle=":")
            axes.set(xlabel="IoU threshold", ylabel=f"{what} (%)", xlim=(0, 1), ylim=(-2, 103))
            axes.tick_params(labelleft=True)
            axes.grid()
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False
        )
        figure.suptitle(_name(title), fontsize=10, fontweight="bold")
        shown = ", ".join(
            f"{model} {one.precision[half]:.1f} % and {one.recall[half]:.1f} %"
            for model, one in found.items()
            for half in [one.thresholds.index(_HALF)]
        )
        alt = f"{title}: precision and recall by IoU threshold; at {_HALF}: {shown}"
        return as_plot(figure, name, alt)


def _line(
    axes: Axes, thresholds: Sequence[float], values: Sequence[float], model: str, place: int
) -> None:
    axes.plot(
        thresholds,
        values,
        color=colour_of(place),
        label=_name(model),
        linewidth=1.8,
        marker=_MARKERS[place % len(_MARKERS)],
        markersize=4,
        markevery=3,
    )


def reasons(
    name: str, title: str, counts: Mapping[str, Mapping[str, float]], places: Mapping[str, int]
) -> Plot:
    """Reasons why replies were not as asked, stacked, one bar a row.

    Args:
        name: of the plot, unique on its page.
        counts: by row, then by reason: replies in percent of those of the row.
        places: of reasons, the same on every plot of a page; they say the colour.
    """
    names = list(dict.fromkeys(reason for row in counts.values() for reason in row))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 1.3 + 0.3 * len(counts)), layout="constrained")
        axes = figure.subplots()
        end = max(1.0, 1.08 * max(sum(row.values()) for row in counts.values()))
        for y, row in enumerate(counts.values()):
            left = 0.0
            for reason, share in row.items():
                axes.barh(y, share, left=left, height=0.62, **_fill(places[reason]))
                left += share
            axes.text(left + 0.008 * end, y, f"{left:.1f}", va="center", fontsize=8)
        axes.set_yticks(range(len(counts)), [visible(row) for row in counts])
        axes.set_ylim(len(counts) - 0.4, -0.6)
        axes.set_xlim(0, end)
        axes.set_xlabel("replies that were not as asked (% of all replies)")
        axes.grid(axis="x")
        axes.set_axisbelow(True)
        handles = [Patch(**_fill(places[reason])) for reason in names]
        figure.legend(handles, names, loc="outside lower center", ncols=5, frameon=False)
        figure.suptitle(_name(title), fontsize=10, fontweight="bold")
        alt = f"{title}: {', '.join(names)}"
        return as_plot(figure, name, alt)


def _fill(place: int) -> dict[str, Any]:
    """Colour, and beyond the last colour a hatch."""
    hatch = "//" if place >= len(_COLOURS) else ""
    return {"facecolor": colour_of(place), "hatch": hatch, "linewidth": 0}
