"""Runs by slices: the sizes, classes or splits that their queries belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.estimate import clustered_sums, estimate_metrics, slice_of
from ..core.metric import Metric, is_sliced, sliced, weighted
from ..core.statistics import metric_intervals
from ..runs.scored_run import Run
from .board import Board
from .board_tables import RUN_FIELDS, run_cells
from .comparable import grouped
from .table import Field, Note, Table, TableCell, Value, count, value

_MOST_VALUES = 40
"""Most values of a kind of slices in tables for people."""

_FIELDS = (Field("slice"), Field("value"), count("rows"))


def slices_table(board: Board) -> Table:
    """Make a row for each comparable run and slice, with its plain ratios and their intervals.

    Failed calls are among the rows of a slice, as they are among the queries of a run.
    """
    metrics = _plain(board.metrics)
    rows = [[*run_cells(row), *cells] for row in board.runs for cells in _slices(row.run, metrics)]
    fields = [*RUN_FIELDS, *_FIELDS, *(value(metric.name) for metric in metrics)]
    return Table("Slices", fields, rows)


def run_slices_table(run: Run) -> Table:
    """Make a row for each slice of a run, as :func:`slices_table`."""
    metrics = _plain(run.benchmark.metrics)
    fields = [*_FIELDS, *(value(metric.name) for metric in metrics)]
    return Table("Slices", fields, list(_slices(run, metrics)))


def slices_tables(board: Board) -> list[Table]:
    """Make a table for each dataset: the headline metric of reported runs by slices."""
    if not _plain([board.headline]):
        return []
    rows = grouped((row for row in board.runs if row.reported), lambda row: row.dataset)
    tables = (
        _slices_table(dataset, [row.run for row in members], board.headline)
        for dataset, members in rows.items()
    )
    return [table for table in tables if table.rows or table.notes]


def _slices_table(dataset: str, runs: Sequence[Run], metric: Metric) -> Table:
    """Make a table of slices x models; of a kind with many values only their number is noted."""
    values: dict[str, set[str]] = {}
    counts: dict[tuple[str, str], int] = {}
    cells: dict[tuple[str, str, str], TableCell] = {}
    for run in runs:
        for kind, part, rows, cell in _slices(run, [metric]):
            values.setdefault(kind, set()).add(part)
            if cell.value is not None:
                counts[kind, part] = max(counts.get((kind, part), 0), rows)
                cells[kind, part, run.model] = cell
    many = {kind: len(parts) for kind, parts in values.items() if len(parts) > _MOST_VALUES}
    models = list(dict.fromkeys(run.model for run in runs))
    shown: list[list[Value]] = [
        [f"{kind}: {part}", rows, *(cells.get((kind, part, model)) for model in models)]
        for (kind, part), rows in sorted(counts.items())
        if kind not in many
    ]
    title = f"{metric.name} by slices of {dataset}"
    left_out = [f"{dataset}: {kind}: {n} values, in slices.csv" for kind, n in many.items()]
    notes = [Note("Slices in no table", left_out)] if left_out else []
    return Table(title, [Field("slice"), count("queries"), *map(value, models)], shown, notes)


def _slices(run: Run, metrics: Sequence[Metric]) -> Iterator[list[Any]]:
    """Yield kind, value and number of rows of every slice of a run, and a cell for each metric."""
    all_sums = clustered_sums(run.rows, run.question.images)
    for kind, slicing in sorted(all_sums.slices.items()):
        counts = np.bincount(slicing.of[slicing.of >= 0], minlength=len(slicing.values)).tolist()
        for part, rows in sorted(zip(slicing.values, counts, strict=True)):
            sums = {name: run.sums.get(sliced(name, kind, part), 0) for name in all_sums.sums}
            bounds = metric_intervals(estimate_metrics(metrics, slice_of(all_sums, kind, part)))
            # A slice may have nothing to divide by, as queries with nothing to find.
            values = [each.value(sums) if weighted(sums, each.whole) else None for each in metrics]
            cells = (TableCell(v, bounds.get(m.name)) for m, v in zip(metrics, values, strict=True))
            yield [kind, part, rows, *cells]


def _plain(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the metrics that are not values of slices themselves."""
    return [m for m in metrics if not m.over and not any(map(is_sliced, m.whole))]
