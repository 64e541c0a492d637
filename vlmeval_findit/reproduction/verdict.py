"""The verdict on an attempt: does it agree with the published value?

The interval over pictures allows for the sample, the tolerance for what second measurements in
equal conditions differ by: 1.3 points on one split, 0.5 on the mean of eight. How often the verdict
is wrong is measured: docs/design/statistics.md.
"""

from __future__ import annotations

from math import ceil, sqrt

from ..statistics.intervals import Interval, bounds, metric_intervals
from .reproduction_records import Attempt, FigureJudgement, FigureVerdict

_ONE_SPLIT = 1.3  # Points
_LEAST_TOLERANCE = 0.5  # Points, of means over many splits

# Points to either side. What is less sure could hide the loss of a wrong setup, so that it says
# nothing where the published value lies within.
WIDEST = 5.0


def tolerance_of(datasets: int) -> float:
    """Return by how many points the mean over so many datasets differs if measured again.

    >>> [round(tolerance_of(count), 2) for count in (1, 2, 3, 8)]
    [1.3, 0.92, 0.75, 0.5]
    """
    return max(_LEAST_TOLERANCE, _ONE_SPLIT / sqrt(datasets))


def judge(attempt: Attempt) -> FigureJudgement:
    """Compare an attempt with its figure.

    It agrees if the published value lies in the interval, widened by the tolerance. A value outside
    is lower or higher, however few pictures were asked.
    """
    figure = attempt.setup.figure
    published = figure.value
    measured = attempt.value
    (interval,) = metric_intervals(attempt.estimate).values()
    tolerance = tolerance_of(len(figure.set.datasets))
    difference_interval = None
    if interval is not None:
        low = interval.low - tolerance - published
        high = interval.high + tolerance - published
        difference_interval = Interval(low, high)
    verdict = _verdict(interval, difference_interval)
    enough = None
    if verdict is FigureVerdict.CANNOT_BE_TOLD:
        enough = _enough_pictures(attempt.pictures, interval, published)
    return FigureJudgement(
        verdict=verdict,
        published=published,
        measured=measured,
        interval=interval,
        tolerance=tolerance,
        difference=measured - published,
        difference_interval=difference_interval,
        pictures=attempt.pictures,
        enough=enough,
    )


def _verdict(interval: Interval | None, difference: Interval | None) -> FigureVerdict:
    if interval is None or difference is None:
        return FigureVerdict.CANNOT_BE_TOLD
    if difference.high < 0:
        return FigureVerdict.LOWER
    if difference.low > 0:
        return FigureVerdict.HIGHER
    return FigureVerdict.CANNOT_BE_TOLD if _reach(interval) > WIDEST else FigureVerdict.AGREES


def _reach(interval: Interval) -> float:
    return (interval.high - interval.low) / 2


def _enough_pictures(pictures: int, interval: Interval | None, published: float) -> int:
    """Return how many pictures would give an interval of :data:`WIDEST` points to either side.

    Intervals narrow with the root of their number. Where there is none yet, the published value
    says how wide it is of a hundred pictures of one query.
    """
    if interval is None:
        share = published / 100
        pictures = 100
        interval = bounds(share, share * (1 - share) / pictures, pictures)
        assert interval is not None
    return ceil(pictures * (_reach(interval) / WIDEST) ** 2)
