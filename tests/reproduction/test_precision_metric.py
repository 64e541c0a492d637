"""mAP of a figure: pycocotools' value, and what each picture does to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from reproductions import attempt, dataset_of, figure, predictions

from vlmeval_findit.benchmarks.findit import FindItQuery
from vlmeval_findit.boxes import Truth
from vlmeval_findit.protocol import FAILED_ANSWER, Reply
from vlmeval_findit.reproduction import Attempt

pytest.importorskip("pycocotools")

NAME = "FindIt_Pascal_multilabel_xyxy_json_bbox_2d"
CAT = (20.0, 10.0, 100.0, 50.0)
DOG = (120.0, 60.0, 180.0, 90.0)
# In thousandths of 200 x 100
RIGHT = {CAT: "[100, 100, 500, 500]", DOG: "[600, 600, 900, 900]"}
LOOSE = {CAT: "[100, 100, 420, 500]", DOG: "[600, 600, 900, 800]"}
WRONG = "[0, 0, 50, 50]"


def query(index: int, *labels: str) -> FindItQuery:
    boxes = tuple(CAT if label == "cat" else DOG for label in labels)
    truth = Truth(boxes, (0,) * len(boxes), labels)
    return FindItQuery(index, "cat, dog", 200, 100, (f"{index}.jpg",), truth)


def reply(index: int, *boxes: tuple[str, str]) -> Reply:
    said = [f'{{"bbox_2d": {box}, "label": "{label}"}}' for box, label in boxes]
    return Reply(index, f"[{', '.join(said)}]")


QUERIES = [query(0, "cat"), query(1, "cat", "dog"), query(2, "dog"), query(3), query(4, "cat")]
REPLIES = [
    reply(0, (RIGHT[CAT], "cat"), (WRONG, "dog")),
    reply(1, (LOOSE[CAT], "cat"), (RIGHT[DOG], "dog")),
    reply(2, (LOOSE[DOG], "dog"), (WRONG, "cat")),
    reply(3, (WRONG, "cat")),
    reply(4, (RIGHT[CAT], "cat")),
]


def measured(queries: Sequence[FindItQuery], replies: Sequence[Reply]) -> Attempt:
    data = dataset_of(queries, NAME)
    return attempt(figure(44.7, ["Pascal_multilabel"], "mAP"), predictions(data, replies))


def test_the_value_is_pycocotools_and_lies_within_its_bounds() -> None:
    found = measured(QUERIES, REPLIES)
    assert found.over_orders is not None
    assert found.value == pytest.approx(found.over_orders.ap)
    assert 0 < found.over_orders.low <= found.value <= found.over_orders.high < 100


def test_an_influence_is_what_leaving_a_picture_out_changes() -> None:
    found = measured(QUERIES, REPLIES)
    assert found.estimate.images == tuple(f"Pascal/{at}.jpg" for at in range(5))
    for at in range(5):
        others = [each for each in range(5) if each != at]
        without = measured([QUERIES[i] for i in others], [REPLIES[i] for i in others]).value
        change = (found.value - without) / 100 * np.sqrt(4 / 5)
        assert found.estimate.influence[at, 0] == pytest.approx(change)


def test_a_failed_call_misses_its_objects() -> None:
    right = [reply(0, (RIGHT[CAT], "cat")), Reply(1, FAILED_ANSWER)]
    found = measured([query(0, "cat"), query(1, "cat", "dog")], right)
    # Half of the cats, and no dog
    assert found.value == pytest.approx(100 * (51 / 101) / 2)
    assert found.failed == 1


def test_rows_have_f1_in_place_of_it() -> None:
    found = measured(QUERIES, REPLIES)
    shares = found.hits["Pascal_multilabel"]
    # Cat at IoU 0.8 passes 0.50 to 0.80, dog at 1 all thresholds
    assert shares[1] == pytest.approx((0.7 + 1) / 2)
    assert (shares[3], shares[4]) == (0, 1)


def test_other_metrics_have_no_orders() -> None:
    data = dataset_of(QUERIES, NAME)
    found = attempt(figure(44.7, ["Pascal_multilabel"], "F1@0.5"), predictions(data, REPLIES))
    assert found.over_orders is None
