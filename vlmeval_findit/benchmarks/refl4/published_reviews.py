"""The lists of wrong expressions in RefCOCO, RefCOCO+ and RefCOCOg by Ref-L4's authors, as reviews.

Their files ``{refcoco,refcoco+}_{val,testA,testB}_reviewed.json`` and
``refcocog_{val,test}_reviewed.json`` have an entry an expression below ``annotation``;
``caption_quality`` 0 is an error. Copies of these datasets renumber annotations, or lack numbers,
so an entry is joined with a row by annotation and expression, else by image, expression and box;
where a copy names its images anew, by expression and box, if these are of one image of the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from ...boxes import plain_label
from ...core import (
    Expected,
    Finite,
    MisplacedError,
    TextError,
    parse_json,
    quoted_value,
    read_text,
    suffix_of,
    validate,
)
from ...protocol import (
    Answer,
    AnyDataset,
    Query,
    Review,
    ReviewsError,
    ReviewVerdict,
    RowChoice,
    box_iou,
    row_hash,
)
from ...storage import table_hash

REVIEWER = "Ref-L4"
DATE = "2024-06-24"  # Of arXiv 2406.16866

# Keys of an annotation's number and of its expression, in files that lists are made of; the first
# that is there counts
_ID_KEYS = ("ann_id", "annotation_id", "original_id", "id")
_EXPRESSION_KEYS = ("caption", "expression", "sentence", "sent", "raw")
_IMAGE_KEYS = ("file_name", "image", "image_id")
_TAGS = ("ann_id", "annotation_id")  # Kinds of tags of a table that have an annotation's number

_SAME_BOX = 0.9  # IoU: copies round boxes
_ROUNDING = 0.5  # Pixels by which an edge may differ where the image is not known


_BoxSides = Annotated[
    tuple[Finite, Finite, Finite, Finite], Expected("four numbers: x, y, width, height")
]


@dataclass(frozen=True, slots=True)
class _ListedEntry:
    """Keys of an entry; others are not read."""

    caption_quality: Finite | None
    bbox: _BoxSides | None


class JoinKey(Enum):
    """By what a row is joined besides its expression."""

    ANNOTATION = "annotation"
    IMAGE = "image and box"
    BOX = "box alone, as its images have other names"


_Key = tuple[JoinKey, str, str]  # The way, the number of annotation or image, the expression


@dataclass(frozen=True, slots=True)
class PublishedEntry:
    """One expression of a list."""

    place: str
    expression: str
    annotation: str | None  # Its number
    image: str | None  # Its number, or its name
    box: tuple[float, ...] | None  # (x1, y1, x2, y2) in pixels
    is_error: bool | None  # None: the entry does not say

    @property
    def keys(self) -> Iterator[_Key]:
        """Yield what it is joined by, the better first."""
        expression = plain_expression(self.expression)
        if self.annotation is not None:
            yield (JoinKey.ANNOTATION, self.annotation, expression)
        if self.image is not None:
            yield (JoinKey.IMAGE, self.image, expression)
            yield (JoinKey.BOX, "", expression)


@dataclass(frozen=True, slots=True)
class PublishedReviews:
    """The reviews of a table's rows, and what was not joined."""

    reviews: tuple[Review, ...]
    ways: Mapping[JoinKey, int]  # Number of rows that were joined in each way
    contradicted: tuple[int, ...]  # Rows with an entry that is an error and one that is not
    without_entry: tuple[int, ...]  # Indices of rows
    without_row: tuple[PublishedEntry, ...]
    unjudged: tuple[PublishedEntry, ...]  # Entries that do not say whether they are errors


# --- reading --------------------------------------------------------------------------------------


def is_published_list(path: Path) -> bool:
    """Return whether a file is meant as a list: JSON, and not lines of reviews."""
    return suffix_of(path) == ".json" and '"format"' not in _first_line(path)


