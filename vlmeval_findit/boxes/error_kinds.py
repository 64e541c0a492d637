"""The kinds of errors of boxes: what each leaves out of a score, and what it is called."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from ..core.anatomy import Cause, cause
from .matching import HIT

NEAR = 0.1
"""IoU from which a box that is no hit is taken for one of the object."""


class Lacks(Enum):
    """What an event leaves out of the score: that decides its price."""

    PAIR = "pair"
    """A box that is no hit and the object that it should have been."""
    BOX = "box"
    """A box too many."""
    OBJECT = "object"
    """An object too few."""
    NOTHING = "nothing"


class Kind(Enum):
    """Why there is no hit; the value is its name for people.  In order of display."""

    FAILED_CALL = "failed call"
    TRUNCATED = "truncated"
    SALVAGEABLE = "salvageable"
    NOT_READABLE = "not readable"
    NO_RECTANGLE = "no rectangle"
    WRONG_FRAME = "wrong frame"
    LOCALISATION = "localisation"
    WRONG_LABEL = "wrong label"
    BOTH = "both"
    DUPLICATE = "duplicate"
    BACKGROUND = "background"
    MISSED = "missed"
    REFUSED = "refused"
    FALSE_ALARM = "false alarm"
    REJECTED = "rejected rightly"


_MEANINGS: Mapping[Kind, tuple[Lacks, str]] = {
    Kind.FAILED_CALL: (Lacks.OBJECT, "the call failed: there is no reply"),
    Kind.TRUNCATED: (Lacks.OBJECT, "the reply, or its thinking, was cut off before the object"),
    Kind.SALVAGEABLE: (Lacks.OBJECT, "a tolerant reader finds it in a reply not as asked"),
    Kind.NOT_READABLE: (Lacks.OBJECT, "the reply is empty or not as asked, and holds no such box"),
    Kind.NO_RECTANGLE: (Lacks.PAIR, "a box was said, but its numbers make none, or it has no area"),
    Kind.WRONG_FRAME: (Lacks.PAIR, "the right box in another frame, or in one that is none"),
    Kind.LOCALISATION: (Lacks.PAIR, f"the right label, IoU from {NEAR} to below {HIT}"),
    Kind.WRONG_LABEL: (Lacks.PAIR, f"the right place (IoU {HIT} or more), another label"),
    Kind.BOTH: (Lacks.PAIR, f"another label, and IoU from {NEAR} to below {HIT}"),
    Kind.DUPLICATE: (Lacks.BOX, "one more box of an object that is found"),
    Kind.BACKGROUND: (Lacks.BOX, "a box where nothing asked for is"),
    Kind.MISSED: (Lacks.OBJECT, "other boxes were said, none of this object"),
    Kind.REFUSED: (Lacks.OBJECT, "no box was said, though there are objects"),
    Kind.FALSE_ALARM: (Lacks.BOX, "a box, though there is nothing to find"),
    Kind.REJECTED: (Lacks.NOTHING, "rightly no box: nothing to find; costs nothing"),
}

CAUSES: Mapping[Kind, Cause] = {
    kind: cause(kind.value, meaning) for kind, (_, meaning) in _MEANINGS.items()
}


def usually(kind: Kind) -> Lacks:
    """What most events of a kind leave out, whatever single ones do."""
    return _MEANINGS[kind][0]


class Event(NamedTuple):
    """One error: the places of its box and of its object in their query, where it has them."""

    kind: Kind
    box: int | None = None
    object: int | None = None

    @property
    def lacks(self) -> Lacks:
        """What it leaves out.

        >>> Event(Kind.NO_RECTANGLE, None, 0).lacks
        <Lacks.OBJECT: 'object'>
        """
        if self.box is None:
            return Lacks.NOTHING if self.object is None else Lacks.OBJECT
        return Lacks.BOX if self.object is None else Lacks.PAIR
