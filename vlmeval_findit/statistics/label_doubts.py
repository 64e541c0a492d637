"""Which labels are probably wrong, by what several models answered.

Every single correction of a label is a *claim*: another object is meant (or two are), a box is
drawn badly, one is missing or too many, one has the wrong class. The odds of a claim are::

    odds = prior / (1 - prior) · [Π_k P(answer of k | corrected) / P(answer of k | label)]^γ
    γ = 1 / (1 + (K - 1) ρ)

γ discounts K models whose errors are correlated (ρ). How well models find
objects, how often they add others, and how often labels are wrong is estimated from the same
answers, in a few passes.

Most claims rest on what models *answer*. That a box is too many rests on what they leave out, and
an object that is hard for all leaves the same trace: from answers alone nobody can tell how many
real objects no model finds. So these claims have an order of their own (``on_nothing``), beside
that of labels that models contradict.

Models that share a mistake look like a wrong label: what comes out are orders in which people
should look at rows. No score may be weighted by them, and no row dropped. What reviewers then
decide calibrates probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from ..protocol import Array
from .influences import Indices

Flags = NDArray[np.bool_]  # Array of booleans of any shape

CORRELATION = 0.3  # Of the errors of two models of different families
FAMILY_CORRELATION = 0.6  # Of the errors of two models of one family, or two samples of one model

_PASSES = 10
_SHARE = 0.02  # Share of each fault that is expected beforehand …
_SHARE_ROWS = 100  # … and how many rows this belief weighs
_DETECTED = (
    8,
    10,
)  # Objects detected, of objects shown: what is believed of every model beforehand
_NAMED = (9, 10)  # Classes named as in the label, of objects detected
_EXTRA = {False: (0.5, 10), True: (0.5, 1)}  # Other boxes, of queries; True: where some were missed
_SHARED = (5, 12)  # Other boxes that two models have in common, of pairs of models that have some
_ROUGH = 0.2  # Mean distance of the edges of a badly drawn box, in sides of the box
_NARROW = (0.3, 10)  # Sum of the distances of boxes drawn well, of boxes: believed beforehand
_STRAY = 0.05  # Chance that a model draws a box badly
_TELLING = 3  # Models that say by what two of them box alike how often wrong boxes are alike
_NEVER = -50.0  # Log odds of what cannot be


class LabelFault(Enum):
    """What may be wrong with a label."""

    BOX = "box"  # An object's box is drawn badly
    WRONG_OBJECT = "wrong object"  # Of a query with one object: another object is meant
    AMBIGUOUS = "ambiguous"  # Of a query with one object: another object fits as well
    MISSING = "missing"  # An object has no box
    SUPERFLUOUS = "superfluous"  # A box is on nothing that is asked for
    WRONG_CLASS = "wrong class"

    @property
    def of_other_object(self) -> bool:
        """Return whether claims of this fault are about objects that the label lacks."""
        return self in (LabelFault.WRONG_OBJECT, LabelFault.AMBIGUOUS, LabelFault.MISSING)


LIKELY = 0.5  # Doubt above which a label is to be looked at
FAULTS = tuple(LabelFault)  # In the order of the columns of ``by_fault``
UNNAMED = -1  # The class of an object that a model did not find
UNKNOWN_CLASS = -2  # A class that no label has


@dataclass(frozen=True, slots=True)
class LabelledObjects:
    """The g objects of the labels of all queries, and what K models answered about each."""

    row: Indices  # (g,) place of its query
    boxes: Array  # (g, 4) x1, y1, x2, y2 in pixels
    classes: Indices  # (g,) from 0
    answered: Array  # (g, K, 4) box of each model; NaN: it did not find the object
    named: Indices  # (g, K) class that each model named; UNNAMED: it did not find the object

    @property
    def detected(self) -> Flags:
        """Return whether each model detected each object, (g, K)."""
        detected: Flags = self.named != UNNAMED
        return detected

    @property
    def misnamed(self) -> Flags:
        """Return whether a model detected an object but named another class, (g, K)."""
        misnamed: Flags = self.detected & (self.named != self.classes[:, None])
        return misnamed


@dataclass(frozen=True, slots=True)
class OtherObjects:
    """The c objects that models answered and labels lack: boxes that overlap are one object."""

    row: Indices  # (c,) place of its query
    boxes: Array  # (c, 4) median of the models' boxes
    classes: Indices  # (c,) class that most of them named
    seen: Flags  # (c, K) whether each model has it


@dataclass(frozen=True, slots=True)
class Votes:
    """What K models answered about the labels of n queries.

    A call that failed and a reply that cannot be read say nothing (``spoke``); a reply without
    boxes says that there is no object.
    """

    spoke: Flags  # (n, K)
    labelled: LabelledObjects
    others: OtherObjects
    single: bool  # Every query asks for exactly one object

    @property
    def models(self) -> int:
        return int(self.spoke.shape[1])

    @property
    def faults(self) -> tuple[LabelFault, ...]:
        """Return the faults that labels of these queries may have."""
        if self.single:
            return LabelFault.WRONG_OBJECT, LabelFault.AMBIGUOUS, LabelFault.BOX
        return (
            LabelFault.MISSING,
            LabelFault.SUPERFLUOUS,
            LabelFault.WRONG_CLASS,
            LabelFault.BOX,
        )


@dataclass(frozen=True, slots=True)
class Claims:
    """All claims of one fault."""

    row: Indices  # (m,) place of the query of each
    odds: Array  # (m,)


@dataclass(frozen=True, slots=True)
class LabelDoubts:
    """How doubtful n labels are."""

    wrong: Array  # (n,) that any claim is true, were no object harder than others for all models
    contradicted: Array  # (n,) that any claim is true which rests on what models answer
    on_nothing: Array  # (n,) that the most doubtful box is too many: its order is what it says
    by_fault: Array  # (n, 6) parts of ``wrong``, in the order of FAULTS
    claims: Mapping[LabelFault, Claims]  # About labelled or other objects, one each
    middle: Array  # (g, 4) median of the models' boxes of each labelled object
    rival: Indices  # (g,) class that most models named instead; UNKNOWN_CLASS: none
    recall: Array  # (K,) share of the objects that each model finds
    shares: Mapping[LabelFault, float]  # Of rows with each fault

    @property
    def order(self) -> Indices:
        """Return the rows in the order in which people should look at them.

        First those that models contradict, then the rest, by this and by a box on nothing.
        """
        is_contradicted = self.contradicted > LIKELY
        either = 1 - (1 - self.contradicted) * (1 - self.on_nothing)
        doubt = np.where(is_contradicted, self.contradicted, either)
        return np.lexsort([-doubt, ~is_contradicted])

    def likeliest_fault(self, place: int) -> LabelFault:
        """Return the likeliest fault of a row: what models answer, where they contradict it."""
        odds = self.by_fault[place].copy()
        superfluous = FAULTS.index(LabelFault.SUPERFLUOUS)
        if self.contradicted[place] > LIKELY:
            odds[superfluous] = 0
        elif self.on_nothing[place] > LIKELY:
            return LabelFault.SUPERFLUOUS
        return FAULTS[int(odds.argmax())]


def label_doubts(votes: Votes, correlation: float = CORRELATION) -> LabelDoubts:
    """Estimate how doubtful each label is.

    The answers of a single model are judged by what is believed of models beforehand: it cannot
    tell its errors from those of the labels. The result is an order then, not probabilities.

    Three models put the object of the last of 20 queries elsewhere than its label:

    >>> label = np.tile([10.0, 10.0, 50.0, 50.0], (20, 1))
    >>> answered = np.repeat(label[:, None], 3, axis=1)
    >>> named = np.zeros((20, 3), int)
    >>> answered[19], named[19] = np.nan, UNNAMED
    >>> elsewhere = np.array([[60.0, 60.0, 90.0, 90.0]])
    >>> labelled = LabelledObjects(np.arange(20), label, np.zeros(20, int), answered, named)
    >>> others = OtherObjects(np.array([19]), elsewhere, np.zeros(1, int), np.ones((1, 3), bool))
    >>> doubts = label_doubts(Votes(np.ones((20, 3), bool), labelled, others, single=True))
    >>> int(doubts.wrong.argmax()), FAULTS[doubts.by_fault[19].argmax()].value
    (19, 'wrong object')
    >>> bool(doubts.wrong[19] > 0.8 and doubts.wrong[:19].max() < 0.05)
    True
    """
    evidence = _Evidence(votes, correlation)
    shares = dict.fromkeys(FAULTS, _SHARE)
    right = np.ones(len(votes.spoke))
    # What one model says cannot be compared with anything: nothing is estimated from it.
    for _ in range(_PASSES if votes.models > 1 else 1):
        habits = _habits(evidence, right)
        claims = _claims(evidence, habits, right, shares)
        right = _probability_right(votes, claims)
        by_fault = _divide(1 - right, claims)
        if votes.models > 1:
            shares = _estimate_shares(votes, by_fault)
    return LabelDoubts(
        wrong=1 - right,
        contradicted=1 - _probability_right(votes, _contradictions(claims)),
        on_nothing=_on_nothing(votes, claims),
        by_fault=by_fault,
        claims=claims,
        middle=evidence.middle,
        rival=evidence.rival,
        recall=habits.recall,
        shares=shares,
    )


# --- what the answers show, whatever is right -----------------------------------------------------


class _Evidence:
    """Counts over the votes that no pass changes."""

    def __init__(self, votes: Votes, correlation: float) -> None:
        labelled = votes.labelled
        others = votes.others
        self.votes = votes
        self.correlation = correlation
        self.power = 1 / (1 + np.maximum(votes.spoke.sum(1) - 1, 0) * correlation)  # (n,) γ
        self.detected = labelled.detected  # (g, K)
        self.misnamed = labelled.misnamed  # (g, K)
        self.rival = _most_named(labelled.named, self.misnamed)  # (g,)
        self.extra = np.zeros(votes.spoke.shape)  # (n, K) other objects of each model
        np.add.at(self.extra, others.row, others.seen)
        self.missed = np.zeros(votes.spoke.shape, bool)  # (n, K) some labelled object
        np.logical_or.at(self.missed, labelled.row, ~self.detected)
        self.hit = np.zeros(votes.spoke.shape, bool)  # (n, K) some labelled object
        np.logical_or.at(self.hit, labelled.row, self.detected)
        self.witnesses = others.seen.sum(1)  # (c,) models that have each other object
        counts = self.detected.sum(1)
        heard = votes.spoke[labelled.row]
        # (g, K) objects that are there for all that is known: of sets, what another model found.
        # So boxes on nothing lower no model's recall, however many there are.
        self.is_there = heard & (votes.single | (counts[:, None] > self.detected))
        self.middle = _median_boxes(labelled)  # (g, 4)
        sides = np.maximum(labelled.boxes[:, 2:] - labelled.boxes[:, :2], 1)
        self.sides = np.tile(sides, 2)  # (g, 4)
        size = np.sqrt(sides.prod(1))
        self.size = size / np.median(size) if len(size) else size  # (g,) of the middle one
        # (g,) mean distance of the edges of the median box from the label's, in sides
        self.offset = (np.abs(self.middle - labelled.boxes) / self.sides).mean(1)
        # (g,) mean distance of the models' edges from the median box's, in sides
        apart = np.abs(labelled.answered - self.middle[:, None]) / self.sides[:, None]
        total = np.where(self.detected[:, :, None], apart, 0).sum((1, 2))
        self.spread = total / np.maximum(4 * counts, 1)

    def add_up(self, log_ratios: Array, rows: Indices) -> Array:
        """Add up the models' log likelihood ratios (m, K), discounted; ``rows`` are (m,)."""
        voiced: Array = self.power[rows] * (log_ratios * self.votes.spoke[rows]).sum(1)
        return voiced


