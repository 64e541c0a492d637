"""Small tables on a run: what a tolerant reader would take, and what became of rejections."""

from __future__ import annotations

from collections.abc import Iterator

from ..benchmarks.findit.metrics import FALSE_ALARM_RATE, REJECTION_ACCURACY
from ..core.statistics import Interval
from ..runs.intervals import intervals
from ..runs.rejection import shares_of
from ..runs.salvage import Taken, steps_of, taken
from ..runs.scored_run import Run

_NAME = 32


def salvaged_lines(run: Run) -> list[str]:
    """What a tolerant reader would take from a run; nothing where that is no more than we do."""
    return list(_salvaged(run))


def _salvaged(run: Run) -> Iterator[str]:
    more, salvaged = taken(run.rows), run.benchmark.salvaged
    if not more.replies or salvaged is None:
        return
    astray = sum(row.reason is not None and not row.failed for row in run.rows)
    yield f"  what a tolerant reader would take of {astray:,} replies that do not adhere:"
    yield _row("", "replies", "boxes", "objects")
    for step, one in steps_of(run.rows).items():
        yield _counts(step, one)
    yield _counts("in all (some need several)", more)
    spreads = intervals(run)
    for metric in (run.benchmark.metrics[0], salvaged):
        yield _figure(metric.name, run.figures[metric.name], spreads.get(metric.name))


def rejection_lines(run: Run) -> list[str]:
    """What became of the queries of a run that have nothing to find; nothing where none has."""
    return list(_rejection(run))


def _rejection(run: Run) -> Iterator[str]:
    shares = shares_of(run)
    if not shares:
        return
    every = sum(one.queries for one in shares)
    yield f"  {every:,} of {len(run.rows):,} queries have nothing to find:"
    yield _row("", "queries", "percent") + "  interval"
    for one in shares:
        yield _row(one.outcome.value, f"{one.queries:,}", f"{one.share:.1f}") + _bounds(
            one.interval
        )
    spreads = intervals(run)
    for metric in (REJECTION_ACCURACY, FALSE_ALARM_RATE):
        yield _figure(metric.name, run.figures[metric.name], spreads.get(metric.name))


def _row(name: str, *cells: str) -> str:
    return f"  {name:<{_NAME}}" + "".join(f"{cell:>9}" for cell in cells)


def _counts(name: str, one: Taken) -> str:
    return _row(name, f"{one.replies:,}", f"{one.boxes:,}", f"{one.objects:,}")


def _figure(name: str, value: float | None, interval: Interval | None) -> str:
    return _row(name, "", "–" if value is None else f"{value:.1f}") + _bounds(interval)


def _bounds(interval: Interval | None) -> str:
    return f"  {interval.low:.1f} to {interval.high:.1f}" if interval is not None else ""
