"""Runs by slices: the sizes, classes or splits that their queries belong to."""

from __future__ import annotations

from collections import Counter

from ..core.evidence import clustered, evidence_of, slice_of
from ..core.metric import Metric, is_sliced, sliced
from ..core.scored_row import ScoredRow
from ..core.statistics import figure_intervals
from .board import Board
from .formats import FormatRow
from .rows import TableRow, bounds_fields


def slice_rows(board: Board) -> list[TableRow]:
    """One row a comparable run and slice, with its plain ratios and their intervals.

    Failed calls are among the rows of a slice, as they are among the queries of a run.
    """
    return [row for one in board.sweep for row in _rows_of(board, one)]


def _rows_of(board: Board, one: FormatRow) -> list[TableRow]:
    run = one.run
    counts = Counter(key for row in run.rows for key in row.slices.items())
    metrics = [metric for metric in board.metrics if not _of_slices(metric)]
    names = _names(run.rows)
    given = clustered(run.rows, run.question.images)
    made = []
    for (kind, value), count in sorted(counts.items()):
        sums = {name: run.sums.get(sliced(name, kind, value), 0) for name in names}
        bounds = figure_intervals(evidence_of(metrics, slice_of(given, kind, value)))
        made.append(
            {
                "dataset": one.column,
                "model": run.model,
                "format": run.question.format,
                "reported": "yes" if one.reported else "",
                "slice": kind,
                "value": value,
                "rows": count,
                **{
                    name: figure
                    for metric in metrics
                    for name, figure in {
                        metric.name: metric.value(sums),
                        **bounds_fields(metric.name, bounds.get(metric.name)),
                    }.items()
                },
            }
        )
    return made


def _of_slices(metric: Metric) -> bool:
    """Whether a metric is a figure of slices itself."""
    return bool(metric.over) or any(map(is_sliced, metric.whole))


def _names(rows: tuple[ScoredRow, ...]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.sums))
