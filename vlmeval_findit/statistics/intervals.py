"""Intervals and paired tests over images, from the influences of :mod:`.influences`.

A difference subtracts each image's influences, so what is hard for both runs cancels. Results are
always the same. The intervals of shares are those of :mod:`.share_intervals`. A table may have
hundreds of slices: :func:`slice_intervals` computes those of a kind at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from ..protocol import Array, Metric, divide
from .influences import (
    FEWEST_IMAGES,
    ClusteredSums,
    Estimate,
    SliceSums,
    aligned,
    effective_number_of,
    hits_by_slice,
    images_of_slices,
    join_slices,
    sums_by_slice,
)
from .share_intervals import (
    CONFIDENCE_LEVEL,
    UNSEEN,
    Sampled,
    SampledChanges,
    mean_ends,
    quantile,
    reaches_of_mean,
    reaches_of_share,
    tail,
    total_freedom,
)

ALPHA = 0.05  # Corrected p-values below it are significant

# Why a value has no interval and no test, for notes
TOO_FEW_IMAGES = f"fewer than {FEWEST_IMAGES} images count"
# Which images count towards a metric, for notes
WHICH_IMAGES_COUNT = (
    "an image counts in a metric if it adds to what the metric divides by: in precision, if a box "
    "was predicted on it"
)
# What the intervals of a table are, for its legend
INTERVALS_LEGEND = f"95 % over images; none where {TOO_FEW_IMAGES}"
# The same beside p-values that are corrected by Holm's method, which has no intervals
INTERVALS_ALONE = "95 % of each alone, and may exclude 0 where p is not below 5 %"

_ROUNDING = 1e-6  # By which sums of rounded numbers may leave a share's range
EQUAL = 1e-11  # Sums in another order differ in their last bits, but are equal


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval, in the unit of its metric."""

    low: float
    high: float


class FamilyOfTests(Enum):
    """Which tests share 5 %: what the p-value of a difference is corrected for, in words."""

    PAIR = "of this pair alone, not corrected for other pairs"
    MODELS = "corrected for all pairs of models of a column"
    FORMATS = "corrected for all pairs of formats, of all models and datasets"
    ERRORS = "corrected (Holm) for the error types of the pair"
    AXIS = "corrected (Holm) for all values of the table; each is tested against the first"
    MARKS = "corrected for all pairs of shapes, and of colours, of a model"
    CHECKPOINTS = "paired over images; 5 % hold for all pairs, looks and datasets of a training"


class Verdict(Enum):
    """What the test of a difference tells."""

    HIGHER = "significantly higher"
    LOWER = "significantly lower"
    NOT_TOLD_APART = "not told apart"
    NOT_TESTED = "not tested"


@dataclass(frozen=True, slots=True)
class Difference:
    """One value minus another, in percentage points where they are shares."""

    value: float
    # 95 %; excludes 0 exactly where p_value is below 5 %. Against the best of many, by
    # :mod:`.multiple_tests`: 95 % for all pairs, and where ``corrected`` is below 5 %
    interval: Interval | None
    p_value: float | None  # Two-sided; None, like the interval, for too few images
    corrected: float | None  # For the tests of its family; the verdict is by it
    family: FamilyOfTests = FamilyOfTests.PAIR

    @classmethod
    def untested(cls, value: float, family: FamilyOfTests = FamilyOfTests.PAIR) -> Difference:
        """Make a difference that has no test."""
        return cls(value, None, None, None, family)

    @property
    def verdict(self) -> Verdict:
        """What its test tells; every sign and word about it is made of this."""
        if self.corrected is None:
            return Verdict.NOT_TESTED
        if self.corrected >= ALPHA:
            return Verdict.NOT_TOLD_APART
        return Verdict.HIGHER if self.value > 0 else Verdict.LOWER

    @property
    def significant(self) -> bool:
        return self.verdict in (Verdict.HIGHER, Verdict.LOWER)

    @property
    def says_nothing(self) -> bool:
        """Whether its interval has every difference that two shares can have."""
        if self.interval is None:
            return self.p_value is None
        return (self.interval.low, self.interval.high) == _EVERY_DIFFERENCE


