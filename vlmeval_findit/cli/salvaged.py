"""Small tables on a run: what a tolerant reader would take, and what became of rejections."""

from __future__ import annotations

from collections.abc import Iterator

from ..benchmarks.findit.rejection import FALSE_ALARM_RATE, REJECTION_ACCURACY
from ..core.statistics import Interval
from ..runs.intervals import intervals
from ..runs.rejection import shares_of
from ..runs.salvage import steps_of, taken
from ..runs.scored_run import Run


def salvaged_lines(run: Run) -> list[str]:
    """What a tolerant reader would take from a run; nothing where that is no more than we do."""
    return list(_salvaged(run))


def _salvaged(run: Run) -> Iterator[str]:
    more, salvaged = taken(run.rows), run.benchmark.salvaged
    if not more.replies or salvaged is None:
        return
    yield "what a tolerant reader would take; a reply counts under each step that it needs"
    yield "replies    boxes  objects"
    for step, one in steps_of(run.rows).items():
        yield f"{one.replies:7,}  {one.boxes:7,}  {one.objects:7,}  {step}"
    astray = sum(row.reason is not None and not row.failed for row in run.rows)
    yield (
        f"{more.replies:7,}  {more.boxes:7,}  {more.objects:7,}  in all, "
        f"of {astray:,} that do not adhere"
    )
    spreads = intervals(run)
    for metric in (run.benchmark.metrics[0], salvaged):
        value = run.figures[metric.name]
        yield f"{metric.name}: {_figure(value, spreads.get(metric.name))}"


def rejection_lines(run: Run) -> list[str]:
    """What became of the queries of a run that have nothing to find; nothing where none has."""
    return list(_rejection(run))


def _rejection(run: Run) -> Iterator[str]:
    shares = shares_of(run)
    if not shares:
        return
    every = sum(one.queries for one in shares)
    yield f"{every:,} of {len(run.rows):,} queries have nothing to find"
    yield "queries  share, with its 95 % interval"
    for one in shares:
        yield f"{one.queries:7,}  {_figure(one.share, one.interval):<18} {one.outcome.value}"
    spreads = intervals(run)
    for name in (REJECTION_ACCURACY.name, FALSE_ALARM_RATE.name):
        yield f"{name}: {_figure(run.figures[name], spreads.get(name))}, of those answered"


def _figure(value: float | None, interval: Interval | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" + (f" ({interval.low:.1f}–{interval.high:.1f})" if interval else "")
