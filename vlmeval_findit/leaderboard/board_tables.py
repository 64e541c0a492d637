"""Tables of a leaderboard: for people, long tables for programs, and slices of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..analysis import estimate_run
from ..core import counted
from ..protocol import Metric, Ratio, SumKey, slice_weights
from ..scoring import Run
from ..statistics import Difference, clustered_sums, metric_intervals, slice_intervals
from .board import OVERALL, Board, RankedValue
from .comparable import group_by
from .cost_tables import cell_costs, cost_cells, cost_fields
from .legends import VOTED, elsewhere_column
from .notes import format_note, formats_tried, formats_used, notes_of, signs_of
from .reported_formats import FormatRow
from .result_table import (
    Field,
    FieldType,
    FieldValue,
    Note,
    Table,
    TableCell,
    count_column,
    value_column,
)

# --- for people -----------------------------------------------------------------------------------


def metric_table(
    board: Board, metric: str, names: Sequence[str] | None = None, formats: bool = False
) -> Table:
    """Make the table of a metric, models x means and datasets, ordered by it.

    Args:
        board: the leaderboard.
        metric: the name of one of its metrics.
        names: means and datasets, in the order of :meth:`.Board.names` (None: all).
        formats: whether each model has its reported formats beside it, where they have names.
    """
    names = board.names() if names is None else names
    rows: list[list[FieldValue]] = []
    ranks = {model: _rank_cell(board, model, metric) for model in board.models}
    first = _FirstCells(board, formats)
    for model in sorted(ranks, key=lambda model: _place(ranks[model])):
        row = first.of_model(ranks[model], model)
        for name in names:
            row += _cells(board, board.entry(model, name, metric))
        rows.append(row)
    published = _published_rows(board, metric, names, first)
    fields = first.fields
    datasets = {dataset.name: dataset for dataset in board.datasets}
    means = {mean.name: mean for mean in board.means}
    for name in names:
        if name in means:
            fields += _fields(board, name, f"mean of {len(means[name].datasets)}", is_mean=True)
        else:
            dataset = datasets[name]
            fields += _fields(board, name, f"{dataset.family}, {dataset.queries} queries")
    title = next(each.title for each in board.metrics if each.name == metric)
    notes = notes_of(board, only_reported=True)
    rows += published
    return Table(title, fields, rows, notes, quoted=len(published), signs=signs_of(board))


def _published_rows(
    board: Board, metric: str, names: Sequence[str], first: _FirstCells
) -> list[list[FieldValue]]:
    """Make a row for each model and publication that has the metric."""
    known = (each for each in board.published if metric in each.values)
    rows = []
    for (model, _), group in group_by(known, lambda each: (each.model, each.where)).items():
        row = first.of_published(model, ", ".join(dict.fromkeys(each.format for each in group)))
        values = {each.dataset: each.values[metric] for each in group}
        for name in names:
            row += [values.get(name), None] if board.elsewhere else [values.get(name)]
        rows.append(row)
    return rows


class _FirstCells:
    """The first columns of a table of models: rank, model, its formats, and how many were tried.

    Args:
        board: the leaderboard.
        formats: whether there is a column of formats, where they have names.
    """

    def __init__(self, board: Board, formats: bool) -> None:
        self._formats = reported_formats(board) if formats else {}
        self._tried = formats_tried(board)

    @property
    def fields(self) -> list[Field]:
        fields = [Field("rank", FieldType.RANK), Field("model")]
        if self._formats:
            fields.append(Field("format"))
        if self._tried:
            fields.append(count_column("formats tried"))
        return fields

    def of_model(self, rank: TableCell, model: str) -> list[FieldValue]:
        cells: list[FieldValue] = [rank, model]
        if self._formats:
            cells.append(self._formats.get(model, ""))
        if self._tried:
            cells.append(self._tried[model])
        return cells

    def of_published(self, model: str, told: str) -> list[FieldValue]:
        """Return the cells of a published row, whose format is the one that its source tells."""
        cells: list[FieldValue] = ["published", model]
        if self._formats:
            cells.append(told)
        if self._tried:
            cells.append("")
        return cells


def reported_formats(board: Board) -> dict[str, str]:
    """Return the formats of each model that are reported; empty if no format has a name."""
    by_model: dict[str, list[str]] = {}
    for model, name, _ in formats_used(board):
        names = by_model.setdefault(model, [])
        if name not in names:
            names.append(name)
    return {model: ", ".join(names) for model, names in by_model.items()}


def _place(rank: TableCell) -> tuple[float, bool]:
    """Return the place of a row: of equal models the first is the one without a sign."""
    return float(rank.value or "inf"), bool(rank.sign)


def _rank_cell(board: Board, model: str, metric: str) -> TableCell:
    """Make ``2 ≈``; no rank for a model without a mean, or with failed calls in it."""
    entry = board.entry(model, OVERALL, metric)
    if entry is None or not entry.rank:
        return TableCell()
    return TableCell(entry.rank, sign=entry.mark)


def _fields(board: Board, name: str, note: str = "", is_mean: bool = False) -> list[Field]:
    """Return the column of a mean, dataset or metric; where formats were chosen, two.

    The second has what is ranked and tested, and all intervals.
    """
    if not board.elsewhere:
        return [value_column(name, note, is_mean)]
    as_reported = Field(name, FieldType.VALUE, note, is_mean=is_mean)
    tested = value_column(elsewhere_column(name), is_mean=is_mean)
    return [replace(field, folded=True) for field in (as_reported, tested)]


def _cells(board: Board, entry: RankedValue | None) -> list[FieldValue]:
    """Return the cells of :func:`_fields`."""
    if entry is None:
        return [TableCell(), TableCell()] if board.elsewhere else [TableCell()]
    tested = tested_cell(entry)
    if not board.elsewhere:
        return [tested]
    return [TableCell(entry.value, sign=VOTED if entry.voted else ""), tested]


def tested_cell(entry: RankedValue) -> TableCell:
    """Make the cell of what is ranked and tested: ``46.7 (33.2–60.6) ≈``."""
    known = entry.value if entry.elsewhere is None else entry.elsewhere.value
    sign = f"{entry.mark}{VOTED}" if entry.voted else entry.mark
    return TableCell(known, entry.tested_interval, sign, best=entry.rank == 1 and known is not None)


def overall_table(board: Board, formats: bool = False) -> Table:
    """Make the table of all metrics, each a mean over all datasets; ``formats`` as above."""
    names = [metric.name for metric in board.shown]
    counted = board.counted_datasets
    first = _FirstCells(board, formats)
    rows: list[list[FieldValue]] = []
    on_datasets = (cell for cell in board.ordered_cells() if cell.dataset in counted)
    for model, cells in group_by(on_datasets, lambda cell: cell.model).items():
        row = first.of_model(_rank_cell(board, model, names[0]), model)
        for name in names:
            row += _cells(board, board.entry(model, OVERALL, name))
        row += [sum(cell.queries for cell in cells), sum(cell.failures for cell in cells)]
        row.append(f"{len(cells)}/{len(counted)}")
        rows.append(row)
    fields = first.fields
    for metric in board.shown:
        fields += _fields(board, metric.title)
    fields += [count_column("queries"), count_column("failed calls"), Field("datasets")]
    notes = notes_of(board, only_reported=True)
    return Table("Overall", fields, rows, notes, signs=signs_of(board))


def formats_table(board: Board) -> Table:
    """Make the table of reported formats; without rows if the benchmark has a single format."""
    rows = [(model, name, ", ".join(datasets)) for model, name, datasets in formats_used(board)]
    fields = [Field("model"), Field("format"), Field("datasets")]
    return Table("Formats", fields, rows, [Note("", [format_note(board)])])


# --- for programs ---------------------------------------------------------------------------------


def values_table(board: Board) -> Table:
    """Make a row for each model and dataset or mean, with all values; then published values."""
    datasets = {each.name: each for each in board.datasets}
    any_reviews = any(each.reviews is not None for each in board.datasets)
    rows: list[list[FieldValue]] = []
    for cell in board.ordered_cells():
        row: list[FieldValue]
        if (dataset := datasets.get(cell.dataset)) is not None:
            row = [cell.model, cell.dataset, dataset.family, cell.format]
            row += [cell.queries, dataset.images]
        else:
            row = [cell.model, f"mean: {cell.dataset}", "", cell.format, cell.queries, None]
        row += [cell.failures, cell.tried]
        for metric in board.metrics:
            row += _ranked_cells(board, cell.entries.get(metric.name))
        row += cost_cells(cell_costs(board, cell))
        if board.published:
            row.append("")
        if any_reviews:
            row.append("yes" if cell.run and cell.run.voted else "")
        rows.append(row)
    for each in board.published:
        row = [each.model, each.dataset, datasets[each.dataset].family, each.format]
        row += [None, None, None, None]  # Counts
        for metric in board.metrics:
            row.append(each.values.get(metric.name))
            if board.elsewhere:
                row.append(None)
            row += [None, None, None, ""]
        row += cost_cells(None)
        row.append(each.where)
        if any_reviews:
            row.append("")
        rows.append(row)
    fields = [Field("model"), Field("dataset"), Field("family"), Field("format")]
    fields += [
        count_column("queries"),
        count_column("images"),
        count_column("failed calls"),
        count_column("formats tried"),
    ]
    for metric in board.metrics:
        name = metric.name
        fields.append(value_column(name))
        if board.elsewhere:
            fields.append(value_column(elsewhere_column(name)))
        fields += [count_column(f"{name} rank"), *_tests(f"{name} p to rank above", "corrected")]
        fields.append(Field(f"{name} tied"))
    fields += cost_fields()
    if board.published:
        fields.append(Field("published in"))
    if any_reviews:
        fields.append(Field("answers seen by reviewers"))
    quoted = len(board.published)
    return Table("All values", fields, rows, notes_of(board), quoted, signs_of(board))


def _ranked_cells(board: Board, entry: RankedValue | None) -> list[FieldValue]:
    """Return value, value elsewhere where formats were chosen, rank, p-values, sign of a tie."""
    if entry is None:
        return [None, *([None] if board.elsewhere else []), None, None, None, ""]
    cells: list[FieldValue] = [TableCell(entry.value, entry.interval)]
    if board.elsewhere:
        cells.append(replace(tested_cell(entry), sign="", best=False))
    return [*cells, entry.rank, *_p_values(entry.to_above), entry.mark]


def _tests(name: str, correction: str) -> list[Field]:
    return [Field(name, FieldType.P), Field(f"{name} ({correction})", FieldType.P)]


def _p_values(test: Difference | None) -> list[FieldValue]:
    return [test.p_value, test.corrected] if test else [None, None]


# The first columns of the long tables of runs
RUN_FIELDS = (Field("dataset"), Field("model"), Field("format"), Field("reported"))


def run_cells(row: FormatRow) -> list[FieldValue]:
    """Return the values of :data:`RUN_FIELDS`."""
    reported = "yes" if row.reported else ""
    return [row.dataset, row.run.model, row.run.variant.format, reported]


def sweep_table(board: Board) -> Table:
    """Make a row for each comparable run: every format of every model."""
    rows: list[list[FieldValue]] = []
    for row in board.runs:
        test = row.to_reported
        cells = run_cells(row)
        for metric in board.metrics:
            interval = row.intervals.get(metric.name)
            cells.append(TableCell(row.run.value(metric), interval))
        cells += [test.value if test else None, *_p_values(test)]
        cells += [len(row.run.rows), row.run.failed]
        rows.append([*cells, *cost_cells(row.run.provenance.costs)])
    fields = [*RUN_FIELDS, *(value_column(metric.name) for metric in board.metrics)]
    fields.append(Field(f"{board.metrics[0].name} to reported", FieldType.DIFFERENCE))
    fields += [
        *_tests("p to reported", "corrected"),
        count_column("queries"),
        count_column("failed calls"),
    ]
    fields += cost_fields()
    return Table("Formats", fields, rows, notes_of(board), signs=signs_of(board))


# The columns of excluded_table in tables for people
EXCLUDED_COLUMNS = ("model", "dataset", "reason", "queries")


def excluded_table(board: Board) -> Table:
    """Make a row for each run that could not be compared, with the reason."""
    metric = board.headline
    fields = [
        Field("model"),
        Field("dataset"),
        Field("reason"),
        count_column("queries"),
        count_column("failed calls"),
        Field(metric.name, FieldType.VALUE),
        Field("file"),
    ]
    rows: list[list[FieldValue]] = []
    for excluded in board.excluded:
        run = excluded.run
        row: list[FieldValue] = [run.model, run.variant.name, excluded.reason]
        row += [len(run.rows), run.failed, run.value(metric), str(run.path)]
        rows.append(row)
    return Table(f"Not compared: {counted(len(rows), 'run')}", fields, rows)


# --- slices ---------------------------------------------------------------------------------------

_MOST_VALUES = 40  # Most values of a kind of slices in tables for people

_SLICE_FIELDS = (Field("slice"), Field("value"), count_column("rows"))


def slices_table(board: Board) -> Table:
    """Make a row for each comparable run and slice, with its plain ratios and their intervals.

    Failed calls are among the rows of a slice, as they are among the queries of a run.
    """
    metrics = _plain(board.metrics)
    rows = [[*run_cells(row), *cells] for row in board.runs for cells in _slices(row.run, metrics)]
    fields = [*RUN_FIELDS, *_SLICE_FIELDS, *(value_column(metric.name) for metric in metrics)]
    return Table("Slices", fields, rows, signs=signs_of(board))


def run_slices_table(run: Run) -> Table:
    """Make a row for each slice of a run, as :func:`slices_table`."""
    metrics = _plain(run.benchmark.metrics)
    fields = [*_SLICE_FIELDS, *(value_column(metric.name) for metric in metrics)]
    return Table("Slices", fields, list(_slices(run, metrics)))


def slices_tables(board: Board) -> list[Table]:
    """Make a table for each dataset: the headline metric of reported runs by slices."""
    if not _plain([board.headline]):
        return []
    reported = group_by((row for row in board.runs if row.reported), lambda row: row.dataset)
    tables = []
    for dataset, rows in reported.items():
        table = _slices_table(dataset, [row.run for row in rows], board.headline)
        table = replace(table, signs=signs_of(board))
        if table.rows or table.notes:
            tables.append(table)
    return tables


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
    shown: list[list[FieldValue]] = [
        [f"{kind}: {part}", rows, *(cells.get((kind, part, model)) for model in models)]
        for (kind, part), rows in sorted(counts.items())
        if kind not in many
    ]
    title = f"{metric.name} by slices of {dataset}"
    left_out = [f"{dataset}: {kind}: {n} values, in slices.csv" for kind, n in many.items()]
    notes = [Note("Slices in no table", left_out)] if left_out else []
    return Table(
        title, [Field("slice"), count_column("queries"), *map(value_column, models)], shown, notes
    )


def _slices(run: Run, metrics: Sequence[Metric]) -> Iterator[list[Any]]:
    """Yield kind, value and number of rows of every slice of a run, and a cell for each metric."""
    all_sums = clustered_sums(run.rows, run.variant.images)
    for kind, slicing in sorted(all_sums.slices.items()):
        counts = np.bincount(
            slicing.place[slicing.place >= 0], minlength=len(slicing.values)
        ).tolist()
        of_slices = {
            part: [_in_slice(each, kind, part) for each in metrics] for part in slicing.values
        }
        bounds = slice_intervals(metrics, all_sums, kind) if run.random is None else {}
        for part, rows in sorted(zip(slicing.values, counts, strict=True)):
            if run.random is not None:
                of_run = metric_intervals(estimate_run(run, of_slices[part]))
                bounds = {(part, name): interval for name, interval in of_run.items() if interval}
            cells = []
            for metric in of_slices[part]:
                cells.append(TableCell(run.value(metric), bounds.get((part, metric.name))))
            yield [kind, part, rows, *cells]


def _in_slice(metric: Metric, kind: str, part: str) -> Metric:
    """Return the metric over the rows of a slice; no value where it has nothing to divide by."""
    return replace(
        metric,
        part=slice_weights(metric.part, kind, part),
        whole=slice_weights(metric.whole, kind, part),
        hits=metric.hits
        and Ratio(
            slice_weights(metric.hits.part, kind, part),
            slice_weights(metric.hits.whole, kind, part),
        ),
        empty=None,
    )


def _plain(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the metrics that are not values of slices themselves."""
    return [metric for metric in metrics if not metric.over and not _is_of_slice(metric)]


def _is_of_slice(metric: Metric) -> bool:
    return any(isinstance(key, SumKey) for key in metric.whole)
