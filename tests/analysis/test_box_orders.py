"""mAP over orders of equal boxes, against pycocotools in every order of small drawn sets."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from vlmeval_findit.analysis import (
    BoxOrders,
    OrderEnds,
    Overlaps,
    UnrankedValues,
    box_orders,
    order_ends,
    precision_over_orders,
)
from vlmeval_findit.statistics import equal_confidences, expected_precision

coco = pytest.importorskip("pycocotools.coco")
cocoeval = pytest.importorskip("pycocotools.cocoeval")

THRESHOLDS = np.linspace(0.5, 0.95, 10)
SAME = 1e-9
Box = Sequence[float]  # x, y, width, height


@dataclass(frozen=True)
class Image:
    """Objects that count, ignored ones, crowds, and boxes that were answered."""

    objects: Sequence[Box]
    boxes: Sequence[Box]
    ignored: Sequence[Box] = ()
    crowds: Sequence[Box] = ()


class Evaluated:
    """A class in some images, and its average precision by pycocotools in any order.

    ``most`` boxes of an image count.
    """

    def __init__(self, images: Sequence[Image], most: int = 100) -> None:
        self.most = most
        truth: list[dict[str, Any]] = []
        results: list[dict[str, Any]] = []
        for number, image in enumerate(images, 1):
            place = {"image_id": number, "category_id": 1}
            kinds = [(image.objects, 100.0, 0), (image.ignored, -1.0, 0), (image.crowds, 100.0, 1)]
            for boxes, area, crowd in kinds:
                for box in boxes:
                    row = {"id": len(truth) + 1, "bbox": box, "area": area, "iscrowd": crowd}
                    truth.append({**place, **row})
            results += [{**place, "bbox": [*box], "score": 1.0} for box in image.boxes]
        self.count = len(results)
        self.truth = coco.COCO()
        self.truth.dataset = {
            "info": {},
            "images": [{"id": number} for number in range(1, len(images) + 1)],
            "categories": [{"id": 1, "name": "cat"}],
            "annotations": truth,
        }
        with contextlib.redirect_stdout(io.StringIO()):
            self.truth.createIndex()
            self.results = self.truth.loadRes(results)
        self.objects = sum(len(image.objects) for image in images)

    def in_order(self, order: Sequence[int]) -> float:
        """Return mAP with the boxes in an order, by confidences that fall along it."""
        evaluation = self._matched([order.index(at) for at in range(self.count)], self.most)
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation.accumulate()
        return float(evaluation.eval["precision"][:, :, 0, 0, 0].mean())

    def in_all_orders(self) -> list[float]:
        return [self.in_order(order) for order in permutations(range(self.count))]

    def orders(self) -> BoxOrders:
        evaluation = self._matched([0] * self.count, self.count)
        images = []
        for image in evaluation.params.imgIds:
            truth = evaluation._gts[image, 1]
            boxes = len(evaluation._dts[image, 1])
            if boxes:
                ious = np.array(evaluation.ious[image, 1]).reshape(boxes, len(truth))
                ignored = np.array([bool(each["_ignore"]) for each in truth], bool)
                crowd = np.array([bool(each["iscrowd"]) for each in truth], bool)
                last = np.argsort(ignored, kind="stable")
                images.append(Overlaps(ious[:, last], ignored[last], crowd[last]))
        return BoxOrders(images, self.objects, THRESHOLDS, self.most)

    def _matched(self, ranks: Sequence[int], most: int) -> Any:
        for number, rank in enumerate(ranks, 1):
            self.results.anns[number]["score"] = 1 - rank / 1000
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation = cocoeval.COCOeval(self.truth, self.results, "bbox")
            evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
            evaluation.params.maxDets = [max(1, most)]
            evaluation.evaluate()
        return evaluation


def drawn(seed: int, most: int) -> list[Image]:
    """Draw images with objects side by side, ignored ones and crowds, and several boxes on each."""
    generator = np.random.default_rng(seed)
    images: list[Image] = []
    left = most
    while left:
        kinds: dict[int, list[list[float]]] = {0: [], 1: [], 2: []}
        boxes: list[list[float]] = []
        for _ in range(generator.integers(1, 4)):
            x, y = generator.integers(0, 40, 2)
            w, h = generator.integers(15, 40, 2)
            kinds[int(generator.choice(3, p=[0.7, 0.15, 0.15]))].append([x, y, w, h])
            for _ in range(min(int(generator.integers(0, 4)), left - len(boxes))):
                dx, dy, dw, dh = generator.normal(0, generator.choice([0, 1, 3]), 4)
                boxes.append([x + dx, y + dy, w + abs(dw), h + abs(dh)])
        if generator.random() < 0.4 and left > len(boxes):
            boxes.append([70.0, 70.0, 9.0, 9.0])
        left -= len(boxes)
        images.append(Image(kinds[0], boxes, kinds[1], kinds[2]))
    if not any(image.objects for image in images):
        images.append(Image([[0.0, 0.0, 9.0, 9.0]], []))
    return images


def wide(side: float) -> Box:
    """Return a box whose IoU with the object 10 x 10 at 0 is 10 / side."""
    return [0.0, 0.0, side, 10.0]


OBJECT: Box = [0.0, 0.0, 10.0, 10.0]
NOWHERE: Box = [50.0, 50.0, 10.0, 10.0]
BESIDE: Box = [4.0, 0.0, 10.0, 10.0]
BETWEEN: Box = [2.0, 0.0, 10.0, 10.0]  # Overlaps OBJECT and BESIDE alike

TABLE = {
    "two boxes on one object": [Image([OBJECT], [OBJECT, OBJECT])],
    "the loose one first": [Image([OBJECT], [wide(16), wide(11)])],
    "the strict one first": [Image([OBJECT], [wide(11), wide(16)])],
    "and misses": [Image([OBJECT], [wide(16), wide(11), NOWHERE]), Image([OBJECT], [NOWHERE])],
    "loose and strict in several images": [Image([OBJECT], [wide(16), wide(11)])] * 2
    + [Image([OBJECT], [wide(13)])],
    "six boxes on one object": [Image([OBJECT], [wide(10 + at) for at in range(6)])],
    "a box between two objects": [Image([OBJECT, BESIDE], [BETWEEN, OBJECT, BESIDE])],
    "a box between, one object found": [Image([OBJECT, BESIDE], [BETWEEN, wide(11), NOWHERE])],
    "two boxes on an ignored object": [Image([OBJECT], [NOWHERE, NOWHERE, OBJECT], [NOWHERE])],
    "an object that counts, or is ignored": [
        Image([OBJECT], [BETWEEN, OBJECT, wide(12)], [BESIDE])
    ],
    "an object, or a crowd": [Image([OBJECT], [BETWEEN, OBJECT, wide(12)], (), [BESIDE])],
    "many boxes in a crowd": [Image([OBJECT], [NOWHERE] * 3 + [OBJECT], (), [NOWHERE])],
    "no object near": [Image([OBJECT], [NOWHERE, NOWHERE])],
    "no box competes": [Image([OBJECT], [wide(12)]), Image([OBJECT], [wide(16), NOWHERE])],
}


@pytest.mark.parametrize("images", TABLE.values(), ids=TABLE)
def test_all_orders_of_boxes_that_compete(images: list[Image]) -> None:
    check_all_orders(images)


@pytest.mark.parametrize("seed", range(6))
def test_all_orders_of_drawn_sets(seed: int) -> None:
    check_all_orders(drawn(seed, 4))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 220))
def test_all_orders_of_more_drawn_sets(seed: int) -> None:
    check_all_orders(drawn(seed, 4 + seed % 3))


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("images", TABLE.values(), ids=TABLE)
def test_all_orders_where_some_boxes_do_not_count(images: list[Image], most: int) -> None:
    check_all_orders(images, most)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300, 380))
def test_all_orders_of_drawn_sets_that_are_cut(seed: int) -> None:
    check_all_orders(drawn(seed, 4 + seed % 3), 1 + seed % 4)


def check_all_orders(images: Sequence[Image], most: int = 100) -> None:
    """Compare with pycocotools in every order: what is found by all of them, and by other ways."""
    evaluated = Evaluated(images, most)
    values = evaluated.in_all_orders()
    boxes = evaluated.orders()
    every = np.array(list(permutations(range(evaluated.count))))
    assert boxes.precision(every).mean(axis=1) == pytest.approx(values, abs=SAME)
    found = precision_over_orders(boxes)
    ends = found.ends
    assert (ends.low, ends.high) == pytest.approx((min(values), max(values)), abs=SAME)
    assert (ends.low_bound, ends.high_bound) == (ends.low, ends.high)
    if boxes.cut:
        # Three standard errors
        assert abs(found.expected - np.mean(values)) <= found.within * 4 / 3 + SAME
    else:
        assert found.expected == pytest.approx(np.mean(values), abs=SAME)
    assert found.simulated == bool(boxes.cut)
    assert found.within == 0 or found.simulated
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_ends, "ALL_ORDERS", 0)
        ends = precision_over_orders(boxes).ends
        check_bounds(ends, values)
        # Every end of these small sets is found by trying orders, too.
        assert (ends.low, ends.high) == pytest.approx((min(values), max(values)), abs=SAME)
        patch.setattr(box_orders, "MOST_LISTED", 1)
        blind = precision_over_orders(evaluated.orders())
        check_bounds(blind.ends, values)
        assert abs(blind.expected - np.mean(values)) <= blind.within * 4 / 3 + SAME


def check_bounds(ends: OrderEnds, values: Sequence[float]) -> None:
    """Check that both ends are reached by an order, and that no order passes the bounds."""
    for end in (ends.low, ends.high):
        assert min(abs(end - value) for value in values) < SAME
    assert ends.low_bound <= min(values) + SAME
    assert ends.high_bound >= max(values) - SAME


@pytest.mark.parametrize("seed", range(3))
def test_drawn_orders_give_the_exact_expected_value(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    boxes = Evaluated(drawn(seed, 12)).orders()
    exact = precision_over_orders(boxes)
    assert not exact.simulated
    monkeypatch.setattr(equal_confidences, "MOST_WORK", 0)
    expected_precision.cache_clear()
    simulated = precision_over_orders(boxes)
    expected_precision.cache_clear()
    assert simulated.simulated
    assert 0 < abs(simulated.expected - exact.expected) <= simulated.within < 0.02


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))]
)
def test_no_order_of_many_boxes_passes_the_bounds(seed: int) -> None:
    boxes = Evaluated(drawn(seed, 40)).orders()
    found = precision_over_orders(boxes)
    ends = found.ends
    generator = np.random.default_rng(seed)
    orders = generator.permuted(np.tile(np.arange(40), (2000, 1)), axis=1)
    values = boxes.precision(orders).mean(axis=1)
    assert ends.low_bound <= ends.low <= values.min()
    assert values.max() <= ends.high <= ends.high_bound
    assert ends.low - ends.low_bound < 0.01
    assert ends.high_bound - ends.high < 0.01
    error = values.std() / len(values) ** 0.5
    assert abs(values.mean() - found.expected) < 4 * error + found.within


def in_a_row(count: int) -> list[Box]:
    """Return boxes of which none overlaps another."""
    return [[20.0 * at, 0.0, 10.0, 10.0] for at in range(count)]


CUT = {
    "the reply's last boxes are the hits": [
        Image(in_a_row(60), [*[NOWHERE] * 90, *in_a_row(60)]),
        Image([OBJECT], [wide(12)]),
    ],
    "all say one box": [Image([OBJECT], [OBJECT] * 160), Image([OBJECT], [NOWHERE, OBJECT])],
    "more objects than boxes that count": [
        Image(in_a_row(130), in_a_row(130)),
        Image([OBJECT], [NOWHERE]),
    ],
    "boxes that compete, and crowds": [
        Image(
            [OBJECT, BESIDE],
            [*[BETWEEN, OBJECT, wide(12)] * 20, *[NOWHERE] * 30, *in_a_row(40)[5:]],
            (),
            [NOWHERE],
        ),
        Image([OBJECT], [wide(11)]),
    ],
}


@pytest.mark.parametrize("images", CUT.values(), ids=CUT)
def test_no_order_of_more_than_100_boxes_passes_the_bounds(images: list[Image]) -> None:
    evaluated = Evaluated(images)
    boxes = evaluated.orders()
    found = precision_over_orders(boxes)
    ends = found.ends
    generator = np.random.default_rng(0)
    orders = generator.permuted(np.tile(np.arange(evaluated.count), (300, 1)), axis=1)
    # Orders by what a box is worth in the reply's order are far from drawn ones.
    worth = boxes.best_iou + generator.uniform(0, 1e-3, (4, evaluated.count))
    orders = np.concatenate([np.argsort(worth, axis=1), np.argsort(-worth, axis=1), orders])
    values = boxes.precision(orders).mean(axis=1)
    for order, value in zip(orders[:10].tolist(), values, strict=False):
        assert value == pytest.approx(evaluated.in_order(order), abs=SAME)
    assert ends.low_bound - SAME <= ends.low <= values.min() + SAME
    assert values.max() - SAME <= ends.high <= ends.high_bound + SAME
    drawn_values = values[8:]
    error = drawn_values.std() / len(drawn_values) ** 0.5
    assert abs(drawn_values.mean() - found.expected) <= 4 * error + found.within * 4 / 3 + SAME


def test_an_end_that_may_lie_further_is_known() -> None:
    values = UnrankedValues(50, 60, 50, 40, 50, 60, 39.5, 60.25)
    assert values.beyond == 0.5
