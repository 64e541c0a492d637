"""What answers cost, as tables and as columns of other tables.

The cost of a model over several datasets is the mean of theirs, as its score is; it is empty where
it is not known of each of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from ..analysis import CostDifference
from ..scoring import COSTS, Cost, RunCosts
from ..statistics import Family
from .board import Board, BoardCell
from .columns import Column, amount_column, count_column, p_column, table_of
from .legends import STAR, STAR_MEANING, difference_cell, p_cell
from .result_table import NONE, FieldType, Note, Table


class CostColumn(NamedTuple):
    """A column of costs: its name in files, and in tables for people, which have 80 characters.

    ``note`` says below a table what its reader may take for something else.
    """

    name: str
    short_name: str
    value: Callable[[RunCosts], float | None]
    note: str = ""
    short_value: Callable[[float], float] = lambda value: value

    def short(self, costs: RunCosts) -> float | None:
        """Return the value in the unit of its short name."""
        value = self.value(costs)
        return None if value is None else self.short_value(value)


def _column(cost: Cost) -> CostColumn:
    return CostColumn(cost.column, cost.short_column, cost.of_run, cost.note, cost.short_value)


_SECONDS, *_OTHERS = map(_column, COSTS)

# The costs of a query
COST_COLUMNS: tuple[CostColumn, ...] = (
    _SECONDS,
    CostColumn("seconds (p95)", "s p95", lambda costs: costs.seconds_p95),
    *_OTHERS,
)


class CountColumn(NamedTuple):
    """A column with a number of answers, and how a note says it of a model."""

    name: str
    value: Callable[[RunCosts], int]
    words: str


# Of how many answers each cost is known
KNOWN = tuple(CountColumn(f"{cost.name} known", cost.known, cost.words) for cost in COSTS)

# The answers whose costs are of another kind
KINDS = (
    CountColumn("cached", lambda costs: costs.cached, "with a prompt partly from a cache"),
    CountColumn("retried", lambda costs: costs.retried, "after several attempts"),
    CountColumn("batched", lambda costs: costs.batched, "by a batch service"),
    CountColumn("shared", lambda costs: costs.shared, "from an equal call"),
    CountColumn("guessed", lambda costs: costs.guessed, "with an attempt at its greatest price"),
)

_COUNTS = (*KNOWN, *KINDS)
_ANSWERS = "answers"


def _amount(column: CostColumn) -> Column[RunCosts]:
    return amount_column(column.name, column.value)


def _count(column: CountColumn) -> Column[RunCosts]:
    return count_column(column.name, column.value)


# Without it, seconds of runs with another --api-nproc would be compared
CALLS_AT_ONCE: Column[RunCosts] = amount_column("calls at once", lambda costs: costs.calls_at_once)

# What the answers of a run cost, for programs: the same columns for all runs
RUN_COSTS: tuple[Column[RunCosts], ...] = (
    *map(_amount, COST_COLUMNS),
    CALLS_AT_ONCE,
    Column("USD source", lambda costs: costs.usd_source),
    Column("image size", lambda costs: costs.image_size),
    count_column(_ANSWERS, lambda costs: costs.queries),
    *map(_count, _COUNTS),
)


def dull_counts(costs: Sequence[RunCosts]) -> set[str]:
    """Return the columns of counts in which people find nothing: known of all or none, no kind.

    >>> sorted({"seconds known", "batched"} - dull_counts([RunCosts(9, seconds_known=3)]))
    ['seconds known']
    """
    counted = {
        column.name
        for column in KNOWN
        if any(0 < column.value(each) < each.queries for each in costs)
    }
    kinds = {column.name for column in KINDS if any(map(column.value, costs))}
    telling = counted | kinds
    if telling:
        telling.add(_ANSWERS)
    return {_ANSWERS, *(column.name for column in _COUNTS)} - telling


def mean_costs(costs: Sequence[RunCosts]) -> RunCosts:
    """Return the mean over runs of what a query costs, and the sums of their counts.

    >>> mean = mean_costs([RunCosts(queries=2, tokens_out=10.0), RunCosts(1, tokens_out=30.0)])
    >>> mean.queries, mean.tokens_out
    (3, 20.0)
    """
    values: dict[str, Any] = {}
    for field in dataclasses.fields(RunCosts):
        of_runs = [getattr(each, field.name) for each in costs]
        if field.default is None:
            values[field.name] = _mean(of_runs)
        elif field.default == "":
            values[field.name] = _each_once(of_runs)
        else:
            values[field.name] = sum(of_runs)
    if values["usd_per_1000"] is None:
        values["usd_source"] = ""
    return RunCosts(**values)


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean; None unless all values are known."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _each_once(lists: Iterable[str]) -> str:
    """Return what lists in words have, each once."""
    words = dict.fromkeys(word for words in lists for word in words.split(", "))
    return ", ".join(filter(None, words))


# --- of a board -----------------------------------------------------------------------------------


def cell_costs(board: Board, cell: BoardCell) -> RunCosts:
    """Return what the answers of a model cost on a dataset, or over those of a mean."""
    if cell.run is not None:
        return cell.run.provenance.costs
    datasets = next(mean.datasets for mean in board.means if mean.name == cell.dataset)
    return mean_costs(_on_datasets(board, cell.model, datasets))


def _on_datasets(board: Board, model: str, datasets: Sequence[str]) -> list[RunCosts]:
    runs = [board.run(model, name) for name in datasets]
    return [run.provenance.costs for run in runs if run is not None]


def cost_table(board: Board) -> Table:
    """Make a row for each model of which any cost is known: means over its datasets.

    Costs that are not known of any model have no column.
    """
    datasets = board.counted_datasets
    known: dict[str, RunCosts] = {}
    shares: dict[str, str] = {}
    for model in board.models:
        by_dataset = _on_datasets(board, model, datasets)
        shares[model] = f"{len(by_dataset)}/{len(datasets)}"
        mean = mean_costs(by_dataset)
        if any(column.value(mean) is not None for column in COST_COLUMNS):
            known[model] = mean
    columns = [
        column
        for column in COST_COLUMNS
        if any(column.value(costs) is not None for costs in known.values())
    ]
    table_columns: list[Column[str]] = [Column("model", str)]
    for column in columns:
        short: Column[RunCosts] = amount_column(column.short_name, column.short)
        table_columns.append(short.by(known.__getitem__))
    if {shares[model] for model in known} - {f"{len(datasets)}/{len(datasets)}"}:
        table_columns.append(Column("datasets", shares.__getitem__))
    return table_of(
        "Cost of a query", table_columns, known, _notes(columns, known) if known else ()
    )


def _notes(columns: Sequence[CostColumn], known: Mapping[str, RunCosts]) -> list[Note]:
    lines = []
    for model, costs in known.items():
        if words := "; ".join(cost_words(costs)):
            lines.append(f"{model}: {words}")
    meanings = [column.note for column in columns if column.note]
    meanings.append("failed calls do not count")
    notes = [Note("", ["; ".join(meanings), f"{NONE}: not recorded, or not of every dataset"])]
    return [*notes, Note("Costs", lines)] if lines else notes


def cost_words(costs: RunCosts) -> Iterator[str]:
    """Yield what a reader of costs must know: sources, what is partly known, other kinds.

    >>> list(cost_words(RunCosts(queries=9, usd_known=8, usd_source="given prices", retried=1)))
    ['dollars: given prices', 'dollars known of 8 of 9 answers', '1 of 9 after several attempts']
    """
    if costs.calls_at_once is not None and costs.calls_at_once >= 1.05:
        yield f"seconds: {costs.calls_at_once:.3g} calls at once"
    if costs.usd_source:
        yield f"dollars: {costs.usd_source}"
    partly_known: dict[int, list[str]] = {}
    for column in KNOWN:
        number = column.value(costs)
        if 0 < number < costs.queries:
            partly_known.setdefault(number, []).append(column.words)
    for number, names in partly_known.items():
        yield f"{', '.join(names)} known of {number:,} of {costs.queries:,} answers"
    for column in KINDS:
        if number := column.value(costs):
            yield f"{number:,} of {costs.queries:,} {column.words}"


# --- of two runs ----------------------------------------------------------------------------------


def cost_comparison_table(
    differences: Sequence[CostDifference], run: RunCosts, other: RunCosts
) -> Table:
    """Make a row for each cost of two runs: both means, their difference, its p-value.

    Notes have what a reader of the costs of ``run`` (A) and ``other`` (B) must know.
    """
    columns: list[Column[CostDifference]] = [
        Column("cost", lambda each: each.name),
        amount_column("A", lambda each: each.mean),
        amount_column("B", lambda each: each.other_mean),
        Column(
            "A - B",
            lambda each: difference_cell(each.difference),
            FieldType.AMOUNT_DIFFERENCE,
            interval=True,
        ),
        p_column("p", lambda each: p_cell(each.difference)),
        count_column("queries", lambda each: each.queries),
    ]
    notes = []
    for name, costs in (("A", run), ("B", other)):
        if words := list(cost_words(costs)):
            notes.append(Note(name, words))
    title = "Costs: means over the queries of which both are known"
    signs = {STAR: STAR_MEANING, "p": Family.PAIR.value}
    return table_of(title, columns, differences, notes if differences else (), signs)
