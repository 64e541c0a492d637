"""The verdict on an attempt: does it agree with the published value?

The interval over pictures allows for the sample, the tolerance for what second measurements in
equal conditions differ by: 1.3 points on one split, 0.5 on the mean of eight. How often the verdict
is wrong is measured: benchmarks/README.md.
"""

from __future__ import annotations

from itertools import count
from math import ceil, sqrt

from ..statistics import FEWEST_IMAGES, Interval, metric_intervals, share_bounds
from .reproduction_records import Attempt, FigureJudgement, FigureVerdict

_ONE_SPLIT = 1.3  # Points
_LEAST_TOLERANCE = 0.5  # Points, of means over many splits

# Points that a setup may lose beyond the tolerance and still agree. An interval that reaches lower
# would hide the loss of a wrong setup: that the published value lies within says nothing.
MOST_LOST = 5.0


def tolerance_of(datasets: int) -> float:
    """Return by how many points the mean over so many datasets differs if measured again.

    >>> [round(tolerance_of(count), 2) for count in (1, 2, 3, 8)]
    [1.3, 0.92, 0.75, 0.5]
    """
    return max(_LEAST_TOLERANCE, _ONE_SPLIT / sqrt(datasets))


def judge_attempt(attempt: Attempt) -> FigureJudgement:
    """Compare an attempt with its figure.

    A published value outside the interval, widened by the tolerance, is higher or lower, however
    few pictures were asked. One within agrees if the interval excludes that much more is lost.
    """
    figure = attempt.setup.figure
    published = figure.value
    measured = attempt.value
    (interval,) = metric_intervals(attempt.estimate).values()
    tolerance = tolerance_of(len(figure.set.datasets))
    difference_interval = None
    verdict = FigureVerdict.CANNOT_BE_TOLD
    if interval is not None:
        low = interval.low - tolerance - published
        high = interval.high + tolerance - published
        difference_interval = Interval(low, high)
        verdict = _verdict(interval, published, tolerance)
    enough = None
    if verdict is FigureVerdict.CANNOT_BE_TOLD:
        enough = _enough_pictures(attempt, interval, published, tolerance)
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


def _verdict(interval: Interval, published: float, tolerance: float) -> FigureVerdict:
    if interval.high < published - tolerance:
        return FigureVerdict.LOWER
    if interval.low > published + tolerance:
        return FigureVerdict.HIGHER
    if interval.low < published - tolerance - MOST_LOST:
        return FigureVerdict.CANNOT_BE_TOLD
    return FigureVerdict.AGREES


# --- how many pictures would do -------------------------------------------------------------------


def _enough_pictures(
    attempt: Attempt, interval: Interval | None, published: float, tolerance: float
) -> int:
    """Return how many pictures would tell it, if the measured value stays.

    Intervals narrow with the root of their number, until the lower end excludes a loss, or the
    upper end the least value that repetitions give.
    """
    if interval is None:
        return _enough_without_interval(published, tolerance)
    measured = attempt.value
    least = published - tolerance
    # The shorter side narrows more slowly than with the root.
    half = (interval.high - interval.low) / 2
    reach_and_room = (
        (max(half, measured - interval.low), measured - (least - MOST_LOST)),
        (max(half, interval.high - measured), least - measured),
    )
    ratios = [reach / room for reach, room in reach_and_room if room > 0]
    return ceil(attempt.pictures * min(ratios) ** 2)


def _enough_without_interval(published: float, tolerance: float) -> int:
    """Return how many pictures of one query would tell it, if the published value is measured."""
    share = published / 100
    for pictures in count(FEWEST_IMAGES):
        interval = share_bounds(share, share * (1 - share) / pictures, pictures)
        if interval is not None and published - interval.low <= tolerance + MOST_LOST:
            break
    return pictures
