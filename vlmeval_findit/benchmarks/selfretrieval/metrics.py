"""The figures of self-retrieval as ratios of sums: by default, and beside it as published."""

from __future__ import annotations

from ...core.metric import Metric
from .judging import Judged, JudgedCaption

PUBLISHED = "as published"
"""What figures without padding are called: so the authors' were made."""

METRICS = (
    Metric("Pairs", {"both": 1}, {"pairs": 1}, key="pairs"),
    Metric("Captions", {"right": 1}, {"captions": 1}, key="captions"),
    Metric(f"Pairs {PUBLISHED}", {"both_published": 1}, {"pairs": 1}, key="pairs_as_published"),
    Metric(
        f"Captions {PUBLISHED}",
        {"right_published": 1},
        {"captions": 1},
        key="captions_as_published",
    ),
)
"""Pairs with both captions right, and right captions; chance is 25 and 50 %."""

WITH_FAILURES = Metric(
    "Pairs (failed calls as wrong)", {"both": 1}, {"asked": 1}, key="pairs_failed_wrong"
)
"""The headline when a failed call counts as two wrong captions."""

RANKING = (WITH_FAILURES, METRICS[1])

COUNTS = {
    "ties": "ties",
    "equal captions": "equal",
    "unread captions": "unread",
    "cut captions": "cut",
}
"""Sums that stand in a score's table, by what they are called there; ``equal`` counts pairs."""

SUMS = ("pairs", "captions", "both", "right", "both_published", "right_published", *COUNTS.values())


def sums(judged: Judged, failed: bool) -> dict[str, float]:
    """The sums of a pair; a failed call is in ``asked`` and ``failed`` alone."""
    found: dict[str, float] = {**dict.fromkeys(SUMS, 0), "asked": 1, "failed": int(failed)}
    if failed:
        return found
    sides: tuple[JudgedCaption, ...] = tuple(judged)
    texts = [one.said.caption for one in sides]
    return found | {
        "pairs": 1,
        "captions": len(sides),
        "both": int(all(one.right for one in sides)),
        "right": sum(one.right for one in sides),
        "both_published": int(all(one.right_as_published for one in sides)),
        "right_published": sum(one.right_as_published for one in sides),
        "ties": sum(one.default is not None and one.default.tie for one in sides),
        "equal": int(texts[0] is not None and texts[0] == texts[1]),
        "unread": texts.count(None),
        "cut": sum(one.cut for one in sides),
    }
