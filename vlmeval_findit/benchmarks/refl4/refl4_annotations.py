"""Ref-L4's files: annotations, one expression and one box each, and other programs' predictions.

A file of predictions that may be of another dataset is refused; an unreadable box is a miss.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Literal, TypeGuard

from ...boxes import FILE_PIXELS
from ...core import Checked, Finite, MisplacedError, Text, YesNo, read_json, validate
from ...protocol import Reply, ReplyRecord
from ...storage import ImagePath, ImageSide, TableError, parquet_rows

Refusal = Literal[
    "duplicate_id", "no_id", "no_format", "unknown_format", "negative_truth", "empty_split",
    "no_prediction_id_matches", "bad_annotation", "unlike_release", "unreadable",
]  # fmt: skip


class RefusedError(ValueError):
    """Refused input; ``code`` says why, the message where."""

    def __init__(self, code: Refusal, where: str, why: str) -> None:
        super().__init__(f"{where}: {why} ({code})")
        self.code = code


# (x1, y1, x2, y2) in pixels of the image, as 64-bit floats
Corners = tuple[float, float, float, float]
Id = int | float | str  # 7 and 7.0 are the same id, "7" is another

# Sides in pixels; both limits are medium
SMALL_BELOW = 128.0
LARGE_ABOVE = 256.0
SIZES = ("small", "medium", "large")


class RefL4Split(Enum):
    """The annotations to score."""

    VAL = "val"
    TEST = "test"
    ALL = "all"  # Val, then test

    @property
    def parts(self) -> tuple[RefL4Split, ...]:
        """Return the splits of the release's files that it is made of."""
        return (RefL4Split.VAL, RefL4Split.TEST) if self is RefL4Split.ALL else (self,)


def is_number(value: object) -> bool:
    """Return whether a value of JSON or Parquet is a number; booleans are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_id(value: object) -> TypeGuard[Id]:
    """Return whether a value is an id: a text, or a number other than NaN."""
    return isinstance(value, str) or (is_number(value) and value == value)


# --- annotations ----------------------------------------------------------------------------------


def _an_id(value: object) -> object:
    if not is_id(value):
        raise ValueError(f"{value!r} is not an id")
    return value


def _file_of(split: RefL4Split) -> RefL4Split:
    if split is RefL4Split.ALL:
        raise ValueError("'all' is neither val nor test")
    return split


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One referring expression, in the authors' columns; those with a default may be unknown."""

    index: Annotated[Id, Checked(_an_id, before=True)]  # Their ``id``
    caption: Text = ""
    bbox: tuple[Finite, Finite, Finite, Finite]  # (x, y, width, height), pixels of the original
    ori_category_id: Text = ""
    width: ImageSide = 0
    height: ImageSide = 0
    file_name: ImagePath = ""
    split: Annotated[RefL4Split, Checked(_file_of)] = RefL4Split.ALL
    bbox_id: Id | None = None
    image_id: Id | None = None
    is_rewrite: YesNo | None = None

    @property
    def corners(self) -> Corners:
        """Return the true box as x1, y1, x2, y2 in pixels (64-bit floats)."""
        x, y, width, height = self.bbox
        return x, y, x + width, y + height


def object_size(annotation: Annotation) -> str:
    """Return small, medium or large, by the square root of the true box's area."""
    side = math.sqrt(annotation.bbox[2] * annotation.bbox[3])
    if side < SMALL_BELOW:
        return "small"
    return "medium" if side <= LARGE_ABOVE else "large"


def file_name(split: RefL4Split) -> str:
    """Name the release's file of a split (``val`` or ``test``)."""
    return f"ref-l4-{split.value}.parquet"


