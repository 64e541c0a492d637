"""Boxes of scored rows with their confidences: what calibration and curves are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..boxes.confidences import MEANS
from ..core.scored_row import ScoredRow

Array = NDArray[np.float64]


class ConfidenceError(ValueError):
    """Confidences that cannot be used, or not computed with."""


class NoConfidenceError(ConfidenceError):
    """A run without confidences; the message says how to get them."""

    @classmethod
    def of_run(cls, predictions: Path, definition: str = "") -> NoConfidenceError:
        which = f"has a confidence {definition!r}" if definition else "has a confidence"
        return cls(
            f"{predictions}: none of its boxes {which}: that needs the probabilities of the "
            "tokens of its replies. Ask again with --logprobs (run, search, sweep), of a "
            "model that runs here or of a server that gives logprobs"
            + (", in a format that says labels" * (definition == "label"))
        )


def confidences_of(row: ScoredRow, definition: str) -> list[float | None]:
    """Return the confidence of each box of a row or None; ConfidenceError if damaged."""
    boxes = len(row.details["boxes"])
    values = row.details.get("confidences", {}).get(definition)
    if values is None:
        return [None] * boxes
    numbers = isinstance(values, list) and all(isinstance(n, float | int | None) for n in values)
    if not numbers or len(values) != boxes:
        raise ConfidenceError(f"row {row.index}: {values!r:.40} is no confidence of {boxes} boxes")
    return list(values)


def definitions_in(rows: Sequence[ScoredRow]) -> list[str]:
    """Return the definitions by which some box of these rows has a confidence."""
    names = {name for row in rows for name in row.details.get("confidences", {})}
    return [name for name in MEANS if name in names]


@dataclass(frozen=True, slots=True)
class RowBoxes:
    """Boxes of answered rows as arrays, one entry a box."""

    confidence: Array  # NaN: none
    hit: NDArray[np.bool_]  # Matched to an object of its label with an IoU of at least 0.5
    image: NDArray[np.intp]  # Index of its image
    objects: Array  # Number of objects of each image, all queries together

    def where(self, inside: NDArray[np.bool_]) -> RowBoxes:
        return RowBoxes(self.confidence[inside], self.hit[inside], self.image[inside], self.objects)

    @property
    def with_confidence(self) -> RowBoxes:
        return self.where(~np.isnan(self.confidence))


def boxes_of_rows(rows: Sequence[ScoredRow], definition: str) -> RowBoxes:
    """Collect the boxes that count, with their confidences by one definition.

    Failed calls have none.
    """
    answered = [row for row in rows if not row.failed]
    place = {name: at for at, name in enumerate(sorted({row.source for row in answered}))}
    confidence: list[float] = []
    hit: list[bool] = []
    image: list[int] = []
    objects = np.zeros(len(place))
    for row in answered:
        details, at = row.details, place[row.source]
        assigned = zip(details["assigned"], details["hits"], strict=True)
        hits = {box for box, is_hit in assigned if is_hit}
        ignored = {*details.get("ignored", ())}
        for box, value in enumerate(confidences_of(row, definition)):
            if box not in ignored:
                confidence.append(np.nan if value is None else value)
                hit.append(box in hits)
                image.append(at)
        objects[at] += len(details["assigned"])
    return RowBoxes(
        np.array(confidence, dtype=float),
        np.array(hit, dtype=bool),
        np.array(image, dtype=np.intp),
        objects,
    )
