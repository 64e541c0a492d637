"""The boxes of scored rows with their confidences: what calibration and curves are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..boxes.confidences import DEFINITIONS
from ..core.scored_row import ScoredRow

Array = NDArray[np.float64]


class ConfidenceError(ValueError):
    """A run without confidences; the message says how to get them."""

    @classmethod
    def of_run(cls, predictions: Path, definition: str = "") -> ConfidenceError:
        which = f"has a confidence {definition!r}" if definition else "has a confidence"
        return cls(
            f"{predictions}: none of its boxes {which}: that needs the probabilities of the "
            "tokens of its replies. Ask again with --logprobs (--data, search, sweep), of a "
            "model that runs here or of a server that gives logprobs"
            + (", in a format that says labels" * (definition == "label"))
        )


def confidences_of(row: ScoredRow, definition: str) -> list[float | None]:
    """The confidence of every box of a row; None where a box has none.

    Raises:
        ConfidenceError: the row holds others than of its boxes: its file is damaged.
    """
    boxes = len(row.details["boxes"])
    said = row.details.get("confidences", {}).get(definition)
    if said is None:
        return [None] * boxes
    numbers = isinstance(said, list) and all(isinstance(n, float | int | None) for n in said)
    if not numbers or len(said) != boxes:
        raise ConfidenceError(f"row {row.index}: {said!r:.40} is no confidence of {boxes} boxes")
    return list(said)


def defined(rows: Sequence[ScoredRow]) -> list[str]:
    """The definitions by which some box of these rows has a confidence."""
    there = {name for row in rows for name in row.details.get("confidences", {})}
    return [name for name in DEFINITIONS if name in there]


@dataclass(frozen=True, slots=True)
class RowBoxes:
    """Boxes of answered rows as arrays, one entry a box.

    ``confidence`` is NaN where a box has none; ``hit`` says that it was assigned to an object of
    its label with an IoU of at least 0.5; ``picture`` is the place of its picture.  ``objects`` is
    how many objects each picture has, all queries of it together.
    """

    confidence: Array
    hit: NDArray[np.bool_]
    picture: NDArray[np.intp]
    objects: Array

    @property
    def known(self) -> RowBoxes:
        """The boxes that have a confidence."""
        kept = ~np.isnan(self.confidence)
        return RowBoxes(self.confidence[kept], self.hit[kept], self.picture[kept], self.objects)


def boxes_of_rows(rows: Sequence[ScoredRow], definition: str) -> RowBoxes:
    """The boxes of rows that count, with their confidences by one definition.

    Failed calls have none.
    """
    answered = [row for row in rows if not row.failed]
    place = {name: at for at, name in enumerate(sorted({row.source for row in answered}))}
    confidence: list[float] = []
    hit: list[bool] = []
    picture: list[int] = []
    objects = np.zeros(len(place))
    for row in answered:
        details = row.details
        taken = zip(details["assigned"], details["hits"], strict=True)
        hits = {box for box, found in taken if found}
        said, ignored = confidences_of(row, definition), {*details.get("ignored", ())}
        counted = [at for at in range(len(said)) if at not in ignored]
        confidence += [np.nan if (c := said[at]) is None else c for at in counted]
        hit += [at in hits for at in counted]
        picture += [place[row.source]] * len(counted)
        objects[place[row.source]] += len(details["assigned"])
    return RowBoxes(
        np.array(confidence, dtype=float),
        np.array(hit, dtype=bool),
        np.array(picture, dtype=np.intp),
        objects,
    )
