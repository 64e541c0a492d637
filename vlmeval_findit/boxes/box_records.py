"""The frozen records that travel between the stages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from .representation import Corners


class Mask(Protocol):
    """The pixels of an object; ``packed`` is its run lengths as COCO packs them."""

    @property
    def height(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def packed(self) -> str: ...
    @property
    def extent(self) -> Corners | None:
        """The box around its pixels; None: it has none."""
        ...

    def covers(self, x: float, y: float) -> bool:
        """Return whether the pixel at (x, y) is the object's; False outside the image."""
        ...


class Ignored(NamedTuple):
    """An object that does not count: no miss if not hit, no error if hit."""

    box: Corners  # (x1, y1, x2, y2) in pixels
    frame: int = 0
    label: str = ""  # Empty: the query's single label
    crowd: bool = False  # Many objects: compared by the share of the answer's area inside
    mask: Mask | None = None


@dataclass(frozen=True, slots=True)
class Truth:
    """The ground truth of a query; boxes are in frame order."""

    boxes: tuple[Corners, ...]  # (x1, y1, x2, y2) in pixels of the original image
    frames: tuple[int, ...]  # From 0; an image: 0
    labels: tuple[str, ...] = ()  # Empty: the query has one label
    # None or empty: only boxes are known; only points are compared with masks
    masks: tuple[Mask | None, ...] = ()
    ignored: tuple[Ignored, ...] = ()


class FormatFailure(Enum):
    """Why a reply does not adhere to its format: the first reason that was met."""

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


class ParsedReply(NamedTuple):
    """What was read from a reply; a named tuple for speed."""

    boxes: tuple[Corners, ...]  # (x1, y1, x2, y2) in units of the reply; a point: x1 = x2, y1 = y2
    labels: tuple[str, ...]  # Empty: the query has one label
    frames: tuple[int, ...]  # From 0; empty for images
    reason: FormatFailure | None  # None: it adheres; with a reason there may still be boxes


NO_BOX = -1  # In :attr:`MatchResult.assigned`: no box was assigned


class MatchResult(NamedTuple):
    """One reading matched with its ground truth; ``ious`` to ``labels_agree`` are per object."""

    boxes: tuple[Corners, ...]  # As read, (x1, y1, x2, y2) in pixels of the original image
    # With the assigned box (0: none); for points 1 inside the object, else 0
    ious: tuple[float, ...]
    hits: tuple[bool, ...]  # IoU at least 0.5 and agreeing labels
    assigned: tuple[int, ...]  # Places among ``boxes``, or :data:`NO_BOX`
    labels_agree: tuple[bool, ...]  # Empty: there are no labels
    ignored: tuple[int, ...] = ()  # Boxes that find an ignored object

    @property
    def counted(self) -> int:
        return len(self.boxes) - len(self.ignored)

    @property
    def tp(self) -> int:
        return sum(self.hits)
