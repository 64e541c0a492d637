"""Which ranks the tests of a column allow each of its models.

A model is no better than the rank after all that are significantly better, and no worse than the
rank before all that are significantly worse. The tests hold for all pairs of the column together
(:mod:`.multiple_tests`), so with 95 % the true rank of every model lies in its range, whatever
their number. It is the single step of Mogstad, Romano, Shaikh and Wilhelm (2024): Inference for
ranks with applications to mobility across neighbourhoods and academic achievement across countries.

A column of a thousand models has half a million pairs: their variances come from one product of
matrices, and the few that it cannot tell are tested by :func:`.intervals.paired_difference`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..protocol import Array, Better
from .influences import Estimate, Indices, aligned
from .intervals import EQUAL, count_differing, least_p_value, paired_errors, variance_unseen
from .multiple_tests import BestOf
from .share_intervals import quantile, tail

# A variance below this share of those that it is the rest of has lost too many digits
_CANCELLED = 1e-6
_NEAR = 1e-6  # So near to the level, relative to it, a p-value is computed exactly
_AT_ONCE = 1 << 15  # Pairs: a thousand models have half a million, each with a dozen numbers


@dataclass(frozen=True, slots=True)
class RankRange:
    """The ranks that the tests allow a model; the best rank is 1."""

    best: int  # One more than the models that are significantly better
    worst: int  # The number of models without those that are significantly worse
    untested: bool = False  # Whether it has a test against none: its range is then of all ranks


def rank_ranges(
    estimates: Sequence[Estimate | None], metric: str, choice: BestOf
) -> list[RankRange]:
    """Return the range of ranks of every model of a column.

    Args:
        estimates: what each model is tested by; None: not known, so it is tested against none.
        metric: the name of a metric that all of them have a value of.
        choice: of how many models the column is; its tests hold for all their pairs.
    """
    count = len(estimates)
    known = np.flatnonzero([each is not None for each in estimates])
    better = np.zeros(count, dtype=int)
    worse = np.zeros(count, dtype=int)
    tests = np.zeros(count, dtype=int)
    tested = [each for each in estimates if each is not None]
    for pairs in _test_pairs(tested, metric, choice):
        better += np.bincount(known[pairs.worse], minlength=count)
        worse += np.bincount(known[pairs.better], minlength=count)
        tests += np.bincount(known[pairs.tested], minlength=count)
    return [
        RankRange(1 + int(above), count - int(below), untested=count > 1 and not number)
        for above, below, number in zip(better, worse, tests, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The models of pairs by their places."""

    better: Indices  # Of each pair that is told apart, the better model
    worse: Indices
    tested: Indices  # Both models of each pair that has a test


def _test_pairs(estimates: Sequence[Estimate], metric: str, choice: BestOf) -> Iterator[_Pairs]:
    if len(estimates) < 2:
        return
    place = estimates[0].place(metric)
    whole = _Column.of(estimates, place)
    parts = [whole]
    if estimates[0].datasets:
        by_dataset = zip(*(each.datasets for each in estimates), strict=True)
        parts = [_Column.of(of_dataset, place) for of_dataset in by_dataset]
    is_sampled = any(part.changes is not None for e in estimates for part in e.datasets or (e,))
    lower_is_better = estimates[0].metrics[place].better is Better.LOWER
    all_left, all_right = np.triu_indices(len(estimates), 1)
    for first in range(0, len(all_left), _AT_ONCE):
        left = all_left[first : first + _AT_ONCE]
        right = all_right[first : first + _AT_ONCE]
        apart = whole.values[left] - whole.values[right]
        is_tested = np.minimum(whole.effective[left], whole.effective[right]) > 0
        if is_sampled:
            is_told = np.zeros(len(left), dtype=bool)
            is_doubtful = ~is_told
        else:
            samples = [part.of_pairs(left, right) for part in parts]
            pairs = samples[0] if parts[0] is whole else whole.of_pairs(left, right)
            is_told, is_doubtful = _tell_apart(pairs, samples, apart, choice.p_value)
            told = np.flatnonzero(is_told)
            is_told[told] = whole.differ_enough(left[told], right[told], choice.p_value)
        for at in np.flatnonzero(is_doubtful & is_tested):
            test = choice.difference(estimates[left[at]], estimates[right[at]], metric)
            is_told[at] = test.significant
        is_told &= is_tested
        left_is_better = (apart < 0) == lower_is_better
        yield _Pairs(
            better=np.where(left_is_better, left, right)[is_told],
            worse=np.where(left_is_better, right, left)[is_told],
            tested=np.concatenate([left[is_tested], right[is_tested]]),
        )


