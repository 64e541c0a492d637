"""Metrics as ratios of sums, replies as rows of sums, and the report's drawings."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from ...protocol import Drawing, DrawnImage, DrawnLine, Metric, Role, ScoredRow
from .caption_reading import missing_reason
from .caption_scoring import ImageSimilarity, ScoredCaption, ScoredCaptions
from .image_pairs import ImagePair, PairSide

PUBLISHED = "as published"  # metrics without padding, like the authors'

# Pairs with both captions right, and right captions; chance is 25 and 50 %.
METRICS = (
    Metric("Pairs", {"both": 1}, {"pairs": 1}, key="pairs"),
    Metric("Captions", {"right": 1}, {"captions": 1}, key="captions"),
    Metric(f"Pairs {PUBLISHED}", {"both_published": 1}, {"pairs": 1}, key="pairs_as_published"),
    Metric(f"Captions {PUBLISHED}", {"right_published": 1}, {"captions": 1},
           key="captions_as_published"),
)  # fmt: skip

# The headline when a failed call counts as two wrong captions.
WITH_FAILURES = Metric(
    "Pairs (failed calls as wrong)", {"both": 1}, {"asked": 1}, key="pairs_failed_wrong"
)

RANKING = (WITH_FAILURES, METRICS[1])

COUNTS = {  # sums in a score's table, by their names there; ``equal`` counts pairs
    "ties": "ties",
    "equal captions": "equal",
    "unread captions": "unread",
    "cut captions": "cut",
}

_SUMS = ("pairs", "captions", "both", "right", "both_published", "right_published")


def sums(captions: ScoredCaptions, failed: bool) -> dict[str, float]:
    """Compute a pair's sums; a failed call counts only in ``asked`` and ``failed``."""
    result: dict[str, float] = {"asked": 1, "failed": int(failed)}
    if failed:
        return dict.fromkeys((*_SUMS, *COUNTS.values()), 0) | result
    left, right = captions
    texts = [left.parsed.caption, right.parsed.caption]
    return {
        "pairs": 1,
        "captions": 2,
        "both": int(left.right and right.right),
        "right": left.right + right.right,
        "both_published": int(left.right_as_published and right.right_as_published),
        "right_published": left.right_as_published + right.right_as_published,
        "ties": sum(side.default is not None and side.default.tie for side in captions),
        "equal": int(texts[0] is not None and texts[0] == texts[1]),
        "unread": texts.count(None),
        "cut": left.cut + right.cut,
        **result,
    }


def scored_row(pair: ImagePair, captions: ScoredCaptions, failed: bool) -> ScoredRow:
    """Convert a judged pair to a row of sums with its details."""
    return ScoredRow(
        index=pair.index,
        source=pair.uid,
        sums=sums(captions, failed),
        failed=failed,
        reason=missing_reason(item.parsed for item in captions),
        slices={"attribute": pair.attribute} if pair.attribute else {},
        details={
            "label": pair.label,
            "images": list(pair.images),
            **{side.value: _details(captions.value(side)) for side in PairSide},
        },
    )


def _details(caption: ScoredCaption) -> dict[str, Any]:
    if caption.parsed.why is not None:
        return {"caption": None, "why": caption.parsed.why}
    return {
        "caption": caption.parsed.caption,
        "tokens": caption.tokens,
        "cut": caption.cut,
        "default": _cosines(caption.default),
        PUBLISHED: _cosines(caption.published),
    }


def _cosines(result: ImageSimilarity | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "own": _rounded(result.image),
        "other": _rounded(result.other),
        "right": result.right,
    }


def _rounded(cosine: float) -> float | None:
    return round(cosine, 6) if isfinite(cosine) else None


def draw(pair: ImagePair, row: ScoredRow) -> Drawing:
    """Draw both images, and each caption with both its similarities, padded and unpadded."""
    images = tuple(
        DrawnImage(path, 0, 0, at, name=side.value)
        for at, (path, side) in enumerate(zip(pair.images, PairSide, strict=True))
    )
    sides = [(side.value, row.details[side.value]) for side in PairSide]
    lines = [_caption_line(side, details) for side, details in sides]
    for side, details in sides:
        if details["caption"] is not None:
            lines.append(_line(f"{PUBLISHED}, {side} image", details[PUBLISHED]))
    return Drawing(images, lines=tuple(lines))


def _caption_line(side: str, details: Mapping[str, Any]) -> DrawnLine:
    what = f"caption of the {side} image"
    if details["caption"] is None:
        return DrawnLine(Role.MISS, f"{what}: there is none ({details['why']})")
    line = _line(what, details["default"])
    cut = f" (cut: it has {details['tokens']} tokens)" if details["cut"] else ""
    return line._replace(text=f"{line.text}{cut} — {details['caption']}")


def _line(what: str, result: Mapping[str, Any]) -> DrawnLine:
    role = Role.HIT if result["right"] else Role.MISS
    return DrawnLine(
        role, f"{what}: its image {_shown(result['own'])}, the other {_shown(result['other'])}"
    )


def _shown(cosine: float | None) -> str:
    return "no number" if cosine is None else f"{cosine:.3f}"
