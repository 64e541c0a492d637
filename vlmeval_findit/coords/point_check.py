"""Check the coordinates of points: in which space, and whether x or y comes first.

A point means an object of its query (with heavy-tailed errors around the middle), another place, or
nothing. As for boxes, densities are of the reply's numbers, so that units are comparable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .conventions import SPACES, USUAL, Convention, Floats, Order, SpaceRow
from .diagnosis import (
    ALIKE_DISTANCE,
    DECIDES,
    SIGNAL,
    SIGNAL_A_BOX,
    STEADY,
    CoordinateVerdict,
    is_enough,
    preference,
    z_over_images,
)
from .likelihood import MEANINGLESS, Boxes, centre_density, read_together, to_boxes, to_numbers
from .run_arrays import RunArrays

X_FIRST = Order("xy", USUAL, np.eye(4))  # A point as (x, y)
Y_FIRST = Order("yx", 0.5, np.eye(4)[[1, 0, 3, 2]])  # A point as (y, x)

_FOLLOWS = 0.6  # share of points that mean an object
_WIDTHS = (0.08, 0.2)  # errors in shares of the object's side


class PointFit(NamedTuple):
    """What the points of a run show, before a verdict."""

    best: Convention
    llr: float  # nats by which ``best`` leads the declared convention
    z: float  # this lead in standard errors over images
    z_hits: float  # the same of hits
    signal: float  # nats that points on objects explain
    agree: int  # queries that ``best`` explains better
    distance: float  # share of objects whose middle leaves them if ``best`` is read as declared


class PointDiagnosis(NamedTuple):
    """The verdict on a run of points and its reasons."""

    verdict: CoordinateVerdict
    declared: Convention
    points: int
    queries: int
    answered: int  # queries with points
    places: float  # different places that say as much as all points
    fit: PointFit | None = None  # None: too few points

    def as_dict(self) -> dict[str, Any]:
        fit = self.fit
        evidence: dict[str, Any] = {}
        if fit is not None:
            evidence = {"best": fit.best.name, "description": fit.best.space.description}
            for name in ("llr", "z", "z_hits", "signal"):
                evidence[name] = round(getattr(fit, name), 2)
            evidence |= {"distance": round(fit.distance, 4), "agree": fit.agree}
        return {
            "verdict": self.verdict.value,
            "alarm": self.verdict.alarms,
            "declared": self.declared.name,
            "points": self.points,
            "queries": self.queries,
            "answered": self.answered,
            "places": round(self.places, 1),
            "fit": evidence or None,
        }


class _Read(NamedTuple):
    convention: Convention
    logs: Floats  # (n,) nats by point
    nothing: Floats  # (n,) nats by point, if none meant an object
    hits: Floats  # (n,) 1: in an object


def point_conventions(declared: Convention) -> list[Convention]:
    """List all spaces in both orders, the declared convention first."""
    spaces: dict[str, SpaceRow] = {declared.space.name: declared.space, **SPACES}
    every = [Convention(row, order) for row in spaces.values() for order in (X_FIRST, Y_FIRST)]
    return sorted(every, key=lambda each: each.name != declared.name)


def diagnose_points(arrays: RunArrays, declared: Convention) -> PointDiagnosis:
    """Find which convention a run of points follows; ``numbers`` are x, y, x, y as declared."""
    counts = arrays.boxes, arrays.queries, arrays.answered, arrays.places
    if not is_enough(arrays):
        return PointDiagnosis(CoordinateVerdict.TOO_FEW, declared, *counts)

    def worth(read: _Read) -> float:
        nats = float(read.logs.sum()) - read.convention.cost
        return nats + preference(read.convention, declared)

    known = _read(arrays, point_conventions(declared))
    best = max(known, key=worth)
    images = arrays.images[arrays.box_query]
    fit = PointFit(
        best=best.convention,
        llr=worth(best) - worth(known[0]),
        z=z_over_images(best.logs - known[0].logs, images, most=10.0),
        z_hits=z_over_images(best.hits - known[0].hits, images, most=np.inf),
        signal=float((best.logs - best.nothing).sum()),
        agree=int((arrays.by_query(best.logs - known[0].logs) > 0).sum()),
        distance=_distance(arrays, best.convention, declared),
    )
    return PointDiagnosis(_decide(fit, arrays.places), declared, *counts, fit)


def _decide(fit: PointFit, places: float) -> CoordinateVerdict:
    if fit.signal < SIGNAL + SIGNAL_A_BOX * places:
        return CoordinateVerdict.NONE
    if fit.distance < ALIKE_DISTANCE:
        return CoordinateVerdict.FITS
    sure = fit.llr >= DECIDES and min(fit.z, fit.z_hits) >= STEADY
    return CoordinateVerdict.OTHER if sure else CoordinateVerdict.UNDECIDED


def _read(arrays: RunArrays, known: Sequence[Convention]) -> list[_Read]:
    """Read the points of a run in each convention."""
    reads: dict[int, _Read] = {}
    for rows, places in read_together(arrays, known):
        logs, nothing, hits = _likelihood(arrays, places)
        for at in np.ndindex(rows.shape):
            row = int(rows[at])
            reads[row] = _Read(known[row], logs[at], nothing[at], hits[at])
    return [reads[row] for row in range(len(known))]


def _likelihood(arrays: RunArrays, places: Boxes) -> tuple[Floats, Floats, Floats]:
    """Return (..., n) nats by point, nats if none meant an object, and 1 where it is in one.

    Each counts as much as the point says.
    """
    truth = arrays.paired
    box = arrays.pair_box
    error = (places.centre[..., box] - truth.centre) / truth.side
    # From densities in shares of the image to those of numbers
    units = -np.log(places.scale).sum(-2)
    away = np.abs(places.centre - 0.5)
    anywhere = np.exp(units + np.log(centre_density(away)).sum(-2))
    meaningless = np.exp(-np.log((np.abs(arrays.numbers[:2]) + 0.01) * 32).sum(0)) * MEANINGLESS
    others = anywhere * (1 - _FOLLOWS - MEANINGLESS) + meaningless
    nothing = np.log(anywhere * (1 - MEANINGLESS) + meaningless)
    square = (error**2).sum(-2)
    choices = np.exp(units - arrays.log_choices)[..., box] / np.exp(truth.log_side.sum(0))
    tried = []
    for width in _WIDTHS:
        pairs = choices / (2 * np.pi * width**2) * (1 + square / (2 * width**2)) ** -2
        tried.append(np.log(_FOLLOWS * _sum_by_point(arrays, pairs) + others))
    of_widths = np.array(tried)
    likely = of_widths.sum(-1).argmax(0)[None, ..., None]
    logs = np.take_along_axis(of_widths, likely, 0)[0]
    inside = (np.abs(error) <= 0.5).all(-2).astype(float)
    hits = (_sum_by_point(arrays, inside) > 0).astype(float)
    says = arrays.weights
    return logs * says, nothing * says, hits * says


def _sum_by_point(arrays: RunArrays, pairs: Floats) -> Floats:
    """Add (..., p) values of pairs to (..., n) totals of their points."""
    rows = math.prod(pairs.shape[:-1])
    place = np.arange(rows)[:, None] * arrays.boxes + arrays.pair_box
    totals = np.bincount(place.ravel(), pairs.ravel(), rows * arrays.boxes).astype(float)
    return totals.reshape(*pairs.shape[:-1], arrays.boxes)


def _distance(arrays: RunArrays, left: Convention, right: Convention) -> float:
    """Return the share of objects whose middle, written in the left, leaves them in the right."""
    if not arrays.truths.size:
        return 0.0
    middle = np.tile((arrays.truths[:2] + arrays.truths[2:]) / 2, (2, 1))
    owner = arrays.truth_query
    written_in = arrays.coordinate_map(left.space.map_of).of(owner)
    read_in = arrays.coordinate_map(right.space.map_of).of(owner)
    written = to_numbers(middle, written_in, left.order.numbers)
    read = to_boxes(written, read_in, right.order.corners).centre
    outside = (read < arrays.truths[:2]) | (read > arrays.truths[2:])
    return float(outside.any(0).mean())
