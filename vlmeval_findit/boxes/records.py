"""The frozen records that travel between the stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from .representation import Corners


class Mask(Protocol):
    """The pixels of an object; ``packed`` are its run lengths as COCO packs them."""

    @property
    def height(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def packed(self) -> str: ...

    def covers(self, x: float, y: float) -> bool:
        """Whether the pixel that (x, y) lies in is the object's; outside the picture none is."""
        ...


class Ignored(NamedTuple):
    """An object that counts neither way: neither missed nor wrong."""

    box: Corners  # (x1, y1, x2, y2) in pixels
    frame: int = 0
    label: str = ""  # Empty: the query's one label
    # A region of many objects: counts which share of the answer's area lies in it
    crowd: bool = False
    mask: Mask | None = None


@dataclass(frozen=True, slots=True)
class Truth:
    """The ground truth of one query; boxes are in frame order."""

    boxes: tuple[Corners, ...]  # (x1, y1, x2, y2) in pixels of the original image
    frames: tuple[int, ...]  # From 0; an image: 0
    labels: tuple[str, ...] = ()  # Empty: the query has one label
    # None or empty: only boxes known; hits never depend on masks
    masks: tuple[Mask | None, ...] = ()
    ignored: tuple[Ignored, ...] = ()  # Count neither way


class Reason(Enum):
    """Why a reply does not adhere to its format: exactly one, the first that was met."""

    FAILED_CALL = "failed call"
    EMPTY = "empty"
    NOT_JSON = "not JSON"
    TRUNCATED = "truncated"
    TRUNCATED_THINKING = "truncated while thinking"
    NOT_A_LIST = "not a list"
    NOT_AN_OBJECT = "not an object"
    WRONG_KEY = "wrong key"
    WRONG_SHAPE = "wrong shape"
    NOT_A_NUMBER = "not a number"
    NOT_FINITE = "not finite"
    NO_BOX = "no box"
    NO_FRAME = "no frame index"
    FRAME_OUT_OF_RANGE = "frame out of range"


class Reading(NamedTuple):
    """What was read from one reply. A named tuple: the quickest frozen record (one a reply)."""

    boxes: list[Corners]  # (x1, y1, x2, y2) in units of the reply; a point has x1 = x2, y1 = y2
    labels: list[str]  # Empty: the query has one label
    frames: list[int]  # From 0; empty for images
    reason: Reason | None  # None: it adheres; otherwise there may be boxes, too


NO_BOX = -1  # in place of a box's place: none was assigned


class Matched(NamedTuple):
    """One reading against its ground truth; ``ious`` to ``labels_agree`` are by object."""

    boxes: list[list[float]]  # As read, (x1, y1, x2, y2) in pixels of the original image
    # With the assigned box (0: none); of points 1 where it lies in the object, else 0
    ious: list[float]
    hits: list[bool]  # IoU at least 0.5 and agreeing labels
    assigned: list[int]  # Places among ``boxes``, or :data:`NO_BOX`
    labels_agree: Sequence[bool]  # Empty: there are no labels
    ignored: Sequence[int] = ()  # Boxes that find an ignored object: they do not count

    @property
    def counted(self) -> int:
        """How many boxes count, as hits or as boxes too many."""
        return len(self.boxes) - len(self.ignored)

    @property
    def tp(self) -> int:
        return sum(self.hits)