_EVERY_DIFFERENCE = (-100.0, 100.0)  # Of shares, in points


def share_bounds(value: float, variance: float, images: float) -> Interval | None:
    """Return the 95 % interval, in percent, of a share of 1; None below :data:`.FEWEST_IMAGES`.

    All images weigh the same. See :func:`.share_intervals.mean_ends`.
    """
    if images < FEWEST_IMAGES:
        return None
    one = np.ones((1, 1))
    sampled = Sampled(
        value=min(1.0, max(0.0, value)) * one,
        variance=variance * one,
        hits=min(1.0, max(0.0, value)) * one,
        hit_variance=variance * one,
        images=images * one,
        effective=images * one,
        skewness=one,
        queries=images * one,
    )
    low, high = mean_ends(sampled, np.ones(1), np.ones(1))
    return in_percent(low[0], high[0])


def metric_intervals(estimate: Estimate) -> dict[str, Interval | None]:
    """Return all intervals (None: too few images); a ValueError if a share is not 0 to 100 %."""
    low, high = _share_ends(estimate)
    reach = _reaches_of_means(estimate)
    counted = estimate.counted
    sampled = any(each.changes is not None for each in estimate.datasets or (estimate,))
    intervals: dict[str, Interval | None] = {}
    for at, metric in enumerate(estimate.metrics):
        value = float(estimate.values[at])
        if np.isnan(value):
            continue
        if not counted[at]:
            intervals[metric.name] = None
            continue
        ends = value - float(reach[at]), value + float(reach[at])
        # Few random rows may take away more errors of a type than there are.
        is_share = metric.share and not (sampled and value < 0)
        if is_share:
            check_share(metric, value)
            ends = float(low[at]), float(high[at])
        if sampled:
            ends = _with_changes(ends, value, estimate, at, is_share)
        intervals[metric.name] = in_percent(*ends)
    return intervals


def _with_changes(
    ends: tuple[float, float], value: float, estimate: Estimate, place: int, is_share: bool
) -> tuple[float, float]:
    """Return the ends of an interval that carries the sampling of random rows, too.

    Two independent reaches are added as their squares.
    """
    datasets = estimate.datasets or (estimate,)
    down, up = reaches_of_mean([each.changes for each in datasets], place)
    low = value - float(np.hypot(value - min(ends[0], value), down))
    high = value + float(np.hypot(max(ends[1], value) - value, up))
    if is_share:
        low = min(max(low, 0.0), value)
        high = max(min(high, 1.0), value)
    return low, high


def in_percent(low: float, high: float) -> Interval:
    """Make an interval of ends in hundredths."""
    return Interval(100 * float(low), 100 * float(high))


def check_share(metric: Metric, value: float) -> None:
    """Raise a ValueError if a metric calls itself a share, and is not 0 to 1."""
    if not -_ROUNDING <= value <= 1 + _ROUNDING:
        raise ValueError(
            f"{metric.name} is {100 * value:g} %, but a share is at most 100 %: "
            f'write Metric({metric.name!r}, …, unit="")'
        )


def _share_ends(estimate: Estimate) -> tuple[Array, Array]:
    """Return both ends of the interval of every metric, were it a share."""
    datasets = estimate.datasets or (estimate,)
    sampled = Sampled(
        value=np.stack([np.clip(each.values, 0.0, 1.0) for each in datasets]),
        variance=np.stack([each.variance for each in datasets]),
        hits=np.stack([np.clip(each.all_hits.share, 0.0, 1.0) for each in datasets]),
        hit_variance=np.stack([each.all_hits.variance for each in datasets]),
        images=np.stack([each.counted_images for each in datasets]),
        effective=np.stack([each.counted for each in datasets]),
        skewness=np.stack([_skewness(each.weight) for each in datasets]),
        queries=np.stack([each.queries for each in datasets]),
    )
    overlap = _overlap(estimate.counted, sampled.effective)
    variance_apart = sampled.variance.mean(axis=0) / len(datasets)
    together = divide(estimate.variance, variance_apart, 1.0)
    return mean_ends(sampled, together, overlap)


