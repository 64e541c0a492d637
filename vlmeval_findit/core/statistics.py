"""Intervals and paired tests over pictures.

Queries of the same picture or video are not independent: a model that sees one of them well is
likely to see the others well.  So everything here counts pictures.  A figure is a ratio of sums
over pictures; to first order every picture moves it by its *influence* (linearisation, as for
clusters in sample surveys), and the variance of the figure is the sum of squared influences.

A mean over datasets adds up the influences that a picture has in each of them: a picture that two
datasets share counts once, with all that it does to both; what datasets do not share is
independent.  The difference between two runs subtracts them: what makes a picture hard for both
does not count as a difference.  Nothing is drawn at random: the same runs give the same intervals.

With few pictures, near 0 or 100 %, influences alone promise too much: seven pictures without a miss
do not show that there is none.  :func:`bounds` says what is done about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from ..benchmarks.findit.metrics import FIGURES, Totals
from ..runs.scored_run import Run

METRICS = FIGURES
"""The figures, in the order of the last axis of arrays."""

LEVEL = 0.95
"""Of intervals."""

ALPHA = 0.05
"""Corrected p-values below it are significant."""

FEWEST = 4
"""Pictures that an interval or a test needs: with fewer it would say next to nothing."""

INTERVALS = f"95 % over pictures; none where fewer than {FEWEST} pictures count"
"""What intervals are, as files say it."""

_UNSEEN = 1 / 3
"""How much of a picture that was not seen is allowed for; held against simulated coverage."""

_SUMS = tuple(field.name for field in fields(Totals))
"""The order of sums in arrays: that of :class:`.Totals`."""

Array = NDArray[np.float64]


class StatisticsError(ValueError):
    """Runs that cannot be compared; the message says what differs."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval, in percent."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure minus another, in percentage points.

    ``p_value`` is two-sided, None where there are too few pictures; ``corrected`` is it after
    :func:`correct`, for the number of comparisons that it stands among.
    """

    value: float
    p_value: float | None
    corrected: float | None

    @property
    def significant(self) -> bool:
        return self.corrected is not None and self.corrected < ALPHA


# --- sums and figures -----------------------------------------------------------------------------


def cluster_sums(run: Run) -> tuple[tuple[str, ...], Array]:
    """The sums of a run by picture.

    Returns:
        The pictures or videos, ``<image folder's key>/<name>``, in alphabetical order, and a
        (pictures, 8) array of their sums in the order of the fields of :class:`.Totals`.
    """
    names = tuple(sorted({answer.source for answer in run.answers}))
    place = {name: at for at, name in enumerate(names)}
    sums = np.zeros((len(names), len(_SUMS)))
    for answer in run.answers:
        t = answer.totals
        sums[place[answer.source]] += [getattr(t, name) for name in _SUMS]
    return tuple(f"{run.variant.row.images}/{name}" for name in names), sums


def _parts(sums: Array) -> tuple[Array, Array]:
    """Numerators and denominators of the figures, (..., 5) each, from (..., 8) sums."""
    of = {name: sums[..., at] for at, name in enumerate(_SUMS)}
    parts = (2 * of["tp"], of["iou_sum"], of["adherent"], of["tp"], of["tp"])
    wholes = (of["n_pred"] + of["n_gt"], of["n_gt"], of["responses"], of["n_pred"], of["n_gt"])
    return np.stack(parts, axis=-1), np.stack(wholes, axis=-1)


def _ratio(part: Array, whole: Array) -> Array:
    """An empty denominator gives 0, as in :mod:`..benchmarks.findit.metrics`."""
    made: Array = np.divide(part, whole, out=np.zeros_like(part), where=whole != 0)
    return made


# --- what figures rest on -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Evidence:
    """Figures, and what each picture does to them.

    ``values`` are (5,) figures as shares of 1, ``influence`` is (pictures, 5): by how much each
    picture moves them.  ``counted`` are (5,) numbers of pictures that a figure rests on; 0 where
    there are fewer than :data:`FEWEST`.
    """

    values: Array
    pictures: tuple[str, ...]
    influence: Array
    counted: Array


def evidence(run: Run) -> Evidence:
    """The figures of a run.

    Raises:
        StatisticsError: a run without rows.
    """
    if not run.answers:
        raise StatisticsError(f"{run.path}: a run without rows has no interval")
    return evidence_of(*cluster_sums(run))


def evidence_of(pictures: tuple[str, ...], sums: Array) -> Evidence:
    """The figures of (pictures, 8) sums, as :func:`cluster_sums` gives them."""
    part, whole = _parts(sums)
    total = whole.sum(axis=0)
    values = _ratio(part.sum(axis=0), total)
    counted = (whole > 0).sum(axis=0).astype(np.float64)
    counted[counted < FEWEST] = 0
    # n / (n - 1): influences are taken around the value that these very pictures gave.
    scale = np.sqrt(_ratio(counted, counted - 1))
    influence = scale * _ratio(part - values * whole, np.broadcast_to(total, whole.shape))
    return Evidence(values, pictures, influence, counted)


def mean(parts: Sequence[Evidence]) -> Evidence:
    """The mean over datasets; pictures that they share are one.

    As many pictures count as in the harmonic mean of the datasets: small ones weigh most, because
    their part of the mean varies most.  Where a dataset has too few, the mean has too.
    """
    pictures, aligned = _aligned(parts)
    counts = np.stack([one.counted for one in parts])
    enough = (counts > 0).all(axis=0)
    inverse = _ratio(np.ones_like(counts), counts).mean(axis=0)
    return Evidence(
        values=np.mean([one.values for one in parts], axis=0),
        pictures=pictures,
        influence=np.mean(aligned, axis=0),
        counted=np.where(enough, _ratio(np.ones_like(inverse), inverse), 0.0),
    )


def _aligned(parts: Sequence[Evidence]) -> tuple[tuple[str, ...], list[Array]]:
    """The pictures of all parts, and the influences of each part by them: 0 for what it lacks."""
    first = parts[0]
    if all(one.pictures == first.pictures for one in parts):
        return first.pictures, [one.influence for one in parts]
    pictures = tuple(sorted({name for one in parts for name in one.pictures}))
    place = {name: at for at, name in enumerate(pictures)}
    made = []
    for one in parts:
        influence = np.zeros((len(pictures), len(METRICS)))
        influence[[place[name] for name in one.pictures]] = one.influence
        made.append(influence)
    return pictures, made


# --- intervals and tests --------------------------------------------------------------------------


def bounds(value: float, variance: float, pictures: float) -> Interval:
    """The 95 % interval of a share of 1 with its variance, over so many pictures.

    Wilson's interval of a proportion, for as many independent trials as give this variance (the
    effective sample size), with Student's t for the number of pictures.  To the variance is added
    what a third of a picture would add that is missed, and one that is found, whole: so few
    pictures cannot show that there are none.  Where nothing varies every picture is one trial.
    """
    if value in (0.0, 1.0):
        trials = pictures
    else:
        spread = value * (1 - value)
        unseen = (_UNSEEN / pictures) ** 2 * (value**2 + (1 - value) ** 2)
        trials = spread / (variance + min(unseen, spread / pictures))
    t2 = stdtrit(pictures - 1, (1 + LEVEL) / 2) ** 2
    middle = value + t2 / (2 * trials)
    reach = np.sqrt(t2 * (value * (1 - value) / trials + t2 / (4 * trials**2)))
    # The last bits: an interval holds its figure.
    low = min(value, (middle - reach) / (1 + t2 / trials))
    high = max(value, (middle + reach) / (1 + t2 / trials))
    return Interval(100 * max(0.0, float(low)), 100 * min(1.0, float(high)))


def figure_intervals(found: Evidence) -> dict[str, Interval | None]:
    """The interval of every figure; None for one that rests on too few pictures."""
    variances = (found.influence**2).sum(axis=0)
    return {
        name: bounds(float(value), float(variance), float(pictures)) if pictures else None
        for name, value, variance, pictures in zip(
            METRICS, found.values, variances, found.counted, strict=True
        )
    }


def intervals(run: Run) -> dict[str, Interval | None]:
    """The interval of every figure of a run."""
    return figure_intervals(evidence(run))


def difference(one: Evidence, other: Evidence, metric: str) -> Difference:
    """One figure minus another: a paired t-test over the pictures.

    The p-value is never below that of as many coins that all fall alike: so few pictures cannot say
    more, however equal they are.
    """
    at = METRICS.index(metric)
    value = float(one.values[at] - other.values[at])
    pictures = float(min(one.counted[at], other.counted[at]))
    if not pictures:
        return Difference(100 * value, None, None)
    _, (ours, theirs) = _aligned([one, other])
    error = float(np.sqrt(((ours[:, at] - theirs[:, at]) ** 2).sum()))
    # Sums in another order differ in their last bits: what is equal must count as equal.
    if abs(value) < 1e-11:
        p_value = 1.0
    else:
        tail = float(stdtr(pictures - 1, -abs(value) / error)) if error else 0.0
        p_value = max(2 * tail, 2.0 ** (1 - pictures))
    return Difference(100 * value, p_value, p_value)


def correct(found: Iterable[Difference]) -> list[Difference]:
    """Differences with their p-values corrected for their number, after Holm.

    The smallest is multiplied by their number, the next by one less, and so on; none becomes
    smaller than one before it.
    """
    made = list(found)
    tested = sorted((one.p_value, at) for at, one in enumerate(made) if one.p_value is not None)
    so_far = 0.0
    for rank, (p_value, at) in enumerate(tested):
        so_far = max(so_far, min(1.0, (len(tested) - rank) * p_value))
        made[at] = replace(made[at], corrected=so_far)
    return made


def compare(run: Run, other: Run) -> dict[str, Difference]:
    """Paired tests of two runs over the same rows: of two models, or of two formats of one.

    Raises:
        StatisticsError: the runs have other rows, or none.
    """
    ours, theirs = evidence(run), evidence(other)
    if run.basis.rows != other.basis.rows or ours.pictures != theirs.pictures:
        raise StatisticsError(
            f"{other.path} has {len(other.basis.rows)} rows of {len(theirs.pictures)} pictures, "
            f"{run.path} has {len(run.basis.rows)} of {len(ours.pictures)}: "
            "only runs over the same rows can be compared"
        )
    return {name: difference(ours, theirs, name) for name in METRICS}
