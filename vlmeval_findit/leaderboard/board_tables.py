"""Tables of a leaderboard: for people, long tables for programs, and slices of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..analysis import estimate_run
from ..core import counted
from ..protocol import Metric, Ratio, SumKey, slice_weights
from ..scoring import Run
from ..statistics import Difference, RankRange, clustered_sums, metric_intervals, slice_intervals
from .board import OVERALL, Board, BoardCell, RankedValue
from .columns import (
    Column,
    count_column,
    difference_column,
    p_column,
    plain_value_column,
    table_of,
    value_column,
)
from .comparable import ExcludedRun, group_by
from .cost_tables import RUN_COSTS, cell_costs
from .legends import UNTESTED_SIGN, VOTED, elsewhere_column
from .notes import (
    datasets_in_words,
    format_note,
    formats_tried,
    formats_used,
    notes_of,
    signs_of,
)
from .reported_formats import FormatRow
from .result_table import FieldType, Note, Table, TableCell

# --- for people -----------------------------------------------------------------------------------


def metric_table(
    board: Board, metric: str, names: Sequence[str] | None = None, formats: bool = False
) -> Table:
    """Make the table of a metric, models x means and datasets, ordered by it.

    Args:
        board: the leaderboard.
        metric: the name of one of its metrics.
        names: means and datasets (None: :meth:`.Board.places`).
        formats: whether each model has its reported formats beside it, where they have names.
    """
    ranks = {model: _rank_cell(board, model, metric) for model in board.models}
    columns = _first_columns(board, ranks, formats)
    for name in board.places() if names is None else names:
        columns += _place_columns(board, name, metric)
    return table_of(
        next(each.title for each in board.metrics if each.name == metric),
        columns,
        sorted(ranks, key=lambda model: _place(ranks[model])),
        notes_of(board, only_reported=True),
        signs_of(board),
        _published_rows(board, metric),
    )


@dataclass(frozen=True, slots=True)
class _PublishedRow:
    """What a publication says of a model: the format that it tells, a metric's values."""

    model: str
    format: str
    values: Mapping[str, float]  # By dataset


def _published_rows(board: Board, metric: str) -> list[_PublishedRow]:
    """Return a row for each model and publication that has the metric."""
    known = (each for each in board.published if metric in each.values)
    rows = []
    for (model, _), group in group_by(known, lambda each: (each.model, each.where)).items():
        formats = dict.fromkeys(each.format for each in group)
        values = {each.dataset: each.values[metric] for each in group}
        rows.append(_PublishedRow(model, ", ".join(formats), values))
    return rows


def _first_columns(
    board: Board, ranks: Mapping[str, TableCell], formats: bool
) -> list[Column[str]]:
    """Return the first columns of a table of models: rank, model, its formats, how many were tried.

    Args:
        board: the leaderboard.
        ranks: of its models.
        formats: whether there is a column of formats, where they have names.
    """
    columns: list[Column[str]] = [
        Column("rank", ranks.__getitem__, FieldType.RANK, published=lambda row: "published"),
        Column("model", str, published=lambda row: row.model),
    ]
    reported = reported_formats(board) if formats else {}
    if reported:
        columns.append(
            Column(
                "format",
                lambda model: reported.get(model, ""),
                published=lambda row: row.format,
            )
        )
    tried = formats_tried(board)
    if tried:
        columns.append(count_column("formats tried", tried.__getitem__, published=lambda row: ""))
    return columns


def _place_columns(board: Board, name: str, metric: str) -> list[Column[str]]:
    """Return the columns of a mean or dataset in a table of a metric."""
    mean = next((each for each in board.means if each.name == name), None)
    if mean is not None:
        datasets = mean.datasets
        note = f"mean of {len(mean.datasets)}"
    else:
        dataset = next(each for each in board.datasets if each.name == name)
        datasets = (name,)
        note = f"{dataset.family}, {counted(dataset.queries, 'query', 'queries')}"
    return _value_columns(
        board,
        name,
        lambda model: board.entry(model, name, metric),
        note,
        is_mean=mean is not None,
        has_ranks=datasets != board.means[0].datasets,  # By these, rows have their ranks
        published=lambda row: row.values.get(name),
    )


def reported_formats(board: Board) -> dict[str, str]:
    """Return the formats of each model that are reported; empty if no format has a name."""
    by_model: dict[str, list[str]] = {}
    for model, name, _ in formats_used(board):
        names = by_model.setdefault(model, [])
        if name not in names:
            names.append(name)
    return {model: ", ".join(names) for model, names in by_model.items()}


