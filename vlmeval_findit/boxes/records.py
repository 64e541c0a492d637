"""The frozen records that travel between the stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from .representation import Corners


class Mask(Protocol):
    """The pixels of an object, among ``height`` x ``width`` of its picture.

    ``packed`` are its run lengths as COCO packs them.
    """

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
    """An object that counts neither way: nobody has to find it, and whoever does is not wrong.

    ``box`` is (x1, y1, x2, y2) in pixels, in the frame ``frame``; ``label`` is empty where the
    query has one label.  Of a ``crowd``, a region of many objects, an answer need only lie in it:
    what counts is the share of the answer's own area.
    """

    box: Corners
    frame: int = 0
    label: str = ""
    crowd: bool = False
    mask: Mask | None = None


@dataclass(frozen=True, slots=True)
class Truth:
    """The ground truth of one query.

    ``boxes[i]`` is (x1, y1, x2, y2) in pixels of the original image, ``frames[i]`` the frame that
    it is in, counted from 0 (always 0 for an image), ``labels[i]`` its label (``labels`` is empty
    where the query has one label).  Boxes are in frame order.  ``masks[i]`` are the pixels of the
    object, or None where its box alone is known (``masks`` is empty where no object has any);
    whether a box is a hit never depends on them.  ``ignored`` are objects that are none of these
    and count neither way.
    """

    boxes: tuple[Corners, ...]
    frames: tuple[int, ...]
    labels: tuple[str, ...] = ()
    masks: tuple[Mask | None, ...] = ()
    ignored: tuple[Ignored, ...] = ()


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
    """What was read from one reply.

    ``boxes[i]`` is (x1, y1, x2, y2) in the units of the reply; a point has x1 = x2 and y1 = y2.
    ``labels`` is empty where the query
    has one label.  ``frames`` (counted from 0) is empty for images.  ``reason`` is None for a reply
    that adheres to its format; boxes may have been read all the same where it is not None.

    A named tuple, not a dataclass: one is made for every reply, and this is the quickest frozen
    record that Python has.
    """

    boxes: list[Corners]
    labels: list[str]
    frames: list[int]
    reason: Reason | None


NO_BOX = -1
"""In place of a box's place: none was assigned."""


class Matched(NamedTuple):
    """One reading against its ground truth.

    ``boxes[i]`` is the i-th box that was read, (x1, y1, x2, y2) in pixels of the original image.
    The rest is of the j-th object: ``ious[j]`` is the IoU with the box that was assigned to it (0
    when there is none), ``hits[j]`` whether it counts as found (IoU at least 0.5 and agreeing
    labels), ``assigned[j]`` the place of that box among ``boxes`` (:data:`NO_BOX` when there is
    none) and ``labels_agree[j]`` whether the two have the same label (empty where nothing has
    labels).  Of points ``ious[j]`` is 1 where the point lies in the object, else 0.  ``ignored``
    are the places of boxes that are no hit but find an ignored object: they do not count.
    """

    boxes: list[list[float]]
    ious: list[float]
    hits: list[bool]
    assigned: list[int]
    labels_agree: Sequence[bool]
    ignored: Sequence[int] = ()

    @property
    def counted(self) -> int:
        """How many boxes count, as hits or as boxes too many."""
        return len(self.boxes) - len(self.ignored)

    @property
    def tp(self) -> int:
        return sum(self.hits)
