"""Values and intervals, as pages write them."""

from __future__ import annotations

from ..core.intervals import Interval
from ..core.metric import Metric


def with_unit(metric: Metric, value: float) -> str:
    """Format a value with its unit."""
    return f"{value:.1f} {metric.unit}".rstrip()


def spread(bounds: Interval | None) -> str:
    """Format an interval behind its value: `` (61.2 to 70.5)``; empty without one."""
    return f" ({bounds.low:.1f} to {bounds.high:.1f})" if bounds else ""


def rounded(*numbers: float | None) -> list[float | None]:
    """Round numbers for the page's script."""
    return [None if number is None else round(number, 4) for number in numbers]


def ends(bounds: Interval | None) -> list[float | None]:
    """Return the ends of an interval for the page's script; None without one."""
    return rounded(bounds.low, bounds.high) if bounds else [None, None]