def _place(rank: TableCell) -> float:
    """Return the place of a row."""
    return float(rank.value or "inf")


def _rank_cell(board: Board, model: str, metric: str) -> TableCell:
    """Make ``2–4``; no rank for a model without a mean, or with failed calls in it."""
    entry = board.entry(model, OVERALL, metric)
    if entry is None or not entry.rank:
        return TableCell()
    return TableCell(entry.rank, sign=_untested(entry), ranks=entry.ranks)


def _untested(entry: RankedValue) -> str:
    return UNTESTED_SIGN if entry.ranks is not None and entry.ranks.untested else ""


def _value_columns(
    board: Board,
    name: str,
    entry: Callable[[str], RankedValue | None],
    note: str = "",
    is_mean: bool = False,
    has_ranks: bool = True,
    published: Callable[[Any], float | None] = lambda row: None,
) -> list[Column[str]]:
    """Return the column of a mean, dataset or metric of models; where formats were chosen, two.

    The second has what is ranked and tested, and all intervals. ``has_ranks``: whether the ranks
    follow the values; those that a row begins with need no second place.
    """

    def tested(model: str) -> TableCell:
        known = entry(model)
        if known is None:
            return TableCell()
        cell = tested_cell(known)
        return cell if has_ranks else replace(cell, ranks=None)

    def as_reported(model: str) -> TableCell:
        known = entry(model)
        return TableCell() if known is None else reported_cell(known)

    if not board.elsewhere:
        return [value_column(name, tested, note=note, is_mean=is_mean, published=published)]
    columns: list[Column[str]] = [
        plain_value_column(name, as_reported, note=note, published=published),
        value_column(elsewhere_column(name), tested),
    ]
    return [replace(column, is_mean=is_mean, folded=True) for column in columns]


def reported_cell(entry: RankedValue) -> TableCell:
    """Make the cell of the value in the reported format: ``46.7 †``."""
    return TableCell(entry.value, sign=VOTED if entry.voted else "")


def tested_cell(entry: RankedValue) -> TableCell:
    """Make the cell of what is ranked and tested: ``46.7 (33.2–60.6) #2–4``."""
    known = entry.value if entry.elsewhere is None else entry.elsewhere.value
    return TableCell(
        known,
        entry.tested_interval,
        sign=_untested(entry) + (VOTED if entry.voted else ""),
        best=entry.best and known is not None,
        ranks=entry.ranks,
    )


def overall_table(board: Board, formats: bool = False) -> Table:
    """Make the table of all metrics, each a mean over all datasets; ``formats`` as above."""
    metrics = board.shown
    counted = board.counted_datasets
    on_datasets = (cell for cell in board.ordered_cells() if cell.dataset in counted)
    cells = group_by(on_datasets, lambda cell: cell.model)
    ranks = {model: _rank_cell(board, model, metrics[0].name) for model in cells}
    columns = _first_columns(board, ranks, formats)
    for metric in metrics:
        entry = partial(board.entry, name=OVERALL, metric=metric.name)
        has_ranks = metric is not metrics[0]
        columns += _value_columns(board, metric.title, entry, has_ranks=has_ranks)
    columns += [
        count_column("queries", lambda model: sum(cell.queries for cell in cells[model])),
        count_column("failed calls", lambda model: sum(cell.failures for cell in cells[model])),
        Column("datasets", lambda model: f"{len(cells[model])}/{len(counted)}"),
    ]
    return table_of("Overall", columns, cells, notes_of(board, only_reported=True), signs_of(board))


def formats_table(board: Board) -> Table:
    """Make the table of reported formats; without rows if the benchmark has a single format."""
    columns: list[Column[tuple[str, str, Sequence[str]]]] = [
        Column("model", lambda used: used[0]),
        Column("format", lambda used: used[1]),
        Column("datasets", lambda used: datasets_in_words(board, used[2])),
    ]
    return table_of("Formats", columns, formats_used(board), [Note("", [format_note(board)])])


# --- for programs ---------------------------------------------------------------------------------