def annotation(row: Mapping[str, Any], where: str) -> Annotation:
    """Convert a row of the release to an annotation.

    Negative sides are left to :func:`of_split`, which knows what is scored.

    Raises:
        RefusedError: a required key is missing or invalid; the message begins with ``where``.
    """

    def refused(key: str, why: str) -> RefusedError:
        return RefusedError("no_id" if key == "id" else "bad_annotation", f"{where}, {key}", why)

    # pandas turns a missing text into NaN.
    stated = {key: value for key, value in row.items() if value is not None and value == value}
    for key in ("id", "bbox", "ori_category_id", "split"):
        if key not in stated:
            raise refused(key, "is missing")
    try:
        return validate(Annotation, {**stated, "index": stated["id"]})
    except MisplacedError as error:
        key = str(error.at[0])
        raise refused("id" if key == "index" else key, str(error)) from None


def of_split(
    annotations: Sequence[Annotation], split: RefL4Split, where: str = "annotations"
) -> tuple[Annotation, ...]:
    """Select the annotations of a split: val before test, each in the given order.

    Raises:
        RefusedError: there is none, two have the same id, or a box has a negative side.
    """
    selected = {row: item for row, item in enumerate(annotations) if item.split in split.parts}
    rows_by_id: dict[Id, int] = {}
    for row, item in selected.items():
        here = f"{where}, row {row}"
        if min(item.bbox[2:]) < 0:
            why = f"the box {list(item.bbox)} of id {item.index!r} has a negative side"
            raise RefusedError("negative_truth", f"{here}, bbox", why)
        _refuse_duplicate(rows_by_id, item.index, row, here)
    if not rows_by_id:
        why = f"none of {len(annotations)} annotations is of the split {split.value}"
        raise RefusedError("empty_split", where, why)
    return tuple(sorted(selected.values(), key=lambda item: split.parts.index(item.split)))


def _refuse_duplicate(rows_by_id: dict[Id, int], number: Id, row: int, here: str) -> None:
    """Add a row with its id, or refuse it if another row has this id."""
    first = rows_by_id.setdefault(number, row)
    if first != row:
        why = f"{number!r} is the id of row {first} too"
        raise RefusedError("duplicate_id", f"{here}, id", why)


def read_annotations(folder: Path, split: RefL4Split) -> tuple[Annotation, ...]:
    """Read the annotations of a split from a folder of the release's Parquet files.

    Raises:
        FileNotFoundError: a file is missing.
        RefusedError: a file is refused, or an id occurs in both.
    """
    result: list[Annotation] = []
    for name in map(file_name, split.parts):
        if not (folder / name).exists():
            raise FileNotFoundError(
                f"{folder / name} is missing: name the folder of the release's files"
            )
        try:
            rows = [row for _, row in parquet_rows(folder / name)]
        except TableError as error:
            raise RefusedError("unreadable", name, str(error)) from None
        result += [annotation(row, f"{name}, row {i}") for i, row in enumerate(rows)]
    return of_split(result, split, " and ".join(map(file_name, split.parts)))


# --- the release ----------------------------------------------------------------------------------

# Counts of the release's files, of val and test together but the first two
RELEASE_COUNTS = {
    "expressions of val": 13420,
    "expressions of test": 31921,
    "small boxes": 9345,
    "medium boxes": 23280,
    "large boxes": 12716,
    "instances of refcoco": 14186,  # Distinct boxes by the prefix of ``ori_category_id``
    "images of refcoco": 6502,
    "instances of o365": 4467,
    "images of o365": 3233,
}


def unlike_release(annotations: Sequence[Annotation], split: RefL4Split) -> list[str]:
    """List differences from the release's counts; for ``val`` and ``test`` only rows are known."""
    rows = Counter(item.split for item in annotations)
    counts = {f"expressions of {part.value}": rows[part] for part in split.parts}
    if split is RefL4Split.ALL:
        sizes = Counter(map(object_size, annotations))
        counts |= {f"{size} boxes": sizes[size] for size in SIZES}
        for source in ("refcoco", "o365"):
            of_source = [
                item for item in annotations if item.ori_category_id.startswith(f"{source}_")
            ]
            counts[f"instances of {source}"] = len({item.bbox_id for item in of_source})
            counts[f"images of {source}"] = len({item.image_id for item in of_source})
    return [
        f"{count} {what}, the release has {RELEASE_COUNTS[what]}"
        for what, count in counts.items()
        if count != RELEASE_COUNTS[what]
    ]


