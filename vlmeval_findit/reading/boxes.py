"""What all formats of replies share: numbers that become boxes, and boxes in frames.

Every way of writing a box comes down to two questions that are answered once, in
:func:`numbers_to_corners`: are these numbers finite, and which rectangle are they?
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

from ..records import Reading, Reason
from ..representation import Corners, Representation
from ..variant import ReplyFormat

OPEN, CLOSE = "<|begin_of_box|>", "<|end_of_box|>"
"""The markers that GLM puts around its answer."""


def numbers_to_corners(row: Representation, values: Sequence[Any]) -> Corners | Reason:
    """The box that these values are in a representation, or why they are none."""
    if len(values) != row.width:
        return Reason.WRONG_SHAPE
    try:
        numbers = tuple(map(float, values))
    except OverflowError:
        return Reason.NOT_FINITE
    except (TypeError, ValueError):
        return Reason.NOT_A_NUMBER
    # A sum is finite only if all of its terms are; the second look is for huge finite numbers.
    if not isfinite(sum(numbers)) and not all(map(isfinite, numbers)):
        return Reason.NOT_FINITE
    return row.to_corners(numbers)


class Boxes:
    """The boxes of one reply while it is read: keeps the first reason against the reply."""

    __slots__ = ("boxes", "frames", "labels", "reason")

    def __init__(self) -> None:
        self.boxes: list[Corners] = []
        self.labels: list[str] = []
        self.frames: list[int] = []
        self.reason: Reason | None = None

    def blame(self, reason: Reason) -> None:
        if self.reason is None:
            self.reason = reason

    def add(self, box: Corners | Reason) -> bool:
        """Take a box; or, if it is none, remember why.  Says whether it was taken."""
        if isinstance(box, tuple):
            self.boxes.append(box)
            return True
        self.blame(box)
        return False

    def done(self) -> Reading:
        return Reading(self.boxes, self.labels, self.frames, self.reason)


def nothing(reason: Reason | None) -> Reading:
    """The reading of a reply without boxes."""
    return Reading([], [], [], reason)


def as_index(value: object) -> int | None:
    """What ``int()`` makes of a value; None where it makes nothing of it."""
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError, OverflowError):
        # A run of thousands of digits is a number, but no frame has it.
        return _NO_SUCH_FRAME if isinstance(value, str) and value.strip().isdecimal() else None


_NO_SUCH_FRAME = 10**9


def in_frames(
    how: ReplyFormat,
    entries: Iterable[tuple[int, str, Sequence[Any]]],
    indices: Iterable[int],
    found: Boxes,
) -> Reading:
    """Boxes in their frames.  Numbers count from 0 if the smallest of ``indices`` is 0, else 1."""
    first = 0 if min(indices) == 0 else 1
    for index, label, values in entries:
        frame = index - first
        if not 0 <= frame < how.frames:
            found.blame(Reason.FRAME_OUT_OF_RANGE)
        elif found.add(numbers_to_corners(how.row, values)):
            found.frames.append(frame)
            if how.multilabel:
                found.labels.append(label)
    return found.done()
