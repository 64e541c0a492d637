"""What a run's score lost by error type and slice, how negatives were answered, lenient gains.

:mod:`..protocol.error_analysis` says how the loss is divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import isclose
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..benchmarks.findit import (
    NEGATIVE_SHARES,
    NegativeOutcome,
    mask_line,
    rejection_line,
    rejections,
)
from ..boxes import BoxAnswer
from ..core import suggestion
from ..protocol import Benchmark, ErrorType, ScoredRow, Sums, rows_with_sum, with_events
from ..scoring import UNANSWERED, Run, score_command
from ..statistics import (
    Difference,
    Estimate,
    FamilyOfTests,
    Interval,
    clustered_sums,
    correct_by_holm,
    estimate_all_errors,
    estimate_errors,
    metric_intervals,
    paired_difference,
)
from .answer_notes import AnsweredRun, adherence_note, nothing_found_note
from .comparable_pairs import StatisticsError, check_comparable
from .run_statistics import estimate_run


@dataclass(frozen=True, slots=True)
class ErrorCost:
    """What one error type took from a score."""

    error_type: ErrorType
    events: float
    points: float  # Percentage points of the score
    interval: Interval | None  # None: too few images count


def rows_with_events_of(run: Run) -> dict[str, NDArray[np.bool_]]:
    """Return whether each row has events of an error type, by its key, in display order."""
    analysis = run.benchmark.errors
    rows = with_events(analysis, run.rows)
    keys = [error_type.key for error_type in analysis.error_types]
    return {key: rows_with_sum(rows, key) for key in keys}


def error_types_of(run: Run) -> list[tuple[str, ...]]:
    """Return for each row the keys of the error types that it has events of, in display order."""
    by_type = rows_with_events_of(run)
    columns = (has_events.tolist() for has_events in by_type.values())
    return [tuple(compress(by_type, of_row)) for of_row in zip(*columns, strict=True)]


def errors_of(run: Run) -> tuple[ErrorCost, ...]:
    """Return the cost of each error type; the points add up to 100 minus the score.

    Where few random rows stand for many, they may take away more errors of a type than there are:
    its points are below 0 then.

    Raises:
        StatisticsError: the run has no rows, or was scored before events were counted.
    """
    sums, points = _sums_and_points(run)
    bounds = metric_intervals(_estimate_points(run))
    return tuple(
        ErrorCost(each, sums.get(each.key, 0), float(points[each.key]), bounds.get(each.key))
        for each in run.benchmark.errors.error_types
    )


def points_of(run: Run) -> Mapping[str, float]:
    """Return the points of each error type by its key, without intervals, at little cost."""
    _, points = _sums_and_points(run)
    return points


def error_estimate(run: Run) -> Estimate:
    """Estimate the points of each error type as shares of 1, with each image's influence.

    Raises as :func:`errors_of`.
    """
    _sums_and_points(run)
    return _estimate_points(run)


def _estimate_points(run: Run) -> Estimate:
    analysis = run.benchmark.errors
    rows = with_events(analysis, run.rows)
    estimate = estimate_errors(analysis, clustered_sums(rows, run.variant.images))
    if run.random is None:
        return estimate
    return estimate_all_errors(estimate, analysis, run.sums_with_events, run.random)


def compare_errors(run: Run, other: Run) -> dict[str, Difference]:
    """Subtract what each error type took of ``other`` from what it took of ``run``, by its key.

    Paired over images; p-values are corrected for the number of types that either has.

    Raises:
        StatisticsError: the runs are of other datasets or rows, or as :func:`errors_of`.
    """
    if _dataset_and_table(run) != _dataset_and_table(other):
        raise StatisticsError(
            f"{other.path} is of {_dataset_and_table(other)}, {run.path} of "
            f"{_dataset_and_table(run)}: only runs of one dataset over one table can be compared"
        )
    check_comparable(run, other)
    return error_differences(error_estimate(run), error_estimate(other))


def error_differences(left: Estimate, right: Estimate) -> dict[str, Difference]:
    """Subtract the points of each error type, by its key; both are of :func:`error_estimate`."""
    keys = [m.name for m in left.metrics if left.value(m.name) or right.value(m.name)]
    tests = [paired_difference(left, right, key) for key in keys]
    return dict(zip(keys, correct_by_holm(tests, FamilyOfTests.ERRORS), strict=True))


def _dataset_and_table(run: Run) -> str:
    """Name what must be the same in runs that are compared, whatever their formats."""
    table = run.provenance.table_sha256[:12]
    return f"{run.benchmark.name} {run.variant.board_dataset} (table {table}…)"


def _sums_and_points(run: Run) -> tuple[Sums, Mapping[str, float]]:
    """Return the sums of a run with its events, and the points of each error type by its key."""
    analysis = run.benchmark.errors
    if not run.rows:
        raise StatisticsError(f"{run.path}: the run has no rows, so it has no errors")
    if run.is_unanswered:
        raise StatisticsError(f"{run.path}: {UNANSWERED}")
    sums = run.sums_with_events
    points = analysis.points(sums)
    if run.random is not None and not 0 <= analysis.lost(sums) <= 100:
        raise StatisticsError(
            f"{run.files.score}: by its few random rows more is right than there is, so no errors "
            "can be told. Review more random rows"
        )
    if not isclose(sum(points.values()), analysis.lost(sums), abs_tol=1e-6):
        raise StatisticsError(
            f"{run.path}: its score does not record errors. Score it again: "
            f"{score_command(run.path, run.variant.name)}"
        )
    return sums, points


# --- by slice -------------------------------------------------------------------------------------

REST = "(none)"  # Rows that are in no slice of a kind


@dataclass(frozen=True, slots=True)
class SliceErrors:
    """What one slice of a run lost of the whole run's score, by the keys of error types."""

    name: str
    events: Mapping[str, float]
    points: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(self.points.values())


