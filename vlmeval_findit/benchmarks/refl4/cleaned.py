"""RefCOCO, RefCOCO+ and RefCOCOg without the expressions that the authors of Ref-L4 found wrong.

Their reviews are joined with one's own rows by annotation id and expression together: copies of
the datasets renumber or lack ids, and an id alone has several expressions.  What finds no partner
is reported, and both accuracies always come together.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from .annotations import is_id, is_number
from .overlap import THRESHOLDS
from .refusals import Code, RefusedError

SPLITS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "RefCOCO": ("refcoco_val", "refcoco_testA", "refcoco_testB"),
        "RefCOCO+": ("refcoco+_val", "refcoco+_testA", "refcoco+_testB"),
        "RefCOCOg": ("refcocog_val", "refcocog_test"),
    }
)
"""Datasets and the names of their splits."""

KNOWN: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"RefCOCO": (21586, 3054), "RefCOCO+": (21373, 5201), "RefCOCOg": (14498, 675)}
)
"""Reviews of all splits of a dataset, and how many of them are errors."""

ID_KEYS = ("ann_id", "annotation_id", "original_id", "id")
EXPRESSION_KEYS = ("caption", "expression", "sentence", "sent", "raw")
"""Keys that hold a review's annotation id and expression: the first that is there counts."""

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Review:
    """What the authors think of one expression."""

    annotation_id: str
    expression: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One's own result on one expression."""

    annotation_id: str
    expression: str
    is_hit: bool


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Accuracy on the expressions as published and on those that are kept, in percent.

    ``original`` is over all rows, ``joined`` over those with a review, ``kept`` over those of them
    that are no error; None over nothing.  The gain from cleaning is ``kept - joined``, which is
    ``kept - original`` where every row found its review.
    """

    rows: int
    joined_rows: int
    kept_rows: int
    original: float | None
    joined: float | None
    kept: float | None
    rows_without_review: tuple[Row, ...]
    reviews_without_row: tuple[Review, ...]

    def lines(self, most: int = 5) -> list[str]:
        """What to print: both accuracies, then what found no partner, ``most`` of each kind."""
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
    """The authors' file of a split (``refcoco_val`` and so on)."""
    return f"{split}_reviewed.json"


def plain_id(value: object) -> str | None:
    """An annotation id as it is compared: 7, 7.0 and "7" are the same; None for what is no id."""
    if not is_id(value):
        return None
    if isinstance(value, str):
        text = value.strip()
        return str(int(text)) if text.isascii() and text.isdecimal() else text or None
    # An int of four hundred digits is none that could be asked whether it is finite.
    whole = isinstance(value, int) or (math.isfinite(value) and value == int(value))
    return str(int(value)) if whole else None


def plain_expression(text: str) -> str:
    """An expression as it is compared: lower case, single blanks."""
    return " ".join(text.casefold().split())


def row(annotation_id: int | float | str, expression: str, outcome: bool | float) -> Row:
    """One's own result: ``outcome`` is whether it is a hit, or the IoU, which has to be above 0.5.

    Raises:
        RefusedError: the annotation id is none.
    """
    known = plain_id(annotation_id)
    if known is None:
        raise RefusedError(Code.NO_ID, "row", f"{annotation_id!r} is no annotation id")
    is_hit = outcome if isinstance(outcome, bool) else bool(outcome > THRESHOLDS[0])
    return Row(known, expression, is_hit)


def read_rows(path: Path) -> list[Row]:
    """One's own results of a file: a JSON list of objects with an annotation id and an expression
    under one of their usual keys, and either ``hit`` (true or false) or ``iou``.

    Raises:
        FileNotFoundError: there is no such file.
        RefusedError: it is no such list; the message names the row and the key.
    """
    try:
        entries = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise RefusedError(Code.UNREADABLE, path.name, f"no JSON: {error}") from None
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
    """The reviews of a ``…_reviewed.json``: entries of its field ``annotation``.

    A ``caption_quality`` of 0 is an error; everything else is kept.

    Raises:
        FileNotFoundError: there is no such file.
        RefusedError: it is no such file; the message names the entry and the key.
    """
    try:
        content = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise RefusedError(Code.UNREADABLE, path.name, f"no JSON: {error}") from None
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
    """The annotation id and the expression of an entry."""
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
    """How the reviews of all splits of a dataset differ in number from the published counts."""
    entries, errors = KNOWN[dataset]
    counted = sum(review.is_error for review in reviews)
    pairs = (("reviews", len(reviews), entries), ("errors", counted, errors))
    return [
        f"{dataset}: {is_} {what}, published are {should}"
        for what, is_, should in pairs
        if is_ != should
    ]


def clean(rows: Iterable[Row], reviews: Iterable[Review]) -> Cleaned:
    """Join rows with reviews, and count.

    Where an expression occurs several times of one annotation, partners are taken in order, so
    that none counts twice.
    """
    waiting: dict[Key, deque[Review]] = defaultdict(deque)
    for review in reviews:
        waiting[_key(review)].append(review)
    all_rows = list(rows)
    partners = [
        waiting[_key(one)].popleft() if waiting.get(_key(one)) else None for one in all_rows
    ]
    hits = np.array([one.is_hit for one in all_rows], dtype=bool)
    joined = np.array([partner is not None for partner in partners], dtype=bool)
    kept = np.array([p is not None and not p.is_error for p in partners], dtype=bool)
    return Cleaned(
        rows=len(all_rows),
        joined_rows=int(joined.sum()),
        kept_rows=int(kept.sum()),
        original=_percent(hits),
        joined=_percent(hits[joined]),
        kept=_percent(hits[kept]),
        rows_without_review=tuple(
            one for one, partner in zip(all_rows, partners, strict=True) if partner is None
        ),
        reviews_without_row=tuple(review for left in waiting.values() for review in left),
    )


def _key(one: Row | Review) -> Key:
    return one.annotation_id, plain_expression(one.expression)


def _percent(hits: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float | None:
    return int(hits.sum()) / hits.size * 100 if hits.size else None


def _percent_text(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _examples(ones: Sequence[Row | Review], most: int) -> list[str]:
    said = [f"  {one.annotation_id}: {one.expression}" for one in ones[:most]]
    return said + ([f"  and {len(ones) - most} more"] if len(ones) > most else [])
