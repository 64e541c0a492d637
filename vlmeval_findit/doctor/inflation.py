"""What a score would gain that keeps, of several readings, the one that agrees best with the truth.

Some scorers do so, box by box.  It hides every fault of a convention and adds what is not there;
this says how much, for sets of readings as they are in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import Any, NamedTuple

import numpy as np

from ..core.evidence import Clustered, evidence_of
from ..core.metric import Metric
from ..core.statistics import Interval, figure_intervals
from .conventions import ORDERS, SPACES, Convention
from .distance import best_ious
from .evidence import Evidence
from .frames import Floats

_FOUND = 0.5
_GAIN = Metric("gain", {"gain": 1}, {"objects": 1})

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
    """Percentage points of objects found; the interval is None where pictures are too few."""

    readings: str
    points: float
    interval: Interval | None

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        low, high = (None, None) if self.interval is None else astuple(self.interval)
        return {"readings": self.readings, "points": self.points, "low": low, "high": high}


def inflation(evidence: Evidence, declared: Convention) -> list[Inflation]:
    """For every set of readings what its best reading adds to the declared one.

    An object counts as found where any box of its query has IoU 0.5 with it.
    """
    own = _found(evidence, [declared])
    names = tuple(map(str, range(int(evidence.pictures.max(initial=-1)) + 1)))
    picture = evidence.pictures[evidence.truth_query]
    made = []
    for name, (spaces, orders) in READINGS.items():
        kept = [ORDERS[one] for one in orders] if len(orders) > 1 else [declared.order]
        others = [Convention(SPACES[space], order) for space in spaces for order in kept]
        gain = _found(evidence, [declared, *others]) - own
        sums = {"gain": gain, "objects": np.ones_like(gain)}
        found = evidence_of([_GAIN], Clustered(names, picture, sums, {}))
        interval = figure_intervals(found)[_GAIN.name]
        made.append(Inflation(name, found.figure(_GAIN.name) or 0.0, interval))
    return made


def _found(evidence: Evidence, readings: Sequence[Convention]) -> Floats:
    """(t,): 1 for every object that a reading finds."""
    best = [best_ious(evidence, evidence.frame(one.space.frame), one) for one in readings]
    found: Floats = (np.max(best, axis=0) >= _FOUND).astype(float)
    return found