def errors_by_slice(run: Run, by: str) -> tuple[SliceErrors, ...]:
    """Divide the loss of a run among slices, the largest first; they add up to the run's loss.

    An event costs in a slice what it costs in the run. ``by`` is a kind of slices, or one of the
    error analysis' ``cuts``. The run needs its details.

    Raises:
        StatisticsError: no row has this kind; the message names the nearest. Or random rows stand
            for others, of which only the sums are known.
    """
    analysis = run.benchmark.errors
    sums, points = _sums_and_points(run)
    kinds = {*analysis.cuts, *(kind for row in run.rows for kind in row.slices)}
    if by not in kinds:
        raise StatisticsError(f"{run.path} has no slices by {by!r}{suggestion(by, sorted(kinds))}")
    if run.random is not None:
        raise StatisticsError(
            f"{run.files.score}: in this score random rows stand for others, which are in no "
            f"{by}. Leave out --by, or name the score without reviews: {run.path}"
        )
    by_slice: dict[str, dict[str, float]] = {}
    for row in run.rows:
        rest = dict(analysis.events(row))
        for name, events in analysis.parts(row, by):
            _add(by_slice.setdefault(name, {}), events, 1)
            _add(rest, events, -1)
        _add(by_slice.setdefault(REST, {}), rest, 1)
    points_of_event = {key: float(points[key]) / sums[key] for key in points if sums.get(key)}
    slices = []
    for name, events in by_slice.items():
        counts = {key: events[key] for key in points_of_event if events.get(key)}
        lost = {key: count * points_of_event[key] for key, count in counts.items()}
        slices.append(SliceErrors(name, counts, lost))
    shown = [each for each in slices if each.total or (each.events and each.name != REST)]
    return tuple(sorted(shown, key=lambda each: (-each.total, each.name)))


def _add(total: dict[str, float], more: Mapping[str, float], times: int) -> None:
    for key, count in more.items():
        total[key] = total.get(key, 0) + times * count


# --- queries with nothing to find -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RejectionShare:
    """How many queries with nothing to find had one outcome."""

    outcome: NegativeOutcome
    queries: int
    share: float  # Percent of all queries with nothing to find, failed calls included
    interval: Interval | None  # None: too few images count


