"""Votes about labels where two rules meet: boxes of one model, and boxes that a label has twice."""

from __future__ import annotations

import pytest

from vlmeval_findit.analysis import classed_boxes, count_votes

HERE = (10.0, 10.0, 50.0, 50.0)
NEAR = (12.0, 10.0, 52.0, 50.0)
FAR = (100.0, 20.0, 160.0, 90.0)
NOTHING = classed_boxes([], [])


def test_two_close_boxes_of_one_model_are_two_objects() -> None:
    one = classed_boxes([HERE], [0])
    two = classed_boxes([HERE, NEAR], [0, 0])
    votes = count_votes([NOTHING], [[one], [two], [two]], single=False)
    assert votes.others.seen.tolist() == [[True, True, True], [False, True, True]]
    assert votes.others.boxes.tolist() == [list(HERE), list(NEAR)]


@pytest.mark.parametrize("answered", [HERE, NEAR, (11.0, 10.0, 51.0, 50.0)])
def test_of_a_box_twice_the_first_is_found(answered: tuple[float, ...]) -> None:
    """So the second is one that no model finds."""
    label = classed_boxes([HERE, NEAR, FAR], [0, 0, 0])
    answer = classed_boxes([answered, FAR], [0, 0])
    votes = count_votes([label], [[answer], [answer]], single=False)
    assert votes.labelled.detected[:, 0].tolist() == [True, False, True]
    assert votes.others.boxes.tolist() == [], "a box answers an object, or is another"


def test_boxes_of_two_classes_are_two_objects() -> None:
    label = classed_boxes([HERE, NEAR], [0, 1])
    answer = classed_boxes([NEAR], [1])
    votes = count_votes([label], [[answer]], single=False)
    assert votes.labelled.detected[:, 0].tolist() == [False, True]


def test_a_box_twice_may_be_found_twice() -> None:
    label = classed_boxes([HERE, NEAR], [0, 0])
    votes = count_votes([label], [[label], [label]], single=False)
    assert votes.labelled.detected.all()
    assert votes.labelled.answered[:, 0].tolist() == [list(HERE), list(NEAR)]


def test_a_box_twice_may_be_found_by_nobody() -> None:
    label = classed_boxes([HERE, NEAR, FAR], [0, 0, 0])
    votes = count_votes([label], [[classed_boxes([FAR], [0])], [NOTHING]], single=False)
    assert votes.labelled.detected.tolist() == [[False, False], [False, False], [True, False]]
