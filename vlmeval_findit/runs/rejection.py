"""What became of the queries of a run that have nothing to find."""

from __future__ import annotations

from dataclasses import dataclass

from ..benchmarks.findit.box_metrics import SHARES, Outcome, rejections
from ..core.evidence import clustered, evidence_of
from ..core.statistics import Interval, figure_intervals
from .scored_run import Run


@dataclass(frozen=True, slots=True)
class Share:
    """How many queries had one outcome: their number, and their share in percent of those that
    have nothing to find, failed calls included.

    ``interval`` is None where too few pictures count.
    """

    outcome: Outcome
    queries: int
    share: float
    interval: Interval | None


def shares_of(run: Run) -> tuple[Share, ...]:
    """The outcomes of a run; empty where every query has something to find."""
    found = rejections(run.sums)
    if not found:
        return ()
    spreads = figure_intervals(evidence_of(SHARES, clustered(run.rows, run.question.images)))
    every = sum(found.values())
    return tuple(
        Share(one, count, 100 * count / every, spreads[one.value]) for one, count in found.items()
    )
