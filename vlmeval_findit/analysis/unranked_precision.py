"""COCO's average precision of boxes without confidences, as papers report it of detection sets.

All confidences are equal, so the value is that of an order: pycocotools' is that of the images'
numbers, and within an image that of the reply.  Beside it stands what the value is over all orders
of the boxes of a class: those that pycocotools has if confidences differ by next to nothing.  An
order matches the boxes of an image, and ranks those of all; one order holds for all IoU thresholds,
and classes have their own.  Of an image the first 100 boxes of a class count: in each order others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from ..data import asks_for_all_classes, unlike_file
from ..protocol import AnyDataset, ScoredRow
from ..statistics import Matches, average_precision
from ..storage import table_facts, unlike_published
from .box_orders import BoxOrders
from .coco_boxes import CocoBoxes, ConfidenceError
from .coco_evaluator import MOST, CocoEvaluator
from .over_orders import precision_over_orders

AP50, AP75 = 0, 5  # Places of IoU thresholds among 0.50, 0.55 … 0.95


@dataclass(frozen=True, slots=True)
class UnrankedValues:
    """Average precision of boxes whose confidences are all equal; in percent."""

    ap: float  # Mean over IoU 0.50 to 0.95, as pycocotools has it
    ap50: float  # As pycocotools has it
    ap75: float
    low: float  # ``ap`` in the worst order of each class that was found
    expected: float  # ``ap`` over all orders, equally likely
    high: float  # ``ap`` in the best order of each class that was found
    low_bound: float  # No order is below it; nearly always ``low``
    high_bound: float  # No order is above it
    within: float = 0.0  # ``expected`` is within so much of its exact value; 0: exact
    simulated: bool = False  # ``within`` is three standard errors, as some orders were drawn

    @property
    def beyond(self) -> float:
        """Return how far beyond ``low`` or ``high`` an end may lie; nearly always 0."""
        return max(self.low - self.low_bound, self.high_bound - self.high)


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
    missing: int  # Queries of the dataset that have no row in the run
    asks_for_all: bool  # Whether the set was imported to ask each image about all classes
    unlike_file: Mapping[str, int]  # By what pycocotools' value of the imported file is another
    unlike_published: str  # How the set differs from the published one; "": in nothing known
    beyond: int  # Boxes of a class in an image that are more than count
    images_cut: int  # With such boxes
    values: UnrankedValues  # Mean of the classes
    classes: tuple[UnrankedClass, ...]


def measure_unranked(dataset: AnyDataset, rows: Sequence[ScoredRow]) -> UnrankedPrecision:
    """Compute COCO's average precision of a run, its boxes equally sure; failed calls are misses.

    Raises:
        ConfidenceError: pycocotools is missing, there are no rows, or no query has an object.
        NotBoxesError: its answers are no boxes.
    """
    boxes = CocoBoxes(dataset, rows, failed_are_misses=True)
    if not rows:
        raise ConfidenceError(
            f"{dataset.variant.name}: the prediction file has no rows, so average precision is "
            "undefined. Type the run's command again"
        )
    evaluator = CocoEvaluator(boxes)
    names = {category["id"]: str(category["name"]) for category in boxes.categories}
    classes = []
    for category, (matches, orders) in evaluator.equally_sure().items():
        if orders.objects:
            classes.append(_measure_class(names[category], matches, orders))
    answered = {row.index for row in rows}
    beyond = _boxes_beyond(boxes)
    return UnrankedPrecision(
        images=len(boxes.images),
        boxes=len(boxes.results),
        failed=sum(row.failed for row in rows),
        unknown_labels=boxes.unknown_labels,
        not_numbers=boxes.not_numbers,
        unasked=boxes.count_unasked(dataset.queries.values()),
        missing=len(dataset.queries.keys() - answered),
        asks_for_all=asks_for_all_classes(dataset.table),
        unlike_file=unlike_file(dataset.table) if boxes.has_ids else {},
        unlike_published=unlike_published(table_facts(dataset.table) or {}),
        beyond=sum(beyond.values()),
        images_cut=len(beyond),
        values=mean_unranked([each.values for each in classes]),
        classes=tuple(classes),
    )


def _boxes_beyond(boxes: CocoBoxes) -> Counter[int | str]:
    """Count the boxes of a class in an image that are more than count, by image."""
    counts = Counter((each["image_id"], each["category_id"]) for each in boxes.results)
    beyond: Counter[int | str] = Counter()
    for (image, _), count in counts.items():
        if count > MOST:
            beyond[image] += count - MOST
    return beyond


def _measure_class(label: str, matches: Matches, boxes: BoxOrders) -> UnrankedClass:
    in_order = average_precision(matches, np.ones((1, len(matches.objects))))[0]
    over = precision_over_orders(boxes)
    values = UnrankedValues(
        ap=100 * float(in_order.mean()),
        ap50=100 * float(in_order[AP50]),
        ap75=100 * float(in_order[AP75]),
        low=100 * over.ends.low,
        expected=100 * over.expected,
        high=100 * over.ends.high,
        low_bound=100 * over.ends.low_bound,
        high_bound=100 * over.ends.high_bound,
        within=100 * over.within,
        simulated=over.simulated,
    )
    return UnrankedClass(label, boxes.objects, boxes.boxes, values)


def mean_unranked(values: Sequence[UnrankedValues]) -> UnrankedValues:
    """Return the mean of classes, or of datasets.

    >>> a = UnrankedValues(10, 20, 10, 8, 9, 10, 8, 10)
    >>> b = UnrankedValues(30, 40, 10, 20, 30, 40, 10, 40)
    >>> mean_unranked([a, b]).low, mean_unranked([a, b]).low_bound
    (14.0, 9.0)
    """
    rows = [asdict(each) for each in values]
    means: dict[str, Any] = {}
    for field in fields(UnrankedValues):
        means[field.name] = _mean([row[field.name] for row in rows])
    means["simulated"] = any(each.simulated for each in values)
    return UnrankedValues(**means)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
