"""How well a convention explains a run, given that models have habits; and what bends it to fit.

Everything is expectation and maximisation: boxes are shared out among the kinds of
:mod:`.densities`, then habits (or a bend of the frame) are fitted to the boxes that mean objects,
by weighted least squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .conventions import Convention
from .densities import (
    NO_HABITS,
    START,
    WIDTHS,
    Densities,
    Habits,
    Seen,
    densities,
    log_likelihood,
    seen_in,
    seen_under,
    times,
    variances,
)
from .evidence import Evidence
from .frames import Floats, Frame

PSEUDO_BOXES = 2.0
"""How many boxes the shares of the kinds before anything is seen are worth."""


class HabitSizes(NamedTuple):
    """How large :class:`.Habits` are, as standard deviations of their priors."""

    pull: float = 0.07
    shift: float = 0.04
    size: float = 0.07


OF_ANY_MODEL = HabitSizes()

_SCALES = np.exp(np.linspace(-2.2, 2.2, 41))
_ROUNDS = 12
_SETTLED = 0.05


@dataclass(frozen=True)
class Fitted:
    """A convention with what a run makes of it.

    ``frame`` (by query) is the convention's own, or a bent one.  ``shares`` (7,) of the kinds of
    boxes, ``likelihoods`` (n,) logarithms by box, ``cost`` in nats of the convention and habits.
    """

    convention: Convention
    frame: Frame
    habits: Habits
    shares: Floats
    likelihoods: Floats
    cost: float

    @property
    def total(self) -> float:
        """What speaks for it, in nats."""
        return float(self.likelihoods.sum()) - self.cost

    @property
    def finds(self) -> float:
        """The share of boxes that mean objects."""
        return float(self.shares[: len(WIDTHS)].sum())


def screen(evidence: Evidence, candidates: Sequence[Convention]) -> Floats:
    """(conventions, n) logarithms of densities before anything is fitted."""
    return np.stack(
        [log_likelihood(densities(seen_under(evidence, one)), START) for one in candidates]
    )


def shares_of(found: Densities, shares: Floats = START, steps: int = 25) -> Floats:
    """The shares of the kinds of boxes, by expectation and maximisation."""
    for _ in range(steps):
        mixed = times(shares, found.kinds) + 1e-300
        shares = shares * times(found.kinds, 1 / mixed) + PSEUDO_BOXES * START
        shares = shares / shares.sum()
    return shares


def fit(evidence: Evidence, convention: Convention, sizes: HabitSizes = OF_ANY_MODEL) -> Fitted:
    """A convention, with the habits and shares that explain the run best under it."""
    frame = evidence.frame(convention.space.frame)
    seen = seen_under(evidence, convention)
    habits, shares, before = NO_HABITS, START, -np.inf
    for round_ in range(_ROUNDS):
        found = densities(seen, habits)
        shares = shares_of(found, shares, steps=5 if round_ == 0 else 3)
        value = log_likelihood(found, shares).sum() - habits_cost(habits, sizes)
        if value - before < _SETTLED:
            break
        before = value
        habits = _habits(seen, _precision(seen, found, shares), sizes)
    found = densities(seen, habits)
    shares = shares_of(found, shares)
    logs = log_likelihood(found, shares)
    cost = convention.cost + habits_cost(habits, sizes)
    return Fitted(convention, frame, habits, shares, logs, cost)


def habits_cost(habits: Habits, sizes: HabitSizes) -> float:
    """What habits cost, in nats: large ones are rare."""
    scaled = ((habits.pull - 1) / sizes.pull, habits.shift / sizes.shift, habits.size / sizes.size)
    return float(sum(0.5 * (value**2).sum() for value in scaled))


def _precision(seen: Seen, found: Densities, shares: Floats) -> Floats:
    """(2, p): how much each pair says of errors along x and y."""
    mixed = times(shares, found.kinds) + 1e-300
    belongs = found.pairs * shares[: len(WIDTHS), None] / mixed[seen.evidence.box]
    precision: Floats = (belongs[:, None] / variances(seen)).sum(0)
    return precision


def _habits(seen: Seen, precision: Floats, sizes: HabitSizes) -> Habits:
    pull, shift, size = np.ones(2), np.zeros(2), np.zeros(2)
    off = seen.boxes.centre[:, seen.evidence.box] - seen.truth_centre
    for axis in (0, 1):
        rows = np.stack([seen.truth_centre[axis] - 0.5, seen.truth_side[axis]])
        weight = 2 * precision[axis] / seen.truth_side[axis] ** 2
        prior = np.diag([sizes.pull**-2, sizes.shift**-2])
        more, shift[axis] = np.linalg.solve(
            _normal(rows, weight) + prior, times(rows, weight * off[axis])
        )
        pull[axis] += more
        half = precision[axis] / 2
        size[axis] = times(half, seen.log_size[axis]) / (half.sum() + sizes.size**-2)
    return Habits(pull.clip(0.6, 1.2), shift.clip(-0.2, 0.2), size.clip(-0.3, 0.3))


def _normal(rows: Floats, weight: Floats) -> Floats:
    """(k, k) of a linear model with ``rows`` (k, p), whose equations weigh ``weight`` (p,)."""
    return np.array([times(rows, weight * row) for row in rows])


# --- a frame that no row has ----------------------------------------------------------------------


@dataclass(frozen=True)
class Bend:
    """A point c of the picture is said where ½ + offset + scale (c − ½) belongs; all (2,) of x, y.

    ``scale_error`` and ``offset_error`` are standard errors, by picture.  Sides scale likewise.
    """

    scale: Floats
    offset: Floats
    scale_error: Floats
    offset_error: Floats

    @property
    def at_origin(self) -> Floats:
        """(2,): where the corner (0, 0) of the picture is said, in shares of the picture."""
        corner: Floats = 0.5 + self.offset - self.scale / 2
        return corner

    @property
    def at_origin_error(self) -> Floats:
        """(2,): its standard error; offset in the middle and scale are nearly independent."""
        error: Floats = np.hypot(self.offset_error, self.scale_error / 2)
        return error


def bend(
    evidence: Evidence,
    convention: Convention,
    scale: Floats | None = None,
    rounds: int = 25,
    sizes: HabitSizes = OF_ANY_MODEL,
) -> tuple[Fitted, Bend]:
    """The scale and offset by axis that bend a convention to fit a run best.

    Positions and sides must scale alike: a model that draws its boxes towards the middle does not
    shrink them, a wrong frame does.

    Args:
        evidence: the run.
        convention: where to begin.
        scale: (2,) about the corner (0, 0), to begin with (default: none).
        rounds: at most so many.
        sizes: of habits; there is no pull among them.
    """
    scale = np.ones(2) if scale is None else scale
    offset = (scale - 1) / 2
    own = evidence.frame(convention.space.frame)
    habits, shares, before = NO_HABITS, START, -np.inf
    error = np.full((2, 2), np.nan)
    for round_ in range(rounds):
        seen = seen_in(evidence, own.bent(scale, offset), convention.order)
        found = densities(seen, habits)
        shares = shares_of(found, shares, steps=5 if round_ == 0 else 3)
        value = log_likelihood(found, shares).sum() - habits_cost(habits, sizes)
        if value - before < _SETTLED:
            break
        before = value
        more, shift, size, error = _bend_once(seen, _precision(seen, found, shares), sizes)
        offset = offset + scale * more[:, 0]
        error = error * scale[:, None]
        scale = (scale * more[:, 1]).clip(0.02, 50)
        habits = Habits(np.ones(2), shift, size)
    frame = own.bent(scale, offset)
    found = densities(seen_in(evidence, frame, convention.order), habits)
    shares = shares_of(found, shares)
    logs = log_likelihood(found, shares)
    cost = convention.cost + habits_cost(habits, sizes)
    made = Fitted(convention, frame, habits, shares, logs, cost)
    return made, Bend(scale, offset, error[:, 1], error[:, 0])


def _bend_once(
    seen: Seen, precision: Floats, sizes: HabitSizes
) -> tuple[Floats, Floats, Floats, Floats]:
    """(offset, scale) by axis (2, 2), shift (2,), size (2,), and errors of the first (2, 2)."""
    found, shift, size, error = np.ones((2, 2)), np.zeros(2), np.zeros(2), np.zeros((2, 2))
    picture = seen.evidence.pictures[seen.evidence.owner[seen.evidence.box]]
    offs = seen.boxes.centre[:, seen.evidence.box] - seen.truth_centre
    priors = np.diag([1e-6, 1e-6, sizes.shift**-2, sizes.size**-2])
    one, none = np.ones(len(picture)), np.zeros(len(picture))
    for axis in (0, 1):
        place, side = seen.truth_centre[axis] - 0.5, seen.truth_side[axis]
        # Rows of a linear model of (offset, scale - 1, shift, size): centres, then log sides.
        centres, sides = np.stack([one, place, side, none]), np.stack([none, one, none, one])
        weight, half = 2 * precision[axis] / side**2, precision[axis] / 2
        normal = _normal(centres, weight) + _normal(sides, half) + priors
        off, log_size = offs[axis], seen.log_size[axis]
        right = times(centres, weight * off) + times(sides, half * log_size)
        values: Floats = np.linalg.solve(normal, right).astype(float)
        scores = centres * (weight * (off - times(values, centres)))
        scores += sides * (half * (log_size - times(values, sides)))
        by_picture = np.stack([np.bincount(picture, row) for row in scores])
        inverse = np.linalg.inv(normal)
        spread = np.sqrt(np.diag(inverse @ by_picture @ by_picture.T @ inverse))
        # One step may not go further than the linear model holds.
        found[axis] = values[0].clip(-0.3, 0.3), np.exp(values[1].clip(-0.3, 0.3))
        shift[axis], size[axis] = values[2].clip(-0.2, 0.2), values[3].clip(-0.3, 0.3)
        error[axis] = spread[:2]
    return found, shift, size, error


def best_scale(evidence: Evidence, convention: Convention) -> Floats:
    """(2,) the scale about the corner (0, 0), alike on both axes, that fits best unfitted."""
    own = evidence.frame(convention.space.frame)
    values = []
    for scale in _SCALES:
        both = np.full(2, scale)
        seen = seen_in(evidence, own.bent(both, (both - 1) / 2), convention.order)
        values.append(log_likelihood(densities(seen), START).sum())
    return np.full(2, _SCALES[int(np.argmax(values))])