def _most_named(named: Indices, where: Flags) -> Indices:
    """Return the known class that most models named, (g,), among those of ``where`` (g, K)."""
    most = np.full(len(named), UNKNOWN_CLASS)
    known = where & (named >= 0)
    for place in np.flatnonzero(known.any(1)).tolist():
        most[place] = np.bincount(named[place, known[place]]).argmax()
    return most


def _median_boxes(labelled: LabelledObjects) -> Array:
    """Return the models' median box of each labelled object; its label's if none detected it."""
    middle = labelled.boxes.astype(float)
    seen = labelled.detected.any(1)
    if seen.any():
        middle[seen] = np.nanmedian(labelled.answered[seen], axis=1)
    return middle


# --- what models usually do -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Habits:
    """How K models answer queries whose label is right."""

    recall: Array  # (K,) share of the objects that they find
    extra: Mapping[bool, Array]  # (K,) chance of one more box; True: where they missed some object
    named: Array  # (K,) share of the objects detected whose class they name as the label does
    shared: float  # Chance that two wrong boxes of two models are on one object

    @property
    def detected(self) -> Array:
        return np.log(self.recall)

    @property
    def not_detected(self) -> Array:
        return np.log1p(-self.recall)


def _habits(evidence: _Evidence, right: Array) -> _Habits:
    """Estimate habits; ``right`` (n,) are the probabilities that the labels are right."""
    votes = evidence.votes
    of_object = right[votes.labelled.row, None] * evidence.is_there
    detected = of_object * evidence.detected
    extra = {}
    for missed, prior in _EXTRA.items():
        weight = np.where(evidence.missed == missed, right[:, None], 0.0)
        mean = _share(weight * evidence.extra, weight * votes.spoke, prior)
        extra[missed] = mean / (1 + mean)
    with_extra = (evidence.extra > 0).sum(1)
    pairs = right * (with_extra**2 - with_extra)
    common = right[votes.others.row] * evidence.witnesses * (evidence.witnesses - 1)
    if votes.models < _TELLING:
        pairs = np.zeros(0)
        common = np.zeros(0)
    return _Habits(
        recall=_share(detected, of_object, _DETECTED),
        extra=extra,
        named=_share(detected * ~evidence.misnamed, detected, _NAMED),
        shared=float(np.clip(_share(common, pairs, _SHARED), 0.05, 0.95)),
    )