@dataclass(frozen=True, slots=True)
class _Sample:
    """One metric of pairs of models, over the images of a dataset or of all."""

    variance: Array  # Of the differences
    is_cancelled: NDArray[np.bool_]  # Whether it has lost too many digits
    unseen: Array
    effective: Array  # Number of images, after Kish


@dataclass(frozen=True, slots=True)
class _Column:
    """One metric of models, over the images of a dataset or of all."""

    is_share: bool
    values: Array
    images: Array
    effective: Array
    products: Array  # (models, models): of the influences of two models, added up over images
    parts: Array  # (images, models): what each image adds to the value of each model

    @classmethod
    def of(cls, estimates: Sequence[Estimate], place: int) -> _Column:
        _, influences = aligned(estimates, lambda run: run.influence[:, place])
        influence = np.stack(influences, axis=1)
        _, parts = aligned(estimates, lambda run: run.part[:, place])
        return cls(
            is_share=estimates[0].metrics[place].share,
            values=np.array([each.values[place] for each in estimates]),
            images=np.array([each.counted_images[place] for each in estimates], dtype=float),
            effective=np.array([each.counted[place] for each in estimates]),
            products=influence.T @ influence,
            parts=np.stack(parts, axis=1),
        )

    def differ_enough(self, left: Indices, right: Indices, level: float) -> NDArray[np.bool_]:
        """Return which pairs differ on so many images that they may be told apart at a level."""
        enough = np.ones(len(left), dtype=bool)
        if not len(left):
            return enough
        # An image changes the difference by no more than this, so that most have more than enough.
        most_of_one = float(np.ptp(self.parts, axis=1).max())
        apart = np.abs(self.values[left] - self.values[right])
        at_least = np.floor(apart / most_of_one)
        for at in np.flatnonzero(least_p_value(at_least) >= level):
            differing = count_differing(self.parts[:, left[at]], self.parts[:, right[at]])
            enough[at] = least_p_value(differing) < level
        return enough

    def of_pairs(self, left: Indices, right: Indices) -> _Sample:
        squares = np.diagonal(self.products)
        sums = squares[left] + squares[right]
        variance = np.maximum(sums - 2 * self.products[left, right], 0.0)
        images = np.minimum(self.images[left], self.images[right])
        unseen = np.zeros(len(left))
        if self.is_share:
            seen = np.maximum(images, 1)  # Of none nothing is tested
            unseen = variance_unseen(seen, self.values[left] - self.values[right])
        return _Sample(
            variance=variance,
            is_cancelled=variance <= _CANCELLED * sums,
            unseen=unseen,
            effective=np.minimum(self.effective[left], self.effective[right]),
        )


def _tell_apart(
    whole: _Sample, samples: Sequence[_Sample], apart: Array, level: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which pairs differ at a level, and of which it is in doubt.

    Args:
        whole: the pairs over all images.
        samples: the pairs over the images of each dataset.
        apart: the differences of their values.
        level: the p-value below which a pair differs.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        error, freedom = paired_errors(
            whole_variance=whole.variance,
            whole_effective=whole.effective,
            variances=np.stack([each.variance for each in samples]),
            unseen=np.stack([each.unseen for each in samples]),
            effective=np.stack([each.effective for each in samples]),
        )
        reached = np.abs(apart) / error
    differs = np.abs(apart) >= EQUAL
    is_cancelled = np.any([each.is_cancelled for each in (whole, *samples)], axis=0)
    is_cancelled |= ~np.isfinite(reached)
    # Most pairs are beyond what any of their degrees of freedom asks for, or below it.
    ends = freedom.min(), freedom.max()
    most, least = (float(quantile(each, 1 - level)) for each in ends)
    is_told = reached > most
    is_open = (reached <= most * (1 + _NEAR)) & (reached >= least * (1 - _NEAR))
    open_ = np.flatnonzero(is_open)
    by_chance = 2 * tail(freedom[open_], -reached[open_])
    is_told[open_] = by_chance < level
    is_near = np.zeros(len(apart), dtype=bool)
    is_near[open_] = np.abs(by_chance / level - 1) < _NEAR
    return differs & is_told, differs & (is_near | is_cancelled)
