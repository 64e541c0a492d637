"""What all formats of replies share: numbers that become boxes, and boxes in frames.

Every way of writing a box comes down to two questions that are answered once, in
:func:`numbers_to_corners`: are these numbers finite, and which rectangle are they?
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from math import isfinite
from typing import Any

from ..records import Reading, Reason
from ..reply_format import ReplyFormat
from ..representation import Corners, Representation

OPEN, CLOSE = "<|begin_of_box|>", "<|end_of_box|>"
"""The markers that GLM puts around its answer."""


Said = tuple[str, Sequence[Any] | Reason]
"""A label and the numbers under it, or why there are none."""


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


_FEW = 16
"""Boxes of a reply that are quicker converted one by one."""


def all_corners(row: Representation, values: Sequence[Sequence[Any]]) -> list[Corners] | None:
    """What :func:`numbers_to_corners` makes of each, at once; None where one is no box, or where
    one by one is quicker.
    """
    width = row.width
    try:
        if len(values) < _FEW or set(map(len, values)) != {width}:
            return None
        numbers = list(map(float, chain.from_iterable(values)))
    except (TypeError, ValueError, OverflowError):
        return None
    if not isfinite(sum(numbers)):
        return None
    return list(map(row.to_corners, zip(*[iter(numbers)] * width, strict=True)))


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

    def add_all(self, row: Representation, said: Sequence[Said], labelled: bool) -> None:
        """Take what boxes were said to be, with their labels, in its order."""
        together = all_corners(row, [values for _, values in said])  # type: ignore[misc]
        if together is not None:
            self.boxes += together
            if labelled:
                self.labels += [label for label, _ in said]
            return
        for label, values in said:
            if isinstance(values, Reason):
                self.blame(values)
            elif self.add(numbers_to_corners(row, values)) and labelled:
                self.labels.append(label)

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
    entries: Sequence[tuple[int, str, Sequence[Any]]],
    indices: Iterable[int],
    found: Boxes,
) -> Reading:
    """Boxes in their frames.  Numbers count from 0 if the smallest of ``indices`` is 0, else 1."""
    first = 0 if min(indices) == 0 else 1
    frames = [index - first for index, _, _ in entries]
    together = None
    if entries and min(frames) >= 0 and max(frames) < how.frames:
        together = all_corners(how.numbers, [values for _, _, values in entries])
    if together is not None:
        found.boxes += together
        found.frames += frames
        if how.multilabel:
            found.labels += [label for _, label, _ in entries]
        return found.done()
    for frame, (_, label, values) in zip(frames, entries, strict=True):
        if not 0 <= frame < how.frames:
            found.blame(Reason.FRAME_OUT_OF_RANGE)
        elif found.add(numbers_to_corners(how.numbers, values)):
            found.frames.append(frame)
            if how.multilabel:
                found.labels.append(label)
    return found.done()
