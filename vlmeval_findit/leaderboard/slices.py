"""Runs by slices: the sizes, classes or splits that their queries belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.evidence import Clustered, clustered, evidence_of, slice_of
from ..core.metric import Metric, Sums, is_sliced, sliced, weighted
from ..core.statistics import figure_intervals
from ..runs.scored_run import Run
from .board import Board
from .formats import FormatRow
from .rows import TableRow, bounds_fields


def slice_rows(board: Board) -> list[TableRow]:
    """One row a comparable run and slice, with its plain ratios and their intervals.

    Failed calls are among the rows of a slice, as they are among the queries of a run.
    """
    metrics = [metric for metric in board.metrics if not _of_slices(metric)]
    return [row for one in board.sweep for row in _rows_of(one, metrics)]


@dataclass(frozen=True, slots=True)
class PartsTable:
    """The headline figure of the parts of one column's queries, model by model.

    ``rows`` have a part, how many queries are in it, and a text a model.  ``left_out`` are kinds
    with more values than one looks at, and how many those are.
    """

    column: str
    models: tuple[str, ...]
    rows: tuple[tuple[str, int, tuple[str, ...]], ...]
    left_out: Mapping[str, int]


_MOST_VALUES = 40
"""Of a kind of slices, as many as one looks at."""


def parts_tables(board: Board) -> list[PartsTable]:
    """What is shown of slices beside the file of all: the reported runs, by their headline."""
    metric = board.headline
    if _of_slices(metric):
        return []
    found: dict[str, list[TableRow]] = {}
    for one in board.sweep:
        if one.reported:
            found.setdefault(one.column, []).extend(_rows_of(one, [metric]))
    tables = (_parts_table(column, rows, metric) for column, rows in found.items())
    return [table for table in tables if table.rows or table.left_out]


def _parts_table(column: str, rows: Sequence[TableRow], metric: Metric) -> PartsTable:
    models = tuple(dict.fromkeys(str(row["model"]) for row in rows))
    values: dict[str, set[str]] = {}
    counts: dict[tuple[str, str], int] = {}
    texts: dict[tuple[str, str, str], str] = {}
    for row in rows:
        kind, value = str(row["slice"]), str(row["value"])
        values.setdefault(kind, set()).add(value)
        if row[metric.name] is not None:
            counts[kind, value] = max(counts.get((kind, value), 0), int(row["rows"]))
        texts[kind, value, str(row["model"])] = _text(row, metric.name)
    many = {kind: len(found) for kind, found in values.items() if len(found) > _MOST_VALUES}
    return PartsTable(
        column,
        models,
        tuple(
            (
                f"{kind}: {value}",
                counts[kind, value],
                tuple(texts.get((kind, value, model), "–") for model in models),
            )
            for kind, value in sorted(counts)
            if kind not in many
        ),
        many,
    )


def _text(row: TableRow, metric: str) -> str:
    """``61.3 (52.0–70.1)``."""
    value, low, high = (row[f"{metric}{end}"] for end in ("", " low", " high"))
    if value is None:
        return "–"
    return f"{value:.1f}" + (f" ({low:.1f}–{high:.1f})" if low is not None else "")


def _rows_of(one: FormatRow, metrics: Sequence[Metric]) -> list[TableRow]:
    return [
        {
            "dataset": one.column,
            "model": one.run.model,
            "format": one.run.question.format,
            "reported": "yes" if one.reported else "",
            **row,
        }
        for row in slices_of(one.run, metrics)
    ]


def slices_of(run: Run, metrics: Sequence[Metric] | None = None) -> list[TableRow]:
    """One row a slice of a run: its kind and value, its rows and plain ratios with intervals.

    ``metrics`` are those that are wanted (None: the benchmark's).
    """
    if metrics is None:
        metrics = [metric for metric in run.benchmark.metrics if not _of_slices(metric)]
    given = clustered(run.rows, run.question.images)
    made = []
    for kind, value, count in sorted(_counts(given)):
        sums = {name: run.sums.get(sliced(name, kind, value), 0) for name in given.sums}
        bounds = figure_intervals(evidence_of(metrics, slice_of(given, kind, value)))
        figures = {
            name: figure
            for metric in metrics
            for name, figure in {
                metric.name: _figure(metric, sums),
                **bounds_fields(metric.name, bounds.get(metric.name)),
            }.items()
        }
        made.append({"slice": kind, "value": value, "rows": count, **figures})
    return made


def _figure(metric: Metric, sums: Sums) -> float | None:
    """None where the slice has nothing to divide by, as one of queries with nothing to find."""
    return metric.value(sums) if weighted(sums, metric.whole) else None


def _of_slices(metric: Metric) -> bool:
    """Whether a metric is a figure of slices itself."""
    return bool(metric.over) or any(map(is_sliced, metric.whole))


def _counts(given: Clustered) -> Iterator[tuple[str, str, int]]:
    """Kind, value and number of rows of every slice."""
    for kind, slicing in given.slices.items():
        counts = np.bincount(slicing.of[slicing.of >= 0], minlength=len(slicing.values))
        for value, count in zip(slicing.values, counts.tolist(), strict=True):
            yield kind, value, count
