"""Confidences drawn: reliability diagrams and F1 over a threshold, a row of two a run."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..boxes.confidences import DEFINITIONS
from ..core.spelling import short, visible
from ..runs.confidences import Judged, Sureness
from .plots import colour_of

_STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "text.parse_math": False,
}
_LONGEST = 60
"""Characters of a run's name in a title."""


def picture(runs: Sequence[Judged]) -> bytes:
    """A PNG of the confidences of runs, by each definition."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(8.4, 3.2 * len(runs)), layout="constrained")
        axes = figure.subplots(len(runs), 2, squeeze=False)
        for run, (left, right) in zip(runs, axes, strict=True):
            _reliability(left, run)
            _f1(right, run)
        # One key for all runs: a definition has the same colour in each.
        known = {
            line.get_label(): line
            for row in axes
            for line in row[1].get_lines()
            if not str(line.get_label()).startswith("_")
        }
        figure.legend(
            known.values(), known, loc="outside lower center", ncols=len(known), frameon=False
        )
        written = BytesIO()
        figure.savefig(written, format="png", dpi=90)
    return written.getvalue()


def _colour(one: Sureness) -> str:
    return colour_of([*DEFINITIONS].index(one.definition))


def _reliability(axes: Axes, run: Judged) -> None:
    axes.plot([0, 100], [0, 100], color="#999999", linewidth=1, linestyle=":")
    for one in run.by_definition:
        said = [100 * bin_.confidence for bin_ in one.bins]
        hits = [100 * bin_.hits for bin_ in one.bins]
        colour = _colour(one)
        most = max((bin_.boxes for bin_ in one.bins), default=1)
        axes.plot(said, hits, color=colour, linewidth=1)
        # The area says how many boxes there are, of those in the fullest bin.
        axes.scatter(said, hits, [6 + 60 * bin_.boxes / most for bin_ in one.bins], colour)
    axes.set(xlabel="confidence, %", ylabel="hits, %", xlim=(0, 101), ylim=(0, 101))
    axes.set_title(short(visible(f"{run.model} on {run.dataset}"), _LONGEST), loc="left")


def _f1(axes: Axes, run: Judged) -> None:
    for one in run.by_definition:
        colour = _colour(one)
        points = one.curve
        axes.plot(
            [100 * value for value in points.thresholds], points.f1, color=colour,
            label=one.definition,
        )  # fmt: skip
        if one.threshold is not None:
            axes.plot(100 * one.threshold.value, one.threshold.f1, "o", color=colour, markersize=4)
    axes.set(xlabel="boxes are kept from this confidence on, %", ylabel="F1@0.5", xlim=(0, 101))
