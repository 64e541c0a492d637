"""The picture of a probe: what was said of every edge, against where it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..coords.conventions import Convention, Floats
from ..coords.probe import ProbeResult
from ..coords.run_arrays import AnsweredQuery, RunArrays, run_arrays
from ..core.files import write_once
from .vega import CONFIG, png

_DASHES = {"declared": [5, 3], "named": [1, 0]}

_FAR = 1.5
"""Numbers beyond so many times the largest of the lines are left out of the picture."""

_EVERY = "every size"
"""Whose line it is that all sizes share."""

Size = tuple[int, int]


def draw(
    queries: Sequence[AnsweredQuery], result: ProbeResult, asked: Convention, path: Path
) -> None:
    """Draw the answers about the scenes of a probe, x and y apart, and write a PNG.

    Every size of image has a colour, and a line where each convention would have its numbers.

    Raises:
        OSError: it cannot be written.
    """
    write_once(path, png(spec(queries, result, asked)))


def spec(
    queries: Sequence[AnsweredQuery], result: ProbeResult, asked: Convention
) -> dict[str, Any]:
    """Return the chart that :func:`draw` draws."""
    sizes = sorted({(one.width, one.height) for one in queries}, key=lambda size: size[0] * size[1])
    order = (result.named or result.declared or asked).order
    panels = []
    for axis in (0, 1):
        points = []
        for size in sizes:
            own = run_arrays([one for one in queries if (one.width, one.height) == size])
            true, answered = _points(own, axis, order.corners)
            ends = zip(true.tolist(), answered.tolist(), strict=True)
            points += [{"x": x, "y": y, "size": _name(size)} for x, y in ends]
        panels.append(_panel(axis, sizes, points, [*_lines(axis, result, sizes)]))
    return {"config": dict(CONFIG), "title": {"text": _title(result), "anchor": "start"},
            "hconcat": panels}  # fmt: skip


def _name(size: Size) -> str:
    return f"{size[0]} x {size[1]}"


def _points(arrays: RunArrays, axis: int, corners: Floats) -> tuple[Floats, Floats]:
    """Where edges are, in shares of the image, and the numbers said of them; both (n,)."""
    true = arrays.truths[:, arrays.pair_truth]
    answered = corners @ arrays.numbers[:, arrays.pair_box]
    ends = [axis, axis + 2]
    return true[ends].ravel(), answered[ends].ravel()


def _lines(axis: int, result: ProbeResult, sizes: Sequence[Size]) -> Iterator[dict[str, Any]]:
    """Where numbers would lie; of an image that is turned there is no line along one axis."""
    for what, convention in _conventions(result).items():
        frame = convention.space.map_of(np.array(sizes, float).T)
        # A line that all sizes share is of none of them.
        shared = bool(np.ptp(frame.scale, axis=1).max() == np.ptp(frame.offset, axis=1).max() == 0)
        for place, size in enumerate(sizes[:1] if shared else sizes):
            if not frame.turned:
                for x in (0.0, 1.0):
                    y = float(frame.scale[axis, place] * x + frame.offset[axis, place])
                    yield {"x": x, "y": y, "what": what, "size": _EVERY if shared else _name(size)}


def _conventions(result: ProbeResult) -> dict[str, Convention]:
    """Those that have lines, each once."""
    both = {"declared": result.declared, "named": result.named}
    if result.declared == result.named:
        del both["declared"]
    return {what: one for what, one in both.items() if one is not None}


def _panel(
    axis: int,
    sizes: Sequence[Size],
    points: Sequence[dict[str, Any]],
    lines: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    side = ("left", "right") if axis == 0 else ("top", "bottom")
    low, high = _limits(points, lines)
    x = {
        "field": "x",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "title": f"true place of an edge along {'xy'[axis]} (0 {side[0]}, 1 {side[1]})",
    }
    y = {
        "field": "y",
        "type": "quantitative",
        "title": f"number said for {'xy'[axis]}",
        "scale": {"domain": [low, high]},
    }
    colour = {
        "field": "size",
        "type": "ordinal",
        "title": "image",
        "legend": {"columns": 1},
        "scale": {"domain": [*map(_name, sizes)], "scheme": "viridis"},
        "condition": {"test": f"datum.size === '{_EVERY}'", "value": "#666666"},
    }
    dash = {
        "field": "what",
        "type": "nominal",
        "title": None,
        "scale": {"domain": [*_DASHES], "range": [*_DASHES.values()]},
    }
    return {
        "width": 420, "height": 340,
        "layer": [
            {"data": {"values": list(lines)}, "mark": {"type": "line", "clip": True},
             "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash}},
            {"data": {"values": list(points)},
             "mark": {"type": "point", "filled": True, "size": 30, "opacity": 0.85, "clip": True},
             "encoding": {"x": x, "y": y, "color": colour}},
        ],
    }  # fmt: skip


def _limits(
    points: Sequence[dict[str, Any]], lines: Sequence[dict[str, Any]]
) -> tuple[float, float]:
    """Show the answers and the lines of what is named, however far those of what is declared go."""
    of = {what: [one["y"] for one in lines if one["what"] == what] for what in _DASHES}
    most = max(map(abs, of["named"] or of["declared"]), default=0.0)
    answered = [one["y"] for one in points]
    near = [y for y in answered if abs(y) <= _FAR * most] + of["named"] if most else answered
    low, high = min([0.0, *near]), max([0.0, *near])
    return low, high + 0.05 * (high - low) or 1.0


def _title(result: ProbeResult) -> list[str]:
    def words(convention: Convention | None) -> str:
        if convention is None:
            return "nothing"
        return f"{convention.space.description}, {convention.order.name}"

    return [
        result.verdict.value,
        f"declared: {words(result.declared)}",
        f"named: {words(result.named)}",
    ]
