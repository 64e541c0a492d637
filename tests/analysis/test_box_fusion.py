"""Boxes of several answers are merged; boxes of one answer never are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.analysis import fuse_boxes, group_of
from vlmeval_findit.boxes import BoxToWrite

A = [0.0, 0.0, 10.0, 10.0]
NEAR_A = [0.0, 0.0, 10.0, 8.0]
B = [50.0, 50.0, 60.0, 60.0]
BESIDE_A = [2.0, 0.0, 12.0, 10.0]  # IoU with A: 0.67
POINT = [5.0, 5.0, 5.0, 5.0]


def plain(samples: Sequence[Sequence[Any]]) -> list[list[BoxToWrite]]:
    return [[BoxToWrite(tuple(corners)) for corners in sample] for sample in samples]


@pytest.mark.parametrize(
    ("samples", "merged"),
    [
        ([[A], [A], [B]], [A]),
        ([[A], [NEAR_A], []], [[0.0, 0.0, 10.0, 9.0]]),
        ([[A], [B]], []),  # half is not most
        ([[A], [], []], []),
        ([[], []], []),
        ([[A, A], [B], [B, [5.0, 5.0, 5.0, 9.0]]], [B]),  # a box said twice has one vote
        ([[B, A], [A, B], [A]], [A, B]),
        ([[A, BESIDE_A], [BESIDE_A, A], [A]], [A, BESIDE_A]),
        ([[A, BESIDE_A], [BESIDE_A], [BESIDE_A]], [BESIDE_A]),
        ([[A], [A, BESIDE_A], [BESIDE_A]], [A, BESIDE_A]),
        ([[A, A], [A, A], [A]], [A, A]),  # said twice by most
        ([[POINT], [POINT], []], [POINT]),
        # A hit is an IoU of exactly one half, too.
        ([[A], [[0.0, 0.0, 10.0, 5.0]]], [[0.0, 0.0, 10.0, 7.5]]),
    ],
)
def test_boxes_of_most_answers_are_merged(samples: Any, merged: Any) -> None:
    assert [each.box for each in fuse_boxes(plain(samples))] == [
        pytest.approx(tuple(each)) for each in merged
    ]


def test_as_many_boxes_as_possible_find_their_object() -> None:
    """The nearest box alone would leave the other without an object."""
    first = (0.0, 0.0, 10.0, 10.0)
    second = (4.0, 0.0, 14.0, 10.0)
    between = (1.0, 0.0, 11.0, 10.0)
    far = (-3.0, 0.0, 7.0, 10.0)
    merged = fuse_boxes(plain([[first, second], [between, far]]))
    assert sorted(each.box for each in merged) == [(-1.5, 0, 8.5, 10), (2.5, 0, 12.5, 10)]


def test_only_boxes_of_one_label_and_frame_are_merged() -> None:
    samples = [[("Cat", 0), ("dog", 1)], [("cat", 0), ("dog", 2)], [("dog", 0), ("dog", 1)]]
    boxes = [[BoxToWrite(tuple(A), *group) for group in sample] for sample in samples]
    assert [each[1:] for each in fuse_boxes(boxes)] == [("Cat", 0), ("dog", 1)]


# --- any answers ----------------------------------------------------------------------------------

# A coarse lattice: boxes overlap by more than half, lie on each other, or have no area.
NUMBERS = st.one_of(st.integers(0, 6).map(float), st.floats(0, 1000, width=32))
CORNERS = st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
LABELS = st.sampled_from(["", "cat", "Cat.", "dog", "two cats"])
BOXES = st.lists(st.builds(BoxToWrite, CORNERS, LABELS, st.integers(0, 3)), max_size=8)


@given(BOXES, st.integers(1, 6))
def test_the_consensus_of_equal_answers_is_that_answer(answer: list[BoxToWrite], n: int) -> None:
    assert fuse_boxes([answer] * n) == answer


@given(BOXES, st.lists(st.randoms(use_true_random=False), max_size=5))
def test_whatever_the_order_of_each(answer: list[BoxToWrite], orders: list[Any]) -> None:
    samples = [answer]
    for random in orders:
        samples.append(random.sample(answer, len(answer)))
    merged = fuse_boxes(samples)
    assert Counter(map(group_of, merged)) == Counter(map(group_of, answer))
    found, said = (
        np.array(sorted((*group_of(each), *each.box) for each in boxes), dtype=object)
        for boxes in (merged, answer)
    )
    if answer:
        assert found[:, 2:].astype(float) == pytest.approx(said[:, 2:].astype(float), abs=1e-3)


@given(st.lists(BOXES, min_size=1, max_size=5))
def test_consensus_holds_as_many_boxes_as_most_answers(
    samples: list[list[BoxToWrite]],
) -> None:
    counts = [Counter(map(group_of, sample)) for sample in samples]
    for group, count in Counter(map(group_of, fuse_boxes(samples))).items():
        assert 2 * sum(each[group] for each in counts) > count * len(samples)


def test_many_boxes_are_merged_in_bounded_memory() -> None:
    lattice = [
        [20.0 * x, 20.0 * y, 20.0 * x + 15, 20.0 * y + 15] for x in range(40) for y in range(20)
    ]
    moved = [[n + 1 for n in box] for box in reversed(lattice)]
    merged = fuse_boxes(plain([lattice, moved]))
    assert [each.box for each in merged] == [tuple(n + 0.5 for n in box) for box in lattice]
