"""Reliability diagrams, and the expected calibration error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..protocol import Array

BINS = 10  # Of equal width, 0 to 1; a confidence on an edge belongs to the bin above it


class Bin(NamedTuple):
    """Boxes of about the same confidence: its mean, and the share of hits among them."""

    low: float
    high: float
    boxes: int
    confidence: float
    hits: float


class ConfidentBoxes(NamedTuple):
    """Boxes of a run that count, an entry per box; and the objects of its images."""

    confidence: Array  # NaN: none
    hit: NDArray[np.bool_]  # Matched to an object of its label with an IoU of at least 0.5
    image: NDArray[np.intp]  # Index of its image
    objects: Array  # Number of objects of each image, all queries together

    def where(self, inside: NDArray[np.bool_]) -> ConfidentBoxes:
        """Return some of the boxes, with all objects."""
        return self._replace(
            confidence=self.confidence[inside], hit=self.hit[inside], image=self.image[inside]
        )


def reliability(boxes: ConfidentBoxes) -> list[Bin]:
    """Return the reliability diagram: every bin with a box that has a confidence."""
    boxes = boxes.where(~np.isnan(boxes.confidence))
    bins = np.minimum((boxes.confidence * BINS).astype(int), BINS - 1)
    return [
        Bin(
            low=at / BINS,
            high=(at + 1) / BINS,
            boxes=int((bins == at).sum()),
            confidence=float(boxes.confidence[bins == at].mean()),
            hits=float(boxes.hit[bins == at].mean()),
        )
        for at in np.unique(bins).tolist()
    ]


def calibration_error(bins: Sequence[Bin]) -> float | None:
    """Return the expected calibration error, 0 to 1, weighted by boxes.

    >>> calibration_error([Bin(0, 0.1, 1, 0.05, 0.05), Bin(0.9, 1, 3, 0.95, 0.75)])
    0.15
    """
    boxes = sum(each.boxes for each in bins)
    if not boxes:
        return None
    error = sum(each.boxes * abs(each.confidence - each.hits) for each in bins)
    return round(error / boxes, 12)
