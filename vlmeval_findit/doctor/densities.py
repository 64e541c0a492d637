"""How likely the numbers of a reply are, if a convention is true.

A box of a reply is one of three things.  It means an object: then its centre and the logarithms
of its sides lie about the object's, with errors of one of five widths.  It means something else in
the picture: then its centre is anywhere in the picture and its sides are like those of objects.
Or its numbers mean nothing, and then they are as likely under any convention.  Densities are of the
numbers as said, so that those of different units compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .conventions import Convention, Order
from .evidence import Evidence
from .frames import Floats, Frame

WIDTHS = np.array([0.012, 0.035, 0.09, 0.2, 0.42])
"""Errors of edges in shares of the object's side: the five kinds of a box that means an object."""

ELSEWHERE, MEANINGLESS = len(WIDTHS), len(WIDTHS) + 1
KINDS = len(WIDTHS) + 2

START = np.array([0.65 / len(WIDTHS)] * len(WIDTHS) + [0.30, 0.05])
"""Shares of the kinds before anything is seen."""

_OUTSIDE = 25.0
_MOST_OUTSIDE = 0.2
_NEVER = -700.0
_MARGIN = 0.02


class Located(NamedTuple):
    """Boxes under a convention; all (2, n), along the picture's x and y.

    ``centre`` and ``side`` in shares of the picture; a side is not positive where the numbers are
    no box.  ``scale``: the size that the numbers refer to.
    """

    centre: Floats
    side: Floats
    scale: Floats

    @property
    def corners(self) -> Floats:
        """(4, n) x1, y1, x2, y2 in shares of the picture."""
        half = self.side / 2
        return np.concatenate([self.centre - half, self.centre + half])


def times(left: Floats, right: Floats) -> Floats:
    """``left @ right`` of long thin arrays, in this thread: others only get in each other's way."""
    rows, columns = "i"[: left.ndim - 1], "k"[: right.ndim - 1]
    product: Floats = np.einsum(f"{rows}j,j{columns}->{rows}{columns}", left, right)
    return product


def located(numbers: Floats, frame: Frame, order: Order) -> Located:
    """Numbers (4, n) as boxes in shares of their pictures; ``frame`` is by box."""
    corners = times(order.corners, numbers)
    low, high = (
        (corners[:2] - frame.offset) / frame.scale,
        (corners[2:] - frame.offset) / frame.scale,
    )
    centre, side = (low + high) / 2, (high - low) * np.sign(frame.scale)
    scale = np.abs(frame.scale)
    if frame.turned:
        return Located(centre[::-1], side[::-1], scale[::-1])
    return Located(centre, side, scale)


def said(boxes: Floats, frame: Frame, order: Order) -> Floats:
    """The inverse of :func:`located`: boxes (4, n) in shares of pictures as exact numbers.

    >>> from vlmeval_findit.doctor.conventions import ORDERS
    >>> frame = Frame(np.array([[1000.0], [1000.0]]), np.zeros((2, 1)))
    >>> said(np.array([[0.1], [0.2], [0.3], [0.6]]), frame, ORDERS["yxhw"]).T.tolist()
    [[200.0, 100.0, 400.0, 200.0]]
    """
    low, high = (boxes[1::-1], boxes[:1:-1]) if frame.turned else (boxes[:2], boxes[2:])
    low, high = low * frame.scale + frame.offset, high * frame.scale + frame.offset
    # An axis that is mirrored exchanges the ends; a box with a negative side keeps it.
    mirrored = frame.scale < 0
    corners = np.concatenate([np.where(mirrored, high, low), np.where(mirrored, low, high)])
    return times(order.numbers, corners)


@dataclass(frozen=True)
class Habits:
    """How a model's boxes differ from the objects when its convention is right; all (2,) of x, y.

    ``pull``: distances from the middle of the picture are this many times the true ones.
    ``shift``: centres are off by this share of the object's side.  ``size``: logarithm of how
    many times the true side a side is.  A model that does so is no fault of a convention.
    """

    pull: Floats
    shift: Floats
    size: Floats


NO_HABITS = Habits(np.ones(2), np.zeros(2), np.zeros(2))


@dataclass(frozen=True)
class Seen:
    """The boxes of a run under one convention, with what stays the same when habits change.

    Pairs are those of the evidence; all (2, p) in shares of the picture: ``truth_centre`` and
    ``truth_side``, ``log_size`` of a side against the object's, ``blur`` the variance that comes of
    the numbers' step.  ``apart`` (p,) and ``rest`` (2, n) are logarithms: what pairs have beside
    their errors, and the densities of the last two kinds.
    """

    evidence: Evidence
    boxes: Located
    truth_centre: Floats
    truth_side: Floats
    log_size: Floats
    blur: Floats
    apart: Floats
    rest: Floats


