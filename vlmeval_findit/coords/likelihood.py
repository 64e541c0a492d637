"""Read a run in a convention: where its boxes lie, and how likely their numbers are.

A box means an object of its query (with heavy-tailed errors: Student's t, 2 degrees of freedom),
another place, or nothing. Densities are of the reply's numbers, so that units are comparable.
"""
# Shapes: n boxes, p pairs of a box and an object of its query, t objects; ``...`` are fits
# computed at once. Positions and sides are in shares of the image.

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .conventions import (
    NO_DISTORTION,
    SPACES,
    Convention,
    CoordinateMap,
    Distortion,
    Floats,
    scaling_of,
)
from .run_arrays import Indices, RunArrays

# Errors in shares of the object's side, of models with a mean IoU of 0.9, 0.75 and 0.5
WIDTHS = (0.03, 0.08, 0.2)
USUAL_WIDTH = 0.08
FOLLOWS = (0.3, 0.6, 0.85)  # Shares of boxes that mean an object
USUAL_FOLLOWS = 0.6
MEANINGLESS = 0.05  # Share of boxes whose numbers mean nothing

_OUTSIDE = 25.0  # Nats per image side that a box lies outside
_MOST_OUTSIDE = 0.2  # Image sides outside that count
_MARGIN = 0.02  # Shares of the image
_NEVER = -700.0  # nats
_MOST_NUMBERS = 16000  # Of an array, in conventions that are read at once


class Boxes(NamedTuple):
    """Boxes read in a convention, along the image's x and y."""

    centre: Floats  # (..., 2, n)
    side: Floats  # (..., 2, n), not positive where the numbers are no box
    scale: Floats  # (..., 2, n), the size that the numbers refer to

    @property
    def corners(self) -> Floats:
        """Return (..., 4, n) x1, y1, x2, y2."""
        half = self.side / 2
        return np.concatenate([self.centre - half, self.centre + half], axis=-2)


def to_boxes(numbers: Floats, frame: CoordinateMap, corners: Floats) -> Boxes:
    """Convert numbers (4, n) to boxes; ``frame`` is by box, ``corners`` (..., 4, 4) of orders."""
    ends = matmul(corners, numbers)
    low = (ends[..., :2, :] - frame.offset) / frame.scale
    high = (ends[..., 2:, :] - frame.offset) / frame.scale
    boxes = Boxes((low + high) / 2, (high - low) * np.sign(frame.scale), np.abs(frame.scale))
    return Boxes(*(item[..., ::-1, :] for item in boxes)) if frame.turned else boxes


def to_numbers(boxes: Floats, frame: CoordinateMap, numbers: Floats) -> Floats:
    """Convert corners (4, n) to numbers, as the inverse of :func:`to_boxes`.

    >>> from vlmeval_findit.coords import ORDERS
    >>> frame = CoordinateMap(np.array([[1000.0], [1000.0]]), np.zeros((2, 1)))
    >>> to_numbers(np.array([[0.1], [0.2], [0.3], [0.6]]), frame, ORDERS["yxhw"].numbers).T.tolist()
    [[200.0, 100.0, 400.0, 200.0]]
    """
    low = boxes[:2]
    high = boxes[2:]
    if frame.turned:
        low = low[::-1]
        high = high[::-1]
    low = low * frame.scale + frame.offset
    high = high * frame.scale + frame.offset
    # A mirrored axis exchanges the ends; a negative side stays negative.
    mirrored = frame.scale < 0
    ends = np.concatenate([np.where(mirrored, high, low), np.where(mirrored, low, high)])
    return matmul(numbers, ends)


def iou(left: Floats, right: Floats) -> Floats:
    """Return (n,) IoUs of boxes (4, n) with boxes (4, n); 0 where a box has no sides.

    >>> iou(np.array([[0.0, 0, 2, 2]]).T, np.array([[1.0, 0, 3, 2]]).T).round(3).tolist()
    [0.333]
    """
    low = np.maximum(left[:2], right[:2])
    high = np.minimum(left[2:], right[2:])
    common = (high - low).clip(0).prod(0)
    areas = [(box[2:] - box[:2]).clip(0).prod(0) for box in (left, right)]
    union = areas[0] + areas[1] - common
    overlap: Floats = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return overlap


