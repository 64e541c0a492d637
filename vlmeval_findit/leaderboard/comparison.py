"""The tables of a comparison: two runs, or the runs of two models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.statistics import ALPHA, INTERVALS, Difference, correct
from ..runs.scored_run import Run
from .table import Cell, Field, FieldType, Note, Table, Value

_NOTES = (Note("Intervals", [INTERVALS]), Note("*", [f"p below {ALPHA:g}"]))


def comparison_table(run: Run, other: Run, differences: Mapping[str, Difference]) -> Table:
    """Make one row a metric of two runs: both values, the first minus the second, its p-value."""
    rows = [
        _row(metric.title, (metric.value(run.sums), metric.value(other.sums)), one, one.p_value)
        for metric in run.benchmark.all_metrics
        if (one := differences.get(metric.name)) is not None
    ]
    title = " minus ".join(f"{one.model} on {one.question.name}" for one in (run, other))
    return Table(title, _fields("metric", "p"), rows, _NOTES)


def datasets_table(
    pairs: Sequence[tuple[Run, Run]], differences: Sequence[Mapping[str, Difference]]
) -> Table:
    """Make one row a dataset of the runs of two models: their headline metric."""
    shown = [
        (pair, found[name])
        for pair, found in zip(pairs, differences, strict=True)
        if (name := pair[0].benchmark.metrics[0].name) in found
    ]
    tests = correct(difference for _, difference in shown)
    rows = []
    for ((run, other), _), one in zip(shown, tests, strict=True):
        metric = run.benchmark.metrics[0]
        values = metric.value(run.sums), metric.value(other.sums)
        rows.append(_row(run.question.column, values, one, one.corrected))
    (run, other), metric = pairs[0], pairs[0][0].benchmark.metrics[0]
    title = f"{run.model} minus {other.model}: {metric.title}"
    return Table(title, _fields("dataset", "p (Holm)"), rows, _NOTES)


def _fields(first: str, test: str) -> list[Field]:
    values = [Field(name, FieldType.VALUE) for name in ("A", "B")]
    return [
        Field(first),
        *values,
        Field("A - B", FieldType.DIFFERENCE, interval=True),
        Field(test, FieldType.P),
    ]


def _row(
    name: str, values: tuple[float | None, float | None], one: Difference, p_value: float | None
) -> list[Value]:
    sign = "*" if p_value is not None and p_value < ALPHA else ""
    return [name, *values, Cell(one.value, one.interval), Cell(p_value, sign=sign)]
