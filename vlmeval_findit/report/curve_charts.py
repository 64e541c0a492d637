"""The charts of curves: IoU thresholds, checkpoints of trainings, calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..boxes.confidences import MEANS
from ..core.benchmark_protocol import Curve
from ..leaderboard.learning_curve import LearningCurve
from ..runs.run_calibration import Bin
from .charts import COLOURS, INK, Spec, chart, name
from .standings import with_unit

_SHAPES = ("circle", "square", "diamond", "cross", "triangle-up", "triangle-down")

CURVES = 2 * len(COLOURS)
"""Most models whose curves a chart shows, the best: more are not readable. No two share both colour
and shape."""


# --- curves ---------------------------------------------------------------------------------------

_HALF = 0.5
"""The threshold of scores; every curve has it."""


def curves(dataset: str, by_model: Mapping[str, Curve]) -> Spec:
    """Draw precision, recall and F1 by IoU threshold; at most :data:`CURVES` models."""
    rows = [
        {"model": name(model), "t": at, "precision": round(p, 4), "recall": round(r, 4),
         "F1": round(f1, 4)}
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
    return chart(
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
        {"model": name(curve.name), "step": point.step, "value": round(point.value, 4),
         "low": round(point.interval.low, 4) if point.interval else None,
         "high": round(point.interval.high, 4) if point.interval else None,
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
    return chart(
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


# --- calibration ----------------------------------------------------------------------------------


def reliability_chart(runs: Mapping[str, Mapping[str, Sequence[Bin]]]) -> Spec:
    """Draw the share of hits by confidence: a panel for each run, a line for each definition.

    Args:
        runs: bins by the names of runs and of definitions.
    """
    rows = [
        {"run": name(run), "by": by, "confidence": round(100 * bin_.confidence, 4),
         "hits": round(100 * bin_.hits, 4), "boxes": bin_.boxes,
         "text": f"{name(run)}, by {by}: confidence {100 * bin_.confidence:.0f} %, "
         f"{100 * bin_.hits:.0f} % right, {bin_.boxes:,} boxes"}
        for run, definitions in runs.items()
        for by, bins in definitions.items()
        for bin_ in bins
    ]  # fmt: skip
    percent = {"type": "quantitative", "scale": {"domain": [0, 100]}}
    x = {"field": "confidence", "title": "confidence (%)", **percent}
    y = {"field": "hits", "title": "hits (%)", **percent}
    return chart(
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
                     "encoding": {"x": x, "y": y, "color": _definition(rows)}},
                    {"mark": {"type": "point", "filled": True, "opacity": 1},
                     "encoding": {"x": x, "y": y, "color": _definition(rows),
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


def _definition(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the colour of a definition of confidence, the same in every chart."""
    drawn = {row["by"] for row in rows}
    known = [*MEANS]
    return {
        "field": "by", "type": "nominal", "title": None, "legend": {"orient": "bottom"},
        "scale": {"domain": [mean for mean in known if mean in drawn],
                  "range": [COLOURS[known.index(mean)] for mean in known if mean in drawn]},
    }  # fmt: skip
