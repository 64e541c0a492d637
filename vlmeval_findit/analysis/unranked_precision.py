"""COCO's average precision of boxes without confidences, as papers report it of detection sets.

All confidences are equal, so the value is that of an order: pycocotools' is that of the images'
numbers, and within an image that of the reply.  Beside it stands what the value is over all orders
of the boxes of a set; how they are matched stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..protocol import AnyDataset, ScoredRow
from ..statistics import Matches, OverOrders, average_precision, precision_over_orders
from .coco_boxes import CocoBoxes
from .coco_evaluator import CocoEvaluator

AP50, AP75 = 0, 5  # Places of IoU thresholds among 0.50, 0.55 … 0.95


@dataclass(frozen=True, slots=True)
class UnrankedValues:
    """Average precision of boxes whose confidences are all equal; in percent."""

    ap: float  # Mean over IoU 0.50 to 0.95, as pycocotools has it
    ap50: float  # As pycocotools has it
    ap75: float
    low: float  # ``ap`` in the worst order of the boxes of a set
    expected: float  # ``ap`` over its orders, all equally likely
    high: float  # ``ap`` in the best order
    within: float = 0.0  # ``expected`` is within so much of its exact value; 0: exact


@dataclass(frozen=True, slots=True)
class UnrankedClass:
    """A class of a dataset that has objects."""

    label: str
    objects: int
    boxes: int
    values: UnrankedValues


@dataclass(frozen=True, slots=True)
class UnrankedPrecision:
    """What a run's boxes are worth where no confidence ranks them."""

    images: int
    boxes: int  # As COCO counts them
    failed: int  # Calls: answers without a box
    unknown_labels: int  # Boxes whose label is no class
    not_numbers: int  # Boxes that are not finite
    unasked: int  # Classes of images about which no query asks
    values: UnrankedValues  # Mean of the classes
    classes: tuple[UnrankedClass, ...]


def measure_unranked(dataset: AnyDataset, rows: Sequence[ScoredRow]) -> UnrankedPrecision:
    """Compute COCO's average precision of a run, its boxes equally sure; failed calls are misses.

    Raises:
        ConfidenceError: pycocotools is missing, or no query has an object.
        NotBoxesError: its answers are no boxes.
    """
    boxes = CocoBoxes(dataset, rows, failed_are_misses=True)
    evaluator = CocoEvaluator(boxes)
    names = {category["id"]: str(category["name"]) for category in boxes.categories}
    classes = []
    for category, matches in evaluator.matches_by_category([1.0] * len(boxes.results)).items():
        if matches.objects.sum():
            classes.append(_measure_class(names[category], matches))
    return UnrankedPrecision(
        images=len(boxes.images),
        boxes=len(boxes.results),
        failed=sum(row.failed for row in rows),
        unknown_labels=boxes.unknown_labels,
        not_numbers=boxes.not_numbers,
        unasked=boxes.unasked,
        values=mean_unranked([each.values for each in classes]),
        classes=tuple(classes),
    )


def _measure_class(label: str, matches: Matches) -> UnrankedClass:
    objects = int(matches.objects.sum())
    in_order = average_precision(matches, np.ones((1, len(matches.objects))))[0]
    over_orders: list[OverOrders] = []
    for matched, counted in zip(matches.matched, matches.counted, strict=True):
        hits = int((matched & counted).sum())
        over_orders.append(precision_over_orders(hits, int(counted.sum()) - hits, objects))
    values = UnrankedValues(
        ap=100 * float(in_order.mean()),
        ap50=100 * float(in_order[AP50]),
        ap75=100 * float(in_order[AP75]),
        low=100 * _mean([each.low for each in over_orders]),
        expected=100 * _mean([each.expected for each in over_orders]),
        high=100 * _mean([each.high for each in over_orders]),
        within=100 * _mean([each.within for each in over_orders]),
    )
    return UnrankedClass(label, objects, matches.matched.shape[1], values)


def mean_unranked(values: Sequence[UnrankedValues]) -> UnrankedValues:
    """Return the mean of classes, or of datasets.

    >>> a, b = UnrankedValues(10, 20, 10, 8, 9, 10), UnrankedValues(30, 40, 10, 20, 30, 40)
    >>> mean_unranked([a, b])
    UnrankedValues(ap=20.0, ap50=30.0, ap75=10.0, low=14.0, expected=19.5, high=25.0, within=0.0)
    """
    return UnrankedValues(
        ap=_mean([each.ap for each in values]),
        ap50=_mean([each.ap50 for each in values]),
        ap75=_mean([each.ap75 for each in values]),
        low=_mean([each.low for each in values]),
        expected=_mean([each.expected for each in values]),
        high=_mean([each.high for each in values]),
        within=_mean([each.within for each in values]),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
