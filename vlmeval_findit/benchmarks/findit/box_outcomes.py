"""Outcomes of boxes: hit, missed or wrongly labelled, as the report draws and counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

import numpy as np

from ...boxes import HIT_IOU, BoxAnswer, BoxError, LenientBoxes, plain_label
from ...protocol import (
    ClassCounts,
    Curve,
    Drawing,
    DrawnBox,
    DrawnImage,
    Metric,
    Role,
    ScoredRow,
    add_up,
)
from .box_metrics import F1, PRECISION, RECALL
from .f1_errors import ERRORS, SIZES, coco_size
from .findit_query import FindItQuery

IOU_THRESHOLDS = tuple(at / 20 for at in range(1, 20))  # IoU thresholds of curves


def box_roles(answer: BoxAnswer) -> list[tuple[Role, float | None]]:
    """Return each box's role and its IoU (0: no object; None: a point, or not counted)."""
    nothing = None if answer.ious is None else 0.0
    result: list[tuple[Role, float | None]] = [(Role.MISS, nothing)] * len(answer.boxes)
    for pair in answer.pairs:
        role = Role.HIT if pair.hit else Role.MISS
        if pair.iou is not None and pair.iou >= HIT_IOU and not pair.labels_agree:
            role = Role.WRONG_LABEL
        result[pair.box] = (role, pair.iou)
    for box in answer.ignored:
        result[box] = (Role.UNCOUNTED, None)
    return result


_MOST = 200  # Boxes of an answer that are drawn


def draw(query: FindItQuery, row: ScoredRow) -> Drawing:
    """Draw an answer on its images."""
    answer = BoxAnswer.of(row)
    return draw_as(query, answer, box_roles(answer))


def draw_as(
    query: FindItQuery, answer: BoxAnswer, result: Sequence[tuple[Role, float | None]]
) -> Drawing:
    """Draw an answer on its images with the given roles, the boxes over the objects."""
    truth = query.truth
    drawn: dict[int, list[DrawnBox]] = {}
    for item in truth.ignored:
        box = DrawnBox(Role.IGNORED, item.box, item.label or query.label, None)
        drawn.setdefault(item.frame, []).append(box)
    labels = truth.labels or [query.label] * len(truth.boxes)
    ious = answer.ious or (None,) * len(truth.boxes)
    for each, label, iou, frame in zip(truth.boxes, labels, ious, truth.frames, strict=True):
        drawn.setdefault(frame, []).append(DrawnBox(Role.TRUTH, each, label, iou))
    predicted = list(_drawn_boxes(answer, result))
    if answer.lenient is not None:
        # Those of strict reading come first.
        more = [(Role.LENIENT, 0.0)] * len(answer.lenient.boxes)
        predicted += _drawn_boxes(answer.lenient, more, first=len(answer.boxes))
    for frame, box in predicted:
        drawn.setdefault(frame, []).append(box)
    images = tuple(
        DrawnImage(path, query.width, query.height, at, tuple(drawn.get(at, ())))
        for at, path in enumerate(query.images)
    )
    return Drawing(images, query.support)


def _drawn_boxes(
    answer: BoxAnswer | LenientBoxes, result: Sequence[tuple[Role, float | None]], first: int = 0
) -> Iterator[tuple[int, DrawnBox]]:
    """Yield the finite boxes of an answer from the place ``first`` on, each with its frame."""
    boxes = answer.boxes[:_MOST]
    labels = answer.labels or ("",) * len(boxes)
    for i in range(first, len(boxes)):
        numbers = [n for n in boxes[i] if n is not None and isfinite(n)]
        if len(numbers) == len(boxes[i]):
            role, value = result[i]
            yield answer.frames[i], DrawnBox(role, tuple(numbers), labels[i], value)


def threshold_curve(rows: Sequence[ScoredRow]) -> Curve:
    """Compute precision, recall and F1 by IoU threshold, always with the score's assignment."""
    total = add_up(row.sums for row in rows)
    ious: list[float] = []
    for row in rows:
        if not row.failed:
            agreeing = [pair for pair in BoxAnswer.of(row).pairs if pair.labels_agree]
            ious += [pair.iou for pair in agreeing if pair.iou is not None]
    values = np.array(ious, dtype=np.float32)
    hits = [int((values >= np.float32(threshold)).sum()) for threshold in IOU_THRESHOLDS]

    def values_at(metric: Metric) -> tuple[float, ...]:
        return tuple(metric.value({**total, "tp": tp}) or 0.0 for tp in hits)

    return Curve(IOU_THRESHOLDS, values_at(PRECISION), values_at(RECALL), values_at(F1))


def count_classes(queries: Mapping[int, FindItQuery], rows: Sequence[ScoredRow]) -> ClassCounts:
    """Count objects, hits and boxes by class: an object's own label, else that of its query."""
    objects: Counter[str] = Counter()
    found: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    confused: Counter[tuple[str, str]] = Counter()
    for row in rows:
        query = queries[row.index]
        answer = BoxAnswer.of(row)
        truth = query.truth.labels or (query.label,) * len(query.truth.boxes)
        names = [plain_label(label) for label in truth]
        said = [plain_label(label) for label in answer.labels_or(query.label)]
        objects.update(names)
        found.update(name for name, hit in zip(names, answer.hits, strict=False) if hit)
        answers.update(name for at, name in enumerate(said) if at not in answer.ignored)
        for event in row.details.get(ERRORS, ()):
            if event["kind"] == BoxError.WRONG_LABEL.value:
                confused[names[event["object"]], said[event["box"]]] += 1
    return ClassCounts(objects, found, answers, confused)


def count_sizes(
    queries: Mapping[int, FindItQuery], rows: Sequence[ScoredRow]
) -> dict[str, tuple[int, int]]:
    """Count objects, and hits among them, by COCO's sizes; failed calls have none."""
    objects: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for row in rows:
        sizes = [coco_size(box) for box in queries[row.index].truth.boxes]
        objects.update(sizes)
        hits = BoxAnswer.of(row).hits
        found.update(size for size, hit in zip(sizes, hits, strict=False) if hit)
    return {size: (objects[size], found[size]) for size in SIZES if objects[size]}