def _first_line(path: Path) -> str:
    try:
        return read_text(path).lstrip().partition("\n")[0][:_LONGEST_BEGIN]
    except TextError:
        return ""


_LONGEST_BEGIN = 200  # Lines of reviews begin with their format


def read_published(path: Path) -> list[PublishedEntry]:
    """Read a list; a ReviewsError names file, entry and key."""
    try:
        content = parse_json(read_text(path))
    except TextError as error:
        raise ReviewsError(error.message_for(path)) from None
    entries = content.get("annotation") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        why = "neither reviews nor a list of Ref-L4's authors: the field annotation has no list"
        raise ReviewsError(f"{path}: {why}")
    # Without this, a file that was never reviewed would keep every label.
    if not any(isinstance(entry, dict) and "caption_quality" in entry for entry in entries):
        raise ReviewsError(f"{path}: no entry of annotation has a caption_quality")
    names = _image_names(content.get("images"))
    return [_entry(entry, f"{path}, entry {at}", names) for at, entry in enumerate(entries)]


def _image_names(images: Any) -> dict[str, str]:
    """Map ids of COCO's ``images`` to the images' numbers."""
    names: dict[str, str] = {}
    for image in images if isinstance(images, list) else ():
        name = image.get("file_name") if isinstance(image, dict) else None
        if isinstance(name, str):
            names[str(image.get("id"))] = image_number(name)
    return names


def _entry(entry: Any, place: str, names: Mapping[str, str]) -> PublishedEntry:
    if not isinstance(entry, dict):
        raise ReviewsError(f"{place}: {quoted_value(entry)} should be an object")
    expression = _first(entry, _EXPRESSION_KEYS)
    if not isinstance(expression, str) or not expression.strip():
        raise ReviewsError(f"{place}: no expression in any of {', '.join(_EXPRESSION_KEYS)}")
    stated = {field.name: entry.get(field.name) for field in fields(_ListedEntry)}
    try:
        known = validate(_ListedEntry, stated)
    except MisplacedError as error:
        raise ReviewsError(f"{place}: {error.below()}") from None
    image = _first(entry, _IMAGE_KEYS)
    box = None
    if known.bbox is not None:
        x, y, width, height = known.bbox
        box = (x, y, x + width, y + height)
    quality = known.caption_quality
    return PublishedEntry(
        place=place,
        expression=expression,
        annotation=plain_number(_first(entry, _ID_KEYS)),
        image=None if image is None else names.get(str(image), image_number(str(image))),
        box=box,
        is_error=None if quality is None else quality == 0,
    )


