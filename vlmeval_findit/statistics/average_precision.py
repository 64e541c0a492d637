"""Average precision of matched boxes, where images have weights.

The matches of boxes do not change when images are resampled, only their sums do: intervals add up
weighted matches and match nothing again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..protocol import Array

Flags = NDArray[np.bool_]

_RECALLS = np.linspace(0.0, 1.0, 101)  # COCO's
_AT_A_TIME = 2_000_000  # Numbers of an array while weighted matches are added up


class Matches(NamedTuple):
    """The boxes and objects of one category; boxes of the highest scores come first."""

    matched: Flags  # (thresholds, boxes): to an object
    counted: Flags  # (thresholds, boxes): not to an ignored object
    image: NDArray[np.intp]  # Index of each box's image
    objects: Array  # Number of objects of each image that are not ignored


def average_precision(matches: Matches, weights: Array) -> Array:
    """Return (sets, thresholds) the average precision; NaN where a set has no objects.

    ``weights`` are (sets, images): how often each image counts.
    """
    thresholds, boxes = matches.matched.shape
    values = np.zeros((len(weights), thresholds))
    sets = max(1, _AT_A_TIME // max(1, matches.matched.size))
    for start in range(0, len(weights), sets):
        some = slice(start, start + sets)
        objects = weights[some] @ matches.objects
        if boxes:
            values[some] = _areas(matches, weights[some][:, matches.image], objects)
        values[some][objects == 0] = np.nan
    return values


def _areas(matches: Matches, weights: Array, objects: Array) -> Array:
    """Return the areas under interpolated precision, at COCO's 101 recalls.

    ``weights`` are (sets, boxes), ``objects`` the weighted number of objects of each set.
    """
    is_hit = matches.matched & matches.counted
    hits = np.cumsum(weights[:, None] * is_hit, axis=-1)
    boxes = np.cumsum(weights[:, None] * matches.counted, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        recall = hits / objects[:, None, None]
        precision = np.where(boxes > 0, hits / boxes, 0.0)
    best_from_here = np.maximum.accumulate(precision[..., ::-1], axis=-1)[..., ::-1]
    # How many of the recalls are reached at each box: the new ones have its precision.
    reached = np.searchsorted(_RECALLS, np.nan_to_num(recall), side="right")
    newly_reached = np.diff(reached, axis=-1, prepend=0)
    area: Array = (best_from_here * newly_reached).sum(axis=-1) / len(_RECALLS)
    return area
