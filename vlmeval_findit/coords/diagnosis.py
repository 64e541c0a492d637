"""The verdict on the convention that a run declares.

Conventions are compared on the same replies, by sums over images of nats and of best IoUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from ..core import agreeing, counted
from .conventions import Convention, Distortion, Floats, conventions
from .free_resize import ResizeFit, better_resize
from .likelihood import (
    SHIFT,
    ConventionFit,
    best_distortion,
    convention_distance,
    fit_convention,
    fit_distortion,
    matmul,
    screen_conventions,
)
from .run_arrays import Indices, RunArrays

FEWEST_BOXES = 8  # Or points
FEWEST_ANSWERED = 5
FEWEST_PLACES = 5.0  # Any of hundreds of conventions maps the objects of one place to some boxes

# Distance of conventions: 1 − mean IoU of a run's objects, written in the first and read in the
# second. Scores hardly differ between conventions that are closer than this.
ALIKE_DISTANCE = 0.02

# Nats for the declared space, and as many for the declared order: odds of 20 to 1
DECLARED = 3.0

# The thresholds below were set on 900 simulated runs (benchmarks/test_coords_runs.py, SHAPED)
# and 150 of blind models; in brackets the most that a run without the fault reached. Nats are sums
# over the run, standard errors are over images.

# Nats for another convention (choosing among 554 costs 6)
DECIDES = 15.0
# Standard errors for another convention, in nats and in IoU
STEADY = 2.0

# Nats that boxes on objects must explain in all, and per box (13 of 20 boxes, 61 of 541)
SIGNAL = 12.0
SIGNAL_A_BOX = 0.12

# For a frame that no row has: nats (32, at 1.9 standard errors), its distance from the rows, and
# standard errors of IoU; more than above, because four numbers are fitted
DISTORTED = 25.0
DISTORTED_APART = 0.05
DISTORTED_STEADY = 3.0
# The same where rows for many scales lie near each other: a frame of any size lies near a row
# (16.5 nats at 2.4).
DISTORTED_BESIDE = 12.0
DISTORTED_BESIDE_STEADY = 2.0
# With so many nats fewer standard errors do: if the scale changes within a run, a bend raises the
# IoU of some images and lowers that of others.
DISTORTED_CLEARLY = 60.0
DISTORTED_SEEN = 1.0

# For a second convention in part of the queries: nats (15), their share, and its distance; near
# conventions fit errors of a few per cent, too.
MIXED = 25.0
MIXED_SHARE = 0.05
MIXED_APART = 0.4

_READ = 16  # Conventions that are read closely
_SCREENED = 600  # Boxes that choose them
_MOST_NATS = 60.0  # Of a query
_SHARES = (0.05, 0.1, 0.2, 0.35, 0.5)  # Of the queries


class CoordinateVerdict(Enum):
    """The verdict on a run; values as in case files."""

    TOO_FEW = "too few"
    NONE = "none"
    UNLISTED = "unlisted"
    MIXED = "mixed"
    FITS = "ok"
    OTHER = "other"
    UNDECIDED = "undecided"

    @property
    def alarms(self) -> bool:
        return self in (
            CoordinateVerdict.OTHER,
            CoordinateVerdict.UNLISTED,
            CoordinateVerdict.MIXED,
        )


class SecondConvention(NamedTuple):
    """A second convention, in part of the queries."""

    convention: Convention
    share: float  # of the queries
    gain: float  # nats
    distance: float  # from the first

    @property
    def is_clear(self) -> bool:
        is_apart = self.share >= MIXED_SHARE and self.distance >= MIXED_APART
        return is_apart and self.gain >= MIXED


class UnlistedConvention(NamedTuple):
    """The best frame that no row has: that of a row, distorted."""

    convention: Convention
    distortion: Distortion
    gain: float  # nats over the best row, both with the model's habits
    distance: float  # from the best row
    z_iou: float  # standard errors over images by which its IoU exceeds the best row's
    signal: float  # nats that boxes on objects explain


@dataclass(frozen=True)
class RunFit:
    """What fits of a run show, before a verdict."""

    best: Convention
    llr: float  # nats by which ``best`` leads the declared convention
    z: float  # this lead in standard errors over images
    z_iou: float  # the same of best IoUs
    distance: float  # between the two, on this data
    signal: float  # nats that boxes on objects explain
    agree: int  # queries that ``best`` explains better
    lookalikes: tuple[str, ...]  # conventions that cannot be told from ``best`` on this data
    rivals: tuple[str, ...]  # other conventions that are not excluded
    unlisted: UnlistedConvention
    second: SecondConvention


@dataclass(frozen=True)
class Diagnosis:
    """The verdict on a run and its reasons."""

    verdict: CoordinateVerdict
    declared: Convention
    boxes: int
    queries: int
    answered: int  # queries with boxes
    places: float  # different places that say as much as all boxes
    fit: RunFit | None = None  # None: too few boxes
    drift: bool = False  # the frame is slightly off
    resize: ResizeFit | None = None  # Explains the run better than rows and distortions


class Thresholds(NamedTuple):
    """Settings that depend on the data; the defaults suit any run."""

    boxes: int = FEWEST_BOXES
    places: float = FEWEST_PLACES
    excludes: float = DECIDES  # nats by which an excluded rival is behind
    shift: float = SHIFT  # standard deviation of shifted boxes, in shares of their side


RUN_THRESHOLDS = Thresholds()


def is_enough(arrays: RunArrays, thresholds: Thresholds = RUN_THRESHOLDS) -> bool:
    """Return whether there are enough boxes or points, about enough places, to name a convention.

    Points have no other thresholds.
    """
    has_boxes = arrays.boxes >= thresholds.boxes and arrays.answered >= FEWEST_ANSWERED
    return has_boxes and arrays.places >= thresholds.places


_ONE = {"boxes": "box", "points": "point"}


def why_too_few(
    boxes: int, answered: int, places: float, noun: str = "boxes", fewest: int = FEWEST_BOXES
) -> str:
    """Say what a run without a fit lacks: boxes (or points), or places that differ.

    >>> why_too_few(60, 60, 1.0)
    'the objects of 60 boxes lie at 1 place, or the boxes are equal: too few places that differ'
    """
    if boxes < fewest or answered < FEWEST_ANSWERED:
        few = agreeing(boxes, f"1 {_ONE[noun]} is", f"{boxes} {noun} are")
        return f"{few} too few (at least {fewest}, in {FEWEST_ANSWERED} answers)"
    here = counted(max(1, round(places)), "place")
    return (
        f"the objects of {boxes} {noun} lie at {here}, or the {noun} are equal: too few "
        "places that differ"
    )


def diagnose(
    arrays: RunArrays, declared: Convention, thresholds: Thresholds = RUN_THRESHOLDS
) -> Diagnosis:
    """Find which convention a run follows, compared with the declared convention."""
    counts = arrays.boxes, arrays.queries, arrays.answered, arrays.places
    if not is_enough(arrays, thresholds):
        return Diagnosis(CoordinateVerdict.TOO_FEW, declared, *counts)
    fit = _fit_run(arrays, declared, thresholds)
    verdict, drift = decide_verdict(fit, declared, arrays.places)
    resize = _resize(arrays, declared, fit, verdict)
    if resize is not None:
        return Diagnosis(CoordinateVerdict.UNLISTED, declared, *counts, fit, resize=resize)
    return Diagnosis(verdict, declared, *counts, fit, drift)


def _resize(
    arrays: RunArrays, declared: Convention, fit: RunFit, verdict: CoordinateVerdict
) -> ResizeFit | None:
    """Return a resize that explains an alarm better: one fault, where several seem to fit."""
    if not verdict.alarms:
        return None
    distorted = fit_convention(arrays, fit.unlisted.convention, fit.unlisted.distortion)
    listed = [fit_convention(arrays, fit.best), distorted]
    second = fit.second.convention if verdict is CoordinateVerdict.MIXED else None
    return better_resize(arrays, [declared.order, fit.best.order], listed, second)


def _fit_run(arrays: RunArrays, declared: Convention, thresholds: Thresholds) -> RunFit:
    known = conventions(declared)
    few = arrays.some(_SCREENED)
    screened = screen_conventions(few, known)
    prior = np.array([preference(each, declared) - each.cost for each in known])
    likely = np.argsort(-(screened[0].sum(1) + prior), kind="stable")[:_READ].tolist()
    tried = {each.name: each for each in [*(known[i] for i in likely), declared]}
    fits = {name: fit_convention(arrays, each) for name, each in tried.items()}

    def worth(fit: ConventionFit) -> float:
        return fit.nats + preference(fit.convention, declared)

    best = max(fits.values(), key=worth)
    declared_fit = fits[declared.name]
    far = {name: convention_distance(arrays, best.convention, each) for name, each in tried.items()}
    behind = {name: worth(best) - worth(each) for name, each in fits.items()}
    z, z_iou = steadiness(arrays, best, declared_fit)
    distorted = best_distortion(arrays, best.convention, declared, thresholds.shift)
    # For a fair comparison the best row gets the model's habits, too.
    habits = fit_distortion(arrays, best.convention, shift=thresholds.shift, free=False)
    plain = fit_convention(arrays, best.convention, habits)
    others = [name for name in tried if far[name] >= ALIKE_DISTANCE]
    return RunFit(
        best=best.convention,
        llr=behind[declared.name],
        z=z,
        z_iou=z_iou,
        distance=far[declared.name],
        signal=best.signal,
        agree=int((arrays.by_query(best.logs - declared_fit.logs) > 0).sum()),
        lookalikes=tuple(name for name in tried if name not in others),
        rivals=tuple(name for name in others if behind[name] < thresholds.excludes),
        unlisted=UnlistedConvention(
            distorted.convention,
            distorted.distortion,
            gain=worth(distorted) - worth(plain),
            distance=convention_distance(
                arrays, distorted.convention, best.convention, distorted.distortion
            ),
            z_iou=steadiness(arrays, distorted, best)[1],
            signal=distorted.signal,
        ),
        second=_second(few, known, best, distorted, screened),
    )


def preference(convention: Convention, declared: Convention) -> float:
    """Return the nats that a convention gets for what it shares with the declared convention."""
    nats = 0.0
    if convention.space.name == declared.space.name:
        nats += DECLARED
    if convention.order.name == declared.order.name:
        nats += DECLARED
    return nats


def steadiness(arrays: RunArrays, left: ConventionFit, right: ConventionFit) -> tuple[float, float]:
    """Return by how many standard errors images prefer the left fit, in nats and in best IoUs."""
    image_of_box = arrays.images[arrays.box_query]
    image_of_truth = arrays.images[arrays.truth_query]
    # An image counts for at most 10 nats.
    nats = z_over_images(left.logs - right.logs, image_of_box, most=10.0)
    ious = z_over_images(left.ious - right.ious, image_of_truth, most=np.inf)
    return nats, ious


def z_over_images(values: Floats, image: Indices, most: float) -> float:
    """Return a sum in standard errors over images, each of which counts for at most ``most``."""
    if not values.size:
        return 0.0
    sums = np.bincount(np.unique(image, return_inverse=True)[1], values).clip(-most, most)
    spread = np.sqrt(((sums - sums.mean()) ** 2).sum())
    return float(np.clip(sums.sum() / max(spread, 1e-9), -1000, 1000))


def _second(
    few: RunArrays,
    known: Sequence[Convention],
    best: ConventionFit,
    distorted: ConventionFit,
    screened: tuple[Floats, Floats],
) -> SecondConvention:
    """Find a convention for the queries that neither ``best`` nor a bend explains.

    Only boxes on objects count, because any numbers are boxes somewhere in many conventions. Boxes
    with a side rounded to 0 do not count.
    """
    ends = matmul(best.convention.order.corners, few.numbers)
    flat = (ends[:2] == ends[2:]).any(0)
    plain = fit_convention(few, best.convention)
    moved = fit_convention(few, distorted.convention, distorted.distortion)
    explained = np.maximum(plain.logs, moved.logs)

    def gains(logs: Floats, nothing: Floats) -> Floats:
        of_boxes = np.where(flat, 0.0, logs - np.maximum(explained, nothing))
        return np.array([few.by_query(row) for row in of_boxes]).clip(-_MOST_NATS, _MOST_NATS)

    promise = gains(*screened).clip(0, 30).sum(1)
    likely = [known[i] for i in np.argsort(-promise, kind="stable")[:_READ]]
    # Boxes in the second convention are assumed to be as accurate as in the first.
    ratio = np.exp(gains(*screen_conventions(few, likely, best.width)))
    costs = np.array([each.cost for each in likely])
    tried = []
    for share in _SHARES:
        nats = np.log(1 - share + share * ratio).sum(1) - costs
        i = int(nats.argmax())
        in_second = share * ratio[i] / (1 - share + share * ratio[i])
        tried.append((float(nats[i]), i, float(in_second.mean())))
    gain, i, part = max(tried)
    distance = convention_distance(few, best.convention, likely[i])
    return SecondConvention(likely[i], part, gain, distance)


def decide_verdict(
    fit: RunFit, declared: Convention, places: float
) -> tuple[CoordinateVerdict, bool]:
    """Return the first verdict that holds, and whether there is a drift.

    ``places`` are those of :attr:`.RunArrays.places`.
    """
    distorted = fit.unlisted
    second = fit.second
    needed = SIGNAL + SIGNAL_A_BOX * places
    clearly = distorted.gain >= DISTORTED_CLEARLY and distorted.z_iou >= DISTORTED_SEEN
    follows = fit.signal >= needed or (clearly and distorted.signal >= needed)
    if not follows and not second.is_clear:
        return CoordinateVerdict.NONE, False
    least = DISTORTED
    steady_from = DISTORTED_STEADY
    if fit.best.space.one_of_many:
        least = DISTORTED_BESIDE
        steady_from = DISTORTED_BESIDE_STEADY
    off = distorted.gain >= least and distorted.distance >= DISTORTED_APART
    known = distorted.convention.name in (declared.name, fit.best.name)
    drift = off and known and distorted.distortion.is_small
    steady = clearly or distorted.z_iou >= steady_from
    if off and not drift and steady and second.gain < 0.6 * distorted.gain:
        return CoordinateVerdict.UNLISTED, False
    if second.is_clear:
        return CoordinateVerdict.MIXED, drift
    if drift and distorted.convention.name == declared.name:
        return CoordinateVerdict.FITS, True
    if fit.distance < ALIKE_DISTANCE:
        doubt = fit.rivals or (off and not drift)
        return (CoordinateVerdict.UNDECIDED if doubt else CoordinateVerdict.FITS), drift
    sure = fit.llr >= DECIDES and min(fit.z, fit.z_iou) >= STEADY
    return (CoordinateVerdict.OTHER if sure else CoordinateVerdict.UNDECIDED), drift
