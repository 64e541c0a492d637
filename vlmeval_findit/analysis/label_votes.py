"""Match the answers of several models with labels, and group the boxes that labels lack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..boxes import iou
from ..protocol import Array
from ..statistics import UNKNOWN_CLASS, UNNAMED, LabelledObjects, OtherObjects, Votes

_ANSWERS = 0.3  # IoU from which a box answers a labelled object, whose box may be drawn badly
_SAME = 0.5  # IoU from which two boxes that the label lacks are of one object
_TWICE = 0.7  # IoU from which two boxes of a label, of one class, may be of one object
_SAME_CLASS = 0.01  # What an agreeing class adds to an IoU: it decides between equal boxes


class ClassedBoxes(NamedTuple):
    """Boxes of a label or an answer, with their classes."""

    boxes: Array  # (n, 4) x1, y1, x2, y2 in pixels
    classes: NDArray[np.intp]  # (n,)


def classed_boxes(boxes: Sequence[Sequence[float]], classes: Sequence[int]) -> ClassedBoxes:
    """Make arrays of boxes and classes, perhaps none."""
    return ClassedBoxes(np.array(boxes, float).reshape(-1, 4), np.array(classes, np.intp))


@dataclass(slots=True)
class _UnlabelledObject:
    """An object that a label lacks: a box of each model that has it; the first says where it is."""

    models: list[int] = field(default_factory=list)
    boxes: list[Array] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)


class _RowVotes(NamedTuple):
    """The votes about one label of g objects."""

    answered: Array  # (g, K, 4), as in LabelledObjects
    named: NDArray[np.intp]  # (g, K)
    others: list[_UnlabelledObject]


def count_votes(
    labels: Sequence[ClassedBoxes],
    answers: Sequence[Sequence[ClassedBoxes | None]],
    single: bool,
) -> Votes:
    """Match the answers of each of K models with the labels of n queries.

    Args:
        labels: (n,).
        answers: (K,) times (n,); None: no answer, as its call failed.
        single: every query asks for exactly one object.

    >>> label = classed_boxes([(10, 10, 50, 50)], [0])
    >>> near = classed_boxes([(12, 10, 50, 50)], [0])
    >>> elsewhere = classed_boxes([(60, 60, 90, 90)], [0])
    >>> votes = count_votes([label], [[near], [elsewhere], [elsewhere], [None]], single=True)
    >>> votes.spoke.tolist(), votes.labelled.detected.tolist()
    ([[True, True, True, False]], [[True, False, False, False]])
    >>> votes.others.boxes.tolist(), votes.others.seen.tolist()
    ([[60.0, 60.0, 90.0, 90.0]], [[False, True, True, False]])
    """
    models = len(answers)
    rows = []
    for place, label in enumerate(labels):
        rows.append(_votes_of_row(label, [of_model[place] for of_model in answers]))
    others = [other for row in rows for other in row.others]
    seen = np.zeros((len(others), models), bool)
    for at, other in enumerate(others):
        seen[at, other.models] = True
    places = np.arange(len(labels))
    none = classed_boxes([], [])
    return Votes(
        spoke=np.array([[each is not None for each in of_model] for of_model in answers], bool).T,
        labelled=LabelledObjects(
            row=np.repeat(places, [len(label.boxes) for label in labels]),
            boxes=np.concatenate([none.boxes, *(label.boxes for label in labels)]),
            classes=np.concatenate([none.classes, *(label.classes for label in labels)]),
            answered=np.concatenate([np.empty((0, models, 4)), *(row.answered for row in rows)]),
            named=np.concatenate([np.empty((0, models), np.intp), *(row.named for row in rows)]),
        ),
        others=OtherObjects(
            row=np.repeat(places, [len(row.others) for row in rows]),
            boxes=np.array([np.median(other.boxes, axis=0) for other in others]).reshape(-1, 4),
            classes=np.array([_most_common(other.classes) for other in others], np.intp),
            seen=seen,
        ),
        single=single,
    )


def _most_common(classes: Sequence[int]) -> int:
    """Return the class that most boxes have, of equals the first."""
    return max(classes, key=classes.count)


def _votes_of_row(label: ClassedBoxes, answers: Sequence[ClassedBoxes | None]) -> _RowVotes:
    objects = len(label.boxes)
    answered = np.full((objects, len(answers), 4), np.nan)
    named = np.full((objects, len(answers)), UNNAMED, np.intp)
    others: list[_UnlabelledObject] = []
    twins = _twins(label)
    for model, answer in enumerate(answers):
        if answer is None:
            continue
        free = np.ones(len(answer.boxes), bool)
        for at, box in _to_first_twins(dict(_matched(label, answer)), twins).items():
            answered[at, model] = answer.boxes[box]
            named[at, model] = answer.classes[box]
            free[box] = False
        # An object of a class that nobody asks for is not missing.
        free &= answer.classes != UNKNOWN_CLASS
        rest = ClassedBoxes(answer.boxes[free], answer.classes[free])
        _add_others(others, model, rest)
    return _RowVotes(answered, named, others)


def _matched(label: ClassedBoxes, answer: ClassedBoxes) -> list[tuple[int, int]]:
    """Pair objects of a label with boxes of an answer, one to one, the highest IoU first."""
    values = _iou_table(label.boxes, answer.boxes)
    is_same = label.classes[:, None] == answer.classes[None]
    values += np.where(is_same, _SAME_CLASS, 0.0)
    pairs = []
    while values.size and values.max() >= _ANSWERS:
        at, box = np.unravel_index(values.argmax(), values.shape)
        pairs.append((int(at), int(box)))
        values[at] = 0
        values[:, box] = 0
    return pairs


def _twins(label: ClassedBoxes) -> list[tuple[int, int]]:
    """Return the pairs of boxes of a label, by place, that may be twice the box of one object."""
    near = _iou_table(label.boxes, label.boxes) >= _TWICE
    same = near & (label.classes[:, None] == label.classes[None])
    first, second = np.nonzero(np.triu(same, 1))
    return list(zip(first.tolist(), second.tolist(), strict=True))


def _to_first_twins(found: dict[int, int], twins: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Let the first of two twins be found where a model found one; ``found``: box by object.

    Else one model's box answers one of them and another's the other, and none looks superfluous.
    """
    for first, second in twins:
        if second in found and first not in found:
            found = {**found, first: found[second]}
            del found[second]
    return found


def _add_others(others: list[_UnlabelledObject], model: int, answer: ClassedBoxes) -> None:
    """Add a model's boxes to the objects that other models have, or as new objects.

    Two boxes of one model are two objects, however close.
    """
    first = np.array([other.boxes[0] for other in others]).reshape(-1, 4)
    same = _iou_table(answer.boxes, first) >= _SAME
    for place, (box, class_) in enumerate(zip(answer.boxes, answer.classes.tolist(), strict=True)):
        near = np.flatnonzero(same[place])
        if len(near):
            other = others[near[0]]
            same[:, near[0]] = False
        else:
            other = _UnlabelledObject()
            others.append(other)
        other.models.append(model)
        other.boxes.append(box)
        other.classes.append(class_)


def _iou_table(left: Array, right: Array) -> Array:
    """Return the IoU of every box of ``left`` (n, 4) with every box of ``right`` (m, 4)."""
    repeated = np.repeat(left, len(right), axis=0)
    tiled = np.tile(right, (len(left), 1))
    values: Array = iou(repeated, tiled).reshape(len(left), len(right))
    return values
