"""What is said of a run: the record, and the rules by which its verdict falls."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from .conventions import Convention
from .estimate import Bend

FEWEST_BOXES, FEWEST_ANSWERED = 8, 5
"""Fewer say nothing."""

ALIKE = 0.02
"""Conventions at most so far apart are one; see :func:`.distance.apart`."""

DECIDES, STEADY = 15.0, 2.0
"""Nats for another convention, and how steadily pictures must speak for it."""

SIGNAL, SIGNAL_A_BOX = 25.0, 0.1
"""Nats that boxes which mean objects must explain, in all and a box."""

BENT, BENT_APART = 25.0, 0.05
"""Nats for a frame that no row has, and how far from the rows it must lead."""

BENT_CLEARLY, BENT_FINDS = 100.0, 0.3
"""Nats for such a frame where no row explains anything, and the share of boxes it must explain."""

SMALL_SCALE, SMALL_OFFSET = 0.05, 0.015
"""A drift of a listed frame that is only noted."""

MIXED, MIXED_SHARE, MIXED_APART = 40.0, 0.08, 0.3
"""Nats for a second convention in a part of the queries, their share, and its distance."""


class Verdict(Enum):
    """What is said of a run; the values are the words of case files."""

    TOO_FEW = "too few"
    NONE = "none"
    UNLISTED = "unlisted"
    MIXED = "mixed"
    FITS = "ok"
    OTHER = "other"
    UNDECIDED = "undecided"

    @property
    def alarms(self) -> bool:
        """Whether the declared convention is not the one that fits."""
        return self in (Verdict.OTHER, Verdict.UNLISTED, Verdict.MIXED)


@dataclass(frozen=True)
class Second:
    """A second convention, in a part of the queries.

    ``share`` of the queries, ``gain`` in nats, ``distance`` from the first (:func:`.apart`).
    """

    convention: Convention
    share: float
    gain: float
    distance: float

    @property
    def is_clear(self) -> bool:
        share = self.share >= MIXED_SHARE and self.distance >= MIXED_APART
        return share and self.gain >= MIXED


@dataclass(frozen=True)
class Unlisted:
    """The frame that fits best of those that no row has: a row's, bent.

    ``gain`` in nats over the best row, ``distance`` from it, ``finds`` the share of boxes that
    mean objects in this frame.
    """

    bent: Convention
    bend: Bend
    gain: float
    distance: float
    finds: float

    @property
    def is_small(self) -> bool:
        """A few per cent, or drawn to the middle of the picture as weak models draw."""
        scale, offset = self.bend.scale, np.abs(self.bend.offset)
        either = np.minimum(offset, np.abs(self.bend.at_origin))
        if (np.abs(scale - 1) < SMALL_SCALE).all() and (either < SMALL_OFFSET).all():
            return True
        to_middle = offset < np.maximum(0.01, 0.15 * (1 - scale))
        return bool(((scale > 0.75) & (scale < 1) & to_middle).all())


@dataclass(frozen=True)
class Found:
    """What the estimates say of a run, before a verdict.

    ``llr`` is how many nats ``best`` is ahead of the declared convention, ``z`` and ``z_iou`` how
    steadily over pictures (likelihoods, best IoU of objects), ``distance`` how far the two are
    apart on this data.  ``signal`` are the nats that boxes which mean objects explain.  ``agree``
    queries are better explained by ``best``.  ``alike`` cannot be told from ``best`` on this data;
    ``rivals`` were not excluded.
    """

    best: Convention
    llr: float
    z: float
    z_iou: float
    distance: float
    signal: float
    agree: int
    alike: tuple[str, ...]
    rivals: tuple[str, ...]
    unlisted: Unlisted
    second: Second | None


@dataclass(frozen=True)
class Diagnosis:
    """The verdict on a run and what it rests on (None: there were too few boxes).

    ``answered`` queries have boxes.  ``drift``: the frame is off, by too little to be another.
    """

    verdict: Verdict
    declared: Convention
    boxes: int
    queries: int
    answered: int
    found: Found | None = None
    drift: bool = False


def decide(found: Found, declared: Convention, boxes: int) -> tuple[Verdict, bool]:
    """The first verdict that holds, and whether there is a drift."""
    unlisted, second = found.unlisted, found.second
    silent = found.signal < SIGNAL + SIGNAL_A_BOX * boxes
    if silent and not (unlisted.gain >= BENT_CLEARLY and unlisted.finds >= BENT_FINDS):
        return Verdict.NONE, False
    mixed = second.gain if second is not None else 0.0
    bent = unlisted.gain >= BENT and unlisted.distance >= BENT_APART
    bent = bent and mixed < 0.6 * unlisted.gain
    drift = bent and unlisted.is_small and unlisted.bent.name in (declared.name, found.best.name)
    if bent and not drift:
        return Verdict.UNLISTED, False
    if drift and unlisted.bent.name == declared.name:
        return Verdict.FITS, True
    if second is not None and second.is_clear:
        return Verdict.MIXED, drift
    if found.distance < ALIKE:
        return (Verdict.UNDECIDED if found.rivals else Verdict.FITS), drift
    if found.llr >= DECIDES and min(found.z, found.z_iou) >= STEADY:
        return Verdict.OTHER, drift
    return Verdict.UNDECIDED, drift