def _share(part: Array, whole: Array, prior: tuple[float, float]) -> Array:
    """Return the share of a part in a whole, each over rows, with counts believed beforehand."""
    share: Array = (part.sum(0) + prior[0]) / (whole.sum(0) + prior[1])
    return share


# --- claims ---------------------------------------------------------------------------------------


def _claims(
    evidence: _Evidence, habits: _Habits, right: Array, shares: Mapping[LabelFault, float]
) -> dict[LabelFault, Claims]:
    """Return the claims of each fault that these labels may have."""
    votes = evidence.votes
    log_ratios = _of_one_object if votes.single else _of_sets
    by_fault = log_ratios(evidence, habits)
    by_fault[LabelFault.BOX] = _of_edges(evidence, right[votes.labelled.row])
    claims = {}
    for fault, log_ratio in by_fault.items():
        prior = np.log(shares[fault] / (1 - shares[fault]))
        odds = np.exp(np.clip(prior + log_ratio, _NEVER, -_NEVER))
        row = votes.others.row if fault.of_other_object else votes.labelled.row
        claims[fault] = Claims(row, odds)
    return claims


def _of_one_object(evidence: _Evidence, habits: _Habits) -> dict[LabelFault, Array]:
    """Return log likelihood ratios, (c,) each, that another object is meant, alone or as well."""
    others = evidence.votes.others
    seen = others.seen
    hit = evidence.hit[others.row]
    # Whoever has the other object detected what is meant, where they would have missed it and added
    # a box elsewhere.
    turn = habits.detected - habits.not_detected - np.log(habits.extra[True])
    turn = turn + np.log((1 - habits.extra[False]) / (1 - habits.extra[True]))
    # Whoever is at the label is wrong in turn, at an object that others err on as well.
    back = np.log(habits.shared) - turn
    alone = np.where(seen, turn, 0) + np.where(hit, back, 0)
    # Each of two right answers is given by one model in two.
    as_well = np.where(seen, turn, 0) - np.log(2) * (seen | hit)
    crowd = _surprise_of_crowd(evidence, habits)
    return {
        LabelFault.WRONG_OBJECT: evidence.add_up(alone, others.row) - crowd,
        LabelFault.AMBIGUOUS: evidence.add_up(as_well, others.row) - crowd,
    }


