"""Intervals and paired tests of scored runs; :mod:`..core.statistics` says how they are made."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.evidence import Evidence, clustered, evidence_of
from ..core.metric import Metric
from ..core.statistics import Difference, Interval, difference, figure_intervals
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


def compare(run: Run, other: Run) -> dict[str, Difference]:
    """Paired tests of two runs over the same rows: of two models, or of two formats of one.

    A figure that one of them lacks has none.

    Raises:
        StatisticsError: the runs have other rows, or none, or were scored by something else.
    """
    check_comparable(run, other)
    ours, theirs = evidence(run), evidence(other)
    return {
        metric.name: difference(ours, theirs, metric.name)
        for metric in ours.metrics
        if None not in (ours.figure(metric.name), theirs.figure(metric.name))
    }


def check_comparable(run: Run, other: Run) -> None:
    """Refuse to pair runs of which a picture's answers cannot be held against each other.

    Raises:
        StatisticsError: the runs have other rows, or were scored by something else.
    """
    ours, theirs = _pictures(run), _pictures(other)
    if run.basis.rows != other.basis.rows or ours != theirs:
        raise StatisticsError(
            f"{other.path} has {len(other.basis.rows)} rows of {len(theirs)} pictures, "
            f"{run.path} has {len(run.basis.rows)} of {len(ours)}: "
            "only runs over the same rows can be compared"
        )
    if run.basis.scored_under != other.basis.scored_under:
        raise StatisticsError(
            f"{other.path} was scored by {other.basis.scorer}, {run.path} by {run.basis.scorer}: "
            "score both again by one of them"
        )


def _pictures(run: Run) -> set[tuple[str, str]]:
    return {(run.question.images, row.source) for row in run.rows}
