"""One reply: its boxes in pixels, and what kind of answer it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..benchmarks.findit.box_metrics import NegativeOutcome, outcome
from ..benchmarks.findit.findit_query import FindItQuery
from ..benchmarks.findit.reply_scoring import match_replies
from ..boxes.records import FormatFailure, Truth
from ..boxes.representation import Corners, MatchRule
from ..runs.open_predictions import check_replies
from .given import Size, sizes_of
from .questions import ReplyLike, SpaceLike, replies_of, settings_of, task_of, variant_of


class Kind(Enum):
    """What kind of answer a reply is: exactly one."""

    BOXES = "boxes"
    NO_BOX = "no box"
    """It says in the form that was asked for that there is none."""
    NOT_READABLE = "not readable"
    FAILED = "failed call"


_KINDS = {
    NegativeOutcome.FALSE_ALARM: Kind.BOXES,
    NegativeOutcome.REJECTED: Kind.NO_BOX,
    NegativeOutcome.UNREADABLE: Kind.NOT_READABLE,
    NegativeOutcome.REFUSED: Kind.NOT_READABLE,
    NegativeOutcome.EMPTY: Kind.NOT_READABLE,
    NegativeOutcome.FAILED: Kind.FAILED,
}
"""What a reply is where nothing is to be found says what it is anywhere."""


@dataclass(frozen=True, slots=True)
class Read:
    """What was read from one reply.

    ``boxes[i]`` is (x1, y1, x2, y2) in pixels of the original picture, ``labels[i]`` its label
    (empty where the query has one label), ``frames[i]`` its frame, counted from 0 (empty for one
    picture).  Points are boxes without extent, and ``match_rule`` says so.  ``reason`` says why the
    reply is not as its format prescribes (None: it is); boxes may have been read all the same.
    """

    boxes: tuple[Corners, ...]
    labels: tuple[str, ...]
    frames: tuple[int, ...]
    reason: FormatFailure | None
    kind: Kind
    match_rule: MatchRule = MatchRule.BOX_OVERLAP


_NOTHING = Truth((), ())


def read(
    text: ReplyLike,
    format: str,
    *,
    size: Size,
    space: SpaceLike | None = None,
    frames: int = 1,
    multilabel: bool = False,
) -> Read:
    """Read a reply as its prompt prescribed.

    >>> answer = read('[{"bbox": [100, 200, 500, 800]}]', "xyxy_json", size=(640, 480),
    ...               space="grid1000")
    >>> answer.boxes, answer.kind
    (((64.0, 96.0, 320.0, 384.0),), <Kind.BOXES: 'boxes'>)

    No box, not readable and failed are three different things:

    >>> for text in ("[]", "I see no dog.", None):
    ...     print(read(text, "xyxy_json", size=(640, 480), space="grid1000").kind.value)
    no box
    not readable
    failed call

    Args:
        text: what the model said; None where the call failed.
        format: as in a FindIt name: ``xyxy_json``, ``cxcywh_text``, ``xyxy_json_bbox_2d`` …
        size: (width, height) of the original picture in pixels.
        space: in which coordinates the model answers (None: as the reply recorded); never guessed.
        frames: how many frames it was shown.
        multilabel: whether boxes have labels of their own.

    Raises:
        VariantError: there is no such format.
        ValueError: the size is none.
        SpaceError: nothing says the coordinate space, or there is no such one.
        IdentityError: the reply recorded another space.
    """
    variant = variant_of(format, frames, multilabel)
    replies = replies_of([text])
    (whole,) = sizes_of([size], 1)
    task = task_of(variant, [FindItQuery(0, "", *whole, ("",) * frames, _NOTHING)])
    settings = check_replies("", task, replies, settings_of(space, replies)).settings
    (one,), _ = match_replies("", task, replies, settings, None)
    return Read(
        one.matched.boxes,
        one.reading.labels,
        one.reading.frames,
        one.reading.reason,
        _KINDS[outcome(one.reply, one.reading, one.lenient)],
        one.match_rule,
    )
