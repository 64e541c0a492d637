"""The picture of a probe: what was said of every edge, against where it is.  matplotlib draws."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..core.files import replacing
from ..doctor.conventions import Convention, Floats
from ..doctor.evidence import Evidence, Query, evidence_of
from ..doctor.probe import Finding

_STYLES = {"declared": (0, (5, 3)), "named": "-"}

_ANSWERS = "answers"

_FAR = 1.5
"""Numbers beyond so many times the largest of the lines are left out of the picture."""


def draw(queries: Sequence[Query], finding: Finding, asked: Convention, path: Path) -> None:
    """Draw the answers about the scenes of a probe, x and y apart, and write a PNG.

    Every size of picture has a colour, and a line where each convention would have its numbers.

    Raises:
        OSError: it cannot be written.
    """
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    panels = figure.subplots(1, 2)
    sizes = list(dict.fromkeys((query.width, query.height) for query in queries))
    sizes.sort(key=lambda size: size[0] * size[1])
    colours = [colormaps["viridis"](place) for place in np.linspace(0, 0.92, len(sizes))]
    order = (finding.named or finding.declared or asked).order
    for axis, panel in enumerate(panels):
        _lines(panel, axis, finding, sizes, colours)
        for size, colour in zip(sizes, colours, strict=True):
            own = evidence_of([one for one in queries if (one.width, one.height) == size])
            points = _points(own, axis, order.corners)
            panel.plot(*points, "o", color=colour, ms=4.5, alpha=0.85, gid=_ANSWERS)
        _dress(panel, axis)
        _limits(panel)
    figure.legend(handles=_legend(sizes, colours, finding), loc="outside right upper", fontsize=8)
    figure.suptitle(_title(finding), fontsize=10)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=130)


def _points(evidence: Evidence, axis: int, corners: Floats) -> tuple[Floats, Floats]:
    """Where edges are, in shares of the picture, and the numbers said of them; both (n,)."""
    true, said = evidence.truths[:, evidence.truth], corners @ evidence.numbers[:, evidence.box]
    ends = [axis, axis + 2]
    return true[ends].ravel(), said[ends].ravel()


def _lines(
    panel: Axes,
    axis: int,
    finding: Finding,
    sizes: Sequence[tuple[int, int]],
    colours: Sequence[tuple[float, ...]],
) -> None:
    """Where numbers would lie; of a picture that is turned there is no line along one axis."""
    ends = np.array([0.0, 1.0])
    for what, convention in _conventions(finding).items():
        frame = convention.space.frame(np.array(sizes, float).T)
        # A line that all sizes share is of none of them.
        shared = bool(np.ptp(frame.scale, axis=1).max() == np.ptp(frame.offset, axis=1).max() == 0)
        for place, own in enumerate(colours):
            colour = (0.3, 0.3, 0.3) if shared else own
            if not frame.turned:
                values = frame.scale[axis, place] * ends + frame.offset[axis, place]
                style = _STYLES[what]
                panel.plot(ends, values, ls=style, color=colour, lw=1, alpha=0.7, gid=what)


def _conventions(finding: Finding) -> dict[str, Convention]:
    """Those that have lines, each once."""
    both = {"declared": finding.declared, "named": finding.named}
    if finding.declared == finding.named:
        del both["declared"]
    return {what: one for what, one in both.items() if one is not None}


def _dress(panel: Axes, axis: int) -> None:
    side = ("left", "right") if axis == 0 else ("top", "bottom")
    panel.set_xlabel(f"true place of an edge along {'xy'[axis]} (0 {side[0]}, 1 {side[1]})")
    panel.set_ylabel(f"number said for {'xy'[axis]}")
    panel.set_xlim(0, 1)
    panel.grid(alpha=0.25)


def _limits(panel: Axes) -> None:
    """Show the answers and the lines of what is named, however far those of what is declared go."""
    points, lines, others = (_drawn(panel, gid) for gid in (_ANSWERS, "named", "declared"))
    most = np.abs(lines if lines.size else others).max(initial=0.0)
    if not most:
        return
    kept = np.concatenate([points[np.abs(points) <= _FAR * most], lines])
    if kept.size:
        low, high = min(0.0, float(kept.min())), max(0.0, float(kept.max()))
        panel.set_ylim(low, high + 0.05 * (high - low))


def _drawn(panel: Axes, gid: str) -> Floats:
    """What was drawn of the answers, or of the lines of one kind."""
    lines = [one for one in panel.get_lines() if one.get_gid() == gid]
    return np.concatenate([np.zeros(0), *(np.asarray(one.get_ydata(), float) for one in lines)])


def _legend(
    sizes: Sequence[tuple[int, int]], colours: Sequence[tuple[float, ...]], finding: Finding
) -> list[Line2D]:
    found = [
        Line2D([], [], marker="o", ls="", color=colour, label=f"{width} x {height}")
        for (width, height), colour in zip(sizes, colours, strict=True)
    ]
    for what in _conventions(finding):
        found.append(Line2D([], [], color="0.4", ls=_STYLES[what], label=what))
    return found


def _title(finding: Finding) -> str:
    def words(convention: Convention | None) -> str:
        if convention is None:
            return "nothing"
        return f"{convention.space.means}, {convention.order.name}"

    return (
        f"{finding.outcome.value}\ndeclared: {words(finding.declared)}\n"
        f"named: {words(finding.named)}"
    )
