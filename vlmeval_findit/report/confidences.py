"""Calibration as a picture: reliability diagrams, and F1 over a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..runs.run_calibration import CalibrationResult
from .charts import definition, name, reliability_chart
from .vega import png

_ACROSS = 3
"""Runs in a row of panels."""


def picture(runs: Sequence[CalibrationResult]) -> bytes:
    """Draw the confidences of runs as a PNG, by each definition."""
    judged = {name(f"{run.model} on {run.dataset}"): run for run in runs}
    bins = {
        title: {ranking.definition: ranking.bins for ranking in run.by_definition}
        for title, run in judged.items()
    }
    reliability = {**reliability_chart(bins), "columns": _ACROSS}
    common = {key: reliability.pop(key) for key in ("config", "description", "usermeta")}
    return png({**common, "vconcat": [reliability, _f1(judged)]})


def _f1(runs: Mapping[str, CalibrationResult]) -> dict[str, Any]:
    """Draw F1 over the confidence threshold, and the best threshold as a dot."""
    rows, best = [], []
    for title, run in runs.items():
        for ranking in run.by_definition:
            key = {"run": title, "by": ranking.definition}
            points = zip(ranking.curve.thresholds, ranking.curve.f1, strict=True)
            rows += [{**key, "t": 100 * at, "f1": f1, "best": False} for at, f1 in points]
            if cut := ranking.threshold:
                best.append({**key, "t": 100 * cut.value, "f1": cut.f1, "best": True})
    x = {
        "field": "t",
        "type": "quantitative",
        "title": "least confidence of boxes (%)",
    }
    y = {"field": "f1", "type": "quantitative", "title": "F1@0.5 (%)", "scale": {"zero": False}}
    encoding = {"x": x, "y": y, "color": definition(rows)}
    return {
        "data": {"values": [*rows, *best]},
        "facet": {"field": "run", "type": "nominal", "title": None, "sort": [*runs]},
        "columns": _ACROSS,
        "spec": {
            "width": 300, "height": 200,
            "layer": [
                {"transform": [{"filter": "!datum.best"}], "mark": "line", "encoding": encoding},
                {"transform": [{"filter": "datum.best"}],
                 "mark": {"type": "point", "filled": True, "opacity": 1}, "encoding": encoding},
            ],
        },
    }  # fmt: skip
