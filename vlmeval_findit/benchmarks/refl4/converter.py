"""Conversion of other programs' boxes, lists of {"id", "pred_bbox", "format"}, to replies.

A file that may be of another dataset is refused.  A single unreadable box is a miss.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.replies import Recorded, Reply
from .annotations import (
    Annotation,
    Code,
    Corners,
    Id,
    RefusedError,
    is_id,
    is_number,
    read_json,
)

FORMATS = ("xyxy", "xywh")  # of the four numbers of a prediction
Predictions = Mapping[Id, Corners | None]  # pixels, perhaps swapped or not finite; None: no box


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
    a, b, c, d = map(_float, four)
    return (a, b, a + c, b + d) if how == "xywh" else (a, b, c, d)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of more than 308 digits
        return math.inf if value > 0 else -math.inf


def predictions_from(items: object, where: str = "predictions") -> Predictions:
    """Read a list of predictions, also of other annotations, as boxes by id.

    Raises:
        RefusedError: it is no list of objects, or an id or format is missing, invalid or repeated.
    """
    if not isinstance(items, (list, tuple)):
        raise RefusedError(Code.UNREADABLE, where, "is no list of predictions")
    rows: dict[Id, int] = {}
    boxes: dict[Id, Corners | None] = {}
    for row, item in enumerate(items):
        here = f"{where}, row {row}"
        if not isinstance(item, Mapping):
            raise RefusedError(Code.UNREADABLE, here, f"{item!r} is no object")
        number, said = item.get("id"), item.get("format")
        if not is_id(number):
            why = f"{number!r} is no id" if "id" in item else "is missing"
            raise RefusedError(Code.NO_ID, f"{here}, id", why)
        if "format" not in item:
            raise RefusedError(Code.NO_FORMAT, f"{here}, format", "is missing: xyxy or xywh?")
        if not isinstance(said, str) or said not in FORMATS:
            why = f"{said!r} is neither xyxy nor xywh"
            raise RefusedError(Code.UNKNOWN_FORMAT, f"{here}, format", why)
        if rows.setdefault(number, row) != row:
            why = f"{number!r} is the id of row {rows[number]} too"
            raise RefusedError(Code.DUPLICATE_ID, f"{here}, id", why)
        boxes[number] = read_box(item.get("pred_bbox"), said)
    return boxes


def boxes_of(
    annotations: Sequence[Annotation], predictions: Predictions, where: str = "predictions"
) -> list[Corners | None]:
    """Return each annotation's box or None; if no prediction has a known id, raise RefusedError."""
    if predictions and not any(one.index in predictions for one in annotations):
        asked = next((one.index for one in annotations), None)
        why = (
            f"none of {len(predictions)} ids is one of {len(annotations)} annotations: "
            # Usually one is a text and the other a number.
            f"{next(iter(predictions))!r} is not like {asked!r}"
        )
        raise RefusedError(Code.NO_PREDICTION_ID_MATCHES, where, why)
    return [predictions.get(one.index) for one in annotations]


def replies_of(path: Path, annotations: Sequence[Annotation]) -> Iterator[Reply]:
    """Yield a file's boxes as ``xyxy_json`` replies in pixels, empty without a box."""
    items = read_json(path)
    record = Recorded(space={"kind": "pixels"}, finish_reason="stop")
    boxes = boxes_of(annotations, predictions_from(items, path.name), path.name)
    for one, box in zip(annotations, boxes, strict=True):
        text = "" if box is None else json.dumps([{"bbox": box}])
        yield Reply(int(one.index), text, record)
