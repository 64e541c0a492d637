"""RefCOCO, RefCOCO+ and RefCOCOg without the expressions that the authors of Ref-L4 found wrong.

Reviews are joined by annotation id and expression: copies of the datasets renumber or lack ids, and
an id has several expressions.  Both accuracies always come together.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .annotations import Code, RefusedError, is_id, is_number, read_json
from .protocol import THRESHOLDS

SPLITS: Mapping[str, tuple[str, ...]] = MappingProxyType(  # dataset to its splits
    {
        "RefCOCO": ("refcoco_val", "refcoco_testA", "refcoco_testB"),
        "RefCOCO+": ("refcoco+_val", "refcoco+_testA", "refcoco+_testB"),
        "RefCOCOg": ("refcocog_val", "refcocog_test"),
    }
)

KNOWN: Mapping[str, tuple[int, int]] = MappingProxyType(  # reviews of all splits, errors among them
    {"RefCOCO": (21586, 3054), "RefCOCO+": (21373, 5201), "RefCOCOg": (14498, 675)}
)

ID_KEYS = ("ann_id", "annotation_id", "original_id", "id")
EXPRESSION_KEYS = ("caption", "expression", "sentence", "sent", "raw")  # the first found counts
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Review:
    """The authors' review of one expression."""

    annotation_id: str
    expression: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Row:
    """The user's result on one expression."""

    annotation_id: str
    expression: str
    is_hit: bool


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Accuracy on published and cleaned expressions, in percent; None over nothing."""

    rows: int
    joined_rows: int
    kept_rows: int
    original: float | None  # over all rows
    joined: float | None  # over rows with a review
    kept: float | None  # over joined rows without an error; cleaning gains kept - joined
    rows_without_review: tuple[Row, ...]
    reviews_without_row: tuple[Review, ...]

    def lines(self, most: int = 5) -> list[str]:
        """List both accuracies, then what found no partner, at most ``most`` of each kind."""
        said = [
            f"original {_percent_text(self.original)} % of {self.rows} expressions, "
            f"kept {_percent_text(self.kept)} % of {self.kept_rows}"
        ]
        if self.rows_without_review:
            said.append(
                f"{len(self.rows_without_review)} expressions without a review (original without "
                f"them: {_percent_text(self.joined)} % of {self.joined_rows})"
            )
            said += _examples(self.rows_without_review, most)
        if self.reviews_without_row:
            said.append(f"{len(self.reviews_without_row)} reviews without an expression")
            said += _examples(self.reviews_without_row, most)
        return said


def file_name(split: str) -> str:
    """Name the authors' file of a split (``refcoco_val`` and so on)."""
    return f"{split}_reviewed.json"


def plain_id(value: object) -> str | None:
    """Normalise an annotation id: 7, 7.0 and "7" are the same; None where it is no id."""
    if not is_id(value):
        return None
    if isinstance(value, str):
        text = value.strip()
        return str(int(text)) if text.isascii() and text.isdecimal() else text or None
    # An int of four hundred digits is none that could be asked whether it is finite.
    whole = isinstance(value, int) or (math.isfinite(value) and value == int(value))
    return str(int(value)) if whole else None


def plain_expression(text: str) -> str:
    """Normalise an expression: lower case, single blanks."""
    return " ".join(text.casefold().split())


def read_rows(path: Path) -> list[Row]:
    """Read the user's results: a JSON list of {id, expression, ``hit`` or ``iou``}, by usual keys.

    Raises:
        FileNotFoundError: there is no such file.
        RefusedError: the file is no such list; the message names the row and the key.
    """
    entries = read_json(path)
    if not isinstance(entries, list):
        raise RefusedError(Code.UNREADABLE, path.name, "is no list of results")
    return [_own_row(entry, f"{path.name}, row {i}") for i, entry in enumerate(entries)]


def _own_row(entry: Any, where: str) -> Row:
    known, text = _key_of(entry, where)
    hit, iou = entry.get("hit"), entry.get("iou")
    if isinstance(hit, bool):
        return Row(known, text, hit)
    if hit is not None:
        why = f"{hit!r} is neither true nor false"
        raise RefusedError(Code.BAD_ANNOTATION, f"{where}, hit", why)
    if not is_number(iou):
        raise RefusedError(Code.BAD_ANNOTATION, f"{where}, iou", f"{iou!r} is no number")
    return Row(known, text, is_hit=bool(iou > THRESHOLDS[0]))


