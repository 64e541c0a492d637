"""A sweep that is followed, as a page that loads itself again; it runs no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from markupsafe import Markup

from .. import __version__
from ..benchmarks import benchmark_of
from ..core.formatting import counted, duration
from ..core.metric import Metric
from .followed import CellView, Snapshot, SweepState
from .page import csp_hash, environment, template_text

_SAID = {
    SweepState.WAITING: "Waiting: nobody works on it.",
    SweepState.RUNNING: "Running.",
    SweepState.ENDED: "Ended.",
}


@dataclass(frozen=True, slots=True)
class Block:
    """The cells of one model on one benchmark, with the metrics that they have."""

    model: str
    metrics: tuple[Metric, ...]
    cells: tuple[CellView, ...]


def make_live_page(snapshot: Snapshot, time: datetime, every: float | None) -> str:
    """The page of a moment.

    Args:
        snapshot: how the sweep stands.
        time: when.
        every: seconds until the page loads itself again (None: nobody writes it any more).
    """
    script = template_text("live.js")
    page: str = (
        environment()
        .get_template("live.html.j2")
        .render(
            snapshot=snapshot,
            said=_said(snapshot, every),
            blocks=list(_blocks(snapshot.cells)),
            facts=list(_facts(snapshot)),
            total=snapshot.answered + snapshot.failed + snapshot.left,
            refresh=None if every is None else max(1, ceil(every)),
            figure=figure,
            seconds_a_call=seconds_a_call,
            script=Markup(script),
            script_hash=csp_hash(script),
            style=Markup(template_text("report.css") + template_text("live.css")),
            time=time.strftime("%Y-%m-%d %H:%M:%S UTC"),
            version=__version__,
        )
    )
    return page


def _said(snapshot: Snapshot, every: float | None) -> str:
    """The state in a sentence or two."""
    said = _SAID[snapshot.state]
    if every is None and snapshot.state is not SweepState.ENDED:
        return f"{said} No longer watched: this page is as it was left."
    if snapshot.state is SweepState.ENDED:
        unfinished = sum(not cell.finished for cell in snapshot.cells)
        if unfinished:
            return f"{said} {counted(unfinished, 'cell')} not finished: run it again to go on."
        if snapshot.failed:
            return f"{said} {counted(snapshot.failed, 'call')} failed: run it again to ask them."
        return f"{said} Every call was answered."
    return said


def _facts(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """What is told of the whole, name and value."""
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
        yield "Speed", f"{snapshot.speed:.1f} calls a second"
    if snapshot.seconds_left is not None:
        yield "Time left at this speed", duration(snapshot.seconds_left)
    if snapshot.unread:
        yield "Still to be read", f"{snapshot.unread / 1e6:,.0f} MB of the journal"


def _blocks(cells: Sequence[CellView]) -> Iterator[Block]:
    found: dict[tuple[str, str], list[CellView]] = {}
    for cell in cells:
        found.setdefault((benchmark_of(cell.question).name, cell.model), []).append(cell)
    for (_, model), own in found.items():
        metrics = [m for m in benchmark_of(own[0].question).metrics if m.in_short_tables]
        there = tuple(
            m for m in metrics if any(c.metric_values.get(m.name) is not None for c in own)
        )
        yield Block(model, there, tuple(own))


def figure(cell: CellView, metric: Metric) -> str:
    """A figure of a cell; empty where there is none yet."""
    value = cell.metric_values.get(metric.name)
    return "" if value is None else f"{value:.1f}"


def seconds_a_call(cell: CellView) -> str:
    """Return how long a call took; empty where none was made."""
    if not cell.made:
        return ""
    seconds = cell.seconds / cell.made
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)
