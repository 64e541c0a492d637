"""What a format costs: points against tokens, for the formats of one model.

A format with long keys has more tokens out than a list of numbers. The cheapest format that is as
good as the reported one is the one to ask in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..analysis import shared_costs
from ..protocol import COSTS, Metric
from ..statistics import Difference
from .board import Board
from .columns import (
    Column,
    amount_column,
    difference_column,
    plain_value_column,
    table_of,
    value_column,
)
from .comparable import group_by
from .format_spread import loss
from .legends import difference_cell
from .reported_formats import FormatRow
from .result_table import Field, FieldType, Note, Table, TableCell, text_of


@dataclass(frozen=True, slots=True)
class FormatTokens:
    """The tokens out of a model's replies in a format."""

    row: FormatRow
    tokens_out: float  # Mean a query

    @property
    def name(self) -> str:
        return self.row.run.variant.format

    @property
    def text(self) -> str:
        """The tokens as tables write them."""
        return text_of(_TOKENS_OUT, TableCell(self.tokens_out))


_TOKENS_OUT = Field("tokens out", FieldType.AMOUNT)


@dataclass(frozen=True, slots=True)
class CheapestFormat:
    """The reported format of a model on a dataset, and the cheapest that is as good."""

    model: str
    dataset: str
    formats: int  # Whose tokens are known
    reported: FormatTokens
    cheapest: FormatTokens

    @property
    def saved(self) -> float:
        """The tokens out that the cheapest saves a query."""
        return self.reported.tokens_out - self.cheapest.tokens_out

    @property
    def saved_share(self) -> float | None:
        """The share of the reported format's tokens out that is saved, in percent."""
        tokens = self.reported.tokens_out
        return 100 * self.saved / tokens if tokens else None


def cheapest_formats(board: Board) -> list[CheapestFormat]:
    """Return the cheapest format of every model on every dataset, the most saved first.

    Tokens are means over the queries that all of its formats answered. Left out is a model with one
    format there, or whose reported format scores nothing, or whose tokens are not known of every
    answer; and so is every other such format.

    Raises:
        RunError: formats answered different queries, and details are gone, or damaged.
    """
    metric = board.headline
    cheapest = []
    for (dataset, model), rows in group_by(board.runs, _place).items():
        own = [row for row in rows if _COST.of_all(row.run.provenance.costs) is not None]
        known = _tokens_of(own)
        reported = next((each for each in known if each.row.reported), None)
        if reported is None or len(known) < 2:
            continue
        value = reported.row.run.value(metric)
        if value is None or not metric.can_be_best(value):
            continue
        as_good = [each for each in known if is_as_good(each.row, metric, value)]
        best = min(as_good, key=lambda each: (each.tokens_out, not each.row.reported, each.name))
        cheapest.append(CheapestFormat(model, dataset, len(known), reported, best))
    return sorted(cheapest, key=lambda each: (-(each.saved_share or 0), each.model, each.dataset))


def _place(row: FormatRow) -> tuple[str, str]:
    return row.dataset, row.run.model


def _tokens_of(rows: Sequence[FormatRow]) -> list[FormatTokens]:
    """Return the tokens out of formats, over the queries that all of them answered."""
    tokens = [_COST.of_all(costs) for costs in shared_costs([row.run for row in rows])]
    known = zip(rows, tokens, strict=True)
    return [FormatTokens(row, number) for row, number in known if number is not None]


_COST = next(cost for cost in COSTS if cost.name == "tokens out")


MARGIN = 1.0  # Most points, or percent of what is no share, that a format as good is worse


def is_as_good(row: FormatRow, metric: Metric, reported: float) -> bool:
    """Return whether a format is about as good as the reported one, which has this value.

    Its value is at most :data:`MARGIN` worse, and no test finds it worse: over few images no test
    finds anything, over many it finds a tenth of a point. A format of which so few images say
    nothing is not known to be as good.
    """
    if row.reported:
        return True
    test = row.to_reported
    if test is None or test.says_nothing:
        return False
    lost = loss(test, metric)
    margin = MARGIN if metric.share else MARGIN / 100 * abs(reported)
    return lost <= margin and (lost < 0 or not test.significant)


def cheapest_table(board: Board, formats: Sequence[CheapestFormat]) -> Table:
    """Make a row for each model and dataset: points and tokens of both formats."""
    metric = board.headline
    columns: list[Column[CheapestFormat]] = [
        Column("model", lambda each: each.model),
        Column("dataset", lambda each: each.dataset),
        Column("reported", lambda each: each.reported.name),
        value_column(metric.name, lambda each: each.reported.row.cell(metric)),
        amount_column(_COST.summaries[0].column, lambda each: each.reported.tokens_out),
        Column("cheapest as good", lambda each: each.cheapest.name),
        difference_column("to reported", lambda each: _difference(each.cheapest.row)),
        amount_column("its tokens out", lambda each: each.cheapest.tokens_out),
        plain_value_column("saved in %", lambda each: each.saved_share),
    ]
    lines = [
        f"cheapest as good: of the formats that are at most {MARGIN:g} point worse than the "
        "reported one, and not significantly, the one with the fewest tokens out",
    ]
    notes = [Note("", lines)] if formats else ()
    return table_of("What a format costs", columns, formats, notes)


def _difference(row: FormatRow) -> TableCell:
    if row.to_reported is None:
        return TableCell(0.0)
    return difference_cell(row.to_reported)


def cheapest_sentence(board: Board, formats: Sequence[CheapestFormat]) -> str:
    """Say what the most can be saved by another format; empty if nothing can."""
    most = next(iter(formats), None)
    test = most.cheapest.row.to_reported if most is not None else None
    if most is None or test is None or most.saved <= 0:
        return ""
    return (
        f"{most.model} on {most.dataset}: {most.cheapest.name} is about as good as "
        f"{most.reported.name} ({_points(test, board.headline)}), for "
        f"{most.cheapest.text} instead of {most.reported.text} tokens out a query."
    )


def _points(test: Difference, metric: Metric) -> str:
    """Format a difference to the reported format: ``-0.8 points, -2.0 to +0.4``."""
    unit = "points" if metric.share else metric.unit
    text = f"{test.value:+.1f} {unit}".rstrip()
    if test.interval is None:
        return text
    return f"{text}, {test.interval.low:+.1f} to {test.interval.high:+.1f}"
