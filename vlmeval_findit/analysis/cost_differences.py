"""By how much the costs of two runs over the same rows differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..protocol import COSTS, Better, Cost, Metric, RunCosts, ScoredRow, cost_in, sum_up
from ..scoring import Run, read_details
from ..statistics import Difference, Estimate, clustered_sums, estimate_metrics, paired_difference
from .run_statistics import is_same_run

_QUERIES = "queries"  # The sum that counts the queries of which a cost is known


def _mean_of(cost: Cost) -> Metric:
    """Return the mean over queries, as a metric."""
    part, whole = {cost.name: cost.scale}, {_QUERIES: 1.0}
    return Metric(cost.mean or cost.name, part, whole, empty=None, better=Better.LOWER, unit="")


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

    A query that one of them did not answer, or of whose cost one knows nothing, is left out. A run
    minus itself is 0, and no test is made.

    Raises:
        RunError: details are gone, or damaged.
    """
    of_runs = run.provenance.costs, other.provenance.costs
    compared = [cost for cost in COSTS if all(map(cost.known, of_runs))]
    if not compared:
        return []  # Details may be large, and would be read for nothing
    rows = [_answered(each) for each in (run, other)]
    shared = [index for index in rows[0] if index in rows[1]]
    pairs = [(rows[0][index], rows[1][index]) for index in shared]
    costs = [(cost_in(left.details), cost_in(right.details)) for left, right in pairs]
    differences = []
    for cost in compared:
        sides: tuple[list[ScoredRow], list[ScoredRow]] = ([], [])
        for pair, (left, right) in zip(pairs, costs, strict=True):
            values = cost.of_query(left), cost.of_query(right)
            if None in values:
                continue
            for side, row, value in zip(sides, pair, values, strict=True):
                sums = {cost.name: value or 0.0, _QUERIES: 1}
                side.append(ScoredRow(row.index, row.source, sums))
        if sides[0]:
            mean = _mean_of(cost)
            left_mean, right_mean = (_estimate(side, run.variant.images, mean) for side in sides)
            test = paired_difference(left_mean, right_mean, mean.name)
            if is_same_run(run, other):
                test = Difference.untested(0.0)
            differences.append(
                CostDifference(
                    name=mean.name,
                    mean=left_mean.value(mean.name) or 0.0,
                    other_mean=right_mean.value(mean.name) or 0.0,
                    difference=test,
                    queries=len(sides[0]),
                )
            )
    return differences


def shared_costs(runs: Sequence[Run]) -> list[RunCosts]:
    """Return what runs over the same rows cost, over the queries that all of them answered.

    A mean over its own answers alone makes a run cheap that fails where answers are long. Runs that
    answered the same queries keep what is recorded of them; else details are read. A run without
    an answer, or of whose costs nothing is known, takes no query from the others.

    Raises:
        RunError: details are gone, or damaged.
    """
    answered = [answered_rows(run) if _knows_costs(run) else frozenset[int]() for run in runs]
    sets = {rows for rows in answered if rows}
    if len(sets) < 2:
        return [run.provenance.costs for run in runs]
    shared = frozenset.intersection(*sets)
    costs = []
    for run, rows in zip(runs, answered, strict=True):
        costs.append(_costs_over(run, shared) if rows else run.provenance.costs)
    return costs


def answered_rows(run: Run) -> frozenset[int]:
    """Return the indices of the rows of a run that have an answer."""
    if not run.failed:
        return run.provenance.rows
    return frozenset(row.index for row in run.rows if not row.failed)


def _knows_costs(run: Run) -> bool:
    return any(cost.known(run.provenance.costs) for cost in COSTS)


def _costs_over(run: Run, indices: frozenset[int]) -> RunCosts:
    rows = read_details(run) if indices else ()
    return sum_up([cost_in(row.details) for row in rows if row.index in indices])


def _answered(run: Run) -> Mapping[int, ScoredRow]:
    """Return the rows of a run with an answer, with their details, by index."""
    return {row.index: row for row in read_details(run) if not row.failed}


def _estimate(rows: Sequence[ScoredRow], images: str, metric: Metric) -> Estimate:
    return estimate_metrics([metric], clustered_sums(rows, images))
