"""Intervals of scored runs; :mod:`..core.statistics` says how they are made."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.evidence import Evidence, clustered, evidence_of
from ..core.metric import Metric
from ..core.statistics import Interval, figure_intervals
from .scored_run import Run


class StatisticsError(ValueError):
    """Runs that cannot be compared; the message says what differs."""


def evidence(run: Run, metrics: Sequence[Metric] = ()) -> Evidence:
    """The figures of a run by these metrics, and what they rest on.

    Args:
        run: a scored run.
        metrics: none for all of its benchmark.

    Raises:
        StatisticsError: a run without rows.
    """
    if not run.rows:
        raise StatisticsError(f"{run.path}: a run without rows has no interval")
    return evidence_of(
        metrics or run.benchmark.all_metrics, clustered(run.rows, run.question.images)
    )


def intervals(run: Run) -> dict[str, Interval | None]:
    """The interval of every figure of a run; None where it rests on too few pictures."""
    return figure_intervals(evidence(run))
