"""How far conventions are apart on the objects of a run, and how well boxes meet them."""

from __future__ import annotations

import numpy as np

from .conventions import Convention
from .densities import located, said
from .estimate import Fitted
from .evidence import Evidence
from .frames import Floats, Frame


def iou(left: Floats, right: Floats) -> Floats:
    """(n,) IoU of boxes (4, n) with boxes (4, n), pair by pair; 0 where one has no sides.

    >>> iou(np.array([[0.0, 0, 2, 2]]).T, np.array([[1.0, 0, 3, 2]]).T).round(3).tolist()
    [0.333]
    """
    low, high = np.maximum(left[:2], right[:2]), np.minimum(left[2:], right[2:])
    common = (high - low).clip(0).prod(0)
    areas = [(box[2:] - box[:2]).clip(0).prod(0) for box in (left, right)]
    union = areas[0] + areas[1] - common
    overlap: Floats = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return overlap


def apart(evidence: Evidence, one: Convention, other: Convention) -> float:
    """1 − mean IoU of the run's objects, said under one convention and read under another."""
    frames = evidence.frame(one.space.frame), evidence.frame(other.space.frame)
    return frames_apart(evidence, frames[0], one, frames[1], other)


def frames_apart(
    evidence: Evidence, frame: Frame, one: Convention, read_in: Frame, other: Convention
) -> float:
    """The same of any two frames (by query), in the orders of two conventions."""
    if not evidence.truths.size:
        return 0.0
    where = evidence.truth_query
    numbers = said(evidence.truths, frame.of(where), one.order)
    read = located(numbers, read_in.of(where), other.order)
    return float(1 - iou(read.corners, evidence.truths).mean())


def best_ious(evidence: Evidence, frame: Frame, one: Convention) -> Floats:
    """(t,) the best IoU of any box of the query with each object."""
    boxes = located(evidence.numbers, frame.of(evidence.owner), one.order)
    overlaps = iou(boxes.corners[:, evidence.box], evidence.truths[:, evidence.truth])
    best = np.zeros(len(evidence.truth_query))
    np.maximum.at(best, evidence.truth, overlaps)
    return best


_CLIP = 10.0
_MOST = 1000.0


def steadiness(evidence: Evidence, one: Fitted, other: Fitted) -> tuple[float, float]:
    """How steadily pictures speak for one fit against another.

    Both are sums over pictures in units of their standard error: of log-likelihoods, where no
    picture counts for more than 10 nats, and of the best IoU of objects.
    """
    nats = evidence.by_picture(one.likelihoods - other.likelihoods).clip(-_CLIP, _CLIP)
    ious = [best_ious(evidence, each.frame, each.convention) for each in (one, other)]
    picture = evidence.pictures[evidence.truth_query]
    gains = np.bincount(picture, ious[0] - ious[1], len(evidence.pictures)).astype(float)
    return _z(nats), _z(gains[np.unique(picture)])


def _z(values: Floats) -> float:
    if not values.size:
        return 0.0
    spread = np.sqrt(((values - values.mean()) ** 2).sum())
    return float(np.clip(values.sum() / max(spread, 1e-9), -_MOST, _MOST))
