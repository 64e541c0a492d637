"""By how much the costs of two runs over the same rows differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..protocol import Better, Metric, ScoredRow
from ..scoring import QueryCost, Run, RunCosts, cost_in, read_details
from ..statistics import Difference, Estimate, clustered_sums, difference, estimate_metrics


class _PairedCost(NamedTuple):
    """A cost whose mean is compared.

    ``known``: of how many answers of a run it is known. ``scale`` is what a query's value is
    multiplied by.
    """

    name: str
    value: Callable[[QueryCost], float | None]
    known: Callable[[RunCosts], int]
    scale: float = 1.0

    @property
    def metric(self) -> Metric:
        """The mean over queries."""
        part, whole = {self.name: self.scale}, {_QUERIES: 1.0}
        return Metric(self.name, part, whole, empty=None, better=Better.LOWER, unit="")


_QUERIES = "queries"  # The sum that counts the queries of which a cost is known

_PAIRED = (
    _PairedCost("seconds", lambda cost: cost.seconds, lambda costs: costs.seconds_known),
    _PairedCost("tokens in", lambda cost: cost.tokens_in, lambda costs: costs.tokens_in_known),
    _PairedCost("tokens out", lambda cost: cost.tokens_out, lambda costs: costs.tokens_out_known),
    _PairedCost("USD per 1000", lambda cost: cost.usd, lambda costs: costs.usd_known, 1000.0),
    _PairedCost(
        "GPU seconds", lambda cost: cost.gpu_seconds, lambda costs: costs.gpu_seconds_known
    ),
    _PairedCost(
        "CPU seconds", lambda cost: cost.cpu_seconds, lambda costs: costs.cpu_seconds_known
    ),
    _PairedCost("pixels", lambda cost: cost.pixels, lambda costs: costs.pixels_known),
)


@dataclass(frozen=True, slots=True)
class CostDifference:
    """The means of a cost in two runs, over the ``queries`` of which both know it."""

    name: str
    mean: float
    other_mean: float
    difference: Difference  # The first minus the second, paired by image
    queries: int


def compare_costs(run: Run, other: Run) -> list[CostDifference]:
    """Subtract the costs of ``other`` from those of ``run``, which has the same rows.

    A query that one of them did not answer, or of whose cost one knows nothing, is left out.

    Raises:
        RunError: details are gone, or damaged.
    """
    of_runs = run.provenance.costs, other.provenance.costs
    compared = [paired for paired in _PAIRED if all(map(paired.known, of_runs))]
    if not compared:
        return []  # Details may be large, and would be read for nothing
    rows = [_answered(each) for each in (run, other)]
    shared = [index for index in rows[0] if index in rows[1]]
    pairs = [(rows[0][index], rows[1][index]) for index in shared]
    costs = [(cost_in(left.details), cost_in(right.details)) for left, right in pairs]
    differences = []
    for paired in compared:
        sides: tuple[list[ScoredRow], list[ScoredRow]] = ([], [])
        for pair, (left, right) in zip(pairs, costs, strict=True):
            values = paired.value(left), paired.value(right)
            if None in values:
                continue
            for side, row, value in zip(sides, pair, values, strict=True):
                sums = {paired.name: value or 0.0, _QUERIES: 1}
                side.append(ScoredRow(row.index, row.source, sums))
        if sides[0]:
            estimates = [_estimate(side, run.variant.images, paired.metric) for side in sides]
            differences.append(_difference(paired.name, estimates, len(sides[0])))
    return differences


def _answered(run: Run) -> Mapping[int, ScoredRow]:
    """Return the rows of a run with an answer, with their details, by index."""
    return {row.index: row for row in read_details(run) if not row.failed}


def _estimate(rows: Sequence[ScoredRow], images: str, metric: Metric) -> Estimate:
    return estimate_metrics([metric], clustered_sums(rows, images))


def _difference(name: str, estimates: Sequence[Estimate], queries: int) -> CostDifference:
    left, right = estimates
    means = left.value(name) or 0.0, right.value(name) or 0.0
    return CostDifference(name, *means, difference(left, right, name), queries)