def _of_sets(evidence: _Evidence, habits: _Habits) -> dict[LabelFault, Array]:
    """Return log likelihood ratios that an object is missing, too many or misnamed."""
    labelled = evidence.votes.labelled
    others = evidence.votes.others
    # (n, K) one more box, of a model that missed some object or none
    extra = np.log(np.where(evidence.missed, habits.extra[True], habits.extra[False]))
    missing = np.where(others.seen, habits.detected - extra[others.row], habits.not_detected)
    # Whoever detected a superfluous object has a wrong box where the annotator has one, too.
    common = extra[labelled.row] + np.log(habits.shared) - habits.detected
    superfluous = np.where(evidence.detected, common, -habits.not_detected)
    # Small objects are missed more often: by how much, in most pictures, is about their side.
    small = np.log(evidence.size)
    turn = np.log(habits.named / (1 - habits.named) / habits.shared)
    for_rival = labelled.named == evidence.rival[:, None]
    as_label = evidence.detected & ~evidence.misnamed
    renamed = evidence.add_up(turn * (for_rival * 1.0 - as_label), labelled.row)
    crowd = _surprise_of_crowd(evidence, habits)
    return {
        LabelFault.MISSING: evidence.add_up(missing, others.row) - crowd,
        LabelFault.SUPERFLUOUS: evidence.add_up(superfluous, labelled.row) + small,
        LabelFault.WRONG_CLASS: np.where(evidence.rival >= 0, renamed, _NEVER),
    }


