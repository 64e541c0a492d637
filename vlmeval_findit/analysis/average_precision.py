"""Average precision of boxes with confidences, and of images that are resampled.

pycocotools matches boxes to objects, image by image. Its matches do not change when images are
resampled, only their sums do, so intervals add up weighted matches and match nothing again. With
every weight 1 they are pycocotools' values, as a test checks.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.command import install
from .coco_boxes import Array, CocoBoxes, ConfidenceError

MOST = 100  # Boxes of a category in an image that count, as for COCO: those of the highest scores

_RECALLS = np.linspace(0.0, 1.0, 101)
_AT_A_TIME = 2_000_000  # Numbers of an array while weighted matches are added up

Flags = NDArray[np.bool_]


class Precision(NamedTuple):
    """AP (mean over IoU 0.50 to 0.95) and AP50, shares of 1, an entry for each set of weights."""

    ap: Array
    ap50: Array


class Evaluator:
    """COCO's evaluation of one run, for any scores of its boxes.

    Raises ConfidenceError without pycocotools, or if there is nothing to find.
    """

    def __init__(self, boxes: CocoBoxes) -> None:
        try:
            coco = import_module("pycocotools.coco")
            self._evaluation = import_module("pycocotools.cocoeval")
        except ImportError:
            needs = f"average precision needs pycocotools: {install('calibration')}"
            raise ConfidenceError(needs) from None
        if all(truth["ignore"] for truth in boxes.truth):
            raise ConfidenceError("no query has an object: there is no average precision")
        names = sorted({*boxes.sources.values()})
        place = {name: at for at, name in enumerate(names)}
        self.images = len(names)
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
            self._results: Any = self._truth.loadRes(boxes.results) if boxes.results else None

    def run(self, scores: Sequence[float]) -> Any:
        """Return pycocotools' evaluation of the boxes with these scores, matched only."""
        for number, score in enumerate(scores, 1):
            self._results.anns[number]["score"] = float(score)
        evaluation = self._evaluation.COCOeval(self._truth, self._results, "bbox")
        evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
        evaluation.params.maxDets = [MOST]
        with contextlib.redirect_stdout(io.StringIO()):  # pycocotools prints
            evaluation.evaluate()
        return evaluation

    def precision(self, scores: Sequence[float], weights: Array | None = None) -> Precision:
        """Compute AP and AP50 of the boxes with these scores, of equal scores the first box first.

        ``weights`` are (sets, images); by default every image counts once.
        """
        if weights is None:
            weights = np.ones((1, self.images))
        if self._results is None:
            return Precision(np.zeros(len(weights)), np.zeros(len(weights)))
        evaluation = self.run(scores)
        params = evaluation.params
        images = len(evaluation.params.imgIds)
        starts = range(0, images * len(params.catIds), images)
        of_categories = (evaluation.evalImgs[at : at + images] for at in starts)
        thresholds = len(params.iouThrs)
        values = np.stack([self._precision(each, weights, thresholds) for each in of_categories])
        # A category without objects has no average precision, and no part in the mean.
        counted = (~np.isnan(values)).sum(axis=0)
        with np.errstate(invalid="ignore"):
            means = np.nansum(values, axis=0) / counted
        return Precision(means.mean(axis=-1), means[:, 0])

    def _precision(self, evaluated: Sequence[Any], weights: Array, thresholds: int) -> Array:
        """Return (sets, thresholds) the AP of one category; NaN where it has no objects."""
        images = [image for image in evaluated if image]
        objects = np.zeros(self.images)
        values = np.zeros((len(weights), thresholds))
        if not images:
            return values * np.nan
        places = [self._place[image["image_id"]] for image in images]
        for place, image in zip(places, images, strict=True):
            objects[place] += np.count_nonzero(np.logical_not(image["gtIgnore"]))
        scores = np.concatenate([image["dtScores"] for image in images])
        # Stable, as pycocotools sorts: of equal scores the image with the smaller number.
        order = np.argsort(-scores, kind="mergesort")
        # (thresholds, boxes), the highest scores first.
        matched = np.concatenate([image["dtMatches"] for image in images], axis=1)[:, order] > 0
        counts = np.concatenate([image["dtIgnore"] for image in images], axis=1)[:, order] == 0
        of_box = np.repeat(places, [len(image["dtScores"]) for image in images])[order]
        at_a_time = max(1, _AT_A_TIME // max(1, matched.size))
        for start in range(0, len(weights), at_a_time):
            part = weights[start : start + at_a_time]
            found = part @ objects
            if scores.size:
                values[start : start + len(part)] = _areas(matched, counts, part[:, of_box], found)
            values[start : start + len(part)][found == 0] = np.nan
        return values


def _areas(matched: Flags, counts: Flags, weights: Array, objects: Array) -> Array:
    """Return the areas under interpolated precision, at COCO's 101 recalls.

    ``matched`` and ``counts`` (not ignored) are (thresholds, boxes), ``weights`` (sets, boxes).
    """
    hits = np.cumsum(weights[:, None] * (matched & counts), axis=-1)
    boxes = np.cumsum(weights[:, None] * counts, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        recall = hits / objects[:, None, None]
        precision = np.where(boxes > 0, hits / boxes, 0.0)
    best = np.maximum.accumulate(precision[..., ::-1], axis=-1)[..., ::-1]
    # How many of the recalls are reached at each box: the new ones have its precision.
    reached = np.searchsorted(_RECALLS, np.nan_to_num(recall), side="right")
    area: Array = (best * np.diff(reached, axis=-1, prepend=0)).sum(axis=-1) / len(_RECALLS)
    return area
