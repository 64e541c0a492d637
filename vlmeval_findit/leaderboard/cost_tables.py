"""What answers cost, as tables and as columns of other tables.

The cost of a model over several datasets is the mean of theirs, as its score is; it is empty where
it is not known of each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

from ..analysis import CostDifference
from ..protocol import COST_KINDS, COSTS, Cost, RunCosts, Summary, mean_costs
from ..statistics import TOO_FEW_IMAGES, FamilyOfTests
from .board import Board, BoardCell
from .columns import Column, amount_column, count_column, p_column, table_of
from .legends import PART_SIGN, STAR, STAR_MEANING, difference_cell, p_cell
from .result_table import NONE, FieldType, Note, Table, TableCell

_ANSWERS = "answers"

# Without it, seconds of runs with another --api-nproc would be compared
_CALLS_AT_ONCE: Column[RunCosts] = amount_column("calls at once", lambda costs: costs.calls_at_once)


def _amounts(cost: Cost) -> list[Column[RunCosts]]:
    return [
        amount_column(summary.column, partial(cost.of_run, summary=summary))
        for summary in cost.summaries
    ]


def _short_amount(cost: Cost, summary: Summary, sign: str) -> Column[tuple[RunCosts, bool]]:
    """Return a column for people, in the unit of its short name; ``sign`` is of costs in part."""

    def short(item: tuple[RunCosts, bool]) -> TableCell:
        costs, is_part = item
        value = cost.of_run(costs, summary)
        if value is None:
            return TableCell()
        return TableCell(value / cost.short_unit, sign=sign if is_part else "")

    return amount_column(summary.short_column, short)


def _known_name(cost: Cost) -> str:
    return f"{cost.name} known"


# What the answers of a run cost, for programs: the same columns for all runs
RUN_COSTS: tuple[Column[RunCosts], ...] = (
    *chain.from_iterable(map(_amounts, COSTS)),
    _CALLS_AT_ONCE,
    Column("USD source", lambda costs: costs.usd_source),
    Column("image size", lambda costs: costs.image_size),
    count_column(_ANSWERS, lambda costs: costs.queries),
    *(count_column(_known_name(cost), cost.known) for cost in COSTS),
    *(count_column(kind.key, kind.number) for kind in COST_KINDS),
)


def dull_counts(costs: Sequence[RunCosts]) -> set[str]:
    """Return the columns of counts in which people find nothing: known of all or none, no kind.

    >>> sorted({"seconds known", "batched"} - dull_counts([RunCosts(9, seconds_known=3)]))
    ['seconds known']
    """
    telling = {
        _known_name(cost)
        for cost in COSTS
        if any(0 < cost.known(each) < each.queries for each in costs)
    }
    telling |= {kind.key for kind in COST_KINDS if any(map(kind.number, costs))}
    if telling:
        telling.add(_ANSWERS)
    counts = {_ANSWERS, *map(_known_name, COSTS), *(kind.key for kind in COST_KINDS)}
    return counts - telling


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
    costs: dict[str, RunCosts] = {}
    lacking: dict[str, int] = {}  # Datasets that a model has no run on
    for model in board.models:
        by_dataset = _on_datasets(board, model, datasets)
        mean = mean_costs(by_dataset)
        if any(cost.of_run(mean) is not None for cost in COSTS):
            costs[model] = mean
            lacking[model] = len(datasets) - len(by_dataset)
    shown = [
        cost for cost in COSTS if any(cost.of_run(each) is not None for each in costs.values())
    ]
    columns: list[Column[str]] = [Column("model", str)]
    for cost in shown:
        for summary in cost.summaries:
            amount = _short_amount(cost, summary, PART_SIGN)
            columns.append(amount.by(lambda model: (costs[model], lacking[model] > 0)))
    if any(lacking.values()):
        columns.append(
            Column("datasets", lambda model: f"{len(datasets) - lacking[model]}/{len(datasets)}")
        )
    signs = {
        PART_SIGN: "of its own datasets, which are not those of the others: not compared",
        NONE: "not recorded, or not of every dataset",
    }
    notes = _notes(shown, costs) if costs else ()
    return table_of("Cost of a query", columns, costs, notes, signs)


def _notes(shown: Sequence[Cost], known: Mapping[str, RunCosts]) -> list[Note]:
    lines = []
    for model, costs in known.items():
        if words := "; ".join(cost_words(costs)):
            lines.append(f"{model}: {words}")
    meanings = [cost.note for cost in shown if cost.note]
    meanings.append("failed calls do not count")
    notes = [Note("", ["; ".join(meanings)])]
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
    for cost in COSTS:
        number = cost.known(costs)
        if 0 < number < costs.queries:
            partly_known.setdefault(number, []).append(cost.words)
    for number, names in partly_known.items():
        yield f"{', '.join(names)} known of {number:,} of {costs.queries:,} answers"
    for kind in COST_KINDS:
        if number := kind.number(costs):
            yield f"{number:,} of {costs.queries:,} {kind.words}"


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
    signs = {
        STAR: STAR_MEANING,
        "p": FamilyOfTests.PAIR.value,
        NONE: f"no test, no interval, as {TOO_FEW_IMAGES}",
    }
    return table_of(title, columns, differences, notes if differences else (), signs)
