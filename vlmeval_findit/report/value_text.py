"""Values and intervals, as pages write them."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal

from ..protocol import Metric
from ..statistics import Interval


def with_unit(metric: Metric, value: float) -> str:
    """Format a value with its unit."""
    return f"{value:.1f} {metric.unit}".rstrip()


def spread(bounds: Interval | None) -> str:
    """Format an interval behind its value: `` (61.2 to 70.5)``; empty without one."""
    return f" ({bounds.low:.1f} to {bounds.high:.1f})" if bounds else ""


def rounded_down(share: float) -> float:
    """Round an IoU down to three digits: it then reaches no threshold that it was below.

    >>> rounded_down(0.4999996), rounded_down(0.57)
    (0.499, 0.57)
    """
    # Nine digits are those of a 32-bit float; the rest is noise of means.
    return float(Decimal(str(round(share, 9))).quantize(Decimal("0.001"), ROUND_DOWN))


def rounded(*numbers: float | None) -> list[float | None]:
    """Round numbers for the page's script."""
    return [None if number is None else round(number, 4) for number in numbers]


def ends(bounds: Interval | None) -> list[float | None]:
    """Return the ends of an interval for the page's script; None without one."""
    return rounded(bounds.low, bounds.high) if bounds else [None, None]