def _first(entry: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((entry[key] for key in keys if entry.get(key) is not None), None)


def plain_number(value: object) -> str | None:
    """Return an annotation's number as text: 7, 7.0 and "007" are the same; None if it is none.

    >>> plain_number(7.0), plain_number(" 007"), plain_number("coco_7"), plain_number([7])
    ('7', '7', 'coco_7', None)
    """
    if isinstance(value, str):
        text = value.strip()
        return str(int(text)) if text.isascii() and text.isdecimal() else text or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return None


def plain_expression(expression: str) -> str:
    """Normalise an expression: copies change case and punctuation, and lose blanks.

    >>> plain_expression("Rightest guy in black."), plain_expression("rightest guyin black")
    ('rightestguyinblack', 'rightestguyinblack')
    """
    return plain_label(expression).replace(" ", "")


def image_number(name: str) -> str:
    """Return the number in an image's name, or the name if it has none.

    Copies add the number of the object, which is not the image's.

    >>> image_number("COCO_train2014_000000284008_2.jpg"), image_number("284008")
    ('284008', '284008')
    """
    long = re.search(r"(?<!\d)\d{12}(?!\d)", name)
    # Not a digit of a hash, which copies name images by
    numbers = [long[0]] if long else re.findall(r"(?<![^\W_])\d+(?![^\W_])", name)
    return str(int(numbers[-1])) if numbers else name


# --- joining --------------------------------------------------------------------------------------


def join_reviews(
    entries: Sequence[PublishedEntry], dataset: AnyDataset, labels: Mapping[int, Answer]
) -> PublishedReviews:
    """Join a list with a table's rows, whose labels are known by index."""
    judged = [entry for entry in entries if entry.is_error is not None]
    by_key: dict[_Key, list[PublishedEntry]] = {}
    for entry in judged:
        for key in entry.keys:
            by_key.setdefault(key, []).append(entry)
    table = table_hash(dataset.table)
    reviews: list[Review] = []
    ways = dict.fromkeys(JoinKey, 0)
    contradicted: list[int] = []
    without_entry: list[int] = []
    joined: set[str] = set()
    for index, label in labels.items():
        query = dataset.queries[index]
        way, partners = _partners(query, label, by_key)
        if not partners:
            without_entry.append(index)
            continue
        joined.update(entry.place for entry in partners)
        says = {entry.is_error for entry in partners}
        if len(says) > 1:
            contradicted.append(index)
            continue
        ways[way] += 1
        reviews.append(_review(table, query, label, says.pop()))
    return PublishedReviews(
        reviews=tuple(reviews),
        ways=ways,
        contradicted=tuple(contradicted),
        without_entry=tuple(without_entry),
        without_row=tuple(entry for entry in judged if entry.place not in joined),
        unjudged=tuple(entry for entry in entries if entry.is_error is None),
    )


def _partners(
    query: Query, label: Answer, by_key: Mapping[_Key, list[PublishedEntry]]
) -> tuple[JoinKey, list[PublishedEntry]]:
    """Return how a row is joined, and its entries: several where an object has one name twice."""
    for key in _keys_of(query):
        way = key[0]
        entries_found = by_key.get(key, [])
        if way is JoinKey.IMAGE:
            entries_found = _with_box(entries_found, label)
        if way is JoinKey.BOX:
            entries_found = _of_one_image(entries_found, label)
        if entries_found:
            return way, entries_found
    return JoinKey.IMAGE, []


def _keys_of(query: Query) -> Iterator[_Key]:
    expression = plain_expression(query.label)
    tags: Mapping[str, str] = getattr(query, "tags", {})
    for kind in _TAGS:
        number = plain_number(tags.get(kind))
        if number is not None:
            yield (JoinKey.ANNOTATION, number, expression)
    image = image_number(query.images[0])
    yield (JoinKey.IMAGE, image, expression)
    if not image.isdecimal():
        yield (JoinKey.BOX, "", expression)


def _with_box(entries: Sequence[PublishedEntry], label: Answer) -> list[PublishedEntry]:
    """Select entries about the label's object; entries without a box only if there is one."""
    if len(entries) == 1 and entries[0].box is None:
        return list(entries)
    return [
        entry
        for entry in entries
        if entry.box is not None
        and any(box_iou(entry.box, box) >= _SAME_BOX for box in label.boxes)
    ]


def _of_one_image(entries: Sequence[PublishedEntry], label: Answer) -> list[PublishedEntry]:
    """Select entries with the label's box up to rounding; none if they are of several images."""
    entries_found = [
        entry
        for entry in entries
        if entry.box is not None and any(_is_rounded(entry.box, box) for box in label.boxes)
    ]
    return entries_found if len({entry.image for entry in entries_found}) == 1 else []


def _is_rounded(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(abs(a - b) <= _ROUNDING for a, b in zip(one, other, strict=True))


def _review(table: str, query: Query, label: Answer, is_error: bool | None) -> Review:
    return Review(
        table=table,
        index=query.index,
        row=row_hash(query, label),
        verdict=ReviewVerdict.EXCLUDE if is_error else ReviewVerdict.LABEL,
        accept=() if is_error else (label,),
        kind="",
        reviewer=REVIEWER,
        date=DATE,
        drawn=RowChoice.PUBLISHED,
    )
