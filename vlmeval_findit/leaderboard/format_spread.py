"""How much the format matters: what a model's other formats lose against its best on a dataset.

A model is reported in the format that is best on average, which may be another. The best was chosen
by the tested values, so tests and intervals hold for all pairs of formats, and for all models and
datasets of a board together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..analysis import estimate_run
from ..core import counted
from ..protocol import Metric
from ..statistics import TOO_FEW_IMAGES, Difference, Verdict
from .board import Board
from .columns import Column, count_column, difference_column, table_of, value_column
from .comparable import group_by
from .legends import NO_INTERVAL, STAR, STAR_MEANING, difference_cell, star_of
from .reported_formats import FormatRow, tests_against
from .result_table import NONE, Note, Table, TableCell


@dataclass(frozen=True, slots=True)
class ComparedFormat:
    """A format of a model, against its best; ``to_best`` is None for the best itself."""

    row: FormatRow
    to_best: Difference | None

    @property
    def name(self) -> str:
        return self.row.run.variant.format


@dataclass(frozen=True, slots=True)
class FormatSpread:
    """The formats of a model on a dataset, by the headline of its board."""

    model: str
    dataset: str
    formats: int
    best: FormatRow
    median: ComparedFormat  # Of an even number the lower one
    worst: ComparedFormat
    commonest: (
        ComparedFormat | None
    )  # In the commonest format of the dataset; None: not asked in it


def format_spreads(board: Board) -> list[FormatSpread]:
    """Return the spread of every model on every dataset that it has several formats of."""
    spreads = []
    by_dataset = group_by(board.runs, lambda row: row.dataset)
    for dataset, rows in by_dataset.items():
        usual = commonest_format(rows)
        for model, of_model in group_by(rows, lambda row: row.run.model).items():
            order = _best_first(of_model, board)
            if len(order) < 2:
                continue
            common = [each for each in order if each.name == usual]
            spreads.append(
                FormatSpread(
                    model=model,
                    dataset=dataset,
                    formats=len(order),
                    best=order[0].row,
                    median=order[len(order) // 2],
                    worst=order[-1],
                    commonest=common[0] if common else None,
                )
            )
    return spreads


def _best_first(rows: Sequence[FormatRow], board: Board) -> list[ComparedFormat]:
    """Return the formats that have a value, the best first; of equal ones the reported."""
    metric = board.headline
    values = [(row.run.value(metric), row) for row in rows]
    known = [(value, row) for value, row in values if value is not None]
    known.sort(key=lambda each: (metric.better.order(each[0]), not each[1].reported))
    order = [row for _, row in known]
    if not order:
        return []
    runs = [row.run for row in order]
    estimates = [estimate_run(run, board.metrics[:1]) for run in runs]
    tests = tests_against(runs, estimates, 0, order[0].choice)
    return [ComparedFormat(row, tests.get(at)) for at, row in enumerate(order)]


def commonest_format(rows: Iterable[FormatRow]) -> str:
    """Return the format that most models were asked in; of several the benchmark's first."""
    asked = {(row.run.model, row.run.variant.format) for row in rows}
    places = {row.run.variant.format: row.run.variant.format_place for row in rows}
    times = Counter(name for _, name in asked)
    return min(times, key=lambda name: (-times[name], places[name]))


def spread_table(board: Board, spreads: Sequence[FormatSpread]) -> Table:
    """Make a row for each spread, the largest first."""
    metric = board.headline
    columns: list[Column[FormatSpread]] = [
        Column("model", lambda spread: spread.model),
        Column("dataset", lambda spread: spread.dataset),
        count_column("formats", lambda spread: spread.formats),
        Column("best", lambda spread: _best_format(spread, metric)),
        value_column(metric.name, lambda spread: spread.best.cell(metric)),
        *_against_best("median", lambda spread: spread.median),
        *_against_best("worst", lambda spread: spread.worst),
        *_against_best("commonest", lambda spread: spread.commonest),
    ]
    order = sorted(spreads, key=lambda each: loss(each.worst.to_best, metric), reverse=True)
    lines = [
        f"{metric.title}: the format minus the best; intervals hold together for all pairs of "
        "formats, of all models and datasets (95 %), and so do tests",
        "best: on the dataset; the model may be reported in another, which is best on average",
        "commonest: the format that most models were asked in on the dataset",
    ]
    return table_of("How much the format matters", columns, order, [Note("", lines)], _SIGNS)


def _best_format(spread: FormatSpread, metric: Metric) -> str | None:
    """Return the best format; None where the model scores nothing in any."""
    value = spread.best.run.value(metric)
    if value is None or not metric.can_be_best(value):
        return None
    return spread.best.run.variant.format


def _against_best(
    name: str, other: Callable[[FormatSpread], ComparedFormat | None]
) -> list[Column[FormatSpread]]:
    """Return the columns of a format: its name, and its difference to the best."""

    def format_name(spread: FormatSpread) -> str | None:
        compared = other(spread)
        return compared.name if compared else None

    return [
        Column(name, format_name),
        difference_column(f"to {name}", lambda spread: _difference(spread, other(spread))),
    ]


_SIGNS = {
    STAR: STAR_MEANING,
    NO_INTERVAL: TOO_FEW_IMAGES,
    NONE: "the model was not asked in it; of the best: it scores nothing in any format",
}


def _difference(spread: FormatSpread, other: ComparedFormat | None) -> TableCell:
    if other is None:
        return TableCell()
    if other.row is spread.best:
        return TableCell(0.0)
    tested = other.to_best
    if tested is None:
        return TableCell()
    return difference_cell(tested, star_of(tested))


def loss(difference: Difference | None, metric: Metric) -> float:
    """Return what a format loses against another, in the unit of its headline; None: itself."""
    if difference is None:
        return 0.0
    return metric.better.order(difference.value)


def spread_sentence(board: Board, spreads: Sequence[FormatSpread]) -> str:
    """Say what the wrong format costs at most; empty without spreads."""
    if not spreads:
        return ""
    metric = board.headline
    most = max(spreads, key=lambda each: loss(each.worst.to_best, metric))
    formats = counted(most.formats, "format")
    text = (
        f"In its worst of {formats}, {most.worst.name}, {most.model} loses "
        f"{_amount(most.worst.to_best, metric)} on {most.dataset}"
    )
    asked = [(each, each.commonest) for each in spreads if each.commonest is not None]
    if not asked:
        return f"{text}."
    each, common = max(asked, key=lambda pair: loss(pair[1].to_best, metric))
    if each is most and common is most.worst:
        return f"{text}; most models were asked in it."
    where = f"In {common.name}, in which most models were asked"
    if loss(common.to_best, metric) <= 0:
        return f"{text}. {where}, none loses anything."
    return (
        f"{text}. {where}, {each.model} loses {_amount(common.to_best, metric)} on {each.dataset}."
    )


def _amount(difference: Difference | None, metric: Metric) -> str:
    """Format a loss with its interval: ``12.3 points (10.1 to 14.5)``.

    An interval that reaches below 0 is none of a loss: words say that it may be chance.
    """
    unit = "points" if metric.share else metric.unit
    text = f"{loss(difference, metric):.1f} {unit}".rstrip()
    if difference is None:
        return text
    if difference.verdict is Verdict.NOT_TESTED:
        return f"{text} (not tested: {TOO_FEW_IMAGES})"
    interval = difference.interval
    if interval is None or not difference.significant:
        return f"{text} (not told apart: it may be chance)"
    low, high = sorted(map(metric.better.order, (interval.low, interval.high)))
    return f"{text} ({low:.1f} to {high:.1f})"
