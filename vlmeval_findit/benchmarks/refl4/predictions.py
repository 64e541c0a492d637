"""A model's boxes, from files of ``{id, pred_bbox, format}``.

A file that may be about something else is refused.  A single box that cannot be read is a miss,
counted with its reason, and never an exception.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from .annotations import Annotation, Id, is_id, is_number
from .refusals import Code, RefusedError

Corners = tuple[float, float, float, float]
"""x1, y1, x2, y2 in pixels of the original image; 64-bit floats, perhaps swapped or not finite."""


class BoxOrder(Enum):
    """What the four numbers of a prediction are."""

    XYXY = "xyxy"
    XYWH = "xywh"


class MissReason(Enum):
    """Why an expression has no box; the value is its name in tables."""

    NO_PREDICTION = "no prediction"
    NO_BOX = "no pred_bbox"
    NULL_BOX = "null"
    NO_LIST = "not a list"
    WRONG_LENGTH = "wrong length"
    NOT_NUMBERS = "not numbers"


@dataclass(frozen=True, slots=True)
class PredictedBox:
    """What a model said about one expression: a box or, exactly where there is none, a reason."""

    box: Corners | None
    reason: MissReason | None = None


Predictions = Mapping[Id, PredictedBox]

NO_PREDICTION = PredictedBox(None, MissReason.NO_PREDICTION)


def read_box(numbers: object, how: BoxOrder) -> PredictedBox:
    """The corners of ``pred_bbox``.

    Of ``xywh`` the first four numbers count, ``xyxy`` has to have exactly four.

    >>> read_box([10, 20, 30, 40, 0.9], BoxOrder.XYWH).box
    (10.0, 20.0, 40.0, 60.0)
    >>> read_box([10, 20, 30, 40, 0.9], BoxOrder.XYXY).reason
    <MissReason.WRONG_LENGTH: 'wrong length'>
    """
    if numbers is None:
        return PredictedBox(None, MissReason.NULL_BOX)
    if not isinstance(numbers, (list, tuple)):
        return PredictedBox(None, MissReason.NO_LIST)
    four = numbers[:4] if how is BoxOrder.XYWH else numbers
    if len(four) != 4:
        return PredictedBox(None, MissReason.WRONG_LENGTH)
    if not all(map(is_number, four)):
        return PredictedBox(None, MissReason.NOT_NUMBERS)
    # Always floats: corners and areas of integers would overflow into hits.
    a, b, c, d = map(_float, four)
    return PredictedBox((a, b, a + c, b + d) if how is BoxOrder.XYWH else (a, b, c, d))


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of more than 308 digits
        return math.inf if value > 0 else -math.inf


def predictions_from(items: object, where: str = "predictions") -> Predictions:
    """The answers of a list of predictions, by id.

    Raises:
        RefusedError: it is no list of objects, an id or a format is missing, an id occurs twice or
            a format is neither ``xyxy`` nor ``xywh``; in predictions that nobody asked for too.
    """
    if not isinstance(items, (list, tuple)):
        raise RefusedError(Code.UNREADABLE, where, "is no list of predictions")
    formats = {one.value: one for one in BoxOrder}
    rows: dict[Id, int] = {}
    answers: dict[Id, PredictedBox] = {}
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
        if not isinstance(said, str) or said not in formats:
            why = f"{said!r} is neither xyxy nor xywh"
            raise RefusedError(Code.UNKNOWN_FORMAT, f"{here}, format", why)
        if rows.setdefault(number, row) != row:
            why = f"{number!r} is the id of row {rows[number]} too"
            raise RefusedError(Code.DUPLICATE_ID, f"{here}, id", why)
        if "pred_bbox" in item:
            answers[number] = read_box(item["pred_bbox"], formats[said])
        else:
            answers[number] = PredictedBox(None, MissReason.NO_BOX)
    return answers


def read_predictions(path: Path) -> Predictions:
    """The answers of a prediction file: a JSON list.

    Raises:
        FileNotFoundError: there is no such file.
        RefusedError: it is no JSON, or :func:`predictions_from` refuses what it holds.
    """
    try:
        items = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise RefusedError(Code.UNREADABLE, path.name, f"no JSON: {error}") from None
    return predictions_from(items, path.name)


@dataclass(frozen=True, slots=True)
class PredictedBoxes:
    """The answers to given annotations, in their order."""

    answers: tuple[PredictedBox, ...]
    unused: int
    """How many predictions are of no annotation."""


def answers_to(
    annotations: Sequence[Annotation], predictions: Predictions, where: str = "predictions"
) -> PredictedBoxes:
    """Which answer every annotation has.  Without any prediction at all, every one is a miss.

    Raises:
        RefusedError: there are predictions, but none is of an annotation.
    """
    used = sum(one.id in predictions for one in annotations)
    if predictions and not used:
        why = f"none of {len(predictions)} ids is one of {len(annotations)} annotations"
        why += _example(predictions, (one.id for one in annotations))
        raise RefusedError(Code.NO_PREDICTION_ID_MATCHES, where, why)
    answers = tuple(predictions.get(one.id, NO_PREDICTION) for one in annotations)
    return PredictedBoxes(answers, unused=len(predictions) - used)


def _example(said: Iterable[Id], asked: Iterable[Id]) -> str:
    """One id of each side: mostly one is a text and the other a number."""
    return f": {next(iter(said))!r} is not like {next(iter(asked), None)!r}"
