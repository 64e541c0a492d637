"""Fit scale and offset of a convention to a run, for frames that no row describes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .conventions import SPACES, Convention
from .evidence import Evidence
from .frames import UNBENT, Bend, Floats, Frame, scaled
from .reading import USUAL_FOLLOWS, Reading, likelihood, located, placed, read, times

# Standard deviations of weak models' habits on the benchmark, in shares of sides
SHIFT, SIZE = 0.04, 0.07

_SETTLED = 5e-4  # a step this small in scale and offset ends the fit
_FIRST_ROUNDS, _FIRST_BOXES = 10, 300
_SCALES = np.exp(np.linspace(-2.2, 2.2, 41))  # from a ninth to nine times
_SCALES_TRIED = 3
_USUAL = ("grid1000", "pixels", "longer1000", "letterbox1000")
# Nats: of conventions that bend to the same frame, the declared or the best one is named.
_BONUS_BEST, _BONUS_DECLARED = 10.0, 20.0


def bend(
    evidence: Evidence,
    convention: Convention,
    start: Bend = UNBENT,
    shift: float = SHIFT,
    free: bool = True,
    rounds: int = 20,
) -> Bend:
    """Fit scale, offset and habits by iteratively reweighted least squares.

    In a wrong frame positions and sides scale alike; a model's drift to the middle only moves
    positions. ``shift`` is the standard deviation of the habit of shifted boxes; without ``free``
    only habits are fitted.
    """
    truth = evidence.paired
    one, none = np.ones_like(truth.side), np.zeros_like(truth.side)
    # Derivatives by (offset, log scale, shift, log size) of centres in shares of sides and of log
    # sides, per axis.
    centres = [1 / truth.side, (truth.centre - 0.5) / truth.side, one, none]
    rows = np.array([centres, [none, one, none, one]]).transpose(2, 1, 0, 3).reshape(2, 4, -1)
    across = rows.swapaxes(1, 2)
    priors = np.diag([1e-6 if free else 1e12] * 2 + [shift**-2, SIZE**-2])
    how = start
    for _ in range(rounds):
        found = likelihood(evidence, placed(evidence, convention, how), how=how)
        follows = USUAL_FOLLOWS * found.pairs / found.mixed(0, USUAL_FOLLOWS)[evidence.box]
        weight: Floats = np.outer([2, 0.5], 3 * follows * found.tail).ravel()
        target = np.concatenate([found.centre, found.size], axis=-1)
        normal = times(rows * weight, across) + priors
        fit = np.linalg.solve(normal, times(rows * weight, target[..., None]))[..., 0].astype(float)
        # The linear model only holds nearby.
        step = fit.clip(-0.3, 0.3)
        how = replace(
            how,
            scale=(how.scale * np.exp(step[:, 1])).clip(0.02, 50),
            offset=how.offset + how.scale * step[:, 0],
            shift=step[:, 2],
            size=step[:, 3],
        )
        if np.abs(step[:, :2]).max() < _SETTLED:
            break
    # The curvature: in the tails a pull grows more slowly with the error than its weight says.
    slope: Floats = weight * np.tile(1 - 0.25 * found.square * found.tail, 2)
    pulls = rows * (weight * (target - times(fit[:, None], rows)[:, 0]))[:, None]
    inverse = np.linalg.inv(times(rows * slope, across) + priors).astype(float)
    error = how.scale[:, None] * _errors(evidence, pulls, inverse)
    return replace(how, scale_error=error[:, 1], offset_error=error[:, 0])


def _errors(evidence: Evidence, pulls: Floats, inverse: Floats) -> Floats:
    """Return (2, 4) standard errors by axis, clustered by image."""
    names, picture = np.unique(evidence.pictures[evidence.owner[evidence.box]], return_inverse=True)
    rows = pulls.reshape(8, 2, -1).sum(1)
    sums = np.array([np.bincount(picture, row, len(names)) for row in rows])
    spread = times(inverse, sums.reshape(2, 4, -1))
    errors: Floats = np.sqrt((spread**2).sum(-1) * len(names) / max(len(names) - 4, 1))
    return errors


def best_bend(
    evidence: Evidence, best: Convention, declared: Convention, shift: float = SHIFT
) -> Reading:
    """Return the best bent reading, preferring ``declared``, then ``best``, among equals."""
    # Candidates are fitted to some of the boxes, the best of them to all.
    few, tried = evidence.some(_FIRST_BOXES), []
    given = {best.name: best, declared.name: declared}
    usual = {one.name: one for one in (Convention(SPACES[name], best.order) for name in _USUAL)}
    for one in (given | usual).values():
        frame = few.frame(one.space.frame).of(few.owner)
        frames = Frame(frame.scale * _SCALES[:, None, None], frame.offset, frame.turned)
        logs = likelihood(few, located(few.numbers, frames, one.order.corners)).logs().sum(1)
        tried.append((float(logs.max()) - one.cost, one, scaled(_SCALES[logs.argmax()])))
    tried.sort(key=lambda each: -each[0])
    starts = [(one, UNBENT) for one in given.values()]
    starts += [(one, start) for _, one, start in tried[:_SCALES_TRIED]]
    first = [(one, bend(few, one, how, shift, rounds=_FIRST_ROUNDS)) for one, how in starts]
    bonus = {best.name: _BONUS_BEST, declared.name: _BONUS_DECLARED}
    one, how = max(first, key=lambda made: read(few, *made).nats + bonus.get(made[0].name, 0.0))
    return read(evidence, one, bend(evidence, one, how, shift))
