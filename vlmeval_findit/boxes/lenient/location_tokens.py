"""Location tokens: numbers that models were trained to write as special tokens.

They state their order and their unit, so nothing is guessed: they are fractions of the image,
whatever the run's coordinate space, and are written in its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..representation import REPRESENTATIONS, MatchRule, ReplyFormat
from ..spaces import ImageExtent
from .records import Candidate, Repair

_REPAIRS = frozenset({Repair.TOKENS})


@dataclass(frozen=True, slots=True)
class LocationTokens:
    """How a family of models writes the numbers of a box."""

    box: re.Pattern[str]  # Four numbers
    order: str  # Their representation
    steps: int  # Numbers stand for so many steps over the width or height
    shift: float  # From a number to its place, in steps


def _four(token: str) -> re.Pattern[str]:
    return re.compile(r"\s*+".join([token] * 4))


TOKENS = {
    "PaliGemma": LocationTokens(_four(r"<loc(\d{4})>"), "yxyx", 1024, 0.0),
    "Florence-2": LocationTokens(_four(r"<loc_(\d{1,3})>"), "xyxy", 1000, 0.5),
}


def boxes_in_tokens(
    text: str, fmt: ReplyFormat, extent: ImageExtent
) -> Iterator[tuple[int, int, Candidate]]:
    """Yield start, end and box of location tokens.

    Args:
        text: a reply.
        fmt: the format asked for; the numbers of a box are in its order.
        extent: where the image lies in the numbers of a reply.

    >>> boxes = boxes_in_tokens("<loc0256><loc0512><loc0768><loc1023>",
    ...     ReplyFormat("text", "xyxy"), ImageExtent(1024, 1024))
    >>> [box.numbers for start, end, box in boxes]
    [(512.0, 256.0, 1023.0, 768.0)]
    """
    if fmt.numbers.match_rule is not MatchRule.BOX_OVERLAP or "<loc" not in text:
        return
    for tokens in TOKENS.values():
        to_corners = REPRESENTATIONS[tokens.order].to_corners
        for match in tokens.box.finditer(text):
            x1, y1, x2, y2 = to_corners([int(n) + tokens.shift for n in match.groups()])
            across = extent.width / tokens.steps
            down = extent.height / tokens.steps
            corners = (
                extent.left + x1 * across,
                extent.top + y1 * down,
                extent.left + x2 * across,
                extent.top + y2 * down,
            )
            numbers = tuple(fmt.numbers.from_corners(corners))
            yield match.start(), match.end(), Candidate("", None, numbers, _REPAIRS)
