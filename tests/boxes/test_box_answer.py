"""The boxes of an answer: what details lack is filled in, once for all who read them."""

from __future__ import annotations

from typing import Any

import pytest

from vlmeval_findit.boxes import BoxAnswer, finite_corners, with_confidences
from vlmeval_findit.protocol import ScoredRow

ONE, TWO = [0.0, 0.0, 4.0, 4.0], [1.0, None, 5.0, 5.0]
MATCHED = {"boxes": [ONE, TWO], "assigned": [None, 0], "hits": [False, True]}


def row_with(details: dict[str, Any]) -> ScoredRow:
    return ScoredRow(3, "a.png", {}, details=details)


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"caption": "a cat"},
        {"boxes": []},
        {"boxes": [ONE]},
        {"boxes": [ONE, TWO], "labels": []},
        {"boxes": [ONE], "labels": ["cat"], "frames": [2]},
        {"boxes": [ONE], "ious": [0.5], "hits": [True]},
        {**MATCHED, "ious": [0.0, 0.5], "ignored": [1]},
        {**MATCHED, "labels_agree": [True, False]},
        {**MATCHED, "confidences": {"mean": [0.5, None]}},
    ],
)
def test_each_box_has_a_frame_label_and_confidence(details: dict[str, Any]) -> None:
    answer = BoxAnswer.of(row_with(details))
    boxes = len(details.get("boxes", ()))
    assert len(answer.boxes) == len(answer.frames) == len(answer.labels_or("x")) == boxes
    assert len(answer.confidences_by("mean")) == len(answer.confidences_by("none")) == boxes
    assert len(answer.labels_agree) == len(answer.assigned)
    pairs = {(pair.box, pair.target) for pair in answer.pairs}
    assigned = enumerate(details.get("assigned", ()))
    assert pairs == {(box, target) for target, box in assigned if box is not None}
    assert answer.lenient is None


def test_points_have_no_overlap() -> None:
    (pair,) = BoxAnswer.of(row_with(MATCHED)).pairs
    assert (pair.iou, pair.hit, pair.labels_agree) == (None, True, True)


def test_a_lenient_reading_is_filled_in_too() -> None:
    stored = {"repairs": ["bare list"], "boxes": [ONE, ONE], "hits": [True], "recoverable": [0]}
    lenient = BoxAnswer.of(row_with({"boxes": [ONE], "lenient": stored})).lenient
    assert lenient is not None
    assert len(lenient.frames) == 2
    assert not lenient.labels


def test_a_number_that_is_not_finite_leaves_no_corners() -> None:
    assert finite_corners(ONE) == (0.0, 0.0, 4.0, 4.0)
    assert finite_corners(TWO) is None


def test_one_more_confidence_keeps_the_others() -> None:
    row = row_with({**MATCHED, "confidences": {"mean": [0.5, None]}})
    more = BoxAnswer.of(with_confidences(row, "agreement", [1.0, 0.0]))
    assert more.confidences == {"mean": [0.5, None], "agreement": [1.0, 0.0]}
    assert more.boxes == MATCHED["boxes"]
