"""Points: whether one lies in an object.

In the object's mask, where it has one; else in its box, whose edges are part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from .labels import plain_label
from .records import Matched, Reading, Truth

Boxes = NDArray[np.float64]

_PAIRS = 1 << 18
"""Pairs of a point and an object that are listed at a time."""


def lies_in(
    said: Boxes, true: Boxes, truths: Sequence[Truth], objects: NDArray[np.intp]
) -> NDArray[np.float32]:
    """Whether point ``said[i]`` lies in object ``true[i]``: 1 or 0.

    Args:
        said: (N, 4) points in pixels, (x, y, x, y); of a box the centre counts.
        true: (N, 4) boxes of the objects (x1, y1, x2, y2) in pixels.
        truths: where the masks of the objects are.
        objects: (N,) the place of object ``true[i]`` among all objects of ``truths``.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # 1e300 is a number that a model can say
        x, y = (said[:, :2] + said[:, 2:]).T / 2
        x1, y1, x2, y2 = true.T
        inside = (x1 <= x) & (x <= x2) & (y1 <= y) & (y <= y2)
    found: NDArray[np.float32] = inside.astype(np.float32)
    if any(truth.masks for truth in truths):
        masks = list(chain.from_iterable(t.masks or (None,) * len(t.boxes) for t in truths))
        for at, place in enumerate(objects.tolist()):
            mask = masks[place]
            if mask is not None:
                found[at] = mask.covers(float(x[at]), float(y[at]))
    return found


def points_inside(matched: Matched, reading: Reading, truth: Truth) -> int:
    """How many of the points that count lie in any object of their frame and label.

    Several may lie in one.

    >>> points = [(1, 1, 1, 1), (2, 2, 2, 2), (9, 9, 9, 9)]
    >>> points_inside(Matched(points, [1], [True], [0], ()), Reading(points, [], [], None),
    ...               Truth(((0, 0, 4, 4),), (0,)))
    2
    """
    points = matched.boxes
    if not points or not truth.boxes:
        return 0
    where = reading.frames or [0] * len(points)
    said = [plain_label(label) for label in reading.labels] or [""] * len(points)
    true = [plain_label(label) for label in truth.labels] or [""] * len(truth.boxes)
    asked = list(zip(truth.frames, true, strict=True))
    boxes, targets = np.array(points, dtype=float), np.array(truth.boxes, dtype=float)
    ignored = {*matched.ignored}
    told = [(at, key) for at, key in enumerate(zip(where, said, strict=True)) if at not in ignored]
    at_a_time = max(1, _PAIRS // len(asked))
    found: set[int] = set()
    for first in range(0, len(told), at_a_time):
        pairs = [
            (point, at)
            for point, this in told[first : first + at_a_time]
            for at, other in enumerate(asked)
            if this == other
        ]
        if pairs:
            left, right = np.array(pairs, dtype=np.intp).T
            found.update(left[lies_in(boxes[left], targets[right], [truth], right) > 0].tolist())
    return len(found)