def _skewness(weight: Array) -> Array:
    """Return how much more skewed unequal images make a sum than as many equal ones; 1: equal."""
    return divide((weight**3).sum(axis=0), (weight**2).sum(axis=0) ** 2, 1.0)


def _overlap(counted: Array, effective: Array) -> Array:
    """Return in how many datasets an image is, given the effective numbers of images.

    ``counted`` are those of the mean, ``effective`` those of each dataset, along the first axis.
    """
    share_apart = divide(np.ones_like(effective), effective).mean(axis=0) / len(effective)
    return divide(np.ones_like(counted), counted * share_apart, 1.0)


def _reaches_of_means(estimate: Estimate) -> Array:
    """Return how far Student's interval reaches to either side, metric by metric."""
    datasets = estimate.datasets or (estimate,)
    variances = np.stack([each.variance for each in datasets])
    images = np.stack([each.counted for each in datasets])
    freedom = total_freedom(variances, images, _overlap(estimate.counted, images))
    reach: Array = quantile(freedom) * np.sqrt(estimate.variance)
    return reach


# --- differences ----------------------------------------------------------------------------------


def paired_difference(
    left: Estimate, right: Estimate, metric: str, level: float = CONFIDENCE_LEVEL
) -> Difference:
    """Subtract one value from another, with a paired t-test over the images.

    The interval leaves out 0 exactly where the test rejects at 1 minus its ``level``: both have the
    same standard error. That of shares allows for a third of an unseen image that only one of them
    finds.
    """
    place = left.place(metric)
    is_share = left.metrics[place].share
    value = float(left.values[place] - right.values[place])
    pair = _pair(left, right, place)
    if not pair.effective:
        return Difference.untested(100 * value)
    error, freedom = _paired_error(pair, left, right, place)
    student = float(quantile(freedom))
    down, up = _paired_reaches_of_changes(left, right, place)
    towards_zero, beyond = (up, down) if value < 0 else (down, up)
    p_value = 1.0
    if abs(value) >= EQUAL:
        least = float(least_p_value(pair.differing))
        if least > 0:
            error = max(error, abs(value) / float(quantile(freedom, 1 - least)))
        whole_error = float(np.hypot(error, towards_zero / student))
        # Of thousands of images that all differ by the same, neither is more than 0.
        by_chance = 2 * float(tail(freedom, -abs(value) / whole_error)) if whole_error else 0.0
        p_value = max(least, by_chance)
    student_at_level = float(quantile(freedom, level))
    reach = student_at_level * error
    to_zero = reach
    away = reach
    if is_share:
        to_zero, away = reaches_of_share(abs(value), reach, error, pair.effective)
    stretch = student_at_level / student
    to_zero = float(np.hypot(to_zero, stretch * towards_zero))
    away = float(np.hypot(away, stretch * beyond))
    if value < 0:
        low = value - away
        high = value + to_zero
    else:
        low = value - to_zero
        high = value + away
    if is_share:
        low = max(-1.0, low)
        high = min(1.0, high)
    return Difference(100 * value, in_percent(low, high), p_value, p_value)


def _paired_reaches_of_changes(left: Estimate, right: Estimate, place: int) -> tuple[float, float]:
    """Return how far the sampling of random rows reaches down, and up; 0 without any."""
    pairs = zip(left.datasets or (left,), right.datasets or (right,), strict=True)
    changes: list[SampledChanges | None] = []
    for of_left, of_right in pairs:
        if of_left.changes is None or of_right.changes is None:
            changes.append(None)
        else:
            changes.append(of_left.changes.minus(of_right.changes))
    return reaches_of_mean(changes, place)


def count_differing(left: Array, right: Array) -> Array:
    """Return on how many images two runs differ, by what each image adds to their values."""
    number: Array = np.count_nonzero(np.abs(left - right) > EQUAL, axis=0)
    return number


def least_p_value(differing: Array | int) -> Array:
    """Return the smallest p-value of runs that differ on so many images.

    It is that of as many coins which all show heads: images on which both are equal say nothing of
    which is better. Fewer than :data:`.FEWEST_IMAGES` count as so many, which is never significant.
    """
    coins = np.maximum(differing, FEWEST_IMAGES)
    least: Array = 2.0 ** (1.0 - coins)
    return least


