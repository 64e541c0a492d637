"""IoU, assignment and metrics, each against an independent and slower way to the same numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from every_pair import every_pair
from hypothesis import given, settings
from hypothesis import strategies as st

from vlmeval_findit.boxes import (
    NO_BOX,
    Corners,
    MatchResult,
    ParsedReply,
    ToPixels,
    Truth,
    iou,
    match,
    matching,
    plain_label,
)

A: Corners = (0, 0, 10, 10)
HALF: Corners = (0, 0, 10, 5)
FAR: Corners = (100, 100, 110, 110)
NAN, INF = math.nan, math.inf


def reading(
    *boxes: Corners, labels: Sequence[str] = (), frames: Sequence[int] = (), reason=None
) -> ParsedReply:
    return ParsedReply(tuple(boxes), tuple(labels), tuple(frames), reason)


def truth(*boxes: Corners, labels: Sequence[str] = (), frames: Sequence[int] = ()) -> Truth:
    return Truth(boxes, tuple(frames) or (0,) * len(boxes), tuple(labels))


def match_query(
    predicted: ParsedReply, true: Truth, to_pixels: ToPixels | None = None
) -> MatchResult:
    return match([predicted], [true], to_pixels and [to_pixels])[0]


# --- IoU ------------------------------------------------------------------------------------------


def iou_of(a: Corners, b: Corners) -> float:
    """IoU as a textbook writes it, in 64-bit floats."""
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - width * height
    return width * height / union if union else 0.0


def iou32(a: Corners, b: Corners) -> float:
    return float(iou(np.array([a], np.float32), np.array([b], np.float32))[0])


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param(A, A, 1.0, id="itself"),
        pytest.param(A, HALF, 0.5, id="half of it"),
        pytest.param(A, (5, 5, 15, 15), 25 / 175, id="a corner"),
        pytest.param(A, FAR, 0.0, id="apart"),
        pytest.param(A, (10, 0, 20, 10), 0.0, id="touching"),
        pytest.param(A, (5, 5, 5, 5), 0.0, id="a point in it"),
        pytest.param((5, 5, 5, 5), (5, 5, 5, 5), 0.0, id="two points: 0 / 0"),
        pytest.param(A, (10, 10, 0, 0), 0.0, id="swapped corners on both axes"),
        pytest.param(A, (10, 0, 0, 10), 0.0, id="swapped corners: union 0"),
        pytest.param(A, (NAN, 0, 10, 10), 0.0, id="nan"),
        pytest.param(A, (0, 0, INF, 10), 0.0, id="inf"),
        pytest.param((-INF, -INF, INF, INF), (-INF, -INF, INF, INF), 0.0, id="everything"),
        pytest.param(A, (0, 0, 3e38, 3e38), 0.0, id="an area beyond 32 bits"),
    ],
)
def test_iou(a: Corners, b: Corners, expected: float) -> None:
    assert iou32(a, b) == pytest.approx(expected, abs=1e-6)
    assert iou32(b, a) == pytest.approx(expected, abs=1e-6)


coordinates = st.integers(0, 2000).map(lambda n: n / 4)


@st.composite
def boxes(draw: st.DrawFn) -> Corners:
    x, y, w, h = (draw(coordinates) for _ in range(4))
    return x, y, x + w + 0.25, y + h + 0.25


# --- matching -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicted", "true", "ious", "hits"),
    [
        pytest.param(reading(), truth(A), [0.0], [False], id="no box"),
        pytest.param(reading(A), truth(), [], [], id="no truth"),
        pytest.param(reading(), truth(), [], [], id="neither"),
        pytest.param(reading(A, A), truth(A), [1.0], [True], id="twice the same"),
        pytest.param(reading(A), truth(A, A), [1.0, 0.0], [True, False], id="truth twice"),
        pytest.param(reading(HALF), truth(A), [0.5], [True], id="just half"),
        pytest.param(reading((0, 0, 10, 4.99)), truth(A), [0.499], [False], id="not quite half"),
        pytest.param(reading((NAN, 0, 1, 1)), truth(A), [0.0], [False], id="nan"),
        pytest.param(reading((0, 0, 1e300, 1e300)), truth(A), [0.0], [False], id="1e300"),
        pytest.param(reading((0, 0, INF, 1), A), truth(A), [1.0], [True], id="inf and a box"),
        pytest.param(reading(A), truth((10, 0, 0, 10)), [0.0], [False], id="swapped truth"),
        # The sum decides, not the first: 0.9 + 6/12 is less than 10/12 + 6/9.
        pytest.param(reading((0, 0, 10, 9), (0, 0, 10, 12)), truth(A, (0, 0, 10, 6)),
                     [10 / 12, 6 / 9], [True, True], id="not greedy"),
        pytest.param(reading(HALF, A, labels=["cat", "dog"]), truth(A, labels=["Cat"]), [0.5],
                     [True], id="an agreeing label goes before a better box"),
        pytest.param(reading(HALF, A, labels=["bird", "dog"]), truth(A, labels=["cat"]), [1.0],
                     [False], id="no label agrees: the better box is assigned, and no hit"),
        pytest.param(reading(A), truth(A, labels=["cat"]), [1.0], [False], id="no label"),
        pytest.param(reading(A, labels=["cat"]), truth(A), [1.0], [False], id="a label too many"),
    ],
)  # fmt: skip
def test_one_query(
    predicted: ParsedReply, true: Truth, ious: list[float], hits: list[bool]
) -> None:
    result = match_query(predicted, true)
    assert result.ious == pytest.approx(ious)
    assert list(result.hits) == hits
    assert len(result.boxes) == len(predicted.boxes)


def test_boxes_are_scaled_by_axis() -> None:
    result = match_query(
        reading((100, 200, 300, 400)), truth((50, 50, 150, 100)), ToPixels(0.5, 0.25)
    )
    assert result == MatchResult(((50, 50, 150, 100),), (1.0,), (True,), (0,), ())


@pytest.mark.parametrize(
    ("left", "right", "agree"),
    [
        ("Cat", "cAT", True),
        ("traffic  light\n", "traffic light", True),
        ("t-shirt", "tshirt", True),
        ("(cat).", "cat", True),
        ("cat's", "cats", True),
        ("ÉTÉ", "été", True),
        ("été", "ete", False),
        ("cat", "cats", False),
        ("trafficlight", "traffic light", False),
        ("", "...", True),
        ("", "cat", False),
    ],
)
def test_labels_agree(left: str, right: str, agree: bool) -> None:
    assert (plain_label(left) == plain_label(right)) is agree
    result = match_query(reading(A, labels=[left]), truth(A, labels=[right]))
    assert result.ious == (1.0,)
    assert result.hits == (agree,)


def test_frames_are_matched_separately() -> None:
    true = truth(A, A, FAR, frames=[0, 1, 2])
    result = match_query(reading(A, FAR, A, frames=[1, 2, 2]), true)
    assert result.ious == (0.0, 1.0, 1.0)
    assert match_query(reading(A, frames=[2]), true).tp == 0
    # Boxes stay in the order of the reply.
    assert match_query(reading(FAR, A, frames=[2, 0]), true) == MatchResult(
        (FAR, A), (1.0, 0.0, 1.0), (True, False, True), (1, NO_BOX, 0), ()
    )


@st.composite
def queries(draw: st.DrawFn, labelled: bool, frames: int) -> tuple[ParsedReply, Truth]:
    def side() -> tuple[tuple[Corners, ...], tuple[str, ...], tuple[int, ...]]:
        actual = draw(st.lists(boxes(), max_size=3))
        labels = [draw(st.sampled_from(["cat", "Dog", "a b"])) for _ in actual] if labelled else []
        in_order = sorted(draw(st.integers(0, frames - 1)) for _ in actual)
        return tuple(actual), tuple(labels), tuple(in_order)

    predicted, labels, frame_numbers = side()
    true, true_labels, true_frames = side()
    return (
        ParsedReply(predicted, labels, frame_numbers if frames > 1 else (), None),
        Truth(true, true_frames, true_labels),
    )


def cheapest_ious(predicted: ParsedReply, true: Truth, frame: int) -> list[list[float]]:
    """The IoUs of the truths of a frame in each of its cheapest assignments, by trying all."""
    rows = [
        i
        for i in range(len(predicted.boxes))
        if not predicted.frames or predicted.frames[i] == frame
    ]
    columns = [j for j, other in enumerate(true.frames) if other == frame]

    def agree(i: int, j: int) -> bool:
        return bool(true.labels) and plain_label(predicted.labels[i]) == plain_label(true.labels[j])

    ious = [[iou_of(predicted.boxes[i], true.boxes[j]) for j in columns] for i in rows]
    actual: list[tuple[float, list[float]]] = []
    # Nobody (None) as often as there are truths: a truth need not have a box.
    for chosen in set(
        itertools.permutations([*range(len(rows)), *[None] * len(columns)], len(columns))
    ):
        if len(columns) - chosen.count(None) != min(len(rows), len(columns)):
            continue
        pairs = [(row, column) for column, row in enumerate(chosen) if row is not None]
        cost = sum(1 - ious[r][c] - agree(rows[r], columns[c]) for r, c in pairs)
        values = [0.0 if row is None else ious[row][c] for c, row in enumerate(chosen)]
        actual.append((cost, values))
    least = min(cost for cost, _ in actual)
    return [values for cost, values in actual if cost < least + 1e-5]


@every_pair("labelled, frames", [False, True], [1, 3])
@given(st.data())
@settings(max_examples=40)
def test_a_batch_of_queries(labelled: bool, frames: int, data: st.DataObject) -> None:
    """Query by query the cheapest assignment; and the same in batches of any size."""
    actual = data.draw(st.lists(queries(labelled, frames), max_size=6))
    predicted = [r for r, _ in actual]
    true = [t for _, t in actual]
    results = match(predicted, true)
    for r, t, matched in zip(predicted, true, results, strict=True):
        assert matched.boxes == r.boxes
        assert len(matched.ious) == len(matched.hits) == len(t.boxes)
        for frame in set(t.frames):
            computed = [v for v, f in zip(matched.ious, t.frames, strict=True) if f == frame]
            cheapest = cheapest_ious(r, t, frame)
            assert any(computed == pytest.approx(values, abs=1e-5) for values in cheapest)
    for size in (1, 2, 5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(matching, "_BATCH", size)
            assert match(predicted, true) == results


def test_a_match_has_assignments_and_agreement_of_labels() -> None:
    predicted = reading(FAR, A, HALF, labels=["cat", "dog", "cat"])
    result = match_query(predicted, truth(A, FAR, labels=["cat", "cat"]))
    # The box that lies best has the other label: it costs more than one that lies half as well.
    assert result.assigned == (2, 0)
    assert result.labels_agree == (True, True)
    alone = match_query(reading(A, labels=["dog"]), truth(A, FAR, labels=["cat", "cat"]))
    assert (alone.assigned, alone.labels_agree) == ((0, NO_BOX), (False, False))


def test_queries_without_labels_ignore_labels_of_their_batch() -> None:
    predicted = [reading(A), reading(A, labels=["cat"])]
    both = match(predicted, [truth(A), truth(A, labels=["cat"])])
    assert [result.labels_agree for result in both] == [(), (True,)]
