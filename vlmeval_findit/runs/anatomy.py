"""What a run's score lost, by cause; :mod:`..core.anatomy` says how it is divided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose

from ..core.anatomy import Anatomy, Cause, evidence_of_losses, with_events
from ..core.evidence import Evidence, clustered
from ..core.scored_row import ScoredRow, totals
from ..core.statistics import Difference, Interval, correct, difference, figure_intervals
from .intervals import StatisticsError, check_comparable
from .scored_run import Run


@dataclass(frozen=True, slots=True)
class Loss:
    """What one cause took from a score, in percentage points of it.

    ``interval`` is None where too few pictures count.
    """

    cause: Cause
    events: float
    points: float
    interval: Interval | None


def row_causes(anatomy: Anatomy, row: ScoredRow) -> tuple[str, ...]:
    """The keys of the causes that a row has events of, in the order of causes."""
    found = anatomy.events(row)
    return tuple(one.key for one in anatomy.causes if found.get(one.key))


def anatomy_of(run: Run) -> tuple[Loss, ...]:
    """The loss of a run by cause; the points add up to 100 minus its score.

    Raises:
        StatisticsError: a run without rows, or one that was scored before events were counted.
    """
    anatomy, sums = run.benchmark.anatomy, event_sums(run)
    points, bounds = anatomy.points(sums), figure_intervals(evidence(run))
    return tuple(
        Loss(one, sums.get(one.key, 0), float(points[one.key]), bounds.get(one.key))
        for one in anatomy.causes
    )


def compare(run: Run, other: Run) -> dict[str, Difference]:
    """What every cause took of one run minus what it took of another, by its key.

    Paired over pictures; p-values are corrected for the number of causes that either has.

    Raises:
        StatisticsError: the runs cannot be compared, or one of them has no anatomy.
    """
    check_comparable(run, other)
    if run.benchmark.name != other.benchmark.name:
        raise StatisticsError(f"{other.path} is of another benchmark than {run.path}")
    for one in (run, other):
        event_sums(one)
    ours, theirs = evidence(run), evidence(other)
    keys = [
        metric.name
        for metric, one, two in zip(ours.metrics, ours.values, theirs.values, strict=True)
        if one or two
    ]
    return dict(zip(keys, correct(difference(ours, theirs, key) for key in keys), strict=True))


def event_sums(run: Run) -> Mapping[str, float]:
    """The sums of a run and of its events, of slices too.

    Raises:
        StatisticsError: the events do not explain what the score lost.
    """
    anatomy = run.benchmark.anatomy
    sums = totals(with_events(anatomy, run.rows))
    if not isclose(sum(anatomy.points(sums).values()), anatomy.lost(sums), abs_tol=1e-6):
        raise StatisticsError(
            f"{run.path}: scored before a score said what it lost; score it again: "
            f"python run_findit.py score {run.path}"
        )
    return sums


def evidence(run: Run) -> Evidence:
    """The points of a run as shares of 1, by the keys of causes, and what they rest on.

    Raises:
        StatisticsError: a run without rows.
    """
    if not run.rows:
        raise StatisticsError(f"{run.path}: a run without rows has no interval")
    anatomy = run.benchmark.anatomy
    given = clustered(with_events(anatomy, run.rows), run.question.images)
    return evidence_of_losses(anatomy, given)
