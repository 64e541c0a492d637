"""The tables of a leaderboard: what is shown of it, and the long ones for programs."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.formatting import counted
from ..core.statistics import Difference
from .board import OVERALL, Board, RankedValue
from .formats import FormatRow
from .notes import board_cells, format_note, formats_tried, formats_used, notes_of
from .table import Cell, Field, FieldType, Note, Table, Value, count, value

# --- for people -----------------------------------------------------------------------------------


def metric_table(board: Board, metric: str, names: Sequence[str] | None = None) -> Table:
    """Make the table of one metric, models x averages and datasets, ordered by it.

    Args:
        board: the leaderboard.
        metric: the name of one of its metrics.
        names: averages and datasets, in the order of :meth:`.Board.names` (None: all).
    """
    names = board.names() if names is None else names
    tried = formats_tried(board)
    means = {one.name: f"mean of {len(one.columns)}" for one in board.averages}
    queries = {one.name: f"{one.family}, {one.queries} queries" for one in board.columns}
    order = sorted(board.models, key=lambda model: _rank(board, model, metric) or float("inf"))
    rows: list[list[Value]] = []
    for model in order:
        entries = [_entry(board, model, name, metric) for name in names]
        rows.append([_rank_cell(board, model, metric), model, *([tried[model]] if tried else [])])
        rows[-1] += map(_cell, entries)
    published: dict[tuple[str, str], dict[str, float]] = {}
    for one in board.published:
        if metric in one.values:
            published.setdefault((one.model, one.where), {})[one.column] = one.values[metric]
    for (model, _), values in published.items():
        rows.append(["published", model, *([""] * bool(tried)), *map(values.get, names)])
    return Table(
        next(one.title for one in board.metrics if one.name == metric),
        [
            *_leading(board),
            *(value(x, means.get(x, "") or queries[x], is_mean=x in means) for x in names),
        ],
        rows,
        notes_of(board),
        quoted=len(published),
    )


def _leading(board: Board) -> list[Field]:
    tried = [count("formats tried")] if formats_tried(board) else []
    return [Field("rank", FieldType.RANK), Field("model"), *tried]


def _entry(board: Board, model: str, name: str, metric: str) -> RankedValue | None:
    cell = board.cells.get((model, name))
    return cell.entries.get(metric) if cell else None


def _rank(board: Board, model: str, metric: str) -> int | None:
    entry = _entry(board, model, OVERALL, metric)
    return entry.rank if entry else None


def _rank_cell(board: Board, model: str, metric: str) -> Cell:
    """``2 ≈``; no rank for a model without an average, or with failed calls in it."""
    entry = _entry(board, model, OVERALL, metric)
    return Cell(entry.rank, sign=entry.mark if entry.rank else "") if entry else Cell()


def _cell(entry: RankedValue | None) -> Cell:
    if entry is None:
        return Cell()
    return Cell(entry.value, entry.interval, entry.mark, best=entry.rank == 1)


def overall_table(board: Board) -> Table:
    """Make the table of all metrics, each a mean over all datasets."""
    names = [metric.name for metric in board.shown]
    tried = formats_tried(board)
    rows: list[list[Value]] = []
    for model in board.models:
        cell = board.cells.get((model, OVERALL))
        have = [c for c in board.columns if (model, c.name) in board.cells]
        counts = [cell] if cell else [board.cells[model, c.name] for c in have]
        rows.append([_rank_cell(board, model, names[0]), model])
        rows[-1] += [tried[model]] if tried else []
        rows[-1] += [_cell(_entry(board, model, OVERALL, name)) for name in names]
        rows[-1] += [sum(one.queries for one in counts), sum(one.failures for one in counts)]
        rows[-1].append(f"{len(have)}/{len(board.columns)}")
    fields = [*_leading(board), *(value(metric.title) for metric in board.shown)]
    fields += [count("queries"), count("failed calls"), Field("datasets")]
    return Table("Overall", fields, rows, notes_of(board))


def formats_table(board: Board) -> Table:
    """Make the table of the formats that models are reported at; without rows if there is one."""
    rows = [(model, found, ", ".join(names)) for model, found, names in formats_used(board)]
    fields = [Field("model"), Field("format"), Field("datasets")]
    return Table("Formats", fields, rows, [Note("", [format_note(board)])])


# --- for programs ---------------------------------------------------------------------------------


def values_table(board: Board) -> Table:
    """Make one row a model and dataset or average, with everything; then what others published."""
    columns = {one.name: one for one in board.columns}
    rows: list[list[Value]] = []
    for cell in board_cells(board):
        column = columns.get(cell.column)
        name = cell.column if column else f"average: {cell.column}"
        family, pictures = (column.family, column.sources) if column else ("", None)
        rows.append([cell.model, name, family, cell.format, cell.queries, pictures])
        rows[-1] += [cell.failures, cell.tried]
        for metric in board.metrics:
            rows[-1] += _ranked(cell.entries.get(metric.name))
        rows[-1] += [""] * bool(board.published)
    for one in board.published:
        rows.append([one.model, one.column, columns[one.column].family, "", *[None] * 4])
        for metric in board.metrics:
            rows[-1] += [one.values.get(metric.name), *_ranked(None)[1:]]
        rows[-1].append(one.where)
    fields = [*map(Field, ("model", "dataset", "family", "format")), count("queries")]
    fields += [count("pictures"), count("failed calls"), count("formats tried")]
    for metric in board.metrics:
        name = metric.name
        fields += [value(name), count(f"{name} rank"), *_tests(f"{name} p to rank above")]
        fields.append(Field(f"{name} tied"))
    fields += [Field("published in")] * bool(board.published)
    return Table("All values", fields, rows, notes_of(board), quoted=len(board.published))


def _ranked(entry: RankedValue | None) -> list[Value]:
    if entry is None:
        return [None, None, None, None, ""]
    tests = _p_values(entry.to_above)
    return [Cell(entry.value, entry.interval), entry.rank, *tests, entry.mark]


def _tests(name: str) -> list[Field]:
    return [Field(name, FieldType.P), Field(f"{name} (Holm)", FieldType.P)]


def _p_values(found: Difference | None) -> list[Value]:
    return [found.p_value, found.corrected] if found else [None, None]


RUN_FIELDS = tuple(map(Field, ("dataset", "model", "format", "reported")))
"""What the long tables of runs begin with."""


def run_cells(one: FormatRow) -> list[Value]:
    """Return the values of :data:`RUN_FIELDS`."""
    reported = "yes" if one.reported else ""
    return [one.column, one.run.model, one.run.question.format, reported]


def sweep_table(board: Board) -> Table:
    """Make one row a comparable run: every format of every model."""
    rows: list[list[Value]] = []
    for one in board.sweep:
        rows.append(run_cells(one))
        rows[-1] += [
            Cell(metric.value(one.run.sums), one.intervals.get(metric.name))
            for metric in board.metrics
        ]
        rows[-1].append(one.to_reported.value if one.to_reported else None)
        rows[-1] += _p_values(one.to_reported)
        rows[-1] += [len(one.run.rows), one.run.failed]
    fields = [*RUN_FIELDS, *(value(metric.name) for metric in board.metrics)]
    fields.append(Field(f"{board.metrics[0].name} to reported", FieldType.DIFFERENCE))
    fields += [*_tests("p to reported"), count("queries"), count("failed calls")]
    return Table("Formats", fields, rows, notes_of(board))


APART = ("model", "dataset", "reason", "queries")
"""The columns of :func:`apart_table` that people are shown."""


def apart_table(board: Board) -> Table:
    """Make one row a run that could not be compared, with the reason."""
    metric = board.headline
    fields = [*map(Field, ("model", "dataset", "reason")), count("queries"), count("failed calls")]
    fields += [Field(metric.name, FieldType.VALUE), Field("file")]
    rows: list[list[Value]] = [
        [
            run.model,
            run.question.name,
            one.reason,
            len(run.rows),
            run.failed,
            metric.value(run.sums),
            str(run.path),
        ]
        for one in board.apart
        if (run := one.run)
    ]
    return Table(f"Not compared: {counted(len(rows), 'run')}", fields, rows)
