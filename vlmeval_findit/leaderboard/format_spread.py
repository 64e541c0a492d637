"""How much the format matters: what a model's other formats lose against its reported format.

The best of many formats is optimistic on the queries that it was chosen on, so differences are
corrected for the number of formats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..core.formatting import counted
from ..protocol.metric import Better, Metric
from .board import Board
from .comparable import grouped
from .reported_formats import FormatRow
from .result_table import Field, FieldType, Note, Table, TableCell, Value, count


@dataclass(frozen=True, slots=True)
class FormatSpread:
    """The formats of a model on a dataset, by the headline of its board."""

    model: str
    dataset: str
    formats: int
    reported: FormatRow
    median: FormatRow  # Of an even number the lower one
    worst: FormatRow
    commonest: FormatRow | None  # In the commonest format of the dataset; None: not asked in it


def format_spreads(board: Board) -> list[FormatSpread]:
    """Return the spread of every model on every dataset that it has several formats of."""
    metric = board.headline
    spreads = []
    by_dataset = grouped(board.runs, lambda row: row.dataset)
    for dataset, rows in by_dataset.items():
        usual = commonest_format(rows)
        for model, of_model in grouped(rows, lambda row: row.run.model).items():
            values = {}
            for row in of_model:
                value = row.run.value(metric)
                if value is not None:
                    values[row.run.variant.format] = (value, row)
            reported = [row for _, row in values.values() if row.reported]
            if len(values) < 2 or not reported:
                continue
            from_best = metric.better is Better.HIGHER
            order = sorted(values.values(), key=lambda each: each[0], reverse=from_best)
            common = values.get(usual)
            spreads.append(
                FormatSpread(
                    model=model,
                    dataset=dataset,
                    formats=len(values),
                    reported=reported[0],
                    median=order[len(order) // 2][1],
                    worst=order[-1][1],
                    commonest=common[1] if common else None,
                )
            )
    return spreads


def commonest_format(rows: Iterable[FormatRow]) -> str:
    """Return the format that most models were asked in; of several the benchmark's first."""
    asked = {(row.run.model, row.run.variant.format) for row in rows}
    places = {row.run.variant.format: row.run.variant.format_place for row in rows}
    times = Counter(name for _, name in asked)
    return min(times, key=lambda name: (-times[name], places[name]))


def spread_table(board: Board, spreads: Sequence[FormatSpread]) -> Table:
    """Make a row for each spread, the largest first."""
    metric = board.headline
    fields = [
        Field("model"),
        Field("dataset"),
        count("formats"),
        Field("best"),
        Field(metric.name, FieldType.VALUE, interval=True),
        Field("median"),
        Field("to median", FieldType.DIFFERENCE, interval=True),
        Field("worst"),
        Field("to worst", FieldType.DIFFERENCE, interval=True),
        Field("commonest"),
        Field("to commonest", FieldType.DIFFERENCE, interval=True),
    ]
    rows: list[list[Value]] = []
    for each in sorted(spreads, key=lambda each: loss(each.worst, metric), reverse=True):
        best = each.reported
        value = TableCell(best.run.value(metric), best.intervals.get(metric.name))
        row: list[Value] = [each.model, each.dataset, each.formats]
        row += [best.run.variant.format, value]
        for other in (each.median, each.worst, each.commonest):
            row.append(other.run.variant.format if other else None)
            row.append(_difference(other))
        rows.append(row)
    lines = [
        f"{metric.title}: the format minus the best; intervals are of one difference, tests are "
        "corrected for the number of formats (*: significant)",
        "best: the format that the model is reported in",
        "commonest: the format that most models were asked in on the dataset",
    ]
    return Table("How much the format matters", fields, rows, [Note("", lines)])


def _difference(row: FormatRow | None) -> TableCell:
    if row is None:
        return TableCell()
    if row.reported:
        return TableCell(0.0)
    tested = row.to_reported
    if tested is None:
        return TableCell()
    return TableCell(tested.value, tested.interval, "*" if tested.significant else "")


def loss(row: FormatRow, metric: Metric) -> float:
    """Return by how much a format is worse than the reported one, in the unit of its headline."""
    if row.to_reported is None:
        return 0.0
    return -row.to_reported.value if metric.better is Better.HIGHER else row.to_reported.value


def spread_sentence(board: Board, spreads: Sequence[FormatSpread]) -> str:
    """Say what the wrong format costs at most; empty without spreads."""
    if not spreads:
        return ""
    metric = board.headline
    most = max(spreads, key=lambda each: loss(each.worst, metric))
    formats = counted(most.formats, "format")
    text = (
        f"In its worst of {formats}, {most.worst.run.variant.format}, {most.model} loses "
        f"{_amount(most.worst, metric)} on {most.dataset}"
    )
    asked = [(each, each.commonest) for each in spreads if each.commonest is not None]
    if not asked:
        return f"{text}."
    each, common = max(asked, key=lambda pair: loss(pair[1], metric))
    its_format = common.run.variant.format
    if loss(common, metric) <= 0:
        return f"{text}. In {its_format}, in which most models were asked, none loses anything."
    return (
        f"{text}. In {its_format}, in which most models were asked, {each.model} loses "
        f"{_amount(common, metric)} on {each.dataset}."
    )


def _amount(row: FormatRow, metric: Metric) -> str:
    """Format a loss with its interval: ``12.3 points (10.1 to 14.5)``."""
    unit = "points" if metric.share else metric.unit
    text = f"{loss(row, metric):.1f} {unit}".rstrip()
    interval = row.to_reported.interval if row.to_reported else None
    if interval is None:
        return text
    low, high = interval.low, interval.high
    if metric.better is Better.HIGHER:
        low, high = -high, -low
    return f"{text} ({low:.1f} to {high:.1f})"
