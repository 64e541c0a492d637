"""What the evidence says of the convention that a run declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .conventions import SPACES, Convention, conventions
from .densities import START, WIDTHS, densities, located, log_likelihood, said, seen_in
from .estimate import Bend, Fitted, bend, fit, same_order, scales_worth_a_try, screen, shares_of
from .evidence import Evidence
from .frames import Floats, Frame

FEWEST_BOXES, FEWEST_ANSWERED = 8, 5
"""Fewer say nothing."""

ALIKE = 0.02
"""Conventions at most so far apart are one; see :func:`apart`."""

DECIDES, Z, Z_IOU = 15.0, 2.5, 2.0
"""Nats for another convention, and how steadily pictures must speak for it."""

SIGNAL, SIGNAL_A_BOX = 25.0, 0.1
"""Nats that boxes which mean objects must explain, in all and a box."""

BENT, BENT_APART, BENT_CLEARLY = 25.0, 0.05, 100.0
"""Nats for a frame that no row has, and how far from the declared one it must lead."""

SMALL_SCALE, SMALL_OFFSET = 0.05, 0.015
"""A drift of the declared frame that is only noted."""

MIXED, MIXED_SHARE, MIXED_APART = 40.0, 0.08, 0.3
"""Nats for a second convention in a part of the queries, their share, and its distance."""

DECLARED = 3.0
"""Nats for the declared space, and as many for the declared order."""

_FITTED = 16
_MIXED_TRIED = 25
_CLIP = 10.0
_BENT_BEGIN = ("grid1000", "pixels", "longer1000", "letterbox1000")


class Verdict(Enum):
    """What is said of a run; the first that holds."""

    TOO_FEW = "too few"
    NONE = "none"
    UNLISTED = "unlisted"
    MIXED = "mixed"
    OK = "ok"
    OTHER = "other"
    UNDECIDED = "undecided"

    @property
    def alarms(self) -> bool:
        """Whether the declared convention is not the one that fits."""
        return self in (Verdict.OTHER, Verdict.UNLISTED, Verdict.MIXED)


@dataclass(frozen=True)
class Second:
    """A second convention, in a part of the queries: its share of them, and nats for it."""

    convention: Convention
    share: float
    gain: float
    distance: float


@dataclass(frozen=True)
class Diagnosis:
    """What the evidence says.

    ``llr`` is how many nats ``best`` is ahead of the declared convention, ``z`` and ``z_iou`` how
    steadily over pictures (likelihoods, best IoU of objects).  ``distance`` is how far the two are
    apart on this data (:func:`apart`).  ``agree`` of ``answered`` queries are better explained by
    ``best``.  ``alike`` cannot be told from ``best`` on this data, ``rivals`` were not excluded.
    ``bend`` is the scale and offset that fit best, measured in ``bent_from``; ``bend_gain`` nats
    speak for it, and it leads ``bend_distance`` away from the declared frame.  ``drift``: it is too
    small to be another convention.
    """

    verdict: Verdict
    declared: Convention
    boxes: int
    queries: int
    answered: int
    best: Convention | None = None
    llr: float = 0.0
    z: float = 0.0
    z_iou: float = 0.0
    distance: float = 0.0
    signal: float = 0.0
    agree: int = 0
    alike: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()
    bend: Bend | None = None
    bent_from: Convention | None = None
    bend_gain: float = 0.0
    bend_distance: float = 0.0
    drift: bool = False
    second: Second | None = None


def diagnose(
    evidence: Evidence, declared: Convention, candidates: Sequence[Convention] | None = None
) -> Diagnosis:
    """Which convention a run follows, against the one that it declares.

    Args:
        evidence: the run.
        declared: its convention as the score has it.
        candidates: the conventions that it may follow (default: all, and the declared one).
    """
    known = list(conventions(declared) if candidates is None else candidates)
    few = Diagnosis(
        Verdict.TOO_FEW, declared, evidence.boxes, evidence.queries, evidence.answered
    )
    if few.boxes < FEWEST_BOXES or few.answered < FEWEST_ANSWERED:
        return few
    screened = screen(evidence, known)
    fits = _fitted(evidence, known, screened, declared)
    best = fits[0]
    own = next(one for one in fits if one.convention.name == declared.name)
    distances = [apart(evidence, best.convention, one.convention) for one in fits]
    z, z_iou = steadiness(evidence, best, own)
    bent, how = _bent(evidence, best, own)
    distance = distances[fits.index(own)]
    found = Diagnosis(
        verdict=Verdict.UNDECIDED,
        declared=declared,
        boxes=few.boxes,
        queries=few.queries,
        answered=few.answered,
        best=best.convention,
        llr=_total(best, declared) - _total(own, declared),
        z=z,
        z_iou=z_iou,
        distance=distance,
        signal=_signal(evidence, best),
        agree=int((evidence.by_query(best.likelihoods - own.likelihoods) > 0).sum()),
        alike=tuple(f.convention.name for f, d in zip(fits, distances, strict=True) if d < ALIKE),
        rivals=tuple(
            one.convention.name
            for one, off in zip(fits, distances, strict=True)
            if off >= ALIKE and _total(one, declared) > _total(best, declared) - DECIDES
        ),
        bend=how,
        bent_from=bent.convention,
        bend_gain=_total(bent, declared) - _total(best, declared),
        bend_distance=_bent_apart(evidence, bent, best),
        drift=False,
        second=_second(evidence, known, screened, best),
    )
    return _decided(found, bent, bool(fits))


def _decided(found: Diagnosis, bent: Fitted, _: bool) -> Diagnosis:
    from dataclasses import replace

    def says(verdict: Verdict, drift: bool = False) -> Diagnosis:
        return replace(found, verdict=verdict, drift=drift)

    weak = found.signal < SIGNAL + SIGNAL_A_BOX * found.boxes
    if weak and not (found.bend_gain >= BENT_CLEARLY and bent.finds >= 0.3):
        return says(Verdict.NONE)
    assert found.bend is not None
    mixed = found.second.gain if found.second is not None else 0.0
    is_bent = (
        found.bend_gain >= BENT
        and found.bend_distance >= BENT_APART
        and mixed < 0.6 * found.bend_gain
    )
    near = bent.convention.name in (found.declared.name, getattr(found.best, "name", ""))
    drifts = is_bent and near and _small(found.bend)
    if is_bent and not drifts:
        return says(Verdict.UNLISTED)
    if drifts and bent.convention.name == found.declared.name:
        return says(Verdict.OK, drift=True)
    if (
        found.second is not None
        and mixed >= MIXED
        and found.second.share >= MIXED_SHARE
        and found.second.distance >= MIXED_APART
    ):
        return says(Verdict.MIXED, drifts)
    if found.distance < ALIKE:
        return says(Verdict.UNDECIDED if found.rivals else Verdict.OK, drifts)
    if found.llr >= DECIDES and found.z >= Z and found.z_iou >= Z_IOU:
        return says(Verdict.OTHER, drifts)
    return says(Verdict.UNDECIDED, drifts)


def _small(how: Bend) -> bool:
    """Whether a bend is a drift: a few per cent, or drawn to the middle as weak models draw."""
    offset = np.minimum(np.abs(how.offset), np.abs(how.at_origin))
    if (np.abs(how.scale - 1) < SMALL_SCALE).all() and (offset < SMALL_OFFSET).all():
        return True
    to_middle = np.abs(how.offset) < np.maximum(0.01, 0.15 * (1 - how.scale))
    return bool((how.scale < 1).all() and (how.scale > 0.75).all() and to_middle.all())


def _total(one: Fitted, declared: Convention) -> float:
    """Nats for a convention, with those for what is declared."""
    space = one.convention.space.name == declared.space.name
    order = one.convention.order.name == declared.order.name
    return one.total + DECLARED * space + DECLARED * order


def _fitted(
    evidence: Evidence, known: Sequence[Convention], screened: Floats, declared: Convention
) -> list[Fitted]:
    """The conventions that stand out, and the declared one, fitted; the best first."""
    bonus = np.array(
        [
            DECLARED * (one.space.name == declared.space.name)
            + DECLARED * (one.order.name == declared.order.name)
            - one.cost
            for one in known
        ]
    )
    order = np.argsort(-(screened.sum(1) + bonus), kind="stable")[:_FITTED].tolist()
    own = [one.name for one in known].index(declared.name)
    tried = order if own in order else [*order, own]
    fits = [fit(evidence, known[i]) for i in tried]
    return sorted(fits, key=lambda one: -_total(one, declared))


def _signal(evidence: Evidence, best: Fitted) -> float:
    """Nats that boxes which mean objects explain beyond boxes anywhere."""
    seen = seen_in(evidence, best.frame, best.convention.order)
    found = densities(seen, best.habits)
    found.kinds[: len(WIDTHS)] = 0
    without = log_likelihood(found, shares_of(found, START))
    return float(best.likelihoods.sum() - without.sum())


def steadiness(evidence: Evidence, best: Fitted, other: Fitted) -> tuple[float, float]:
    """How steadily pictures speak for one fit against another: by likelihood, and by best IoU."""
    by_picture = evidence.by_picture(best.likelihoods - other.likelihoods).clip(-_CLIP, _CLIP)
    gain = _best_iou(evidence, best) - _best_iou(evidence, other)
    picture = evidence.pictures[evidence.truth_query]
    gains = np.bincount(picture, gain)[np.unique(picture)] if len(picture) else np.zeros(1)
    return _z(by_picture), _z(gains)


def _z(values: Floats) -> float:
    return float(values.sum() / (np.sqrt(((values - values.mean()) ** 2).sum()) + 1e-9))


def _best_iou(evidence: Evidence, one: Fitted) -> Floats:
    """(t,) the best IoU of any box of the query with each object."""
    boxes = located(evidence.numbers, one.frame.of(evidence.owner), one.convention.order)
    overlaps = iou(boxes.corners[:, evidence.box], evidence.truths[:, evidence.truth])
    best = np.zeros(len(evidence.truth_query))
    np.maximum.at(best, evidence.truth, overlaps)
    return best


def iou(left: Floats, right: Floats) -> Floats:
    """(n,) IoU of boxes (4, n) with boxes (4, n), pair by pair; 0 where one has no sides."""
    low, high = np.maximum(left[:2], right[:2]), np.minimum(left[2:], right[2:])
    common = (high - low).clip(0).prod(0)
    areas = [(box[2:] - box[:2]).clip(0).prod(0) for box in (left, right)]
    union = areas[0] + areas[1] - common
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)


def apart(evidence: Evidence, one: Convention, other: Convention) -> float:
    """1 − mean IoU of the run's true boxes, said under one convention and read under another."""
    frame = evidence.frame(one.space.frame)
    return _read_apart(evidence, frame, one, evidence.frame(other.space.frame), other)