def matmul(left: Floats, right: Floats) -> Floats:
    """Return ``left @ right`` of long thin arrays without BLAS, whose threads only slow it down."""
    return np.asarray(np.einsum("...ij,...jk->...ik", left, right))


def _both(axes: Floats) -> Floats:
    # Adds x and y, several times faster than ``sum``.
    return np.add(axes[..., 0, :], axes[..., 1, :])


# --- how likely numbers are -----------------------------------------------------------------------


class Densities(NamedTuple):
    """Densities of numbers, times exp(-``peak``), and the errors of pairs."""

    objects: Sequence[Floats]  # (..., n) for each width, if boxes mean objects
    anywhere: Floats  # (..., n)
    meaningless: Floats  # (..., n)
    peak: Floats  # (..., n)
    pairs: Floats  # (..., p), which add up to the last of ``objects``
    centre: Floats  # (..., 2, p) errors in shares of the object's side
    size: Floats  # (..., 2, p) errors, logarithms of the sides' ratio
    square: Floats  # (..., p) weighted sum of squared errors, without the model's habits
    tail: Floats  # (..., p) weights, smaller the farther out in the tail
    weights: Floats  # (n,) how much each box says

    def mixed(self, width: int, follows: float) -> Floats:
        """Return (..., n) densities if a share of the boxes follows objects."""
        others = (1 - MEANINGLESS - follows) * self.anywhere + MEANINGLESS * self.meaningless
        return follows * self.objects[width] + others + 1e-300

    def logs(self, width: int = 0, follows: float = USUAL_FOLLOWS) -> Floats:
        """Return (..., n) nats by box, each as much as the box says."""
        logs: Floats = np.log(self.mixed(width, follows)) + self.peak
        return logs * self.weights


def centre_density(away: Floats) -> Floats:
    """Return the density of a box's middle along an axis, ``away`` from the image's middle.

    It is in shares of the image: nearly all boxes are inside, and few far outside.
    """
    inside = np.where(away < 0.5 + _MARGIN, 0.97 / (1 + 2 * _MARGIN), 0.0)
    return np.asarray(inside + 0.015 * np.exp(-np.minimum(away, 600)))


def likelihood(
    arrays: RunArrays,
    boxes: Boxes,
    widths: Sequence[float] = (USUAL_WIDTH,),
    distortion: Distortion = NO_DISTORTION,
) -> Densities:
    """Compute the densities of each box's numbers, for errors of some widths."""
    # ``boxes`` were read in the distorted map; of ``distortion`` only the habits are used here.
    truth = arrays.paired
    box = arrays.pair_box
    is_box = np.logical_and(boxes.side[..., 0, :] > 0, boxes.side[..., 1, :] > 0)
    log_side = np.log(np.where(boxes.side > 0, boxes.side, 1.0))
    units = _log_units(boxes, log_side)
    anywhere = np.where(is_box, units + _log_anywhere(arrays, boxes, log_side), -np.inf)
    peak = np.maximum(anywhere, arrays.meaningless)

    centre = (boxes.centre[..., box] - truth.centre) / truth.side
    size = log_side[..., box] - truth.log_side
    centre_error = centre - distortion.shift[:, None]
    size_error = size - distortion.size[:, None]
    square = _both(2 * centre_error**2 + 0.5 * size_error**2)
    rounding = _both((arrays.step / (boxes.scale[..., box] * truth.side)) ** 2) / 24
    log_unit = np.where(is_box, units - arrays.log_choices - peak, _NEVER)[..., box]
    unit = np.exp(log_unit - _both(truth.log_side)) / (2 * np.pi**2)
    objects = []
    pairs = unit
    tail = unit
    for width in widths:
        variance = width**2 + rounding
        tail = 1 / (variance + square / 2)
        pairs = unit * variance * tail * tail * tail
        objects.append(_sum_by_box(pairs, box, np.zeros_like(peak)))
    return Densities(
        objects=objects,
        anywhere=np.exp(anywhere - peak),
        meaningless=np.exp(arrays.meaningless - peak),
        peak=peak,
        pairs=pairs,
        centre=centre,
        size=size,
        square=square,
        tail=tail,
        weights=arrays.weights,
    )