def values_table(board: Board) -> Table:
    """Make a row for each model and dataset or mean, with all values; then published values."""
    datasets = {each.name: each for each in board.datasets}
    cells = board.ordered_cells()
    costs = {(cell.model, cell.dataset): cell_costs(board, cell) for cell in cells}

    def name(cell: BoardCell) -> str:
        return cell.dataset if cell.dataset in datasets else f"mean: {cell.dataset}"

    def family(cell: BoardCell) -> str:
        return datasets[cell.dataset].family if cell.dataset in datasets else ""

    def images(cell: BoardCell) -> int | None:
        return datasets[cell.dataset].images if cell.dataset in datasets else None

    columns: list[Column[BoardCell]] = [
        Column("model", lambda cell: cell.model, published=lambda each: each.model),
        Column("dataset", name, published=lambda each: each.dataset),
        Column("family", family, published=lambda each: datasets[each.dataset].family),
        Column("format", lambda cell: cell.format, published=lambda each: each.format),
        count_column("queries", lambda cell: cell.queries),
        count_column("images", images),
        count_column("failed calls", lambda cell: cell.failures),
        count_column("formats tried", lambda cell: cell.tried),
    ]
    for metric in board.metrics:
        columns += _ranked_columns(board, metric.name)
    columns += [each.by(lambda cell: costs[cell.model, cell.dataset]) for each in RUN_COSTS]
    if board.published:
        columns.append(Column("published in", lambda cell: "", published=lambda each: each.where))
    if any(each.reviews is not None for each in board.datasets):
        columns.append(
            Column(
                "answers seen by reviewers",
                lambda cell: "yes" if cell.run and cell.run.voted else "",
                published=lambda each: "",
            )
        )
    return table_of("All values", columns, cells, notes_of(board), signs_of(board), board.published)


def _ranked_columns(board: Board, metric: str) -> list[Column[BoardCell]]:
    """Return value, value elsewhere where formats were chosen, rank, its range, p-values."""

    def entry(cell: BoardCell) -> RankedValue | None:
        return cell.entries.get(metric)

    def plain(entry: RankedValue) -> TableCell:
        return replace(tested_cell(entry), sign="", best=False, ranks=None)

    value: Column[RankedValue] = value_column(
        metric, lambda entry: TableCell(entry.value, entry.interval)
    )
    tested: Column[RankedValue] = value_column(elsewhere_column(metric), plain)
    rank: Column[RankedValue] = count_column(f"{metric} rank", lambda entry: entry.rank)
    ends: list[Column[RankRange]] = [
        count_column(f"{metric} best rank", lambda ranks: ranks.best),
        count_column(f"{metric} worst rank", lambda ranks: ranks.worst),
    ]
    ranks = [each.by(lambda entry: entry.ranks) for each in ends]
    to_above = [
        each.by(lambda entry: entry.to_above) for each in _tests(f"{metric} p to rank above")
    ]
    of_entries = [value, *([tested] if board.elsewhere else []), rank, *ranks, *to_above]
    columns = [each.by(entry) for each in of_entries]
    columns[0] = replace(columns[0], published=lambda each: each.values.get(metric))
    return columns


def _tests(name: str) -> list[Column[Difference]]:
    """Return the columns of a test: its p-value, and that corrected for others beside it."""
    return [
        p_column(name, lambda test: test.p_value),
        p_column(f"{name} (corrected)", lambda test: test.corrected),
    ]


# The first columns of the long tables of runs
RUN_COLUMNS: tuple[Column[FormatRow], ...] = (
    Column("dataset", lambda row: row.dataset),
    Column("model", lambda row: row.run.model),
    Column("format", lambda row: row.run.variant.format),
    Column("reported", lambda row: "yes" if row.reported else ""),
)


def _value_of_run(metric: Metric) -> Column[FormatRow]:
    """Return the column of a metric of runs, with its interval."""
    return value_column(metric.name, lambda row: row.cell(metric))


def sweep_table(board: Board) -> Table:
    """Make a row for each comparable run: every format of every model."""
    to_reported: list[Column[Difference]] = [
        difference_column(
            f"{board.metrics[0].name} to reported", lambda test: test.value, interval=False
        ),
        *_tests("p to reported"),
    ]
    columns: list[Column[FormatRow]] = [
        *RUN_COLUMNS,
        *map(_value_of_run, board.metrics),
        *(each.by(lambda row: row.to_reported) for each in to_reported),
        count_column("queries", lambda row: len(row.run.rows)),
        count_column("failed calls", lambda row: row.run.failed),
        *(each.by(lambda row: row.run.provenance.costs) for each in RUN_COSTS),
    ]
    return table_of("Formats", columns, board.runs, notes_of(board), signs_of(board))


