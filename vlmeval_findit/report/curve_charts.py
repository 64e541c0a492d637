"""The charts of curves: IoU thresholds, checkpoints of trainings, calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap

from ..boxes import CONFIDENCE_MEANINGS
from ..core import counted, printable
from ..leaderboard import Ablation, LearningCurve
from ..protocol import Curve
from ..statistics import Bin
from .charts import (
    AXIS_NAME,
    COLOURS,
    INK,
    LEGEND_NAME,
    TEXT,
    Fit,
    Spec,
    axis_title,
    chart,
    have_ends,
    layer,
    names_of,
    nominal,
    number,
)
from .value_text import ends, spread, with_unit

_SHAPES = ("circle", "square", "diamond", "cross", "triangle-up", "triangle-down")

# Most models whose curves a chart shows, the best: more are not readable. No two share both
# colour and shape.
MOST_CURVES = 2 * len(COLOURS)

# --- curves ---------------------------------------------------------------------------------------

_HALF = 0.5  # The threshold of scores; every curve has it


def curves(dataset: str, by_model: Mapping[str, Curve]) -> Spec:
    """Draw precision, recall and F1 by IoU threshold; at most :data:`MOST_CURVES` models."""
    what = ["precision", "recall", "F1"]
    shown = names_of(by_model, LEGEND_NAME)
    rows = []
    for model, curve in by_model.items():
        values = zip(curve.thresholds, curve.precision, curve.recall, curve.f1, strict=True)
        for threshold, precision, recall, f1 in values:
            rows.append({
                "model": shown[model], "t": threshold, "precision": round(precision, 4),
                "recall": round(recall, 4), "F1": round(f1, 4),
            })  # fmt: skip
    names = [*shown.values()]
    at_half = ", ".join(
        f"{model} {curve.f1[curve.thresholds.index(_HALF)]:.1f} %"
        for model, curve in by_model.items()
    )
    places = range(len(names))
    colours = {"domain": names, "range": [COLOURS[at % len(COLOURS)] for at in places]}
    shapes = [_SHAPES[(at + at // len(COLOURS)) % len(_SHAPES)] for at in places]
    legend = {"orient": "bottom", "symbolSize": 80}
    encoding = {
        "x": number("t", title="IoU threshold", scale={"domain": [0, 1]},
                    axis={"values": [0, 0.2, 0.4, 0.6, 0.8, 1]}),
        "y": number("value", title="%", scale={"domain": [0, 100]}),
        "opacity": {"condition": {"param": "chosen", "value": 1}, "value": 0.12},
    }  # fmt: skip
    colour = nominal("model", sort=names, title=None, scale=colours)
    shape = nominal("model", sort=names, title=None, legend=legend,
                    scale={"domain": names, "range": shapes})  # fmt: skip
    points = {**encoding, "color": colour, "shape": shape, **TEXT}
    select = {"type": "point", "fields": ["model"]}
    return chart(
        f"{dataset}: precision, recall and F1 by IoU threshold; F1 at {_HALF}: {at_half}",
        Fit(3, 250, 60), rows,
        transform=[
            {"fold": what, "as": ["what", "value"]},
            {"calculate": "datum.model + ', IoU ' + format(datum.t, '.2f') + ': ' + datum.what"
             " + ' ' + format(datum.value, '.1f') + ' %'", "as": "text"},
        ],
        facet=nominal("what", title=None, sort=what),
        columns=3,
        spec={
            "width": 320, "height": 220,
            "layer": [
                {"params": [{"name": "chosen", "bind": "legend", "select": select}],
                 **layer("line", {**encoding, "color": {**colour, "legend": legend}},
                         strokeWidth=2, aria=False)},
                layer("point", points, size=42, filled=True),
                {"data": {"values": [{"t": _HALF}]},
                 **layer("rule", {"x": number("t")}, strokeDash=[3, 3], stroke=INK, opacity=0.6,
                         aria=False)},
            ],
        },
    )  # fmt: skip


# --- classes --------------------------------------------------------------------------------------

FEWEST_CLASSES = 4  # A curve of fewer says no more than their table


def class_curves(dataset: str, metric: str, by_model: Mapping[str, Mapping[str, float]]) -> Spec:
    """Draw the values of each model by class, its best class first.

    Args:
        dataset: what the models were asked.
        metric: what the values are, in percent.
        by_model: values by class; at most :data:`MOST_CURVES` models.
    """
    shown = names_of(by_model, LEGEND_NAME)
    rows = []
    for model, values in by_model.items():
        ordered = sorted(values, key=lambda name: (-values[name], name))
        for place, name in enumerate(ordered, 1):
            rows.append({
                "model": shown[model], "place": place, "value": round(values[name], 2),
                "text": f"{shown[model]}, {name}: {values[name]:.1f} %, {place} of {len(ordered)}",
            })  # fmt: skip
    names = [*shown.values()]
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(names))]
    shapes = [_SHAPES[(at + at // len(COLOURS)) % len(_SHAPES)] for at in range(len(names))]
    legend = {"orient": "bottom"} if len(names) > 1 else None
    x = number("place", title="classes, the best of each model first",
               scale={"zero": False, "nice": False},
               axis={"tickMinStep": 1, "format": "d"})  # fmt: skip
    y = number("value", title=f"{metric} (%)", scale={"domain": [0, 100]})
    colour = nominal("model", sort=names, title=None, legend=legend,
                     scale={"domain": names, "range": colours})  # fmt: skip
    shape = nominal("model", sort=names, title=None, legend=legend,
                    scale={"domain": names, "range": shapes})  # fmt: skip
    line = {"x": x, "y": y, "color": colour}
    return chart(
        f"{dataset}: {metric} by class, of {', '.join(names)}",
        Fit(1, 420, 60, widest=640), rows,
        width=640,
        height=260,
        layer=[
            layer("line", line, strokeWidth=2, aria=False),
            layer("point", {**line, "shape": shape, **TEXT}, size=16, filled=True, opacity=1),
        ],
    )  # fmt: skip


# --- checkpoints ----------------------------------------------------------------------------------


_VERDICT_LINE = 52  # Letters of a line, which a phone has room for


def learning_chart(learning: Sequence[LearningCurve]) -> Spec:
    """Draw the checkpoints of trainings on a dataset, a line for each; at most :data:`MOST_CURVES`.

    The best checkpoint of a training is a diamond; the title has its verdict.
    """
    learning = learning[:MOST_CURVES]
    shown = names_of((curve.name for curve in learning), LEGEND_NAME)
    rows = []
    for curve in learning:
        for point in curve.points:
            low, high = ends(point.interval)
            best = curve.has_best and point is curve.best
            text = f"{shown[curve.name]}, step {point.step}: {with_unit(curve.metric, point.value)}"
            text += spread(point.interval)
            if best:
                text += ", best"
            rows.append({
                "model": shown[curve.name], "step": point.step, "value": round(point.value, 4),
                "low": low, "high": high, "best": best, "text": text,
            })  # fmt: skip
    names = [shown[curve.name] for curve in learning]
    title = learning[0].title
    verdicts = [f"{shown[curve.name]}: {curve.verdict}" for curve in learning]
    lines = [line for verdict in verdicts for line in wrap(verdict, _VERDICT_LINE)]
    colour = nominal("model", sort=names, title=None,
                     scale={"domain": names, "range": [*COLOURS][: len(names)]},
                     legend={"orient": "bottom"} if len(names) > 1 else None)  # fmt: skip
    x = number("step", title="step", scale={"zero": False})
    y = number("value", title=axis_title(title, learning[0].metric), scale={"zero": False})
    shape = nominal("best", legend=None,
                    scale={"domain": [False, True], "range": ["circle", "diamond"]})  # fmt: skip
    size = {"condition": {"test": "datum.best", "value": 200}, "value": 50}
    band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
    bands = [layer("area", band, opacity=0.18, aria=False)] if have_ends(rows) else []
    line = {"x": x, "y": y, "color": colour}
    return chart(
        f"{learning[0].dataset}: {title} by training step. {'; '.join(verdicts)}",
        Fit(1, 420, 60, widest=640), rows,
        title={"text": lines, "anchor": "start", "fontSize": 12, "fontWeight": "normal",
               "limit": 640},
        width=640,
        height=260,
        layer=[
            *bands,
            layer("line", line, strokeWidth=2, aria=False),
            layer("point", {**line, "shape": shape, "size": size, **TEXT}, size=90, filled=True,
                  opacity=1),
        ],
    )  # fmt: skip


# --- ablations ------------------------------------------------------------------------------------

_PANELS = 3  # In a row
_LETTERS_IN_LINE = 24  # Of all values of an axis of names, below a narrow panel


def ablation_chart(ablation: Ablation) -> Spec:
    """Draw the headline by the values of an axis: a panel a table, a line a model.

    Values are joined where they are numbers. At most :data:`MOST_CURVES` models are drawn.
    """
    models = list(dict.fromkeys(line.model for line in ablation.lines))[:MOST_CURVES]
    lines = [line for line in ablation.lines if line.model in models]
    names = names_of(models, LEGEND_NAME)
    tables = names_of((line.table for line in lines), AXIS_NAME)
    rows = []
    for line in lines:
        for point in line.points:
            if point.result is None:
                continue
            low, high = ends(point.interval)
            value = with_unit(ablation.metric, point.result) + spread(point.interval)
            where = f"{line.model} on {line.table}, {ablation.axis} {point.value}"
            rows.append({
                "model": names[line.model], "table": tables[line.table],
                "at": printable(str(point.value)),
                "value": round(point.result, 4), "low": low, "high": high,
                "text": f"{printable(where)}: {value}",
            })  # fmt: skip
    shown = [*names.values()]
    colours = [COLOURS[place % len(COLOURS)] for place in range(len(shown))]
    shapes = [_SHAPES[(at + at // len(COLOURS)) % len(_SHAPES)] for at in range(len(shown))]
    legend = {"orient": "bottom"} if len(shown) > 1 else None
    values = [printable(str(value)) for value in ablation.values]
    is_short = ablation.is_number or sum(map(len, values)) <= _LETTERS_IN_LINE
    x = nominal("at", title=ablation.axis, sort=values,
                axis={"labelAngle": 0 if is_short else -30})  # fmt: skip
    y = number("value", title=axis_title(ablation.title, ablation.metric), scale={"zero": False})
    colour = nominal("model", sort=shown, title=None, legend=legend,
                     scale={"domain": shown, "range": colours})  # fmt: skip
    shape = nominal("model", sort=shown, title=None, legend=legend,
                    scale={"domain": shown, "range": shapes})  # fmt: skip
    beside = nominal("model", sort=shown) if len(shown) > 1 and not ablation.is_number else None
    place = {"x": x, "color": colour, **({"xOffset": beside} if beside else {})}
    layers = []
    if ablation.is_number:
        layers.append(layer("line", {**place, "y": y}, strokeWidth=2, aria=False))
    if have_ends(rows):
        reach = {**place, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        layers.append(layer("rule", reach, opacity=0.6, aria=False))
    layers.append(
        layer("point", {**place, "y": y, "shape": shape, **TEXT}, size=70, filled=True, opacity=1)
    )
    panels = [*tables.values()]
    return chart(
        f"{ablation.title} by {ablation.axis}: {', '.join(map(printable, tables))}",
        Fit(len(panels), 250, 60, gap=60), rows,
        facet=nominal("table", title=None, sort=panels),
        columns=min(_PANELS, len(panels)),
        spec={"width": 320, "height": 220, "layer": layers},
        # A shared axis stands below the last row, even where that has no panel.
        resolve={"axis": {"x": "independent"}},
    )  # fmt: skip


# --- calibration ----------------------------------------------------------------------------------


def _bin_value(run: str, definition: str, shown: Bin) -> Spec:
    return {
        "run": run,
        "by": definition,
        "confidence": round(100 * shown.confidence, 4),
        "hits": round(100 * shown.hits, 4),
        "boxes": shown.boxes,
        "text": f"{run}, by {definition}: confidence {100 * shown.confidence:.0f} %, "
        f"{100 * shown.hits:.0f} % right, {counted(shown.boxes, 'box')}",
    }


def reliability_chart(runs: Mapping[str, Mapping[str, Sequence[Bin]]]) -> Spec:
    """Draw the share of hits by confidence: a panel for each run, a line for each definition.

    Args:
        runs: bins by the names of runs and of definitions.
    """
    names = names_of(runs)
    rows = []
    for run, definitions in runs.items():
        for definition, bins in definitions.items():
            rows += [_bin_value(names[run], definition, each) for each in bins]
    # A definition of confidence has the same colour in every chart.
    used = set()
    for definitions in runs.values():
        used |= {definition for definition, bins in definitions.items() if bins}
    colours = {mean: COLOURS[at] for at, mean in enumerate(CONFIDENCE_MEANINGS) if mean in used}
    percent = {"scale": {"domain": [0, 100]}}
    line = {
        "x": number("confidence", title="confidence (%)", **percent),
        "y": number("hits", title="hits (%)", **percent),
        "color": nominal("by", title=None, legend={"orient": "bottom"},
                         scale={"domain": [*colours], "range": [*colours.values()]}),
    }  # fmt: skip
    size = number("boxes", scale={"range": [20, 160]}, legend=None)
    diagonal = layer("line", {"x": number("x"), "y": number("y")}, stroke=INK, strokeDash=[3, 3],
                     opacity=0.5, aria=False)  # fmt: skip
    return chart(
        f"Share of hits by confidence: {', '.join(runs)}", Fit(len(runs), 250, 60), rows,
        facet=nominal("run", title=None, sort=[*names.values()]),
        columns=min(4, len(runs)),
        spec={
            "width": 300, "height": 200,
            "layer": [
                {"data": {"values": [{"x": 0, "y": 0}, {"x": 100, "y": 100}]}, **diagonal},
                layer("line", line, aria=False),
                layer("point", {**line, "size": size, **TEXT}, filled=True, opacity=1),
            ],
        },
    )  # fmt: skip