def _log_units(boxes: Boxes, log_side: Floats) -> Floats:
    """Return (..., n) what turns log densities in shares of the image into those of numbers."""
    away = np.abs(boxes.centre - 0.5)
    # Right boxes rarely leave the image.
    outside = _both(np.maximum(0, away + boxes.side / 2 - 0.5)).clip(max=_MOST_OUTSIDE)
    return np.asarray(-2 * _both(np.log(boxes.scale)) - _both(log_side) - _OUTSIDE * outside)


def _log_anywhere(arrays: RunArrays, boxes: Boxes, log_side: Floats) -> Floats:
    """Return (..., n) log densities, in shares of the image, of boxes that mean no object."""
    mean, spread = arrays.log_sides
    middle = centre_density(np.abs(boxes.centre - 0.5))
    sides = 0.5 * ((log_side - mean) / spread) ** 2 + np.log(spread * np.sqrt(2 * np.pi))
    return _both(np.log(middle) - sides)


def _sum_by_box(pairs: Floats, box: Indices, total: Floats) -> Floats:
    """Add (..., p) values of pairs, in the order of their boxes, to (..., n) totals."""
    if box.size:
        first = np.flatnonzero(np.diff(box, prepend=-1))
        total[..., box[first]] = np.add.reduceat(pairs, first, axis=-1)
    return total


# --- fits -------------------------------------------------------------------------------------


class ConventionFit(NamedTuple):
    """A run read in a convention, distorted or not."""

    convention: Convention
    distortion: Distortion
    width: float  # of errors, as fits best
    logs: Floats  # (n,) nats by box
    nothing: Floats  # (n,) nats by box, if none meant an object
    ious: Floats  # (t,) best IoU of each object, as much as the object says

    @property
    def nats(self) -> float:
        return float(self.logs.sum()) - self.convention.cost

    @property
    def signal(self) -> float:
        """Return the nats gained by assuming that boxes mean objects."""
        return float((self.logs - self.nothing).sum())


def placed(
    arrays: RunArrays, convention: Convention, distortion: Distortion = NO_DISTORTION
) -> Boxes:
    """Locate the boxes of a run in a convention, distorted or not."""
    of_queries = arrays.coordinate_map(convention.space.map_of).distorted(distortion)
    return to_boxes(arrays.numbers, of_queries.of(arrays.box_query), convention.order.corners)


def fit_convention(
    arrays: RunArrays, convention: Convention, distortion: Distortion = NO_DISTORTION
) -> ConventionFit:
    """Read a run in a convention, distorted or not, with the width and share that fit best."""
    boxes = placed(arrays, convention, distortion)
    densities = likelihood(arrays, boxes, WIDTHS, distortion)
    tried = [(w, densities.logs(k, share)) for k, w in enumerate(WIDTHS) for share in FOLLOWS]
    width, logs = max(tried, key=lambda item: float(item[1].sum()))
    nothing = densities.logs(follows=0.0)
    ious = best_ious(arrays, boxes) * arrays.truth_weights
    return ConventionFit(convention, distortion, width, logs, nothing, ious)


def screen_conventions(
    arrays: RunArrays, known: Sequence[Convention], width: float = USUAL_WIDTH
) -> tuple[Floats, Floats]:
    """Return nats by box, (conventions, n), with objects and without."""
    logs, nothing = np.empty((2, len(known), arrays.boxes))
    for rows, boxes in read_together(arrays, known):
        densities = likelihood(arrays, boxes, (width,))
        logs[rows] = densities.logs()
        nothing[rows] = densities.logs(follows=0.0)
    return logs, nothing