# The columns of excluded_table in tables for people
EXCLUDED_COLUMNS = ("model", "dataset", "reason", "queries")


def excluded_table(board: Board) -> Table:
    """Make a row for each run that could not be compared, with the reason."""
    metric = board.headline
    columns: list[Column[ExcludedRun]] = [
        Column("model", lambda excluded: excluded.run.model),
        Column("dataset", lambda excluded: excluded.run.variant.name),
        Column("reason", lambda excluded: excluded.reason),
        count_column("queries", lambda excluded: len(excluded.run.rows)),
        count_column("failed calls", lambda excluded: excluded.run.failed),
        plain_value_column(metric.name, lambda excluded: excluded.run.value(metric)),
        Column("file", lambda excluded: str(excluded.run.path)),
    ]
    runs = counted(len(board.excluded), "run")
    return table_of(f"Not compared: {runs}", columns, board.excluded)


# --- slices ---------------------------------------------------------------------------------------

_MOST_VALUES = 40  # Most values of a kind of slices in tables for people


@dataclass(frozen=True, slots=True)
class _Slice:
    """A slice of a run: its rows, and the metrics that they have."""

    kind: str
    value: str
    rows: int
    cells: Mapping[str, TableCell]  # By the names of metrics


def _slice_columns(metrics: Sequence[Metric]) -> list[Column[_Slice]]:
    columns: list[Column[_Slice]] = [
        Column("slice", lambda part: part.kind),
        Column("value", lambda part: part.value),
        count_column("rows", lambda part: part.rows),
    ]
    return columns + [_value_of_slice(metric.name) for metric in metrics]


def _value_of_slice(metric: str) -> Column[_Slice]:
    return value_column(metric, lambda part: part.cells[metric])


def slices_table(board: Board) -> Table:
    """Make a row for each comparable run and slice, with its plain ratios and their intervals.

    Failed calls are among the rows of a slice, as they are among the queries of a run.
    """
    metrics = _plain(board.metrics)
    columns = [each.by(lambda item: item[0]) for each in RUN_COLUMNS]
    columns += [each.by(lambda item: item[1]) for each in _slice_columns(metrics)]
    return table_of("Slices", columns, _slices_of_runs(board, metrics), signs=signs_of(board))


def _slices_of_runs(board: Board, metrics: Sequence[Metric]) -> Iterator[tuple[FormatRow, _Slice]]:
    """Yield the slices of every comparable run; of many runs they are never held together."""
    for row in board.runs:
        for part in _slices(row.run, metrics):
            yield row, part


def run_slices_table(run: Run) -> Table:
    """Make a row for each slice of a run, as :func:`slices_table`."""
    metrics = _plain(run.benchmark.metrics)
    return table_of("Slices", _slice_columns(metrics), _slices(run, metrics))


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
        for part in _slices(run, [metric]):
            values.setdefault(part.kind, set()).add(part.value)
            cell = part.cells[metric.name]
            if cell.value is not None:
                place = part.kind, part.value
                counts[place] = max(counts.get(place, 0), part.rows)
                cells[*place, run.model] = cell
    many = {kind: len(parts) for kind, parts in values.items() if len(parts) > _MOST_VALUES}

    def of_model(model: str) -> Column[tuple[str, str]]:
        return value_column(model, lambda place: cells.get((*place, model)))

    columns: list[Column[tuple[str, str]]] = [
        Column("slice", ": ".join),
        count_column("queries", counts.__getitem__),
        *map(of_model, dict.fromkeys(run.model for run in runs)),
    ]
    shown = [(kind, part) for kind, part in sorted(counts) if kind not in many]
    left_out = [f"{dataset}: {kind}: {n} values, in slices.csv" for kind, n in many.items()]
    notes = [Note("Slices in no table", left_out)] if left_out else []
    return table_of(f"{metric.name} by slices of {dataset}", columns, shown, notes)


def _slices(run: Run, metrics: Sequence[Metric]) -> Iterator[_Slice]:
    """Yield every slice of a run."""
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
            cells = {}
            for metric in of_slices[part]:
                interval = bounds.get((part, metric.name))
                cells[metric.name] = TableCell(run.value(metric), interval)
            yield _Slice(kind, part, rows, cells)


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
