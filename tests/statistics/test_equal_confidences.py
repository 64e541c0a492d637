"""Average precision over all orders of equal boxes, against every order, and pycocotools' own."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product

import numpy as np
import pytest

from vlmeval_findit.statistics import (
    Chain,
    Matches,
    MissLimits,
    average_precision,
    equal_confidences,
    expected_precision,
    highest_precision,
    lowest_precision,
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
            found = expected_precision(hits, boxes - hits, objects)
            assert found is not None
            assert found.value == pytest.approx(np.mean(values), abs=1e-12)
            assert found.within == 0
            low = lowest_precision(hits, boxes - hits, objects)
            assert low == pytest.approx(min(values), abs=1e-12)
            assert highest_precision(hits, objects) == pytest.approx(max(values), abs=1e-12)


HM = Chain(("HM",), (1.0,))  # Two boxes on one object
HMM = Chain(("HMM",), (1.0,))
EITHER = Chain(("HH", "HM"), (0.75, 0.25))  # One of them may take another object
LATE = Chain(("HMH", "MHH"), (0.5, 0.5))
IGNORED = Chain(("HI", "IH"), (0.25, 0.75))
ON_IGNORED = Chain(("IM",), (1.0,))
FREE = Chain(("HM", "MH"), (0.5, 0.5))
TABLE = [
    (0, 0, 1, (HM,)),
    (2, 1, 5, (HM,)),
    (1, 2, 4, (HM, HMM)),
    (1, 1, 6, (EITHER, LATE)),
    (0, 2, 3, (HM, HM)),
    (2, 1, 3, (IGNORED,)),
    (1, 1, 2, (ON_IGNORED, HM)),
    (2, 0, 3, (ON_IGNORED, IGNORED)),
    (1, 1, 4, (FREE, HM)),
    (0, 2, 3, (ON_IGNORED,)),
]


@pytest.mark.parametrize(("hits", "misses", "objects", "chains"), TABLE)
def test_every_order_of_boxes_that_compete(
    hits: int, misses: int, objects: int, chains: tuple[Chain, ...]
) -> None:
    found = expected_precision(hits, misses, objects, chains)
    assert found is not None
    values, shares = zip(*words_in_every_order(hits, misses, objects, chains), strict=True)
    assert found.value == pytest.approx(np.dot(values, shares), abs=1e-12)
    limits = [MissLimits.of_chain(chain) for chain in chains]
    assert lowest_precision(hits, misses, objects, limits) <= min(values) + 1e-12
    assert highest_precision(hits, objects, limits) >= max(values) - 1e-12


def words_in_every_order(
    hits: int, misses: int, objects: int, chains: Sequence[Chain]
) -> Iterator[tuple[float, float]]:
    """Yield average precision and share of each order in which words may be mixed."""
    choices = [list(zip(chain.words, chain.shares, strict=True)) for chain in chains]
    for chosen in product(*choices):
        share = float(np.prod([of_word for _, of_word in chosen]))
        boxes = ["h"] * hits + ["m"] * misses
        for number, (word, _) in enumerate(chosen):
            boxes += [str(number)] * len(word)
        mixed = [*{*permutations(boxes)}]
        for order in mixed:
            letters = {str(number): iter(word) for number, (word, _) in enumerate(chosen)}
            said = [next(letters[box]) if box in letters else box.upper() for box in order]
            hit_or_not = [letter == "H" for letter in said if letter != "I"]
            yield precision_of(hit_or_not, objects), share / len(mixed)


@pytest.mark.parametrize(
    ("chains", "low", "high"),
    [
        ([HM], 1.0, 1.0),  # No miss can come first
        ([HMM, HM], 51 / 101 + 50 / 101 / 2, 1.0),  # HMMHM at worst, HHMMM at best
        ([EITHER], 51 / 101, 1.0),
        ([ON_IGNORED, HM], 51 / 101 / 2, 51 / 101),
    ],
)
def test_misses_that_no_order_puts_first(chains: list[Chain], low: float, high: float) -> None:
    limits = [MissLimits.of_chain(chain) for chain in chains]
    objects = 1 if chains == [HM] else 2
    assert lowest_precision(0, 0, objects, limits) == pytest.approx(low)
    assert highest_precision(0, objects, limits) == pytest.approx(high)


def test_too_many_boxes_that_compete_have_no_value() -> None:
    assert expected_precision(300, 300, 900, (HM,) * 30) is None
    assert expected_precision(300, 300, 900, (FREE,) * 30) is not None
    many = tuple(Chain(("H" + "M" * count,), (1.0,)) for count in range(1, 12))
    assert expected_precision(3, 3, 100, many) is None


@pytest.mark.parametrize(("hits", "misses", "objects"), [(3, 2, 4), (2, 4, 3), (3, 3, 3)])
def test_pycocotools_in_every_order(hits: int, misses: int, objects: int) -> None:
    pytest.importorskip("pycocotools")
    values = [_pycocotools(order, objects) for order in orders(hits, misses)]
    found = expected_precision(hits, misses, objects)
    assert found is not None
    assert found.value == pytest.approx(np.mean(values), abs=1e-12)
    low = lowest_precision(hits, misses, objects)
    high = highest_precision(hits, objects)
    assert (low, high) == pytest.approx((min(values), max(values)), abs=1e-12)


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
    exact = expected_precision(hits, misses, objects)
    monkeypatch.setattr(equal_confidences, "MOST_STEPS", 200)
    bounded = expected_precision.__wrapped__(hits, misses, objects)
    assert exact is not None
    assert bounded is not None
    assert exact.within == 0
    assert 0 < bounded.within < 0.001
    assert abs(bounded.value - exact.value) <= bounded.within


@pytest.mark.parametrize(("hits", "misses", "objects"), [(200, 100, 300), (300, 900, 800)])
def test_many_boxes_against_random_orders(hits: int, misses: int, objects: int) -> None:
    generator = np.random.default_rng(0)
    order = np.arange(hits + misses) < hits
    values = [precision_of(generator.permutation(order).tolist(), objects) for _ in range(300)]
    found = expected_precision(hits, misses, objects)
    assert found is not None
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - found.value) < 4 * error
    assert lowest_precision(hits, misses, objects) - 1e-12 <= min(values)
    assert max(values) <= highest_precision(hits, objects) + 1e-12
    assert found.within < 5e-5