class _Pair(NamedTuple):
    """One metric of two runs over the same images."""

    variance: float  # Of the difference
    unseen: float  # Variance of a third of an image that only one finds; 0 for what is no share
    images: int
    differing: int  # Images on which the two differ
    effective: float  # Number of images, after Kish; 0: too few


def _pair(left: Estimate, right: Estimate, place: int) -> _Pair:
    _, influences = aligned([left, right], lambda run: run.influence[:, place])
    _, contributions = aligned([left, right], lambda run: run.part[:, place])
    images = min(int(left.counted_images[place]), int(right.counted_images[place]))
    unseen = 0.0
    if images and left.metrics[place].share:
        value = float(left.values[place] - right.values[place])
        unseen = float(variance_unseen(images, value))
    return _Pair(
        variance=float(((influences[0] - influences[1]) ** 2).sum()),
        unseen=unseen,
        images=images,
        differing=int(count_differing(*contributions)),
        effective=min(float(left.counted[place]), float(right.counted[place])),
    )


def _paired_error(whole: _Pair, left: Estimate, right: Estimate, place: int) -> tuple[float, float]:
    """Return the standard error of a difference, and its degrees of freedom."""
    pairs = [whole]
    if left.datasets:
        datasets = zip(left.datasets, right.datasets, strict=True)
        pairs = [_pair(of_left, of_right, place) for of_left, of_right in datasets]
    error, freedom = paired_errors(
        whole_variance=np.asarray(whole.variance),
        whole_effective=np.asarray(whole.effective),
        variances=np.array([pair.variance for pair in pairs]),
        unseen=np.array([pair.unseen for pair in pairs]),
        effective=np.array([pair.effective for pair in pairs]),
    )
    return float(error), float(freedom)


class PilotErrors(NamedTuple):
    """What the paired test of a metric adds to the variance, for :mod:`.sample_size`."""

    unseen: float  # Variance
    freedom: float  # Degrees of freedom
    images: int


def pilot_errors(left: Estimate, right: Estimate, metric: str) -> PilotErrors | None:
    """Return what the paired test of a metric adds to the variance; None: there is no test."""
    place = left.place(metric)
    pair = _pair(left, right, place)
    if not pair.effective:
        return None
    error, freedom = _paired_error(pair, left, right, place)
    return PilotErrors(max(0.0, error**2 - pair.variance), freedom, pair.images)


def variance_unseen(images: Array | float, difference: Array | float) -> Array:
    """Return the variance of a third of an image that only one of two runs finds.

    ``difference`` is that of their shares, 0 to 1; half of it is for each of the two.
    """
    variance: Array = 2 * (UNSEEN / 2 / np.asarray(images)) ** 2 * (1 + np.asarray(difference) ** 2)
    return variance


def paired_errors(
    *,
    whole_variance: Array,
    whole_effective: Array,
    variances: Array,
    unseen: Array,
    effective: Array,
) -> tuple[Array, Array]:
    """Return the standard errors of differences, and their degrees of freedom.

    Args:
        whole_variance: of each difference, over all images.
        whole_effective: number of images, after Kish.
        variances: of each dataset, along the first axis; alone, it is the whole.
        unseen: the variance of what is not seen, of each dataset.
        effective: number of images of each dataset, after Kish.
    """
    # One unseen image in all, not one in each dataset.
    unseen = unseen / len(unseen)
    overlap = _overlap(whole_effective, effective)
    freedom = total_freedom(variances + unseen, effective, overlap)
    missed = overlap**2 * unseen.mean(axis=0) / len(unseen)
    return np.sqrt(whole_variance + missed), freedom


def chance_of_lead(run: Estimate, front: Estimate, metric: str, share: float) -> float | None:
    """Estimate how likely a share is the higher one over all images; None: too few were seen.

    ``share`` (0 to 1) of them were seen. This is Student's t around the difference, with its paired
    variance over the unseen rest of a finite population. A third of an image is allowed for, as in
    the intervals of shares.
    """
    at = run.place(metric)
    pair = _pair(run, front, at)
    if not pair.effective:
        return None
    values = np.array([run.values[at], front.values[at]])
    unseen = (UNSEEN / pair.images) ** 2 * (values**2 + (1 - values) ** 2).sum()
    error = np.sqrt((pair.variance + unseen) * (1 - share))
    freedom = max(pair.effective - 1, 1.0)
    return float(tail(freedom, float(values[0] - values[1]) / error))


