"""The boxes of a reply in pixels, and its kind."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..benchmarks.findit.box_metrics import NegativeOutcome, outcome
from ..benchmarks.findit.findit_query import FindItQuery
from ..benchmarks.findit.reply_scoring import match_replies
from ..boxes.records import FormatFailure
from ..boxes.representation import Corners, MatchRule
from ..runs.open_predictions import check_replies
from .custom_questions import (
    NOTHING_TO_FIND,
    ReplyLike,
    SpaceLike,
    replies_of,
    settings_of,
    task_of,
    variant_of,
)
from .inputs import Size, sizes_of


class ReplyKind(Enum):
    """The kind of a reply."""

    BOXES = "boxes"
    NO_BOX = "no box"  # It says, in the requested format, that there is none
    NOT_READABLE = "not readable"
    FAILED = "failed call"


_KINDS = {
    NegativeOutcome.FALSE_ALARM: ReplyKind.BOXES,
    NegativeOutcome.REJECTED: ReplyKind.NO_BOX,
    NegativeOutcome.FAILED: ReplyKind.FAILED,
}
"""Kinds by the outcome if there were nothing to find; others: not readable."""


@dataclass(frozen=True, slots=True)
class ReplyBoxes:
    """The boxes of a reply, and its kind."""

    boxes: tuple[Corners, ...]
    """(N, 4) corners (x1, y1, x2, y2) in pixels of the original image; a point has no extent."""
    labels: tuple[str, ...]
    """(N,) labels; empty if the query has a single label."""
    frames: tuple[int, ...]
    """(N,) frames counted from 0; empty if the query has a single frame."""
    reason: FormatFailure | None
    """Why the reply is not in its format (None: it is); it may have boxes nevertheless."""
    kind: ReplyKind
    match_rule: MatchRule = MatchRule.BOX_OVERLAP


def read(
    text: ReplyLike,
    format: str,
    *,
    size: Size,
    space: SpaceLike | None = None,
    frames: int = 1,
    multilabel: bool = False,
) -> ReplyBoxes:
    """Read a reply as its prompt prescribed.

    >>> answer = read('[{"bbox": [100, 200, 500, 800]}]', "xyxy_json", size=(640, 480),
    ...               space="grid1000")
    >>> answer.boxes, answer.kind
    (((64.0, 96.0, 320.0, 384.0),), <ReplyKind.BOXES: 'boxes'>)

    No box, not readable and a failed call are three different things:

    >>> for text in ("[]", "I see no dog.", None):
    ...     print(read(text, "xyxy_json", size=(640, 480), space="grid1000").kind.value)
    no box
    not readable
    failed call

    Args:
        text: the reply of a model; None: the call failed.
        format: the end of a FindIt name: ``xyxy_json``, ``cxcywh_text``, ``xyxy_json_bbox_2d`` …
        size: (width, height) of the original image in pixels.
        space: the coordinate space of the model's answers; None: from the reply's record. It
            is never guessed.
        frames: number of frames that the model was shown.
        multilabel: whether every box has a label.

    Returns:
        Boxes in pixels of the original image, in the order of the reply.

    Raises:
        VariantError: the format does not exist.
        ValueError: the size is not in whole pixels.
        SpaceError: the coordinate space is unknown.
        IdentityError: the reply recorded another space.
    """
    variant = variant_of(format, frames, multilabel)
    replies = replies_of([text])
    ((width, height),) = sizes_of([size], 1)
    query = FindItQuery(0, "", width, height, ("",) * frames, NOTHING_TO_FIND)
    task = task_of(variant, [query])
    settings = check_replies("", task, replies, settings_of(space, replies)).settings
    (matched,), _ = match_replies("", task, replies, settings, None)
    parsed = matched.reading
    return ReplyBoxes(
        matched.matched.boxes,
        parsed.labels,
        parsed.frames,
        parsed.reason,
        _KINDS.get(outcome(matched.reply, parsed, matched.lenient), ReplyKind.NOT_READABLE),
        matched.match_rule,
    )
