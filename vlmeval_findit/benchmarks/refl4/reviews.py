"""RefCOCO, RefCOCO+ and RefCOCOg without the expressions that the authors of Ref-L4 found wrong.

Reviews are joined by annotation id and expression, since an id has several expressions and copies
of the datasets renumber or lack ids.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
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


class CleanedAccuracy(NamedTuple):
    """Hits of all expressions and of those without an error; keys without a partner."""

    hits: tuple[bool, ...]
    kept: tuple[bool, ...]  # of expressions whose review is no error
    without_review: tuple[ExpressionKey, ...]
    without_result: tuple[ExpressionKey, ...]

    def lines(self, most: int = 5) -> list[str]:
        """List both accuracies, then at most ``most`` keys of each kind without a partner."""
        lines = [
            f"original {_percent(self.hits)} % of {len(self.hits)} expressions, "
            f"kept {_percent(self.kept)} % of {len(self.kept)}"
        ]
        for what, keys in (
            ("expressions without a review", self.without_review),
            ("reviews without an expression", self.without_result),
        ):
            if keys:
                lines.append(f"{len(keys)} {what}")
                lines += [f"  {key.annotation_id}: {key.expression}" for key in keys[:most]]
                lines += [f"  and {len(keys) - most} more"] * (len(keys) > most)
        return lines


def compare(results: Path, reviews: Iterable[Path]) -> CleanedAccuracy:
    """Join a file of results with files of reviews, or raise RefusedError with row and key.

    Repeated expressions are paired in order.
    """
    errors: dict[ExpressionKey, deque[bool]] = defaultdict(deque)
    for path in reviews:
        for key, is_error in read_reviews(path):
            errors[key].append(is_error)
    joined = [
        (key, hit, errors[key].popleft() if errors.get(key) else None)
        for key, hit in read_results(results)
    ]
    return CleanedAccuracy(
        hits=tuple(hit for _, hit, _ in joined),
        kept=tuple(hit for _, hit, is_error in joined if is_error is False),
        without_review=tuple(key for key, _, is_error in joined if is_error is None),
        without_result=tuple(key for key, left in errors.items() for _ in left),
    )


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


def read_results(path: Path) -> list[tuple[ExpressionKey, bool]]:
    """Read hits from a JSON list of {id, expression, ``hit`` or ``iou``}, by their usual keys."""
    entries = read_json(path)
    if not isinstance(entries, list):
        raise RefusedError(RefusalCode.UNREADABLE, path.name, "is no list of results")
    return [_result(entry, f"{path.name}, row {i}") for i, entry in enumerate(entries)]


def _result(entry: Any, where: str) -> tuple[ExpressionKey, bool]:
    key = _key_of(entry, where)
    hit, iou = entry.get("hit"), entry.get("iou")
    if isinstance(hit, bool):
        return key, hit
    if hit is not None:
        why = f"{hit!r} is neither true nor false"
        raise RefusedError(RefusalCode.BAD_ANNOTATION, f"{where}, hit", why)
    if not is_number(iou):
        raise RefusedError(RefusalCode.BAD_ANNOTATION, f"{where}, iou", f"{iou!r} is no number")
    return key, bool(iou > THRESHOLDS[0])


def read_reviews(path: Path) -> list[tuple[ExpressionKey, bool]]:
    """Read errors (``caption_quality`` 0) from the ``annotation`` of a ``…_reviewed.json``."""
    content = read_json(path)
    entries = content.get("annotation") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise RefusedError(RefusalCode.UNREADABLE, path.name, "has no list in the field annotation")
    # Without this, a file that was never reviewed would silently keep everything.
    if entries and not any(isinstance(e, dict) and "caption_quality" in e for e in entries):
        raise RefusedError(RefusalCode.UNREADABLE, path.name, "no entry has a caption_quality")
    keys = [_key_of(entry, f"{path.name}, entry {i}") for i, entry in enumerate(entries)]
    return [(key, e.get("caption_quality") == 0) for key, e in zip(keys, entries, strict=True)]


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


def _percent(hits: Sequence[bool]) -> str:
    return f"{sum(hits) / len(hits) * 100:.2f}" if hits else "–"