BOOTSTRAP_SAMPLES = 500  # Bootstrap samples, for what is no ratio of sums
_SEED = 11


def bootstrap_weights(images: int) -> Array:
    """Return how often each bootstrap sample draws each image: (samples, images), seeded."""
    if images < FEWEST_IMAGES:
        return np.zeros((0, images))
    generator = np.random.default_rng(_SEED)
    return generator.multinomial(images, [1 / images] * images, BOOTSTRAP_SAMPLES).astype(float)


def bootstrap_interval(values: Array) -> Interval | None:
    """Return the 95 % interval of values over :func:`bootstrap_weights`; None without any."""
    if not len(values):
        return None
    ends = ((1 - CONFIDENCE_LEVEL) / 2, (1 + CONFIDENCE_LEVEL) / 2)
    low, high = np.nanquantile(values, ends, method="nearest")
    return Interval(float(low), float(high))


def slice_intervals(
    metrics: Sequence[Metric], clustered: ClusteredSums, kind: str
) -> dict[tuple[str, str], Interval]:
    """Return 95 % intervals by the value of a slice and the name of a metric.

    Where too few images count in a slice there is none.

    Args:
        metrics: ratios of sums; none is a mean over slices.
        clustered: rows that have slices of the kind.
        kind: of the slices.

    Raises:
        ValueError: a share is not 0 to 100 %.
    """
    entries = images_of_slices(kind, clustered)
    values = clustered.slices[kind].values
    places: list[tuple[str, Metric]] = []
    of_metrics = []
    hits_of_metrics = []
    for metric in metrics:
        sums = sums_by_slice(metric, clustered, entries)
        places += [(values[number], metric) for number in sums.number]
        of_metrics.append(sums)
        hits_of_metrics.append(hits_by_slice(metric, clustered, entries, sums))
    if not places:
        return {}
    # As if each metric of each slice were a metric of one dataset
    sampled = _sample(join_slices(of_metrics), join_slices(hits_of_metrics))
    value = sampled.value[0]
    one = np.ones_like(value)
    clipped = replace(
        sampled, value=np.clip(sampled.value, 0.0, 1.0), hits=np.clip(sampled.hits, 0.0, 1.0)
    )
    low, high = mean_ends(clipped, one, one)
    freedom = total_freedom(sampled.variance, sampled.effective, one)
    reach = quantile(freedom) * np.sqrt(sampled.variance[0])
    intervals = {}
    for at, (value_of_slice, metric) in enumerate(places):
        if sampled.images[0, at] < FEWEST_IMAGES:
            continue
        ends = value[at] - reach[at], value[at] + reach[at]
        if metric.share:
            check_share(metric, value[at])
            ends = low[at], high[at]
        intervals[value_of_slice, metric.name] = in_percent(*ends)
    return intervals


def _sample(sums: SliceSums, hits: SliceSums) -> Sampled:
    """Return what is known of slices, and of their hits: arrays (1, slices)."""
    shares = sums.shares()
    squares = sums.of_slices(shares**2)
    effective = effective_number_of(sums.of_slices(shares), squares)[np.newaxis]
    return Sampled(
        value=(sums.ratios() / 100)[np.newaxis],
        variance=sums.of_slices((sums.losses() / 100) ** 2)[np.newaxis],
        hits=(hits.ratios() / 100)[np.newaxis],
        hit_variance=hits.of_slices((hits.losses() / 100) ** 2)[np.newaxis],
        images=sums.of_slices(sums.counts())[np.newaxis],
        effective=effective,
        skewness=divide(sums.of_slices(shares**3), squares**2, 1.0)[np.newaxis],
        # Only means over datasets count queries: alone, an image is a trial where nothing varies.
        queries=effective,
    )
