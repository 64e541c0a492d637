"""COCO's mAP of replies as a figure has it: all confidences equal, failed calls without a box.

It is no mean over rows, so what a picture does to it is what leaving the picture out changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..analysis import CocoBoxes, CocoEvaluator, ConfidenceError
from ..protocol import AnyDataset, Array, ScoredRow
from ..statistics import Estimate, average_precision


def estimate_precision(
    dataset: AnyDataset, rows: Sequence[ScoredRow], by_rows: Estimate, only_value: bool
) -> Estimate:
    """Estimate the mAP of a dataset, in the order of pycocotools; without objects it has no value.

    Args:
        dataset: what was asked.
        rows: the replies, with their boxes.
        by_rows: of the metric that stands for it where rows are needed: its pictures and weights.
        only_value: whether influences are left out.
    """
    try:
        evaluator = CocoEvaluator(CocoBoxes(dataset, rows, failed_are_misses=True))
    except ConfidenceError:
        return replace(by_rows, values=np.array([np.nan]))
    count = evaluator.images
    all_pictures = np.ones((1, count))
    value = float(_means_of_classes(evaluator, all_pictures)[0])
    influence = np.zeros(by_rows.influence.shape)
    if by_rows.counted_images[0] and not only_value:
        without = _means_of_classes(evaluator, 1 - np.eye(count))
        loss = np.nan_to_num(value - without) * np.sqrt(1 - 1 / count)
        folder = dataset.variant.images
        place = {f"{folder}/{name}": at for at, name in enumerate(evaluator.names)}
        influence[:, 0] = [loss[place[name]] for name in by_rows.images]
    return replace(by_rows, values=np.array([value]), influence=influence)


def _means_of_classes(evaluator: CocoEvaluator, weights: Array) -> Array:
    """Return (sets,) the mAP of sets of pictures, given how often each has each picture."""
    matches = evaluator.matches_by_category([1.0] * evaluator.boxes)
    values = np.stack([average_precision(each, weights).mean(axis=1) for each in matches.values()])
    has_objects = ~np.isnan(values)
    means: Array = np.full(len(weights), np.nan)
    np.divide(
        np.nansum(values, axis=0), has_objects.sum(axis=0), out=means, where=has_objects.any(0)
    )
    return means
