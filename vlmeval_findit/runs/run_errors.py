"""What a run's score lost, by error type; :mod:`..core.error_analysis` says how it is divided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose

from ..core.error_analysis import ErrorType, estimate_errors, with_events
from ..core.evidence import Evidence, clustered
from ..core.scored_row import ScoredRow, totals_of
from ..core.spelling import nearest
from ..core.statistics import (
    Difference,
    Interval,
    correct,
    difference,
    figure_intervals,
)
from .comparison import check_comparable
from .intervals import StatisticsError
from .prediction_names import score_command
from .scored_run import Run


class NoErrorsError(StatisticsError):
    """A run that was scored before its events were counted; the message says what to do."""


@dataclass(frozen=True, slots=True)
class ErrorCost:
    """What one error type took from a score, in percentage points of it.

    ``interval`` is None where too few pictures count.
    """

    error_type: ErrorType
    events: float
    points: float
    interval: Interval | None


def error_types_of(run: Run) -> list[tuple[str, ...]]:
    """By row the keys of the error types that it has events of, in the order of error types."""
    analysis = run.benchmark.errors
    keys = [one.key for one in analysis.error_types]
    counted = with_events(analysis, run.rows)
    return [tuple(key for key in keys if row.sums.get(key)) for row in counted]


def errors_of(run: Run) -> tuple[ErrorCost, ...]:
    """The loss of a run by error type; the points add up to 100 minus its score.

    Raises:
        NoAnatomyError: it was scored before events were counted.
        StatisticsError: a run without rows.
    """
    analysis, counted = run.benchmark.errors, _Counted(run)
    points, bounds = analysis.points(counted.sums), figure_intervals(counted.evidence())
    return tuple(
        ErrorCost(one, counted.sums.get(one.key, 0), float(points[one.key]), bounds.get(one.key))
        for one in analysis.error_types
    )


def error_points(run: Run) -> Mapping[str, float]:
    """The points that every error type took, by its key; without their intervals, at little cost.

    Raises:
        NoAnatomyError: it was scored before events were counted.
        StatisticsError: a run without rows.
    """
    return run.benchmark.errors.points(_Counted(run).sums)


def error_estimate(run: Run) -> Evidence:
    """The points of a run as shares of 1, by the keys of error types, and what they rest on.

    Raises:
        NoAnatomyError: it was scored before events were counted.
        StatisticsError: a run without rows.
    """
    return _Counted(run).evidence()


def compare(run: Run, other: Run) -> dict[str, Difference]:
    """What every error type took of one run minus what it took of another, by its key.

    Paired over pictures; p-values are corrected for the number of error types that either has.

    Raises:
        NoAnatomyError: one was scored before events were counted.
        StatisticsError: they are of other questions or rows, or were scored by something else.
    """
    if _asked(run) != _asked(other):
        raise StatisticsError(
            f"{other.path} is of {' '.join(_asked(other))}, {run.path} of {' '.join(_asked(run))}: "
            "only runs of one question over one table can be compared"
        )
    check_comparable(run, other)
    ours, theirs = error_estimate(run), error_estimate(other)
    keys = [
        metric.name
        for metric, one, two in zip(ours.metrics, ours.values, theirs.values, strict=True)
        if one or two
    ]
    tests = correct(difference(ours, theirs, key) for key in keys)
    return dict(zip(keys, tests, strict=True))


def _asked(run: Run) -> tuple[str, str, str]:
    """What runs share that can be compared, however the answer was to be written."""
    table = f"(table {run.provenance.table_sha256[:12]}…)"
    return run.benchmark.name, run.question.column, table


class _Counted:
    """A run whose rows count their events."""

    def __init__(self, run: Run) -> None:
        self._run, self._analysis = run, run.benchmark.errors
        self.rows: Sequence[ScoredRow] = with_events(self._analysis, run.rows)
        self.sums: Mapping[str, float] = totals_of(self.rows)
        if not run.rows:
            raise StatisticsError(f"{run.path}: a run without rows has no errors")
        explained = sum(self._analysis.points(self.sums).values())
        if not isclose(explained, self._analysis.lost(self.sums), abs_tol=1e-6):
            raise NoErrorsError(
                f"{run.path}: scored before a score said what it lost; score it again: "
                f"{score_command(run.path, run.question.name)}"
            )

    def evidence(self) -> Evidence:
        """The points as shares of 1, by the keys of error types, and what they rest on."""
        return estimate_errors(self._analysis, clustered(self.rows, self._run.question.images))


# --- parts ----------------------------------------------------------------------------------------

REST = "(none)"
"""The part of what is in no other one: rows without such a slice."""


@dataclass(frozen=True, slots=True)
class SliceErrors:
    """What a part of a run lost of the whole run's score, by the keys of error types."""

    name: str
    events: Mapping[str, float]
    points: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(self.points.values())


def errors_by_slice(run: Run, by: str) -> tuple[SliceErrors, ...]:
    """The loss of a run by its parts, the largest first: they add up to the loss of the run.

    An event costs in a part what it costs in the run.

    Args:
        run: a scored run.
        by: a kind of its slices, or one of its error analysis's ``cuts``.

    Raises:
        StatisticsError: there are no such parts; the message names the nearest.
    """
    analysis, sums = run.benchmark.errors, _Counted(run).sums
    kinds = {*analysis.cuts, *(kind for row in run.rows for kind in row.slices)}
    if by not in kinds:
        known = ", ".join(sorted(kinds))
        raise StatisticsError(f"{run.path} has no parts by {by!r}{nearest(by, kinds)} ({known})")
    found: dict[str, dict[str, float]] = {}
    for row in run.rows:
        left = dict(analysis.events(row))
        for name, events in analysis.parts(row, by):
            _add(found.setdefault(name, {}), events, 1)
            _add(left, events, -1)
        _add(found.setdefault(REST, {}), left, 1)
    points = analysis.points(sums)
    price = {key: float(points[key]) / sums[key] for key in points if sums.get(key)}
    parts = [
        SliceErrors(
            name,
            {key: events[key] for key in price if events.get(key)},
            {key: events[key] * price[key] for key in price if events.get(key)},
        )
        for name, events in found.items()
    ]
    there = [part for part in parts if part.total or (part.events and part.name != REST)]
    return tuple(sorted(there, key=lambda part: (-part.total, part.name)))


def _add(total: dict[str, float], more: Mapping[str, float], times: int) -> None:
    for key, count in more.items():
        total[key] = total.get(key, 0) + times * count
