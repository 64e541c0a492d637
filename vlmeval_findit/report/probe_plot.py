"""The picture of a probe: the answered coordinate of every edge against its true place."""

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
"""Numbers beyond this multiple of the largest of the lines are left out of the picture."""

_EVERY = "every size"
"""Name of a line that all sizes share."""

Size = tuple[int, int]


def draw(
    queries: Sequence[AnsweredQuery], result: ProbeResult, asked: Convention, path: Path
) -> None:
    """Draw the answers about the scenes of a probe, x and y apart, and write a PNG.

    Every size of image has a colour, and a line of the numbers that each convention expects.

    Raises:
        OSError: the file cannot be written.
    """
    write_once(path, png(spec(queries, result, asked)))


def spec(
    queries: Sequence[AnsweredQuery], result: ProbeResult, asked: Convention
) -> dict[str, Any]:
    """Return the chart that :func:`draw` draws."""
    sizes = sorted(
        {(query.width, query.height) for query in queries}, key=lambda size: size[0] * size[1]
    )
    order = (result.named or result.declared or asked).order
    panels = []
    for axis in (0, 1):
        points = []
        for size in sizes:
            arrays = run_arrays([q for q in queries if (q.width, q.height) == size])
            true, answered = _points(arrays, axis, order.corners)
            ends = zip(true.tolist(), answered.tolist(), strict=True)
            points += [{"x": x, "y": y, "size": _name(size)} for x, y in ends]
        panels.append(_panel(axis, sizes, points, [*_lines(axis, result, sizes)]))
    return {"config": dict(CONFIG), "title": {"text": _title(result), "anchor": "start"},
            "hconcat": panels}  # fmt: skip


def _name(size: Size) -> str:
    return f"{size[0]} x {size[1]}"


def _points(arrays: RunArrays, axis: int, corners: Floats) -> tuple[Floats, Floats]:
    """Return true edges, in shares of the image, and the answered numbers; both (n,)."""
    true = arrays.truths[:, arrays.pair_truth]
    answered = corners @ arrays.numbers[:, arrays.pair_box]
    ends = [axis, axis + 2]
    return true[ends].ravel(), answered[ends].ravel()


def _lines(axis: int, result: ProbeResult, sizes: Sequence[Size]) -> Iterator[dict[str, Any]]:
    """Yield the ends of the lines of expected numbers; a turned axis has no line."""
    for what, convention in _conventions(result).items():
        frame = convention.space.map_of(np.array(sizes, float).T)
        # A line that all sizes share has no size.
        shared = bool(np.ptp(frame.scale, axis=1).max() == np.ptp(frame.offset, axis=1).max() == 0)
        for place, size in enumerate(sizes[:1] if shared else sizes):
            if not frame.turned:
                for x in (0.0, 1.0):
                    y = float(frame.scale[axis, place] * x + frame.offset[axis, place])
                    yield {"x": x, "y": y, "what": what, "size": _EVERY if shared else _name(size)}


def _conventions(result: ProbeResult) -> dict[str, Convention]:
    """Return the conventions that have lines, each once."""
    both = {"declared": result.declared, "named": result.named}
    if result.declared == result.named:
        del both["declared"]
    return {what: convention for what, convention in both.items() if convention is not None}


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
        "title": f"answered number for {'xy'[axis]}",
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
    """Return limits that show the answers and the lines of the named convention."""
    of = {what: [line["y"] for line in lines if line["what"] == what] for what in _DASHES}
    most = max(map(abs, of["named"] or of["declared"]), default=0.0)
    answered = [point["y"] for point in points]
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