class Densities(NamedTuple):
    """``kinds`` (KINDS, n) times exp(``peak``) (n,) are the densities of each box's numbers.

    ``pairs`` (5, p) are those of the pairs, in the same measure; they add up to the first five.
    """

    kinds: Floats
    peak: Floats
    pairs: Floats


def seen_under(evidence: Evidence, convention: Convention) -> Seen:
    """The boxes of a run under a convention."""
    return seen_in(evidence, evidence.frame(convention.space.frame), convention.order)


def seen_in(evidence: Evidence, frame: Frame, order: Order) -> Seen:
    """The boxes of a run under a frame (by query) and an order."""
    boxes = located(evidence.numbers, frame.of(evidence.owner), order)
    is_box = np.logical_and(boxes.side[0] > 0, boxes.side[1] > 0)
    log_side = np.log(np.where(is_box, boxes.side, 1.0))
    units = -2 * _both(np.log(boxes.scale)) - _outside(boxes) - _both(log_side)
    truth, box = evidence.paired, evidence.box
    own = np.where(is_box, units - evidence.log_choices, _NEVER)
    return Seen(
        evidence=evidence,
        boxes=boxes,
        truth_centre=truth.centre,
        truth_side=truth.side,
        log_size=np.where(is_box, log_side, 0.0)[:, box] - is_box[box] * truth.log_side,
        blur=(evidence.step / (boxes.scale[:, box] * truth.side)) ** 2 / 12,
        apart=own[box] - _both(truth.log_side) - 2 * np.log(2 * np.pi),
        rest=_rest(evidence, boxes, np.where(is_box, units, -np.inf), log_side),
    )


def _both(axes: Floats) -> Floats:
    """(2, n) of x and y: their sum.  The same as ``sum(0)``, which takes several times as long."""
    total: Floats = axes[0] + axes[1]
    return total


def _outside(boxes: Located) -> Floats:
    """What a box that leaves the picture costs: boxes of a right reading rarely do."""
    share = _both(np.maximum(0, np.abs(boxes.centre - 0.5) + boxes.side / 2 - 0.5))
    cost: Floats = _OUTSIDE * np.minimum(share, _MOST_OUTSIDE)
    return cost


def _rest(evidence: Evidence, boxes: Located, units: Floats, log_side: Floats) -> Floats:
    """(2, n): a box about something else in the picture, and numbers that mean nothing."""
    mean, spread = evidence.log_sides
    away = np.abs(boxes.centre - 0.5)
    centre = 0.97 / (1 + 2 * _MARGIN) * (away < 0.5 + _MARGIN)
    centre += 0.015 * np.exp(-np.minimum(away, 600))
    sides = -0.5 * ((log_side - mean) / spread) ** 2 - np.log(spread * np.sqrt(2 * np.pi))
    return np.stack([units + _both(np.log(centre) + sides), evidence.meaningless])


def errors(seen: Seen, habits: Habits) -> tuple[Floats, Floats]:
    """(2, p) each: how far centres are off, in shares of the object's side, and log sides."""
    pull, shift, size = habits.pull[:, None], habits.shift[:, None], habits.size[:, None]
    off = seen.boxes.centre[:, seen.evidence.box] - 0.5 - pull * (seen.truth_centre - 0.5)
    return off / seen.truth_side - shift, seen.log_size - size


def variances(seen: Seen) -> Floats:
    """(5, 2, p): the squared widths of the five kinds along x and y."""
    widths: Floats = (WIDTHS**2)[:, None, None] + seen.blur
    return widths


def densities(seen: Seen, habits: Habits = NO_HABITS) -> Densities:
    """How likely the numbers of every box are, by kind."""
    off, size = errors(seen, habits)
    widths = variances(seen)
    logs = seen.apart - np.log(widths[:, 0] * widths[:, 1])
    logs -= 0.5 * _both(((2 * off**2 + 0.5 * size**2) / widths).swapaxes(0, 1))
    np.maximum(logs, _NEVER, out=logs)
    n, box = seen.rest.shape[1], seen.evidence.box
    peak = seen.rest.max(0)
    np.maximum.at(peak, box, logs.max(0))
    pairs = np.exp(logs - peak[box])
    kinds = np.empty((KINDS, n))
    for kind in range(len(WIDTHS)):
        kinds[kind] = np.bincount(box, pairs[kind], n)
    kinds[ELSEWHERE:] = np.exp(seen.rest - peak)
    return Densities(kinds, peak, pairs)


def log_likelihood(found: Densities, shares: Floats) -> Floats:
    """(n,): the logarithm of every box's density, kinds mixed by their ``shares``."""
    logs: Floats = np.log(times(shares, found.kinds) + 1e-300) + found.peak
    return logs
