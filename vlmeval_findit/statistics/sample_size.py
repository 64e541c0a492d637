"""How many images a paired test needs, and which difference so many can show.

Two runs that were compared are the pilot: the variance of their difference is that of two runs like
them. It falls with the number of images. A pilot of few images knows its variance badly, so what
follows from it has a range: the gamma interval of Fay and Feuer for a weighted sum of counts, here
of the images' squared influences. It is wide where few images make up the variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..protocol import Array
from .influences import Estimate, aligned
from .intervals import ALPHA, Interval, pilot_errors, variance_unseen
from .share_intervals import CONFIDENCE_LEVEL, quantile

CHANCE = 0.8  # With which a difference of that size is found significant

_MOST_IMAGES = 10**9  # A difference that needs more is not to be seen
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Pilot:
    """The variance of the difference of two runs, and what a test of it adds: shares of 1."""

    variance: float
    low: float  # The ends of its 95 % interval
    high: float
    unseen: float  # Variance that the test allows for, of what the images do not show
    freedom: float  # Degrees of freedom
    images: int
    queries: float  # Effective number, after Kish
    is_share: bool


@dataclass(frozen=True, slots=True)
class Sized:
    """A difference in points or a number of images, and its range by the variance's interval."""

    value: float
    range: Interval


def pilot_of(left: Estimate, right: Estimate, metric: str) -> Pilot | None:
    """Return what two runs over the same images tell; None: too few images count."""
    place = left.place(metric)
    errors = pilot_errors(left, right, metric)
    if errors is None:
        return None
    _, influences = aligned([left, right], lambda run: run.influence[:, place])
    squares = (influences[0] - influences[1]) ** 2
    low, high = _gamma_interval(squares, 1 / errors.images**2)
    return Pilot(
        variance=float(squares.sum()),
        low=low,
        high=high,
        unseen=errors.unseen,
        freedom=errors.freedom,
        images=errors.images,
        queries=min(float(left.queries[place]), float(right.queries[place])),
        is_share=left.metrics[place].share,
    )


def assumed_pilot(differ: float, images: int) -> Pilot:
    """Return what two equally good runs would tell that differ on a share of the images.

    Each image has one object.
    """
    variance = differ / images
    return Pilot(
        variance=variance,
        low=variance,
        high=variance,
        unseen=float(variance_unseen(images, 0.0)),
        freedom=images - 1.0,
        images=images,
        queries=images,
        is_share=True,
    )


def _gamma_interval(squares: Array, one_image: float) -> tuple[float, float]:
    """Return the 95 % interval of a sum of squared influences.

    It allows for one more image as large as the largest, and as ``one_image``.
    """
    from scipy.special import gammaincinv

    total = float(squares.sum())
    spread = float((squares**2).sum())
    largest = max(float(squares.max()), one_image)
    tail = (1 - CONFIDENCE_LEVEL) / 2
    low = 0.0
    if total:
        low = spread / total * float(gammaincinv(total**2 / spread, tail))
    total += largest
    spread += largest**2
    high = spread / total * float(gammaincinv(total**2 / spread, 1 - tail))
    return low, high


def smallest_difference(pilot: Pilot, images: float, p_value: float = ALPHA) -> Sized | None:
    """Return the smallest difference, in points, that so many images show with :data:`CHANCE`.

    None: so few images show none. ``p_value`` is the largest that is significant.
    """
    return _with_range(pilot, lambda each: _difference(each, images, p_value))


def images_needed(pilot: Pilot, points: float, p_value: float = ALPHA) -> Sized | None:
    """Return how many images show a difference of so many points with :data:`CHANCE`.

    None: no number does. ``p_value`` is the largest that is significant.
    """
    return _with_range(pilot, lambda each: _images(each, points, p_value))


def _with_range(pilot: Pilot, size: Callable[[Pilot], float | None]) -> Sized | None:
    """Return a size by the variance, and those by its ends; None if there is none for an end."""
    ends = [replace(pilot, variance=variance) for variance in (pilot.low, pilot.high)]
    low, value, high = (size(each) for each in (ends[0], pilot, ends[1]))
    if low is None or value is None or high is None:
        return None
    return Sized(value, Interval(low, high))


def _difference(pilot: Pilot, images: float, p_value: float) -> float | None:
    """Return the smallest difference in points, or None if even one of 100 is not shown."""
    if not _shows(pilot, 1.0, images, p_value):
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _shows(pilot, middle, images, p_value):
            high = middle
        else:
            low = middle
    return 100 * high


def _images(pilot: Pilot, points: float, p_value: float) -> float | None:
    """Return the smallest number of images, or None if all are too few."""
    difference = points / 100
    if not _shows(pilot, difference, _MOST_IMAGES, p_value):
        return None
    low, high = 0, _MOST_IMAGES
    while high - low > 1:
        middle = (low + high) // 2
        if _shows(pilot, difference, middle, p_value):
            high = middle
        else:
            low = middle
    return float(high)


def _shows(pilot: Pilot, difference: float, images: float, p_value: float) -> bool:
    """Return whether so many images show a difference, 0 to 1, with :data:`CHANCE`.

    The test rejects where the measured difference exceeds t standard errors, in which it includes
    what the images do not show. The measured one varies by its variance alone.
    """
    # As in the test: as many coins that fall alike
    if images < 1 or 2.0 ** (1 - min(images, 1000)) >= p_value:
        return False
    fewer = pilot.images / images
    variance = fewer * pilot.variance
    if pilot.is_share:
        # So many objects at least are found by one of the two only
        variance = max(variance, fewer * difference * (1 - difference) / pilot.queries)
    error = np.sqrt(variance + fewer**2 * pilot.unseen)
    freedom = max((pilot.freedom + 1) / fewer - 1, 1.0)
    to_reject = float(quantile(freedom, 1 - p_value))
    # Two-sided at 60 %: one side of 80 %
    to_exceed = float(quantile(freedom, 2 * CHANCE - 1))
    return bool(difference >= to_reject * error + to_exceed * np.sqrt(variance))