def read_together(
    arrays: RunArrays, known: Sequence[Convention]
) -> Iterator[tuple[Indices, Boxes]]:
    """Yield places (spaces, orders) of conventions, and the boxes read in them, several at once."""
    for rows in _places_to_read(arrays, known):
        maps = [arrays.coordinate_map(known[row].space.map_of) for row in rows[:, 0]]
        frames = CoordinateMap(
            np.stack([each.scale for each in maps])[:, None, :, arrays.box_query],
            np.stack([each.offset for each in maps])[:, None, :, arrays.box_query],
            maps[0].turned,
        )
        corners = np.array([known[row].order.corners for row in rows[0]])
        yield rows, to_boxes(arrays.numbers, frames, corners)


def _places_to_read(arrays: RunArrays, known: Sequence[Convention]) -> Iterator[Indices]:
    """Yield places (spaces, orders) of conventions to read at once: for few boxes several spaces.

    Spaces that are read together have the same orders, and are all turned or none is.
    """
    by_space = defaultdict(list)
    for row, each in enumerate(known):
        by_space[each.space.name].append(row)
    alike = defaultdict(list)
    for rows in by_space.values():
        turned = arrays.coordinate_map(known[rows[0]].space.map_of).turned
        orders = tuple(known[row].order.name for row in rows)
        alike[turned, orders].append(rows)
    for (_, orders), groups in alike.items():
        numbers = len(orders) * max(1, arrays.boxes, len(arrays.pair_box))
        spaces = max(1, _MOST_NUMBERS // numbers)
        for start in range(0, len(groups), spaces):
            yield np.array(groups[start : start + spaces])


def best_ious(arrays: RunArrays, boxes: Boxes) -> Floats:
    """Return (t,) the best IoU of each object with any paired box."""
    overlaps = iou(boxes.corners[:, arrays.pair_box], arrays.truths[:, arrays.pair_truth])
    best = np.zeros(len(arrays.truth_query))
    np.maximum.at(best, arrays.pair_truth, overlaps)
    return best


def convention_distance(
    arrays: RunArrays, first: Convention, second: Convention, distortion: Distortion = NO_DISTORTION
) -> float:
    """Return 1 − mean IoU of objects, written in ``first`` (distorted), read in ``second``."""
    if not arrays.truths.size:
        return 0.0
    written_in = arrays.coordinate_map(first.space.map_of).of(arrays.truth_query)
    read_in = arrays.coordinate_map(second.space.map_of).of(arrays.truth_query)
    numbers = to_numbers(arrays.truths, written_in.distorted(distortion), first.order.numbers)
    boxes = to_boxes(numbers, read_in, second.order.corners)
    return float(1 - iou(boxes.corners, arrays.truths).mean())


# --- frames that no row describes -----------------------------------------------------------------

# Standard deviations of weak models' habits on the benchmark, in shares of sides
SHIFT = 0.04
SIZE = 0.07

_SETTLED = 5e-4  # a step this small in scale and offset ends the fit
_FIRST_ROUNDS = 10
_FIRST_BOXES = 300
_SCALES = np.exp(np.linspace(-2.2, 2.2, 41))  # from a ninth to nine times
_USUAL = ("grid1000", "pixels", "longer1000", "letterbox1000")
# Nats: of conventions that bend to the same frame, the declared or the best is named.
_BONUS_BEST = 10.0
_BONUS_DECLARED = 20.0


def fit_distortion(
    arrays: RunArrays,
    convention: Convention,
    start: Distortion = NO_DISTORTION,
    shift: float = SHIFT,
    free: bool = True,
    rounds: int = 20,
) -> Distortion:
    """Fit scale, offset and habits by iteratively reweighted least squares.

    In a wrong frame positions scale as sides do; a model's drift to the middle only moves
    positions. ``shift`` is the standard deviation of the habit of shifted boxes; without ``free``
    only habits are fitted.
    """
    truth = arrays.paired
    unit = np.ones_like(truth.side)
    none = np.zeros_like(truth.side)
    # Derivatives by (offset, log scale, shift, log size) of centres in shares of sides and of log
    # sides, per axis.
    centres = [1 / truth.side, (truth.centre - 0.5) / truth.side, unit, none]
    rows = np.array([centres, [none, unit, none, unit]]).transpose(2, 1, 0, 3).reshape(2, 4, -1)
    across = rows.swapaxes(1, 2)
    frame_prior = 1e-6 if free else 1e12
    priors = np.diag([frame_prior, frame_prior, shift**-2, SIZE**-2])
    distortion = start
    for _ in range(rounds):
        boxes = placed(arrays, convention, distortion)
        densities = likelihood(arrays, boxes, distortion=distortion)
        mixed = densities.mixed(0, USUAL_FOLLOWS)[arrays.pair_box]
        follows = USUAL_FOLLOWS * densities.pairs / mixed
        says = arrays.weights[arrays.pair_box]
        weight: Floats = np.outer([2, 0.5], 3 * says * follows * densities.tail).ravel()
        target = np.concatenate([densities.centre, densities.size], axis=-1)
        normal = matmul(rows * weight, across) + priors
        pulled = matmul(rows * weight, target[..., None])
        fit = np.linalg.solve(normal, pulled)[..., 0].astype(float)
        # The linear model only holds nearby.
        step = fit.clip(-0.3, 0.3)
        distortion = replace(
            distortion,
            scale=(distortion.scale * np.exp(step[:, 1])).clip(0.02, 50),
            offset=distortion.offset + distortion.scale * step[:, 0],
            shift=step[:, 2],
            size=step[:, 3],
        )
        if np.abs(step[:, :2]).max() < _SETTLED:
            break
    # The curvature: in the tails a pull grows more slowly with the error than its weight says.
    slope: Floats = weight * np.tile(1 - 0.25 * densities.square * densities.tail, 2)
    pulls = rows * (weight * (target - matmul(fit[:, None], rows)[:, 0]))[:, None]
    inverse = np.linalg.inv(matmul(rows * slope, across) + priors).astype(float)
    error = distortion.scale[:, None] * _errors(arrays, pulls, inverse)
    return replace(distortion, scale_error=error[:, 1], offset_error=error[:, 0])


def _errors(arrays: RunArrays, pulls: Floats, inverse: Floats) -> Floats:
    """Return (2, 4) standard errors by axis, clustered by image."""
    image_of_pair = arrays.images[arrays.box_query[arrays.pair_box]]
    names, image = np.unique(image_of_pair, return_inverse=True)
    rows = pulls.reshape(8, 2, -1).sum(1)
    sums = np.array([np.bincount(image, row, len(names)) for row in rows])
    spread = matmul(inverse, sums.reshape(2, 4, -1))
    errors: Floats = np.sqrt((spread**2).sum(-1) * len(names) / max(len(names) - 4, 1))
    return errors


def best_distortion(
    arrays: RunArrays, best: Convention, declared: Convention, shift: float = SHIFT
) -> ConventionFit:
    """Return the best distorted fit, preferring ``declared``, then ``best``, among equals."""
    # Candidates are fitted to some of the boxes, the best of them to all.
    few = arrays.some(_FIRST_BOXES)
    usual = [Convention(SPACES[name], best.order) for name in _USUAL]
    bonus = {best.name: _BONUS_BEST, declared.name: _BONUS_DECLARED}
    tried = []
    for base in {base.name: base for base in (best, declared, *usual)}.values():
        frame = few.coordinate_map(base.space.map_of).of(few.box_query)
        frames = CoordinateMap(frame.scale * _SCALES[:, None, None], frame.offset, frame.turned)
        logs = likelihood(few, to_boxes(few.numbers, frames, base.order.corners)).logs().sum(1)
        start = scaling_of(_SCALES[logs.argmax()])
        distortion = fit_distortion(few, base, start, shift, rounds=_FIRST_ROUNDS)
        nats = fit_convention(few, base, distortion).nats + bonus.get(base.name, 0.0)
        tried.append((nats, base, distortion))
    base, distortion = max(tried, key=lambda each: each[0])[1:]
    return fit_convention(arrays, base, fit_distortion(arrays, base, distortion, shift))