def _surprise_of_crowd(evidence: _Evidence, habits: _Habits) -> Array:
    """Return the log probability, (c,), that wrong boxes of so many models are on one object."""
    power = evidence.power[evidence.votes.others.row]
    surprise: Array = power * np.log(habits.shared) * (evidence.witnesses - 1)
    return surprise


def _of_edges(evidence: _Evidence, right: Array) -> Array:
    """Return log likelihood ratios, (g,), that the box of an object is drawn badly.

    The edges of a label lie around those of the models' median box by Laplace's distribution,
    widely if it is drawn badly. Where it is drawn well, the models may all have strayed. ``right``
    (g,) are the probabilities that the label of each object is right.
    """
    log_ratios = np.full(len(evidence.offset), _NEVER)
    finders = evidence.detected.sum(1)
    for count in range(1, finders.max(initial=0) + 1):
        some = finders == count
        believed, weight = _NARROW
        offset = evidence.offset[some]
        narrow = ((right[some] * offset).sum() + believed) / (right[some].sum() + weight)
        narrow = np.maximum(narrow, evidence.spread[some])
        stray = _STRAY ** (1 + (count - 1) * (1 - evidence.correlation))
        # Of four edges: how much better the narrow distribution fits than the wide one
        fits = 4 * (np.log(_ROUGH / narrow) + offset * (1 / _ROUGH - 1 / narrow))
        log_ratios[some] = -np.logaddexp(np.log1p(-stray) + fits, np.log(stray))
    return log_ratios


# --- from claims to labels ------------------------------------------------------------------------


def _probability_right(votes: Votes, claims: Mapping[LabelFault, Claims]) -> Array:
    """Return the probability, (n,), that no claim about a label is true.

    Claims about one object exclude each other: their odds add up. Those about different objects
    are independent: their probabilities multiply.
    """
    rows = len(votes.spoke)
    log_right = np.zeros(rows)
    if votes.single:
        object_odds = np.zeros(rows)
        for fault in (LabelFault.WRONG_OBJECT, LabelFault.AMBIGUOUS):
            object_odds += _sum_of_odds(claims[fault], rows)
        box_odds = _sum_of_odds(claims[LabelFault.BOX], rows)
        log_right -= np.log1p(object_odds) + np.log1p(box_odds)
    else:
        of_labelled = np.zeros(len(votes.labelled.row))
        for fault in (LabelFault.BOX, LabelFault.SUPERFLUOUS, LabelFault.WRONG_CLASS):
            of_labelled += claims[fault].odds
        np.subtract.at(log_right, votes.labelled.row, np.log1p(of_labelled))
        missing = claims[LabelFault.MISSING]
        np.subtract.at(log_right, missing.row, np.log1p(missing.odds))
    right: Array = np.exp(log_right)
    return right


def _contradictions(claims: Mapping[LabelFault, Claims]) -> dict[LabelFault, Claims]:
    """Return the claims that rest on what models answer: no box is too many."""
    kept = dict(claims)
    if (superfluous := kept.get(LabelFault.SUPERFLUOUS)) is not None:
        kept[LabelFault.SUPERFLUOUS] = replace(superfluous, odds=0 * superfluous.odds)
    return kept


