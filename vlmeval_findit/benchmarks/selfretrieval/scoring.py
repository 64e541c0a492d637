"""Replies as rows of sums, and what the report draws of them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from ...core.drawing import Drawing, DrawnLine, DrawnPicture, Role
from ...core.replies import Reply
from ...core.scored_row import ScoredRow
from .captions import Captions, Why, nothing, read, why_of
from .judging import Judged, JudgedCaption, Nearness
from .metrics import PUBLISHED, sums
from .pairs import Both, Pair, Side


def read_reply(reply: Reply) -> Captions:
    """The captions of a row; a failed call has none, and neither has one that only thought."""
    if reply.failed:
        return nothing(Why.FAILED)
    if reply.ends_in_thought:
        return nothing(Why.TRUNCATED)
    return read(reply.text)


def scored_row(pair: Pair, judged: Judged) -> ScoredRow:
    """A pair as a row of sums, with all that is known of it."""
    why = why_of(Both(judged.left.said, judged.right.said))
    failed = why is Why.FAILED
    return ScoredRow(
        index=pair.index,
        source=pair.uid,
        sums=sums(judged, failed),
        failed=failed,
        reason=None if why is None else why.value,
        slices={"attribute": pair.attribute} if pair.attribute else {},
        details={
            "label": pair.label,
            "images": list(pair.images),
            **{side.value: _details(judged.of(side)) for side in Side},
        },
    )


def _details(one: JudgedCaption) -> dict[str, Any]:
    if one.said.why is not None:
        return {"caption": None, "why": one.said.why.value}
    return {
        "caption": one.said.caption,
        "tokens": one.tokens,
        "cut": one.cut,
        "default": _cosines(one.default),
        PUBLISHED: _cosines(one.published),
    }


def _cosines(found: Nearness | None) -> dict[str, Any] | None:
    """Cosines as JSON has them: null for what is no finite number."""
    if found is None:
        return None
    own, other = (round(n, 6) if isfinite(n) else None for n in (found.own, found.other))
    return {"own": own, "other": other, "right": found.right}


# --- what the report shows ------------------------------------------------------------------------


def draw(pair: Pair, row: ScoredRow) -> Drawing:
    """Both pictures, and of each its caption with how near it is to either, read both ways."""
    pictures = tuple(
        DrawnPicture(path, 0, 0, at, name=side.value)
        for at, (path, side) in enumerate(zip(pair.images, Side, strict=True))
    )
    said = [(side.value, row.details[side.value]) for side in Side]
    captions = [_caption_line(side, details) for side, details in said]
    beside = [
        _line(f"{PUBLISHED}, {side} image", details[PUBLISHED])
        for side, details in said
        if details["caption"] is not None
    ]
    return Drawing(pictures, lines=(*captions, *beside))


def _caption_line(side: str, details: Mapping[str, Any]) -> DrawnLine:
    what = f"caption of the {side} image"
    if details["caption"] is None:
        return DrawnLine(Role.MISS, f"{what}: there is none ({details['why']})")
    line = _line(what, details["default"])
    cut = f" (cut: it has {details['tokens']} tokens)" if details["cut"] else ""
    return line._replace(text=f"{line.text}{cut} — {details['caption']}")


def _line(what: str, found: Mapping[str, Any]) -> DrawnLine:
    own, other = ("no number" if n is None else f"{n:.3f}" for n in (found["own"], found["other"]))
    role = Role.HIT if found["right"] else Role.MISS
    return DrawnLine(role, f"{what}: own {own}, other {other}")