# --- predictions: lists of {"id", "pred_bbox", "format"} ------------------------------------------

# In pixels, perhaps swapped or not finite; None: no box
BoxesById = Mapping[Id, Corners | None]


def read_box(numbers: object, how: str) -> Corners | None:
    """Read ``pred_bbox``: ``xywh`` may have more than four numbers, ``xyxy`` has exactly four.

    >>> read_box([10, 20, 30, 40, 0.9], "xywh"), read_box([10, 20, 30, 40, 0.9], "xyxy")
    ((10.0, 20.0, 40.0, 60.0), None)
    """
    if not isinstance(numbers, (list, tuple)):
        return None
    four = numbers[:4] if how == "xywh" else numbers
    if len(four) != 4 or not all(map(is_number, four)):
        return None
    # Floats, since corners and areas of integers could overflow into hits.
    a, b, c, d = map(float, four)
    return (a, b, a + c, b + d) if how == "xywh" else (a, b, c, d)


def predictions_from(items: object, where: str = "predictions") -> BoxesById:
    """Read a list of predictions, also of other annotations, as boxes by id.

    Raises:
        RefusedError: it is no list of objects, or an id or format is missing, invalid or repeated.
    """
    if not isinstance(items, (list, tuple)):
        raise RefusedError("unreadable", where, "should be a list of predictions")
    rows_by_id: dict[Id, int] = {}
    boxes: dict[Id, Corners | None] = {}
    for row, item in enumerate(items):
        here = f"{where}, row {row}"
        if not isinstance(item, Mapping):
            raise RefusedError("unreadable", here, f"{item!r} is not an object")
        number = item.get("id")
        how = item.get("format")
        if not is_id(number):
            raise RefusedError("no_id", f"{here}, id", f"{number!r} is not an id")
        if how not in ("xyxy", "xywh"):
            code: Refusal = "unknown_format" if "format" in item else "no_format"
            raise RefusedError(code, f"{here}, format", f"{how!r} is neither xyxy nor xywh")
        _refuse_duplicate(rows_by_id, number, row, here)
        boxes[number] = read_box(item.get("pred_bbox"), how)
    return boxes


def boxes_of(
    annotations: Sequence[Annotation], predictions: BoxesById, where: str = "predictions"
) -> list[Corners | None]:
    """Return each annotation's box or None; if no prediction has a known id, raise RefusedError."""
    ids = [annotation.index for annotation in annotations]
    if predictions and not any(number in predictions for number in ids):
        # Usually ids are texts in one file and numbers in the other.
        unlike = f"{next(iter(predictions))!r} is not like {next(iter(ids), None)!r}"
        why = f"none of {len(predictions)} ids is that of any of {len(ids)} annotations: {unlike}"
        raise RefusedError("no_prediction_id_matches", where, why)
    return [predictions.get(number) for number in ids]


def replies_of(path: Path, annotations: Sequence[Annotation]) -> Iterator[Reply]:
    """Yield a file's boxes as ``xyxy_json`` replies in pixels of the file, empty without a box."""
    try:
        items = read_json(path)
    except ValueError as error:
        raise RefusedError("unreadable", path.name, str(error)) from None
    record = ReplyRecord(space=FILE_PIXELS.as_dict(), finish_reason="stop")
    boxes = boxes_of(annotations, predictions_from(items, path.name), path.name)
    for item, box in zip(annotations, boxes, strict=True):
        text = "" if box is None else json.dumps([{"bbox": box}])
        yield Reply(int(item.index), text, record)