def rejection_shares(run: Run) -> tuple[RejectionShare, ...]:
    """Return the share of each outcome; empty where every query has something to find."""
    counts = rejections(run.sums)
    if not counts:
        return ()
    estimate = estimate_run(run, NEGATIVE_SHARES)
    bounds = metric_intervals(estimate)
    shares = []
    for outcome, count in counts.items():
        share = estimate.value(outcome.value) or 0.0
        shares.append(RejectionShare(outcome, count, share, bounds[outcome.value]))
    return tuple(shares)


# --- what lenient parsing would add ---------------------------------------------------------------


class LenientGain(NamedTuple):
    """Boxes and objects that lenient parsing adds to the strict reading."""

    replies: int = 0  # With another box, or with a label in place of a lost one
    boxes: int = 0
    objects: int = 0  # That these boxes and labels hit


def _row_gain(row: ScoredRow) -> LenientGain | None:
    answer = BoxAnswer.of(row)
    lenient = answer.lenient
    if lenient is None:
        return None
    more = len(lenient.boxes) - len(answer.boxes)
    if not more and [*lenient.labels] == [*answer.labels]:
        return None
    return LenientGain(1, more, len(lenient.recoverable))


def lenient_replies(rows: Sequence[ScoredRow]) -> str:
    """Count the replies that lenient parsing reads, in words."""
    not_adherent = sum(row.reason is not None and not row.failed for row in rows)
    lost = sum(row.reason is None and _row_gain(row) is not None for row in rows)
    if not lost:
        return f"{not_adherent:,} replies that do not adhere"
    return f"{not_adherent + lost:,} replies that do not adhere or whose labels were lost"


def _add_up(gains: Sequence[LenientGain]) -> LenientGain:
    return LenientGain(
        replies=sum(gain.replies for gain in gains),
        boxes=sum(gain.boxes for gain in gains),
        objects=sum(gain.objects for gain in gains),
    )


def lenient_gain(rows: Iterable[ScoredRow]) -> LenientGain:
    """Add up the gains of all replies."""
    gains = map(_row_gain, rows)
    return _add_up([gain for gain in gains if gain is not None])


def gain_by_repair(rows: Iterable[ScoredRow]) -> Mapping[str, LenientGain]:
    """Return the gain by the names of repairs, the most replies first.

    A reply counts under every repair that it needs, so these add up to more than the whole.
    """
    gains: dict[str, list[LenientGain]] = {}
    for row in rows:
        gain = _row_gain(row)
        lenient = BoxAnswer.of(row).lenient
        if gain is not None and lenient is not None:
            for repair in lenient.repairs:
                gains.setdefault(repair, []).append(gain)
    added = {repair: _add_up(each) for repair, each in gains.items()}
    return dict(sorted(added.items(), key=lambda item: (-item[1].replies, item[0])))


def reading_notes(run: AnsweredRun) -> list[str]:
    """Say of a run what its score does not, the worst first."""
    notes = (
        adherence_note(run),
        nothing_found_note(run),
        rejection_line(run.sums),
        mask_line(run.sums),
        _lenient_note(run.benchmark, run.rows, run.sums),
    )
    return [note for note in notes if note is not None]


def _lenient_note(benchmark: Benchmark, rows: Iterable[ScoredRow], sums: Sums) -> str | None:
    """Write one sentence on a run; None where lenient parsing would change no value."""
    rows = list(rows)
    strict_metric = benchmark.metrics[0]
    lenient_metric = benchmark.lenient
    gain = lenient_gain(rows)
    if not gain.replies or lenient_metric is None:
        return None
    repairs = ", ".join(f"{name} {each.replies}" for name, each in gain_by_repair(rows).items())
    strict = f"{strict_metric.value(sums) or 0.0:.1f}"
    lenient = f"{lenient_metric.value(sums) or 0.0:.1f}"
    if lenient == strict:
        return None
    return (
        f"lenient parsing would take more from {gain.replies:,} of {lenient_replies(rows)} "
        f"({repairs}): {strict_metric.name} {lenient}, not {strict}"
    )
