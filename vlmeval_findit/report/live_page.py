"""The page of a running sweep, which loads itself again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from math import ceil

from ..benchmarks import benchmark_of
from ..core import counted, duration
from ..leaderboard import group_by
from ..protocol import Metric
from .rendering import render, template_text
from .sweep_progress import CellView, SweepSnapshot, SweepState

_STATES = {
    SweepState.WAITING: "Waiting: nobody works on it.",
    SweepState.RUNNING: "Running.",
    SweepState.ENDED: "Ended.",
}


def make_live_page(snapshot: SweepSnapshot, time: datetime, every: float | None) -> str:
    """Make the page of a moment.

    Args:
        snapshot: the state of the sweep.
        time: of the snapshot.
        every: seconds until the page loads itself again (None: it is no longer updated).
    """
    return render(
        "live.html.j2",
        time.strftime("%Y-%m-%d %H:%M:%S UTC"),
        [template_text("live.js")],
        ["report.css", "live.css"],
        snapshot=snapshot,
        state_text=_state_text(snapshot, every),
        blocks=list(_blocks(snapshot.cells)),
        facts=list(_facts(snapshot)),
        total=snapshot.answered + snapshot.failed + snapshot.left,
        refresh=None if every is None else max(1, ceil(every)),
        seconds_a_call=_seconds_a_call,
    )


def _state_text(snapshot: SweepSnapshot, every: float | None) -> str:
    """Describe the state in a sentence or two."""
    state = _STATES[snapshot.state]
    if snapshot.state is not SweepState.ENDED:
        left = " No longer watched: this page is as it was left."
        return state + (left if every is None else "")
    if unfinished := sum(not cell.finished for cell in snapshot.cells):
        return f"{state} {counted(unfinished, 'cell')} not finished: run it again to go on."
    if snapshot.failed:
        return f"{state} {counted(snapshot.failed, 'call')} failed: run it again to ask them."
    return f"{state} Every call was answered."


def _facts(snapshot: SweepSnapshot) -> Iterator[tuple[str, str]]:
    """Yield facts about the whole sweep: name and value."""
    finished = sum(cell.finished for cell in snapshot.cells)
    unknown = sum(cell.left is None for cell in snapshot.cells)
    yield "Cells finished", f"{finished:,} of {len(snapshot.cells):,}"
    yield "Calls answered", f"{snapshot.answered:,}"
    yield "Failed", f"{snapshot.failed:,}"
    more = f", and those of {counted(unknown, 'cell')}" if unknown else ""
    yield "Left", f"{snapshot.left:,}{more}"
    if snapshot.cost is not None:
        yield "Cost", f"{snapshot.cost:,.4f} US dollars"
    if snapshot.speed is not None:
        yield "Speed", f"{snapshot.speed:.1f} calls per second"
    if snapshot.seconds_left is not None:
        yield "Time left at this speed", duration(snapshot.seconds_left)
    if snapshot.unread:
        yield "Still to be read", f"{snapshot.unread / 1e6:,.0f} MB of the journal"


Block = tuple[str, Sequence[Metric], Sequence[CellView]]


def _blocks(cells: Sequence[CellView]) -> Iterator[Block]:
    """Yield each model on each benchmark, with the metrics that its cells have."""
    groups = group_by(cells, lambda cell: (benchmark_of(cell.variant).name, cell.model))
    for (_, model), group in groups.items():
        metrics = [m for m in benchmark_of(group[0].variant).metrics if m.in_short_tables]
        present = [m for m in metrics if any(m.name in cell.metric_values for cell in group)]
        yield model, present, group


def _seconds_a_call(cell: CellView) -> str:
    seconds = cell.seconds / cell.attempts if cell.attempts else None
    if seconds is None:
        return ""
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)
