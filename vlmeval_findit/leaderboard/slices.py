"""Runs by slices: the sizes, classes or splits that their queries belong to."""

from __future__ import annotations

from collections import Counter

from ..core.evidence import clustered, evidence_of, slice_of
from ..core.metric import Metric, is_sliced, sliced
from ..core.scored_row import ScoredRow
from ..core.statistics import figure_intervals
from ..runs.scored_run import Run
from .board import Board
from .rows import TableRow, bounds_fields


def slice_rows(board: Board) -> list[TableRow]:
    """One row a comparable run and slice, with its plain ratios and their intervals.

    Failed calls are among the rows of a slice, as they are among the queries of a run.
    """
    return [
        {
            "dataset": one.column,
            "model": one.run.model,
            "format": one.run.question.format,
            "reported": "yes" if one.reported else "",
            **row,
        }
        for one in board.sweep
        for row in slices_of(one.run)
    ]


def slices_of(run: Run) -> list[TableRow]:
    """One row a slice of a run: its kind and value, its rows and plain ratios with intervals."""
    counts = Counter(key for row in run.rows for key in row.slices.items())
    metrics = [metric for metric in run.benchmark.metrics if not _of_slices(metric)]
    names = _names(run.rows)
    given = clustered(run.rows, run.question.images)
    made = []
    for (kind, value), count in sorted(counts.items()):
        sums = {name: run.sums.get(sliced(name, kind, value), 0) for name in names}
        bounds = figure_intervals(evidence_of(metrics, slice_of(given, kind, value)))
        figures = {
            name: figure
            for metric in metrics
            for name, figure in {
                metric.name: metric.value(sums),
                **bounds_fields(metric.name, bounds.get(metric.name)),
            }.items()
        }
        made.append({"slice": kind, "value": value, "rows": count, **figures})
    return made


def _of_slices(metric: Metric) -> bool:
    """Whether a metric is a figure of slices itself."""
    return bool(metric.over) or any(map(is_sliced, metric.whole))


def _names(rows: tuple[ScoredRow, ...]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.sums))
