"""The scale and offset by axis that bend a convention to fit a run: for frames that no row has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .conventions import SPACES, Convention
from .evidence import Evidence
from .frames import UNBENT, Bend, Floats, Frame, scaled
from .reading import USUAL_FOLLOWS, Reading, likelihood, located, placed, read, times

# Standard deviations of a model's habits, in shares of sides: of weak models on the benchmark.
SHIFT, SIZE = 0.04, 0.07

_SETTLED = 5e-4  # of scale and of the picture: a step that changes nothing more
_FIRST_ROUNDS, _FIRST_BOXES = 10, 300
_SCALES = np.exp(np.linspace(-2.2, 2.2, 41))  # from a ninth to nine times
_SCALES_TRIED = 3
_USUAL = ("grid1000", "pixels", "longer1000", "letterbox1000")
# Nats: where several conventions bend to the same, the declared or the best one is named.
_BONUS_BEST, _BONUS_DECLARED = 10.0, 20.0


def bend(
    evidence: Evidence,
    convention: Convention,
    start: Bend = UNBENT,
    shift: float = SHIFT,
    free: bool = True,
    rounds: int = 20,
) -> Bend:
    """Fit scale, offset and habits by least squares, with the weights of heavy tails.

    Positions and sides scale alike in a wrong frame, but not if a model draws towards the middle.
    ``shift``: standard deviation of the habit of a shift; without ``free`` only habits are fitted.
    """
    truth = evidence.paired
    one, none = np.ones_like(truth.side), np.zeros_like(truth.side)
    # By axis, of (offset, log scale, shift, log size): centres in shares of sides, then log sides.
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
        # One step may not go further than the linear model holds.
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
    # In the tails a pull grows less with the error than its weight says.
    slope: Floats = weight * np.tile(1 - 0.25 * found.square * found.tail, 2)
    pulls = rows * (weight * (target - times(fit[:, None], rows)[:, 0]))[:, None]
    inverse = np.linalg.inv(times(rows * slope, across) + priors).astype(float)
    error = how.scale[:, None] * _errors(evidence, pulls, inverse)
    return replace(how, scale_error=error[:, 1], offset_error=error[:, 0])


def _errors(evidence: Evidence, pulls: Floats, inverse: Floats) -> Floats:
    """(2, 4) standard errors by axis: pairs of a picture are not independent."""
    names, picture = np.unique(evidence.pictures[evidence.owner[evidence.box]], return_inverse=True)
    rows = pulls.reshape(8, 2, -1).sum(1)
    sums = np.array([np.bincount(picture, row, len(names)) for row in rows])
    spread = times(inverse, sums.reshape(2, 4, -1))
    errors: Floats = np.sqrt((spread**2).sum(-1) * len(names) / max(len(names) - 4, 1))
    return errors


def best_bend(
    evidence: Evidence, best: Convention, declared: Convention, shift: float = SHIFT
) -> Reading:
    """Return the best bent reading; of equals that of ``declared``, then of ``best``."""
    # Many are tried on a part of the boxes, and the best of them is fitted to all.
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