def _bent_apart(evidence: Evidence, bent: Fitted, best: Fitted) -> float:
    return _read_apart(evidence, bent.frame, bent.convention, best.frame, best.convention)


def _read_apart(
    evidence: Evidence, frame: Frame, one: Convention, read_in: Frame, other: Convention
) -> float:
    if not evidence.truths.size:
        return 0.0
    where = evidence.truth_query
    numbers = said(evidence.truths, frame.of(where), one.order)
    boxes = located(numbers, read_in.of(where), other.order)
    return float(1 - iou(boxes.corners, evidence.truths).mean())


def _bent(evidence: Evidence, best: Fitted, own: Fitted) -> tuple[Fitted, Bend]:
    """The bend that fits best; where several do, that of the declared convention."""
    begin = [best.convention, own.convention]
    begin += [same_order(SPACES[name], best.convention) for name in _BENT_BEGIN]
    different = list({one.name: one for one in begin}.values())
    starts = [(best.convention, np.ones(2)), *scales_worth_a_try(evidence, different)]
    made = [bend(evidence, convention, scale) for convention, scale in starts]
    bonus = {best.convention.name: 10.0, own.convention.name: 20.0}
    return max(made, key=lambda m: m[0].total + bonus.get(m[0].convention.name, 0.0))


def _second(
    evidence: Evidence, known: Sequence[Convention], screened: Floats, best: Fitted
) -> Second | None:
    """The convention that explains a part of the queries, where ``best`` does not."""
    base = evidence.by_query(best.likelihoods)
    by_query = np.stack([evidence.by_query(row) for row in screened])
    gains = (by_query - base).clip(-60, 60)
    found: Second | None = None
    for i in np.argsort(-gains.clip(0, 30).sum(1), kind="stable")[:_MIXED_TRIED]:
        ratio, share = np.exp(gains[i]), 0.1
        for _ in range(60):
            share = float((share * ratio / (1 - share + share * ratio)).mean())
        gain = float(np.log(1 - share + share * ratio).sum()) - known[i].cost
        if share >= 0.05 and gain > (found.gain if found else 0.0):
            found = Second(known[i], share, gain, apart(evidence, best.convention, known[i]))
    return found
