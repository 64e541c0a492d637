"""Merge the boxes of several answers to a query: boxes of one answer are different objects.

Answer by answer, boxes are assigned one to one to the objects so far, as the score assigns them to
true objects. So the consensus of equal answers is that answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..boxes import (
    CELLS_AT_ONCE,
    HIT_IOU,
    BoxToWrite,
    Corners,
    assign,
    assign_sparse,
    iou,
    plain_label,
)

Indices = NDArray[np.intp]


def group_of(box: BoxToWrite) -> tuple[int, str]:
    """Return what boxes that can agree have in common: the frame and the label."""
    return box.frame, plain_label(box.label)


def fuse_boxes(samples: Sequence[Sequence[BoxToWrite]]) -> list[BoxToWrite]:
    """Merge the boxes of answers; of merged boxes those of more than half of the answers stay.

    A merged box is the mean of its boxes, with the label of the first. They are in the order of
    their share, then of their first appearance.

    Args:
        samples: the finite boxes of each answer, (x1, y1, x2, y2) in any unit.

    >>> person, behind = BoxToWrite((100, 100, 300, 400)), BoxToWrite((140, 100, 340, 400))
    >>> [each.box for each in fuse_boxes([[person, behind], [behind], [behind, person]])]
    [(140.0, 100.0, 340.0, 400.0), (100.0, 100.0, 300.0, 400.0)]
    """
    objects: list[list[BoxToWrite]] = []  # The boxes of each object, at most one of an answer
    by_group: dict[tuple[int, str], list[list[BoxToWrite]]] = {}
    for sample in samples:
        objects_by_box = _objects_of(sample, by_group)
        for at, box in enumerate(sample):
            if at in objects_by_box:
                objects_by_box[at].append(box)
            else:
                objects.append([box])
                by_group.setdefault(group_of(box), []).append(objects[-1])
    often = [boxes for boxes in objects if 2 * len(boxes) > len(samples)]
    often.sort(key=len, reverse=True)
    return [boxes[0]._replace(box=_mean(boxes)) for boxes in often]


def _objects_of(
    sample: Sequence[BoxToWrite], known: dict[tuple[int, str], list[list[BoxToWrite]]]
) -> dict[int, list[BoxToWrite]]:
    """Return the known object of boxes of an answer, by their places; others have none."""
    places: dict[tuple[int, str], list[int]] = {}
    for at, box in enumerate(sample):
        places.setdefault(group_of(box), []).append(at)
    result: dict[int, list[BoxToWrite]] = {}
    for group, places_in_group in places.items():
        objects = known.get(group, [])
        boxes = [sample[at].box for at in places_in_group]
        for row, column in _pairs(boxes, [_mean(each) for each in objects]):
            result[places_in_group[row]] = objects[column]
    return result


def _mean(boxes: Sequence[BoxToWrite]) -> Corners:
    """Return the mean of boxes; that of equal boxes is the box to the last bit."""
    first = np.array(boxes[0].box, dtype=float)
    offsets = [np.array(each.box, dtype=float) - first for each in boxes]
    x1, y1, x2, y2 = (first + np.mean(offsets, axis=0)).tolist()
    return x1, y1, x2, y2


def _pairs(boxes: Sequence[Corners], objects: Sequence[Corners]) -> Iterator[tuple[int, int]]:
    """Yield places of boxes and their objects: the highest sum of IoUs of at least HIT."""
    if not boxes or not objects:
        return
    left = np.array(boxes, dtype=float)
    right = np.array(objects, dtype=float)

    def cost(rows: Indices, columns: Indices) -> NDArray[np.float32]:
        values = iou(left[rows], right[columns])
        # A box without an area has an IoU of 0 with itself, too.
        values[(left[rows] == right[columns]).all(axis=1)] = 1
        return np.where(values >= HIT_IOU, -values, 0.0).astype(np.float32)

    rows = np.arange(len(left))
    columns = np.arange(len(right))
    if len(rows) * len(columns) > CELLS_AT_ONCE:
        chosen = zip(*(each.tolist() for each in assign_sparse(rows, columns, cost)), strict=True)
    else:
        grid = np.indices((len(rows), len(columns))).reshape(2, -1)
        chosen = zip(*assign(cost(*grid).reshape(len(rows), len(columns))), strict=True)
    for row, column in chosen:
        if cost(np.array([row]), np.array([column]))[0] < 0:
            yield row, column
