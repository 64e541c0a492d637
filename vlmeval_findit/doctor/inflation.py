"""What a score would gain that keeps, of several readings, the one that agrees best with the truth.

Some scorers do so, box by box.  It hides every fault of a convention and adds what is not there;
this says how much, for sets of readings as they are in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .conventions import ORDERS, SPACES, Convention
from .distance import best_ious
from .evidence import Evidence
from .frames import Floats

_FOUND = 0.5
_NORMAL = 1.96

READINGS = {
    "2 spaces": (("grid1000", "pixels"), ("xyxy",)),
    "3 spaces": (("grid1000", "unit", "pixels"), ("xyxy",)),
    "4 spaces": (("grid1000", "unit", "percent", "pixels"), ("xyxy",)),
    "7 spaces": (
        (
            "grid1000",
            "unit",
            "percent",
            "grid1024",
            "pixels",
            "smart_200704_1605632",
            "longer1000",
        ),
        ("xyxy",),
    ),
    "35 readings": (
        (
            "grid1000",
            "unit",
            "percent",
            "grid1024",
            "pixels",
            "smart_200704_1605632",
            "longer1000",
        ),
        ("xyxy", "yxyx", "xywh", "cxcywh", "yxhw"),
    ),
}
"""Sets of spaces and orders; an order ``xyxy`` alone stands for the declared one."""


class Inflation(NamedTuple):
    """Percentage points of objects found, with a 95 % interval over pictures."""

    readings: str
    points: float
    low: float
    high: float


def inflation(evidence: Evidence, declared: Convention) -> list[Inflation]:
    """For every set of readings what its best reading adds to the declared one.

    An object counts as found where any box of its query has IoU 0.5 with it.
    """
    own = _found(evidence, [declared])
    picture = evidence.pictures[evidence.truth_query]
    made = []
    for name, (spaces, orders) in READINGS.items():
        kept = [ORDERS[one] for one in orders] if len(orders) > 1 else [declared.order]
        others = [Convention(SPACES[space], order) for space in spaces for order in kept]
        gain = _found(evidence, [declared, *others]) - own
        points = float(gain.mean()) if gain.size else 0.0
        by_picture = np.bincount(picture, gain - points)
        error = float(np.sqrt((by_picture**2).sum()) / max(1, gain.size))
        reach = _NORMAL * error
        low = max(0.0, points - reach)
        made.append(Inflation(name, 100 * points, 100 * low, 100 * (points + reach)))
    return made


def _found(evidence: Evidence, readings: Sequence[Convention]) -> Floats:
    """(t,): 1 for every object that a reading finds."""
    best = [best_ious(evidence, evidence.frame(one.space.frame), one) for one in readings]
    found: Floats = (np.max(best, axis=0) >= _FOUND).astype(float)
    return found
