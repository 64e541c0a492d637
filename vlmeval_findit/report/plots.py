"""The plots of the report: heat maps and curves.  matplotlib draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import matplotlib as mpl
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..core.drawing import Curve
from ..core.metric import Metric
from ..core.spelling import short, visible
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

CURVES = 2 * len(_COLOURS)
"""Models whose curves a plot shows, the best: of more one sees neither which is whose nor its
shape.  No two of them have both colour and marker in common."""

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
    """A metric by formats: ``values`` by (row, column); what is not there stays empty.

    ``axes`` are what rows and columns are ("": nothing says it), ``reported`` the place that the
    leaderboard reports.
    """

    metric: Metric
    axes: tuple[str, str]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Mapping[tuple[str, str], float]
    reported: tuple[str, str] | None

    @property
    def norm(self) -> Normalize:
        """From values to places on the scale: all that a share can be, else what there is."""
        return Normalize(0, 100) if self.metric.share else Normalize(*self.ends)

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return min(self.values.values()), max(self.values.values())

    def said(self, value: float) -> str:
        """A value with its unit."""
        return f"{value:.1f} {self.metric.unit}".rstrip()


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
        mesh = axes.pcolormesh(table, cmap="viridis", norm=shown.norm, edgecolors="none")
        for y, row in enumerate(table):
            for x, value in enumerate(row):
                if not math.isnan(value):
                    colour = _readable(shown, value)
                    axes.text(x + 0.5, y + 0.5, f"{value:.1f}", color=colour, **_MIDDLE)
        axes.set_xticks(
            [x + 0.5 for x in range(len(columns))], [c.replace(" ", "\n") for c in columns]
        )
        axes.set_yticks([y + 0.5 for y in range(len(rows))], rows)
        axes.tick_params(length=0)
        axes.invert_yaxis()
        axes.set(xlabel=shown.axes[1], ylabel=shown.axes[0])
        figure.suptitle(_name(title), fontsize=10, fontweight="bold")
        axes.spines[:].set_visible(False)
        label = f"{shown.metric.title} (%)" if shown.metric.share else shown.metric.title
        # A long name is more than a low map's height.
        bar = figure.colorbar(mesh, ax=axes, label=fill(label, 14))
        bar.outline.set_visible(False)
        reported = values.get(shown.reported) if shown.reported else None
        if shown.reported and reported is not None:
            axes.add_patch(_frame(shown, reported))
        chosen = (
            f"reported {' '.join(shown.reported)} with {shown.said(reported)}, "
            if shown.reported and reported is not None
            else ""
        )
        by = " and ".join(filter(None, shown.axes)) or "format"
        lowest, highest = map(shown.said, shown.ends)
        alt = f"{title}: {shown.metric.title} by {by}; {chosen}highest {highest}, lowest {lowest}"
        return as_plot(figure, name, alt)


def _frame(shown: HeatMap, value: float) -> Rectangle:
    """What stands around the reported cell, inside it."""
    assert shown.reported is not None
    row, column = shown.reported
    place = (shown.columns.index(column) + 0.05, shown.rows.index(row) + 0.08)
    return Rectangle(place, 0.9, 0.84, fill=False, edgecolor=_readable(shown, value), linewidth=2)


_MIDDLE: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8.5}


def _readable(shown: HeatMap, value: float) -> str:
    """Black or white, whichever can be read on the colour of a value."""
    red, green, blue, _ = colormaps["viridis"](shown.norm(value))
    return "#ffffff" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.5 else "#000000"


_BESIDE = 4
"""Names beside each other in a legend."""

_HALF = 0.5
"""The threshold of scores; every curve has it."""


def curves(name: str, title: str, found: Mapping[str, Curve], places: Mapping[str, int]) -> Plot:
    """Precision, recall and F1 by IoU threshold.

    Args:
        name: of the plot, unique on its page.
        found: by model, at most :data:`CURVES`.
        places: of models on the leaderboard; they say the colour.
    """
    with mpl.rc_context(STYLE):
        beside = min(_BESIDE, len(found))
        lines = math.ceil(len(found) / beside)
        figure = Figure(figsize=(9.2, 2.5 + 0.2 * lines), layout="constrained")
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
        figure.legend(handles, labels, loc="outside lower center", ncols=beside, frameon=False)
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
        marker=_MARKERS[(place + place // len(_COLOURS)) % len(_MARKERS)],
        markersize=4,
        markevery=3,
    )