def _on_nothing(votes: Votes, claims: Mapping[LabelFault, Claims]) -> Array:
    """Return how doubtful the most doubtful box of each label is, (n,), as one on nothing."""
    doubtful = np.zeros(len(votes.spoke))
    if (superfluous := claims.get(LabelFault.SUPERFLUOUS)) is not None:
        np.maximum.at(doubtful, superfluous.row, superfluous.odds / (1 + superfluous.odds))
    return doubtful


def _sum_of_odds(claims: Claims, rows: int) -> Array:
    """Add up the odds of claims by their rows, (n,)."""
    return np.bincount(claims.row, claims.odds, rows).astype(float)


def _divide(wrong: Array, claims: Mapping[LabelFault, Claims]) -> Array:
    """Divide probabilities (n,) among faults in proportion to the odds of their claims, (n, 6)."""
    rows = len(wrong)
    odds = np.zeros((rows, len(FAULTS)))
    for fault, of_fault in claims.items():
        odds[:, FAULTS.index(fault)] = _sum_of_odds(of_fault, rows)
    divided: Array = wrong[:, None] * odds / (odds.sum(1, keepdims=True) + 1e-12)
    return divided


def _estimate_shares(votes: Votes, by_fault: Array) -> dict[LabelFault, float]:
    """Estimate how often labels have each fault.

    An object is often as hard to find as if two were right, or none: were the shares of ambiguous
    and superfluous labels estimated, they would grow from pass to pass.
    """
    shares = dict.fromkeys(FAULTS, _SHARE)
    for place, fault in enumerate(FAULTS):
        if fault in (LabelFault.AMBIGUOUS, LabelFault.SUPERFLUOUS):
            continue
        cases = len(votes.spoke) if fault is LabelFault.MISSING else len(votes.labelled.row)
        expected = by_fault[:, place].sum() + _SHARE * _SHARE_ROWS
        shares[fault] = float(expected / (cases + _SHARE_ROWS))
    return shares


_SURE = 1e-4  # Probabilities beyond this, and beyond 1 minus this, count as this
# Shift and slope without reviews, and how firmly that is believed (an inverse variance)
_BELIEVED = np.array([0.0, 1.0])
_FIRMNESS = np.array([0.25, 4.0])
_STEPS = 20
_LOWEST = np.array([-5.0, 0.2])
_HIGHEST = np.array([5.0, 2.0])


@dataclass(frozen=True, slots=True)
class DoubtCalibration:
    """Log odds of calibrated probabilities are ``shift + slope`` times the log odds before."""

    shift: float
    slope: float

    def apply(self, p: Array) -> Array:
        """Calibrate probabilities; their order stays."""
        calibrated: Array = 1 / (1 + np.exp(-(self.shift + self.slope * _log_odds(p))))
        return calibrated


def calibrate_doubts(p: Array, wrong: NDArray[np.bool_]) -> DoubtCalibration:
    """Fit a calibration to reviewed rows, by their probabilities and whether they were wrong.

    Doubtful rows may be reviewed more often than others: of rows with equal probabilities, those
    that were reviewed are like those that were not.

    Of labels called wrong with 0.9 only half were:

    >>> p = np.array([0.9] * 30 + [0.05] * 20)
    >>> wrong = np.array([True] * 15 + [False] * 35)
    >>> calibrate_doubts(p, wrong).apply(np.array([0.9, 0.05])).round(2).tolist()
    [0.51, 0.01]
    """
    known = np.column_stack([np.ones(len(p)), _log_odds(p)])
    weights = _BELIEVED.copy()
    for _ in range(_STEPS):
        expected = 1 / (1 + np.exp(-known @ weights))
        gradient = known.T @ (wrong - expected) - (weights - _BELIEVED) * _FIRMNESS
        spread = expected * (1 - expected)
        curvature = known.T @ (known * spread[:, None]) + np.diag(_FIRMNESS)
        # Half a step of Newton's method does not overshoot.
        weights = weights + 0.5 * np.linalg.solve(curvature, gradient)
        weights = np.clip(weights, _LOWEST, _HIGHEST)
    return DoubtCalibration(float(weights[0]), float(weights[1]))


def _log_odds(p: Array) -> Array:
    bounded = np.clip(p, _SURE, 1 - _SURE)
    odds: Array = np.log(bounded / (1 - bounded))
    return odds
