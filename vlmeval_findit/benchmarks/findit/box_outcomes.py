"""Outcomes of boxes: hit, missed or wrongly labelled, as the report draws and counts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from ...boxes import HIT_IOU
from ...protocol import Curve, Drawing, DrawnBox, DrawnImage, Metric, Role, ScoredRow, add_up
from .box_metrics import F1, PRECISION, RECALL
from .findit_query import FindItQuery

IOU_THRESHOLDS = tuple(at / 20 for at in range(1, 20))  # IoU thresholds of curves


class BoxPair(NamedTuple):
    """Indices of a box and its object; ``iou`` is None for points."""

    box: int
    target: int
    iou: float | None
    labels_agree: bool
    hit: bool


def pairs(row: ScoredRow) -> list[BoxPair]:
    """List the assigned boxes and objects of a scored answer."""
    details = row.details
    assigned = details["assigned"]
    agree = details.get("labels_agree") or [True] * len(assigned)
    ious = details.get("ious") or [None] * len(assigned)
    result: list[BoxPair] = []
    for target, box in enumerate(assigned):
        if box is not None:
            hit = details["hits"][target]
            result.append(BoxPair(box, target, ious[target], agree[target], hit))
    return result


def box_roles(row: ScoredRow) -> list[tuple[Role, float | None]]:
    """Return each box's role and its IoU (0: no object; None: a point, or not counted)."""
    nothing = 0.0 if "ious" in row.details else None
    result: list[tuple[Role, float | None]] = [(Role.MISS, nothing)] * len(row.details["boxes"])
    for pair in pairs(row):
        role = Role.HIT if pair.hit else Role.MISS
        if pair.iou is not None and pair.iou >= HIT_IOU and not pair.labels_agree:
            role = Role.WRONG_LABEL
        result[pair.box] = (role, pair.iou)
    for box in row.details.get("ignored", ()):
        result[box] = (Role.UNCOUNTED, None)
    return result


_MOST = 200  # Boxes of an answer that are drawn


def draw(query: FindItQuery, row: ScoredRow) -> Drawing:
    """Draw an answer on its images."""
    return draw_as(query, row, box_roles(row))


def draw_as(
    query: FindItQuery, row: ScoredRow, result: Sequence[tuple[Role, float | None]]
) -> Drawing:
    """Draw an answer on its images with the given roles, the boxes over the objects."""
    details = row.details
    truth = query.truth
    drawn: dict[int, list[DrawnBox]] = {}
    for item in truth.ignored:
        box = DrawnBox(Role.IGNORED, item.box, item.label or query.label, None)
        drawn.setdefault(item.frame, []).append(box)
    labels = truth.labels or [query.label] * len(truth.boxes)
    ious = details.get("ious") or [None] * len(truth.boxes)
    for each, label, iou, frame in zip(truth.boxes, labels, ious, truth.frames, strict=True):
        drawn.setdefault(frame, []).append(DrawnBox(Role.TRUTH, each, label, iou))
    predicted = list(_drawn_boxes(details, result))
    lenient = details.get("lenient")
    if lenient is not None:
        # Those of strict reading come first.
        more = [(Role.LENIENT, 0.0)] * len(lenient["boxes"])
        predicted += _drawn_boxes(lenient, more, first=len(details["boxes"]))
    for frame, box in predicted:
        drawn.setdefault(frame, []).append(box)
    images = tuple(
        DrawnImage(path, query.width, query.height, at, tuple(drawn.get(at, ())))
        for at, path in enumerate(query.images)
    )
    return Drawing(images, query.support)


def _drawn_boxes(
    details: Mapping[str, Any], result: Sequence[tuple[Role, float | None]], first: int = 0
) -> Iterator[tuple[int, DrawnBox]]:
    """Yield the finite boxes of an answer from the place ``first`` on, each with its frame."""
    boxes = details["boxes"][:_MOST]
    frames = details.get("frames") or [0] * len(boxes)
    labels = details.get("labels") or [""] * len(boxes)
    for i in range(first, len(boxes)):
        if None not in boxes[i] and all(map(isfinite, boxes[i])):
            role, value = result[i]
            yield frames[i], DrawnBox(role, tuple(boxes[i]), labels[i], value)


def threshold_curve(rows: Sequence[ScoredRow]) -> Curve:
    """Compute precision, recall and F1 by IoU threshold, always with the score's assignment."""
    total = add_up(row.sums for row in rows)
    ious: list[float] = []
    for row in rows:
        if not row.failed:
            agreeing = [pair for pair in pairs(row) if pair.labels_agree]
            ious += [pair.iou for pair in agreeing if pair.iou is not None]
    values = np.array(ious, dtype=np.float32)
    hits = [int((values >= np.float32(threshold)).sum()) for threshold in IOU_THRESHOLDS]

    def values_at(metric: Metric) -> tuple[float, ...]:
        return tuple(metric.value({**total, "tp": tp}) or 0.0 for tp in hits)

    return Curve(IOU_THRESHOLDS, values_at(PRECISION), values_at(RECALL), values_at(F1))
