"""RefCOCO, RefCOCO+ and RefCOCOg without the expressions that the authors of Ref-L4 found wrong.

Reviews are joined by annotation id and expression, since an id has several expressions and copies
of the datasets renumber or lack ids.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from .accuracy_metrics import THRESHOLDS
from .refl4_annotations import RefusalCode, RefusedError, is_id, is_number, read_json

ID_KEYS = ("ann_id", "annotation_id", "original_id", "id")
EXPRESSION_KEYS = ("caption", "expression", "sentence", "sent", "raw")  # the first found counts


class ExpressionKey(NamedTuple):
    """An expression of one annotation, by which results and reviews are joined."""

    annotation_id: str
    expression: str  # lower case, single blanks


class Review(NamedTuple):
    """The authors' review of one expression."""

    key: ExpressionKey
    is_error: bool


class ExpressionResult(NamedTuple):
    """A program's result on one expression."""

    key: ExpressionKey
    is_hit: bool


class CleanedAccuracy(NamedTuple):
    """Hits with and without wrong expressions, and what found no partner."""

    hits: tuple[bool, ...]  # of all results
    joined: tuple[bool, ...]  # of those with a review
    kept: tuple[bool, ...]  # of those whose review is no error
    without_review: tuple[ExpressionKey, ...]
    without_result: tuple[ExpressionKey, ...]

    def lines(self, most: int = 5) -> list[str]:
        """List both accuracies, then what found no partner, at most ``most`` of each kind."""
        said = [
            f"original {_percent(self.hits)} % of {len(self.hits)} expressions, "
            f"kept {_percent(self.kept)} % of {len(self.kept)}"
        ]
        if self.without_review:
            said.append(
                f"{len(self.without_review)} expressions without a review (original without "
                f"them: {_percent(self.joined)} % of {len(self.joined)})"
            )
            said += _examples(self.without_review, most)
        if self.without_result:
            said.append(f"{len(self.without_result)} reviews without an expression")
            said += _examples(self.without_result, most)
        return said


def compare(results: Path, reviews: Iterable[Path]) -> CleanedAccuracy:
    """Join a file of results with files of reviews, or raise RefusedError with row and key."""
    return clean(read_results(results), chain.from_iterable(map(read_reviews, reviews)))


def plain_id(value: object) -> str | None:
    """Normalise an annotation id: 7, 7.0 and "7" are the same; None where it is no id."""
    if not is_id(value):
        return None
    if isinstance(value, str):
        text = value.strip()
        return str(int(text)) if text.isascii() and text.isdecimal() else text or None
    # isfinite cannot take an int of 400 digits.
    whole = isinstance(value, int) or (math.isfinite(value) and value == int(value))
    return str(int(value)) if whole else None


def read_results(path: Path) -> list[ExpressionResult]:
    """Read a JSON list of {id, expression, ``hit`` or ``iou``}, by their usual keys."""
    entries = read_json(path)
    if not isinstance(entries, list):
        raise RefusedError(RefusalCode.UNREADABLE, path.name, "is no list of results")
    return [_result(entry, f"{path.name}, row {i}") for i, entry in enumerate(entries)]


def _result(entry: Any, where: str) -> ExpressionResult:
    key = _key_of(entry, where)
    hit, iou = entry.get("hit"), entry.get("iou")
    if isinstance(hit, bool):
        return ExpressionResult(key, hit)
    if hit is not None:
        why = f"{hit!r} is neither true nor false"
        raise RefusedError(RefusalCode.BAD_ANNOTATION, f"{where}, hit", why)
    if not is_number(iou):
        raise RefusedError(RefusalCode.BAD_ANNOTATION, f"{where}, iou", f"{iou!r} is no number")
    return ExpressionResult(key, is_hit=bool(iou > THRESHOLDS[0]))


def read_reviews(path: Path) -> list[Review]:
    """Read the ``annotation`` of a ``…_reviewed.json``; ``caption_quality`` 0 is an error."""
    content = read_json(path)
    entries = content.get("annotation") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise RefusedError(RefusalCode.UNREADABLE, path.name, "has no list in the field annotation")
    # Without this, a file that was never reviewed would silently keep everything.
    if entries and not any(isinstance(e, dict) and "caption_quality" in e for e in entries):
        raise RefusedError(RefusalCode.UNREADABLE, path.name, "no entry has a caption_quality")
    return [_review(entry, f"{path.name}, entry {i}") for i, entry in enumerate(entries)]


def _review(entry: Any, where: str) -> Review:
    key = _key_of(entry, where)
    quality = entry.get("caption_quality")
    if quality is not None and not is_number(quality):
        raise RefusedError(RefusalCode.BAD_ANNOTATION, f"{where}, caption_quality", f"{quality!r}")
    return Review(key, is_error=quality == 0)


def _key_of(entry: Any, where: str) -> ExpressionKey:
    if not isinstance(entry, dict):
        raise RefusedError(RefusalCode.UNREADABLE, where, f"{entry!r} is no object")
    number = next((entry[key] for key in ID_KEYS if key in entry), None)
    known = plain_id(number)
    if known is None:
        raise RefusedError(
            RefusalCode.NO_ID, where, f"no annotation id in any of {', '.join(ID_KEYS)}"
        )
    text = next((entry[key] for key in EXPRESSION_KEYS if key in entry), None)
    if not isinstance(text, str):
        why = f"no expression in any of {', '.join(EXPRESSION_KEYS)}"
        raise RefusedError(RefusalCode.BAD_ANNOTATION, where, why)
    return ExpressionKey(known, " ".join(text.casefold().split()))


def clean(results: Iterable[ExpressionResult], reviews: Iterable[Review]) -> CleanedAccuracy:
    """Join results with reviews; repeated expressions are paired in order."""
    waiting: dict[ExpressionKey, deque[Review]] = defaultdict(deque)
    for review in reviews:
        waiting[review.key].append(review)
    both = [(one, waiting[one.key].popleft() if waiting.get(one.key) else None) for one in results]
    return CleanedAccuracy(
        hits=tuple(one.is_hit for one, _ in both),
        joined=tuple(one.is_hit for one, review in both if review),
        kept=tuple(one.is_hit for one, review in both if review and not review.is_error),
        without_review=tuple(one.key for one, review in both if review is None),
        without_result=tuple(review.key for left in waiting.values() for review in left),
    )


def _percent(hits: Sequence[bool]) -> str:
    return f"{sum(hits) / len(hits) * 100:.2f}" if hits else "–"


def _examples(keys: Sequence[ExpressionKey], most: int) -> list[str]:
    said = [f"  {key.annotation_id}: {key.expression}" for key in keys[:most]]
    return said + ([f"  and {len(keys) - most} more"] if len(keys) > most else [])
