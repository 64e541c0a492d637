"""Average precision over all orders of equal boxes, against every order, and pycocotools' own."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import pytest

from vlmeval_findit.statistics import (
    Matches,
    average_precision,
    equal_confidences,
    precision_over_orders,
)


def orders(hits: int, misses: int) -> Iterator[list[bool]]:
    """Yield every order of hits and misses."""
    for places in combinations(range(hits + misses), hits):
        yield [at in places for at in range(hits + misses)]


def precision_of(order: Sequence[bool], objects: int) -> float:
    """Return the average precision of boxes in an order, each of an image of its own."""
    count = np.zeros(max(len(order), 1))
    count[0] = objects
    matches = Matches(
        matched=np.array([order]),
        counted=np.ones((1, len(order)), bool),
        image=np.arange(len(order)),
        objects=count,
    )
    return float(average_precision(matches, np.ones((1, len(count))))[0, 0])


@pytest.mark.parametrize("boxes", range(1, 10))
def test_every_order_of_few_boxes(boxes: int) -> None:
    for hits in range(boxes + 1):
        for objects in (max(hits, 1), hits + 1, 2 * hits + 3, 100):
            values = [precision_of(order, objects) for order in orders(hits, boxes - hits)]
            found = precision_over_orders(hits, boxes - hits, objects)
            assert found.low == pytest.approx(min(values), abs=1e-12)
            assert found.expected == pytest.approx(np.mean(values), abs=1e-12)
            assert found.high == pytest.approx(max(values), abs=1e-12)
            assert found.within == 0


@pytest.mark.parametrize(("hits", "misses", "objects"), [(3, 2, 4), (2, 4, 3), (3, 3, 3)])
def test_pycocotools_in_every_order(hits: int, misses: int, objects: int) -> None:
    pytest.importorskip("pycocotools")
    values = [_pycocotools(order, objects) for order in orders(hits, misses)]
    found = precision_over_orders(hits, misses, objects)
    assert (found.low, found.high) == pytest.approx((min(values), max(values)), abs=1e-12)
    assert found.expected == pytest.approx(np.mean(values), abs=1e-12)


def _pycocotools(order: Sequence[bool], objects: int) -> float:
    """Return AP50 of boxes in images of their own, ranked by the numbers of these alone."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    box = [10.0, 10.0, 20.0, 20.0]
    of_image = {"category_id": 1, "bbox": box, "area": 400.0, "iscrowd": 0}
    missed = objects - sum(order)
    images = [*[at for at, hit in enumerate(order, 1) if hit], *range(100, 100 + missed)]
    truth = COCO()
    truth.dataset = {
        "info": {},
        "images": [{"id": at} for at in [*range(1, len(order) + 1), *range(100, 100 + missed)]],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {**of_image, "id": number, "image_id": image} for number, image in enumerate(images, 1)
        ],
    }
    results = [
        {"image_id": at, "category_id": 1, "bbox": box, "score": 1.0}
        for at in range(1, len(order) + 1)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return float(evaluation.stats[1])


@pytest.mark.parametrize(
    ("hits", "misses", "objects"), [(40, 40, 60), (10, 150, 12), (90, 15, 300), (1, 400, 1)]
)
def test_bounds_of_many_boxes_hold_the_exact_value(
    hits: int, misses: int, objects: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = precision_over_orders(hits, misses, objects)
    monkeypatch.setattr(equal_confidences, "MOST_STEPS", 200)
    bounded = precision_over_orders.__wrapped__(hits, misses, objects)
    assert exact.within == 0
    assert 0 < bounded.within < 0.001
    assert abs(bounded.expected - exact.expected) <= bounded.within
    assert (bounded.low, bounded.high) == (exact.low, exact.high)


@pytest.mark.parametrize(("hits", "misses", "objects"), [(200, 100, 300), (300, 900, 800)])
def test_many_boxes_against_random_orders(hits: int, misses: int, objects: int) -> None:
    generator = np.random.default_rng(0)
    order = np.arange(hits + misses) < hits
    values = [precision_of(generator.permutation(order).tolist(), objects) for _ in range(300)]
    found = precision_over_orders(hits, misses, objects)
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - found.expected) < 4 * error
    assert found.low - 1e-12 <= min(values)
    assert max(values) <= found.high + 1e-12
    assert found.within < 5e-5
