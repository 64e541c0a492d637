"""What a deployment's answers about the scenes of the probe say of its convention.

The scenes are one object each, in sizes that tell conventions apart, so that forty answers say more
than a run: a rival is excluded sooner, and a drift is a finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .conventions import Convention
from .densities import located, said
from .diagnosis import Demands, diagnose, look
from .distance import iou
from .estimate import Bend, HabitSizes, bend
from .evidence import Evidence, Query, evidence_of
from .frames import Floats
from .verdict import ALIKE, Diagnosis, Verdict

FEWEST = 20
"""Boxes that a finding needs."""

DEMANDS = Demands(excludes=5.0, habits=HabitSizes(pull=0.001, shift=0.01))
"""A rival is excluded at 150 to 1; and on one large shape a model has hardly a habit: what draws
its boxes to the middle of the picture is a fault here."""

DRIFTS = 12.0
"""Nats for a scale or an offset that make it a finding, however small it is."""

RESAMPLED = 100
"""Times that the scenes are drawn anew for the errors of scale and offset."""

_SEED = 0


class Outcome(Enum):
    """What is said of a deployment."""

    CONFIRMED = "confirmed"
    NAMED = "named, nothing was declared"
    OTHER = "another convention"
    MIXED = "two conventions"
    DRIFT = "scaled or moved"
    UNLISTED = "no convention known"
    UNDECIDED = "undecided"
    NOTHING = "nothing to go by"

    @property
    def is_fault(self) -> bool:
        """Whether boxes are not where the declared convention has them."""
        return self in _FAULTS

    @property
    def is_clear(self) -> bool:
        """Whether one convention is named, and fits."""
        return self in _CLEAR


_CLEAR = (Outcome.CONFIRMED, Outcome.NAMED, Outcome.OTHER)
_FAULTS = (Outcome.OTHER, Outcome.MIXED, Outcome.DRIFT, Outcome.UNLISTED)

_OF_VERDICTS = {
    Verdict.FITS: Outcome.CONFIRMED,
    Verdict.OTHER: Outcome.OTHER,
    Verdict.MIXED: Outcome.MIXED,
    Verdict.UNLISTED: Outcome.UNLISTED,
    Verdict.UNDECIDED: Outcome.UNDECIDED,
    Verdict.NONE: Outcome.NOTHING,
    Verdict.TOO_FEW: Outcome.NOTHING,
}


@dataclass(frozen=True)
class Finding:
    """What is known of a deployment.

    ``declared`` is None where nothing was, ``named`` where no convention fits.  ``fit`` are scale
    and offset in the convention ``fitted``: the one that is named, where it explains the answers.
    """

    outcome: Outcome
    declared: Convention | None
    named: Convention | None
    diagnosis: Diagnosis
    fitted: Convention | None = None
    fit: Bend | None = None


def examine(queries: Sequence[Query], declared: Convention | None, asked: Convention) -> Finding:
    """Name the convention of a deployment.

    Args:
        queries: the scenes with what was said of each.
        declared: what the deployment is said to answer in (None: nothing is said).
        asked: in the order that was asked for; the space is what is taken for usual.
    """
    evidence = evidence_of(queries)
    if evidence.boxes < FEWEST:
        few = Diagnosis(Verdict.TOO_FEW, declared or asked, *_counts(evidence))
        return Finding(Outcome.NOTHING, declared, None, few)
    # What nobody declared is first named, then held against its rivals like anything else.
    against = declared or look(evidence, asked, DEMANDS).best
    diagnosis = diagnose(evidence, against, DEMANDS)
    outcome = _outcome(diagnosis)
    found = diagnosis.found
    if found is None or outcome is Outcome.NOTHING:
        return Finding(outcome, declared, None, diagnosis)
    if declared is None and outcome is Outcome.CONFIRMED:
        outcome = Outcome.NAMED
    named = found.best
    if outcome in (Outcome.CONFIRMED, Outcome.NAMED, Outcome.DRIFT):
        # Of those that cannot be told apart it is the declared one.
        named = against if found.distance < ALIKE else found.best
    fitted, fit = found.unlisted.bent, found.unlisted.bend
    if outcome.is_clear:
        fitted, fit = named, bend(evidence, named, sizes=DEMANDS.habits)[1]
    return Finding(outcome, declared, named, diagnosis, fitted, fit)


def _counts(evidence: Evidence) -> tuple[int, int, int]:
    return evidence.boxes, evidence.queries, evidence.answered


def _outcome(diagnosis: Diagnosis) -> Outcome:
    outcome, found = _OF_VERDICTS[diagnosis.verdict], diagnosis.found
    if found is None or outcome not in (Outcome.CONFIRMED, Outcome.UNDECIDED):
        return outcome
    if found.unlisted.gain >= DRIFTS and found.distance < ALIKE:
        return Outcome.DRIFT
    return outcome


def resampled(queries: Sequence[Query], fitted: Convention, fit: Bend) -> Bend:
    """A scale and offset with errors from scenes drawn anew.

    Those that come with it are of a formula, and too small for so few boxes.
    """
    rng = np.random.default_rng(_SEED)
    bent = []
    for _ in range(RESAMPLED):
        drawn = [queries[i] for i in rng.integers(len(queries), size=len(queries))]
        bent.append(bend(evidence_of(drawn), fitted, fit.scale, sizes=DEMANDS.habits)[1])
    scale, offset = [one.scale for one in bent], [one.offset for one in bent]
    return Bend(fit.scale, fit.offset, _spread(scale), _spread(offset))


def _spread(values: Sequence[Floats]) -> Floats:
    """(2,) half the width of the middle 68 %: a draw without a fit is no error of the others."""
    low, high = np.quantile(np.array(values), [0.16, 0.84], axis=0)
    half: Floats = (high - low) / 2
    return half


# --- by size of the picture -----------------------------------------------------------------------


@dataclass(frozen=True)
class OfSize:
    """The answers about pictures of one size.

    ``said`` (2,) are medians of number / true pixel along x and y, as are ``declared`` and
    ``named``, had the truth been said in these conventions; ``iou`` the median when the numbers are
    read as named, or as declared where nothing is.  NaN and None where there is nothing.
    """

    width: int
    height: int
    boxes: int
    said: Floats
    declared: Floats | None
    named: Floats | None
    iou: float


def by_size(queries: Sequence[Query], finding: Finding, asked: Convention) -> list[OfSize]:
    """What was said of pictures of every size, in the order of their first."""
    sizes = dict.fromkeys((query.width, query.height) for query in queries)
    return [
        _of_size(
            [query for query in queries if (query.width, query.height) == size], finding, asked
        )
        for size in sizes
    ]


def _of_size(queries: Sequence[Query], finding: Finding, asked: Convention) -> OfSize:
    read_as = finding.named or finding.declared or asked
    evidence = evidence_of(queries)
    size = evidence.sizes[:, :1]
    truths = evidence.truths[:, evidence.truth]
    numbers = evidence.numbers[:, evidence.box]
    frame = evidence.frame(read_as.space.frame).of(evidence.owner[evidence.box])
    boxes = located(numbers, frame, read_as.order)
    overlaps = iou(boxes.corners, truths)

    def would_say(convention: Convention | None) -> Floats | None:
        if convention is None:
            return None
        own = evidence.frame(convention.space.frame).of(evidence.truth_query)
        return _ratio(
            said(evidence.truths, own, convention.order), evidence.truths, convention, size
        )

    return OfSize(
        width=queries[0].width,
        height=queries[0].height,
        boxes=evidence.boxes,
        said=_ratio(numbers, truths, read_as, size),
        declared=would_say(finding.declared),
        named=would_say(finding.named),
        iou=float(np.median(overlaps)) if overlaps.size else float("nan"),
    )


def _ratio(numbers: Floats, truths: Floats, convention: Convention, size: Floats) -> Floats:
    """(2,) medians of number / true pixel, numbers ordered as a convention has them."""
    corners, pixels = convention.order.corners @ numbers, truths * np.tile(size, (2, 1))
    if not corners.size:
        return np.full(2, np.nan)
    ratio = corners / pixels
    both: Floats = np.median(np.stack([ratio[:2], ratio[2:]], axis=-1).reshape(2, -1), axis=1)
    return both
