"""Average precision of a run's boxes in any order, as pycocotools has it, with intervals.

pycocotools matches boxes to objects, image by image.  Its matches do not change when pictures are
drawn again, only what they add up to does, so intervals add up weighted matches and match nothing
again.  With every weight 1 that gives pycocotools' own figures (held by a test).
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.command import install
from .boxes_of_rows import ConfidenceError
from .coco_boxes import CocoBoxes

Array = NDArray[np.float64]

MOST = 100
"""Boxes of a category in an image that count, as for COCO: those of the highest scores."""

_RECALLS = np.linspace(0.0, 1.0, 101)
_AT_A_TIME = 2_000_000
"""Numbers of an array while weighted matches are added up."""


class Precision(NamedTuple):
    """AP (mean over IoU 0.50 to 0.95) and AP50, shares of 1, one entry a set of weights."""

    ap: Array
    ap50: Array


@dataclass(frozen=True, slots=True)
class _Category:
    """The boxes of one category, the highest scores first, with what they were matched to.

    ``hit`` and ``counts`` are (thresholds, boxes): whether a box found an object, and whether it
    counts at all; ``picture`` is the place of its picture, ``objects`` what each picture has.
    """

    hit: NDArray[np.bool_]
    counts: NDArray[np.bool_]
    picture: NDArray[np.intp]
    objects: Array


class Evaluator:
    """COCO's evaluation of one run, for any scores of its boxes.

    Raises:
        ConfidenceError: pycocotools is not installed, or there is nothing to find.
    """

    def __init__(self, found: CocoBoxes) -> None:
        coco, self._evaluation = _tools()
        if all(one["iscrowd"] for one in found.truth):
            raise ConfidenceError("nothing is to be found: there is no average precision")
        names = sorted({*found.sources.values()})
        place = {name: at for at, name in enumerate(names)}
        self.pictures = len(names)
        self._place = {image: place[source] for image, source in found.sources.items()}
        self._truth = coco.COCO()
        self._truth.dataset = {
            "info": {},
            "images": list(found.images.values()),
            "annotations": found.truth,
            "categories": found.named,
        }
        with _silence():
            self._truth.createIndex()
            self._results = self._truth.loadRes(found.results) if found.results else None
        self._found = found

    def run(self, scores: Sequence[float]) -> Any:
        """pycocotools' evaluation of the boxes with these scores, matched and not added up."""
        if self._results is None:
            raise ValueError("a run without boxes has no order")
        for number, score in enumerate(scores, 1):
            self._results.anns[number]["score"] = float(score)
        made = self._evaluation.COCOeval(self._truth, self._results, "bbox")
        made.params.areaRng, made.params.areaRngLbl = [[0, 1e10]], ["all"]
        made.params.maxDets = [MOST]
        with _silence():
            made.evaluate()
        return made

    def precision(self, scores: Sequence[float], weights: Array | None = None) -> Precision:
        """AP and AP50 of the boxes with these scores.

        Args:
            scores: one a result, the highest first in the order; of equal ones the first.
            weights: (sets, pictures); without any, every picture counts once.
        """
        if weights is None:
            weights = np.ones((1, self.pictures))
        if self._results is None:
            return Precision(np.zeros(len(weights)), np.zeros(len(weights)))
        made = self.run(scores)
        values = np.stack([_precision(one, weights) for one in self._categories(made)])
        # A category without objects has no average precision, and no part in the mean.
        there = (~np.isnan(values)).sum(axis=0)
        with np.errstate(invalid="ignore"):
            means = np.nansum(values, axis=0) / there
        return Precision(means.mean(axis=-1), means[:, 0])

    def _categories(self, made: Any) -> list[_Category]:
        params = made.params
        images, found = len(params.imgIds), []
        for at in range(len(params.catIds)):
            seen = [one for one in made.evalImgs[at * images : (at + 1) * images] if one]
            found.append(self._category(seen, len(params.iouThrs)))
        return found

    def _category(self, seen: Sequence[Any], thresholds: int) -> _Category:
        objects = np.zeros(self.pictures)
        if not seen:
            nothing = np.zeros((thresholds, 0), dtype=bool)
            return _Category(nothing, nothing, np.zeros(0, dtype=np.intp), objects)
        scores = np.concatenate([one["dtScores"] for one in seen])
        # Stable, as pycocotools sorts: of equal scores the image with the smaller number.
        order = np.argsort(-scores, kind="mergesort")
        matched = np.concatenate([one["dtMatches"] for one in seen], axis=1)[:, order] > 0
        ignored = np.concatenate([one["dtIgnore"] for one in seen], axis=1)[:, order].astype(bool)
        places = [self._place[one["image_id"]] for one in seen]
        picture = np.repeat(places, [len(one["dtScores"]) for one in seen])[order]
        for place, one in zip(places, seen, strict=True):
            objects[place] += np.count_nonzero(np.logical_not(one["gtIgnore"]))
        return _Category(matched, ~ignored, picture.astype(np.intp), objects)


def _precision(one: _Category, weights: Array) -> Array:
    """(sets, thresholds) the average precision of one category; NaN where it has no objects."""
    thresholds, boxes = one.hit.shape
    found = np.zeros((len(weights), thresholds))
    at_a_time = max(1, _AT_A_TIME // max(1, thresholds * boxes))
    for start in range(0, len(weights), at_a_time):
        part = weights[start : start + at_a_time]
        objects = part @ one.objects
        if boxes:
            found[start : start + len(part)] = _areas(one, part[:, one.picture], objects)
        found[start : start + len(part)][objects == 0] = np.nan
    return found


def _areas(one: _Category, weights: Array, objects: Array) -> Array:
    """The areas under interpolated precision, at COCO's 101 recalls."""
    hits = np.cumsum(weights[:, None] * (one.hit & one.counts), axis=-1)
    said = np.cumsum(weights[:, None] * one.counts, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        recall = hits / objects[:, None, None]
        precision = np.where(said > 0, hits / said, 0.0)
    best = np.maximum.accumulate(precision[..., ::-1], axis=-1)[..., ::-1]
    # How many of the recalls are reached at each box: the new ones have its precision.
    reached = np.searchsorted(_RECALLS, np.nan_to_num(recall), side="right")
    area: Array = (best * np.diff(reached, axis=-1, prepend=0)).sum(axis=-1) / len(_RECALLS)
    return area


def _tools() -> tuple[Any, Any]:
    try:
        return import_module("pycocotools.coco"), import_module("pycocotools.cocoeval")
    except ImportError:
        raise ConfidenceError(
            f"average precision needs pycocotools: {install('confidences')}"
        ) from None


def _silence() -> contextlib.AbstractContextManager[Any]:
    """pycocotools prints what it does."""
    return contextlib.redirect_stdout(io.StringIO())
