"""From the evidence of a run to a verdict on the convention that it declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .conventions import SPACES, Convention, conventions
from .densities import START, WIDTHS, densities, log_likelihood, seen_in, seen_under
from .distance import apart, frames_apart, steadiness
from .estimate import (
    OF_ANY_MODEL,
    Bend,
    Fitted,
    HabitSizes,
    bend,
    best_scale,
    fit,
    screen,
    shares_of,
)
from .evidence import Evidence
from .frames import Floats
from .verdict import (
    ALIKE,
    DECIDES,
    FEWEST_ANSWERED,
    FEWEST_BOXES,
    Diagnosis,
    Found,
    Second,
    Unlisted,
    Verdict,
    decide,
)

DECLARED = 3.0
"""Nats for the declared space, and as many for the declared order."""

_FITTED = 16
_SECONDS_TRIED = 25
_LOOKED_AT = 200
_BEGIN = ("grid1000", "pixels", "longer1000", "letterbox1000")
_BONUS_BEST, _BONUS_DECLARED = 10.0, 20.0
"""Where several frames bend to the same, it is the declared one, or the best, that is named."""


class Demands(NamedTuple):
    """What is demanded of a diagnosis.

    ``excludes``: nats by which a rival must be behind to be excluded; ``habits``: how large habits
    may be.
    """

    excludes: float = DECIDES
    habits: HabitSizes = OF_ANY_MODEL


OF_RUNS = Demands()


def diagnose(evidence: Evidence, declared: Convention, demands: Demands = OF_RUNS) -> Diagnosis:
    """Which convention a run follows, against the one that it declares.

    Args:
        evidence: the run.
        declared: its convention as the score has it.
        demands: those of runs, which may be of any model and on any pictures, are cautious.
    """
    boxes, answered = evidence.boxes, evidence.answered
    if boxes < FEWEST_BOXES or answered < FEWEST_ANSWERED:
        return Diagnosis(Verdict.TOO_FEW, declared, boxes, evidence.queries, answered)
    found = look(evidence, declared, demands)
    verdict, drift = decide(found, declared, boxes)
    return Diagnosis(verdict, declared, boxes, evidence.queries, answered, found, drift)


def look(evidence: Evidence, declared: Convention, demands: Demands = OF_RUNS) -> Found:
    """What the estimates say of a run that has enough boxes."""
    known = conventions(declared)
    screened = screen(evidence, known)
    fits = _fitted(evidence, known, screened, declared, demands.habits)
    best = fits[0]
    own = next(one for one in fits if one.convention.name == declared.name)
    leads = [_total(best, declared) - _total(one, declared) for one in fits]
    far = [apart(evidence, best.convention, one.convention) for one in fits]
    place = fits.index(own)
    z, z_iou = steadiness(evidence, best, own)
    names = [one.convention.name for one in fits]
    return Found(
        best=best.convention,
        llr=leads[place],
        z=z,
        z_iou=z_iou,
        distance=far[place],
        signal=_signal(evidence, best),
        agree=int((evidence.by_query(best.likelihoods - own.likelihoods) > 0).sum()),
        alike=tuple(name for name, off in zip(names, far, strict=True) if off < ALIKE),
        rivals=tuple(
            name
            for name, off, lead in zip(names, far, leads, strict=True)
            if off >= ALIKE and lead < demands.excludes
        ),
        unlisted=_unlisted(evidence, best, own, declared, demands.habits),
        second=_second(evidence, known, screened, best),
    )


def _preference(one: Convention, declared: Convention) -> float:
    """Nats for what is declared."""
    space = one.space.name == declared.space.name
    return DECLARED * (space + (one.order.name == declared.order.name))


def _total(one: Fitted, declared: Convention) -> float:
    return one.total + _preference(one.convention, declared)


def _fitted(
    evidence: Evidence,
    known: Sequence[Convention],
    screened: Floats,
    declared: Convention,
    habits: HabitSizes,
) -> list[Fitted]:
    """The conventions that stand out, and the declared one, fitted; the best first."""
    priors = np.array([_preference(one, declared) - one.cost for one in known])
    tried = np.argsort(-(screened.sum(1) + priors), kind="stable")[:_FITTED].tolist()
    own = [one.name for one in known].index(declared.name)
    fits = [fit(evidence, known[i], habits) for i in dict.fromkeys([*tried, own])]
    return sorted(fits, key=lambda one: -_total(one, declared))


def _signal(evidence: Evidence, best: Fitted) -> float:
    """Nats that boxes which mean objects explain beyond boxes anywhere."""
    found = densities(seen_in(evidence, best.frame, best.convention.order), best.habits)
    found.kinds[: len(WIDTHS)] = 0
    without = log_likelihood(found, shares_of(found, START))
    return float(best.likelihoods.sum() - without.sum())


def _without_objects(evidence: Evidence, convention: Convention) -> Floats:
    """(n,) logarithms of densities under a convention, if no box meant an object."""
    found = densities(seen_under(evidence, convention))
    found.kinds[: len(WIDTHS)] = 0
    return log_likelihood(found, START)


def _unlisted(
    evidence: Evidence, best: Fitted, own: Fitted, declared: Convention, habits: HabitSizes
) -> Unlisted:
    """The bend that fits best; where several do, that of the declared convention."""
    order = best.convention.order
    begin = [best.convention, own.convention, *(Convention(SPACES[n], order) for n in _BEGIN)]
    different = {one.name: one for one in begin}.values()
    few = evidence.some(_LOOKED_AT)
    starts = [(one, np.ones(2)) for one in (best.convention, own.convention)]
    starts += [(one, best_scale(few, one)) for one in different]
    bonus = {best.convention.name: _BONUS_BEST, own.convention.name: _BONUS_DECLARED}

    def worth(made: tuple[Fitted, Bend]) -> float:
        return made[0].total + bonus.get(made[0].convention.name, 0.0)

    bent, how = max((bend(evidence, one, scale, sizes=habits) for one, scale in starts), key=worth)
    return Unlisted(
        bent=bent.convention,
        bend=how,
        gain=_total(bent, declared) - _total(best, declared),
        distance=frames_apart(evidence, bent.frame, bent.convention, best.frame, best.convention),
        finds=bent.finds,
    )


def _second(
    evidence: Evidence, known: Sequence[Convention], screened: Floats, best: Fitted
) -> Second | None:
    """The convention that explains a part of the queries, where ``best`` does not.

    Only boxes that mean objects speak for it: numbers that ``best`` can make nothing of, such as
    sides that were rounded away, are boxes somewhere in the picture in many conventions.
    """
    base = evidence.by_query(best.likelihoods)
    gains = np.stack([evidence.by_query(row) for row in screened]) - base
    gains = gains.clip(-60, 60)
    found: Second | None = None
    for i in np.argsort(-gains.clip(0, 30).sum(1), kind="stable")[:_SECONDS_TRIED]:
        nothing = np.maximum(best.likelihoods, _without_objects(evidence, known[i]))
        ratio, share = np.exp(evidence.by_query(screened[i] - nothing).clip(-60, 60)), 0.1
        for _ in range(60):
            share = float((share * ratio / (1 - share + share * ratio)).mean())
        gain = float(np.log(1 - share + share * ratio).sum()) - known[i].cost
        if share >= 0.05 and gain > (found.gain if found is not None else 0.0):
            found = Second(known[i], share, gain, apart(evidence, best.convention, known[i]))
    return found
