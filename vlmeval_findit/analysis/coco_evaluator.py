"""Average precision of boxes with confidences, and of images that are resampled.

pycocotools matches boxes to objects, image by image; :mod:`..statistics.confidence_measures` adds
up its matches. With every weight 1 they are pycocotools' values, as a test checks.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ..core import install_command
from ..protocol import Array
from ..statistics import Matches, average_precision
from .box_orders import BoxOrders, Overlaps
from .coco_boxes import CocoBoxes, ConfidenceError

MOST = 100  # Boxes of a category in an image that count, as for COCO: those of the highest scores


class Precision(NamedTuple):
    """AP (mean over IoU 0.50 to 0.95) and AP50, shares of 1, an entry for each set of weights."""

    ap: Array
    ap50: Array


class CocoEvaluator:
    """COCO's evaluation of one run, for any scores of its boxes.

    Raises ConfidenceError without pycocotools, or if there is nothing to find.
    """

    def __init__(self, boxes: CocoBoxes) -> None:
        try:
            coco = import_module("pycocotools.coco")
            self._evaluation = import_module("pycocotools.cocoeval")
        except ImportError:
            needs = f"average precision needs pycocotools: {install_command('data')}"
            raise ConfidenceError(needs) from None
        if all(truth["ignore"] for truth in boxes.truth):
            raise ConfidenceError("no query has an object, so average precision is undefined")
        self.boxes = len(boxes.results)
        self.names = sorted({*boxes.sources.values()})  # Of the images or videos, by their place
        place = {name: at for at, name in enumerate(self.names)}
        self.images = len(self.names)
        self._place = {image: place[source] for image, source in boxes.sources.items()}
        self._truth = coco.COCO()
        self._truth.dataset = {
            "info": {},
            "images": list(boxes.images.values()),
            # Copies: pycocotools writes into them.
            "annotations": [dict(each) for each in boxes.truth],
            "categories": boxes.categories,
        }
        with contextlib.redirect_stdout(io.StringIO()):  # pycocotools prints
            self._truth.createIndex()
            self._results: Any = coco.COCO()
            self._results.dataset = {**self._truth.dataset, "annotations": []}
            self._results.createIndex()
            if boxes.results:
                self._results = self._truth.loadRes(boxes.results)

    def run(self, scores: Sequence[float], most: int = MOST) -> Any:
        """Return pycocotools' evaluation of the boxes with these scores, matched only.

        ``most`` boxes of a category in an image count.
        """
        for number, score in enumerate(scores, 1):
            self._results.anns[number]["score"] = float(score)
        evaluation = self._evaluation.COCOeval(self._truth, self._results, "bbox")
        evaluation.params.areaRng = [[0, 1e10]]
        evaluation.params.areaRngLbl = ["all"]
        evaluation.params.maxDets = [most]
        with contextlib.redirect_stdout(io.StringIO()):  # pycocotools prints
            evaluation.evaluate()
        return evaluation

    def precision(self, scores: Sequence[float], weights: Array | None = None) -> Precision:
        """Compute AP and AP50 of the boxes with these scores, of equal scores the first box first.

        ``weights`` are (sets, images); by default every image counts once.
        """
        if weights is None:
            weights = np.ones((1, self.images))
        values = np.stack(
            [average_precision(each, weights) for each in self.matches_by_category(scores).values()]
        )
        # A category without objects has no average precision, and no part in the mean.
        counted = (~np.isnan(values)).sum(axis=0)
        with np.errstate(invalid="ignore"):
            means = np.nansum(values, axis=0) / counted
        return Precision(means.mean(axis=-1), means[:, 0])

    def matches_by_category(self, scores: Sequence[float]) -> dict[int | str, Matches]:
        """Return the matches of the boxes with these scores, by the id of their category."""
        return self._matches_by_category(self.run(scores))

    def equally_sure(self) -> dict[int | str, tuple[Matches, BoxOrders]]:
        """Return matches and orders of the boxes, all of one score, by the id of their category."""
        scores = [1.0] * self.boxes
        evaluation = self.run(scores)
        thresholds = np.array(evaluation.params.iouThrs)
        # Another order would take other boxes of an image than the first ones.
        largest = max(map(len, evaluation._dts.values()), default=0)
        whole = self.run(scores, largest) if largest > MOST else evaluation
        found = {}
        for category, matches in self._matches_by_category(evaluation).items():
            images = list(_overlaps(whole, category))
            orders = BoxOrders(images, int(matches.objects.sum()), thresholds, MOST)
            found[category] = matches, orders
        return found

    def _matches_by_category(self, evaluation: Any) -> dict[int | str, Matches]:
        params = evaluation.params
        count = len(params.imgIds)
        matches = {}
        for at, category in enumerate(params.catIds):
            evaluated = evaluation.evalImgs[at * count : (at + 1) * count]
            images = [image for image in evaluated if image]
            matches[category] = self._matches(images, len(params.iouThrs))
        return matches

    def _matches(self, images: Sequence[Mapping[str, Any]], thresholds: int) -> Matches:
        """Return the matches of one category, given pycocotools' results by image."""
        if not images:
            nothing = np.zeros((thresholds, 0), bool)
            return Matches(nothing, nothing, np.zeros(0, np.intp), np.zeros(self.images))
        places = [self._place[image["image_id"]] for image in images]
        objects = np.zeros(self.images)
        for place, image in zip(places, images, strict=True):
            objects[place] += np.count_nonzero(np.logical_not(image["gtIgnore"]))
        scores = np.concatenate([image["dtScores"] for image in images])
        # Stable, as pycocotools sorts: of equal scores the image with the smaller number.
        order = np.argsort(-scores, kind="mergesort")
        matched_object = np.concatenate([image["dtMatches"] for image in images], axis=1)
        ignored = np.concatenate([image["dtIgnore"] for image in images], axis=1)
        place_of_box = np.repeat(places, [len(image["dtScores"]) for image in images])
        return Matches(
            matched=matched_object[:, order] > 0,
            counted=ignored[:, order] == 0,
            image=place_of_box[order],
            objects=objects,
        )


def _overlaps(evaluation: Any, category: int | str) -> Iterator[Overlaps]:
    """Yield the boxes and objects of each image in which a category has boxes, by its number."""
    for image in evaluation.params.imgIds:
        boxes = len(evaluation._dts[image, category])
        if not boxes:
            continue
        truth = evaluation._gts[image, category]
        ignored = np.array([bool(each["_ignore"]) for each in truth], bool)
        crowd = np.array([bool(each["iscrowd"]) for each in truth], bool)
        last = np.argsort(ignored, kind="stable")
        # An image without objects has an empty list.
        ious = np.array(evaluation.ious[image, category]).reshape(boxes, len(truth))
        yield Overlaps(ious[:, last], ignored[last], crowd[last])