def read_reviews(path: Path) -> list[Review]:
    """Read the ``annotation`` of a ``…_reviewed.json``; ``caption_quality`` 0 is an error.

    Raises:
        FileNotFoundError: there is no such file.
        RefusedError: it is no such file; the message names the entry and the key.
    """
    content = read_json(path)
    entries = content.get("annotation") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise RefusedError(Code.UNREADABLE, path.name, "has no list in the field annotation")
    # Without this, a file that was never reviewed would silently keep everything.
    if entries and not any(isinstance(e, dict) and "caption_quality" in e for e in entries):
        raise RefusedError(Code.UNREADABLE, path.name, "no entry has a caption_quality")
    return [_review(entry, f"{path.name}, entry {i}") for i, entry in enumerate(entries)]


def _review(entry: Any, where: str) -> Review:
    known, text = _key_of(entry, where)
    quality = entry.get("caption_quality")
    if quality is not None and not is_number(quality):
        raise RefusedError(Code.BAD_ANNOTATION, f"{where}, caption_quality", f"{quality!r}")
    return Review(known, text, is_error=quality == 0)


def _key_of(entry: Any, where: str) -> Key:
    if not isinstance(entry, dict):
        raise RefusedError(Code.UNREADABLE, where, f"{entry!r} is no object")
    number = next((entry[key] for key in ID_KEYS if key in entry), None)
    known = plain_id(number)
    if known is None:
        raise RefusedError(Code.NO_ID, where, f"no annotation id in any of {', '.join(ID_KEYS)}")
    text = next((entry[key] for key in EXPRESSION_KEYS if key in entry), None)
    if not isinstance(text, str):
        why = f"no expression in any of {', '.join(EXPRESSION_KEYS)}"
        raise RefusedError(Code.BAD_ANNOTATION, where, why)
    return known, text


def unlike_known(dataset: str, reviews: Sequence[Review]) -> list[str]:
    """Say where the counts of a dataset's reviews differ from the published ones."""
    entries, errors = KNOWN[dataset]
    counted = sum(review.is_error for review in reviews)
    pairs = (("reviews", len(reviews), entries), ("errors", counted, errors))
    return [
        f"{dataset}: {is_} {what}, published are {should}"
        for what, is_, should in pairs
        if is_ != should
    ]


def clean(rows: Iterable[Row], reviews: Iterable[Review]) -> Cleaned:
    """Join rows with reviews, and count; repeated expressions are paired in order, each once."""
    waiting: dict[Key, deque[Review]] = defaultdict(deque)
    for review in reviews:
        waiting[_key(review)].append(review)
    all_rows = list(rows)
    partners = [
        waiting[_key(one)].popleft() if waiting.get(_key(one)) else None for one in all_rows
    ]
    both = list(zip(all_rows, partners, strict=True))
    joined = [one.is_hit for one, partner in both if partner is not None]
    kept = [one.is_hit for one, partner in both if partner is not None and not partner.is_error]
    return Cleaned(
        rows=len(all_rows),
        joined_rows=len(joined),
        kept_rows=len(kept),
        original=_percent([one.is_hit for one in all_rows]),
        joined=_percent(joined),
        kept=_percent(kept),
        rows_without_review=tuple(one for one, partner in both if partner is None),
        reviews_without_row=tuple(review for left in waiting.values() for review in left),
    )


def _key(one: Row | Review) -> Key:
    return one.annotation_id, plain_expression(one.expression)


def _percent(hits: Sequence[bool]) -> float | None:
    return sum(hits) / len(hits) * 100 if hits else None


def _percent_text(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _examples(ones: Sequence[Row | Review], most: int) -> list[str]:
    said = [f"  {one.annotation_id}: {one.expression}" for one in ones[:most]]
    return said + ([f"  and {len(ones) - most} more"] if len(ones) > most else [])
