"""What went wrong in a query, and what it costs: the pure part."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.benchmarks.findit import ERROR_TYPES, F1Errors, box_sums, coco_size, event_sums
from vlmeval_findit.boxes import (
    AnswerKind,
    BoxError,
    ErrorEvent,
    FormatFailure,
    JudgedAnswer,
    ParsedReply,
    Truth,
    classify_errors,
    f1_costs,
    match,
)
from vlmeval_findit.protocol import (
    FAILED_CALL,
    UNREADABLE,
    WRONG,
    AnswerErrors,
    Better,
    Metric,
    ScoredRow,
    add_up,
    lost_key,
)

Box = tuple[float, float, float, float]

ANALYSIS = F1Errors()
INF = float("inf")


def answered(
    predicted: Sequence[Any],
    true: Sequence[Any],
    reason: FormatFailure | None = None,
    cut: bool = False,
    recoverable: Sequence[int] = (),
    kind: AnswerKind | None = None,
) -> JudgedAnswer:
    """A query of boxes: (box), (label, box) or, of a video, (label, box, frame)."""

    def columns(items: Sequence[Any]) -> list[tuple[Any, ...]]:
        parts = [("", each, 0) if len(each) == 4 else (*each, 0)[:3] for each in items]
        return list(zip(*parts, strict=True)) or [(), (), ()]

    (labels, boxes, frames), (true_labels, objects, true_frames) = columns(predicted), columns(true)
    labelled = any(labels + true_labels)
    video = any(frames + true_frames)
    truth = Truth(objects, true_frames, true_labels if labelled else ())
    reading = ParsedReply(boxes, labels if labelled else (), frames if video else (), reason)
    (matched,) = match([reading], [truth])
    if kind is None:
        kind = AnswerKind.BOXES if predicted else AnswerKind.NO_BOX
    return JudgedAnswer(matched, reading, truth, kind, cut, recoverable)


def total(queries: Sequence[JudgedAnswer]) -> dict[str, float]:
    """The sums of queries and of their events."""
    return add_up(
        box_sums(item.reading, item.match) | event_sums(events)
        for item, events in zip(queries, classify_errors(queries), strict=True)
    )


# --- the kinds ------------------------------------------------------------------------------------

A: Box = (0, 0, 10, 10)
NEXT: Box = (5, 0, 15, 10)
"""IoU 1/3 with A."""
MOST: Box = (0, 0, 10, 8)
"""IoU 0.8 with A."""
FAR: Box = (50, 50, 60, 60)
FLAT: Box = (0, 0, 0, 0)
TURNED: Box = (10, 10, 0, 0)
HUGE: Box = (0, 0, INF, 1e300)
R = FormatFailure
MALFORMED, WORDS = AnswerKind.UNREADABLE, AnswerKind.WORDS

# A query, and its events: b is a box, o an object.
CASES: dict[str, tuple[JudgedAnswer, str]] = {
    "every box a hit": (answered([A, FAR], [A, FAR]), ""),
    "every box a hit, in a reply not as asked": (answered([A], [A], R.WRONG_KEY), ""),
    "another box": (answered([FAR], [A]), "background b0, missed o0"),
    "near": (answered([NEXT], [A]), "localisation b0 o0"),
    "an IoU of 1/19": (answered([(9, 0, 19, 10)], [A]), "background b0, missed o0"),
    "twice": (answered([A, MOST], [A]), "duplicate b1"),
    "twice, and another object": (answered([A, MOST], [A, FAR]), "duplicate b1, missed o1"),
    "a second box far from its object": (answered([A, FAR], [A]), "background b1"),
    "wrong label": (answered([("dog", A)], [("cat", MOST)]), "wrong label b0 o0"),
    "both": (answered([("dog", NEXT)], [("cat", A)]), "both b0 o0"),
    "a box of another label is no duplicate":
        (answered([("cat", A), ("dog", A)], [("cat", A)]), "background b1"),
    "labels are compared as the score does": (answered([("The Cat!", A)], [("the cat", A)]), ""),
    "two for one, the better is paired":
        (answered([(4, 0, 14, 10), NEXT], [A]), "localisation b0 o0, background b1"),
    "of pairs the better ones":
        (answered([(6, 0, 16, 10), (18, 0, 28, 10)], [A, (10, 0, 20, 10)]),
         "localisation b0 o0, localisation b1 o1"),
    # Cat with cat would be a good pair, and leave a box and an object alone.
    "as many pairs as there can be":
        (answered([("cat", (4, 0, 14, 10)), ("dog", (-6, 0, 4, 10))],
                  [("cat", A), ("dog", (10, 0, 20, 10))]),
         "both b0 o1, both b1 o0"),
    "the call failed": (answered([], [A, FAR], R.FAILED_CALL, recoverable=[0]),
                        "failed call o0, failed call o1"),
    "the call failed, nothing to find": (answered([], [], R.FAILED_CALL), ""),
    "truncated": (answered([], [A], R.TRUNCATED), "truncated o0"),
    "truncated thinking": (answered([], [A], R.TRUNCATED_THINKING), "truncated o0"),
    "empty": (answered([], [A], R.EMPTY), "not readable o0"),
    "not JSON": (answered([], [A], R.NOT_JSON, kind=MALFORMED), "not readable o0"),
    "words instead of JSON": (answered([], [A], R.NOT_JSON, kind=WORDS), "refused o0"),
    "not a number": (answered([], [A], R.NOT_A_NUMBER), "no rectangle o0"),
    "numbers nobody reads": (answered([], [A], R.NO_BOX, kind=MALFORMED), "not readable o0"),
    "words": (answered([], [A], R.NO_BOX, kind=WORDS), "refused o0"),
    "an empty list over frames": (answered([], [A], R.NO_FRAME), "nothing found o0"),
    "text cut after a box": (answered([A], [A, FAR], cut=True), "truncated o1"),
    "text cut before a box": (answered([], [A], R.NO_BOX, cut=True), "truncated o0"),
    "cut, but all there": (answered([A], [A], cut=True), ""),
    "recoverable, one of two": (answered([], [A, FAR], R.NOT_JSON, False, [1], MALFORMED),
                                "not readable o0, recoverable o1"),
    "recoverable although truncated": (answered([], [A, FAR], R.TRUNCATED, recoverable=[0]),
                                       "recoverable o0, truncated o1"),
    "wrong key and a right box": (answered([A], [A, FAR], R.WRONG_KEY), "not readable o1"),
    "no area": (answered([FLAT], [A]), "no rectangle b0 o0"),
    "turned corners": (answered([TURNED], [A]), "no rectangle b0 o0"),
    "no area, and none too few": (answered([A, FLAT], [A]), "no rectangle b1"),
    "no area of another label":
        (answered([("dog", FLAT)], [("cat", A)]), "no rectangle b0, missed o0"),
    "a box without end": (answered([HUGE], [A]), "background b0, missed o0"),
    "nothing found": (answered([], [A]), "nothing found o0"),
    "false alarm": (answered([A, FLAT], []), "false alarm b0, false alarm b1"),
    "a right rejection is no error": (answered([], []), ""),
    "not readable, nothing to find": (answered([], [], R.NOT_JSON, kind=MALFORMED), ""),
    "video: the right box in another frame":
        (answered([("", A, 1)], [("", A, 0), ("", FAR, 1)]), "wrong frame b0 o0, missed o1"),
    "video: inside of its frame first":
        (answered([("", NEXT, 1)], [("", NEXT, 0), ("", A, 1)]), "localisation b0 o1, missed o0"),
    "video: not quite right in another frame":
        (answered([("", NEXT, 1)], [("", A, 0)]), "background b0, missed o0"),
    "video: of another label in another frame":
        (answered([("dog", A, 1)], [("cat", A, 0)]), "background b0, missed o0"),
    "video: a hit's object in another frame makes no duplicate":
        (answered([("", A, 0), ("", A, 2)], [("", A, 0), ("", FAR, 1)]),
         "background b1, missed o1"),
    "video: one frame on":
        (answered([("", A, 1), ("", FAR, 2)], [("", A, 0), ("", FAR, 1)]),
         "wrong frame b0 o0, wrong frame b1 o1"),
    "video: no area":
        (answered([("", FLAT, 1)], [("", A, 0), ("", A, 1)]), "no rectangle b0 o1, missed o0"),
    "video: a frame that is none":
        (answered([("", A, 0)], [("", A, 0), ("", A, 1)], R.FRAME_OUT_OF_RANGE), "wrong frame o1"),
    # Of its frame and label, in order.
    "flat boxes stand for objects":
        (answered([("cat", FLAT, 1), ("dog", FLAT, 0), ("Cat.", FLAT, 0), ("cat", FLAT, 0)],
                  [("cat", A, 0), ("cat", FAR, 0), ("dog", A, 1)]),
         "no rectangle b2 o0, no rectangle b3 o1, no rectangle b0, no rectangle b1, missed o2"),
}  # fmt: skip


def spelt(event: ErrorEvent) -> str:
    box = "" if event.box is None else f" b{event.box}"
    return f"{event.kind.value}{box}" + ("" if event.object is None else f" o{event.object}")


@pytest.mark.parametrize("name", CASES)
def test_every_error_has_a_single_kind(name: str) -> None:
    query, expected = CASES[name]
    (events,) = classify_errors([query])
    assert ", ".join(map(spelt, events)) == expected


def test_every_kind_has_a_case() -> None:
    there = {re.sub(r"( [bo]\d)*$", "", each)
             for _, events in CASES.values() for each in events.split(", ") if each}  # fmt: skip
    assert there == {kind.value for kind in BoxError}
    assert there == {item.name for item in ERROR_TYPES.values()}


# --- what errors cost -----------------------------------------------------------------------------


def test_the_worked_example() -> None:
    queries = [
        answered(
            [("cat", A), ("cat", (0, 0, 10, 9)), ("dog", (25, 0, 35, 10))],
            [("cat", A), ("dog", (20, 0, 30, 10))],
        ),
        answered([("dog", A), ("cat", FAR)], [("cat", MOST)]),
        answered([("cat", A)], [("cat", A), ("cat", (20, 20, 30, 30))], FormatFailure.TRUNCATED),
        answered([("cat", (1, 1, 2, 2))], []),
        answered([], [("cat", A)]),
    ]
    result = total(queries)
    assert (result["tp"], result["n_pred"], result["n_gt"]) == (2, 7, 6)
    assert ANALYSIS.score.value(result) == pytest.approx(400 / 13)
    pair, box, object_ = (100 * float(cost) for cost in f1_costs(2, 7, 6))
    assert (pair, box, object_) == pytest.approx((16.0085, 5.1966, 10.8119), abs=1e-4)
    points = {name: value for name, value in ANALYSIS.points(result).items() if value}
    expected = {
        **dict.fromkeys(("localisation", "wrong label"), pair),
        **dict.fromkeys(("duplicate", "background", "false alarm"), box),
        **dict.fromkeys(("truncated", "nothing found"), object_),
    }
    assert points == pytest.approx({lost_key(name): value for name, value in expected.items()})
    assert sum(points.values()) == pytest.approx(900 / 13)


counts = st.integers(0, 30)
SHARE, WEIGHT = (np.polynomial.legendre.leggauss(120) + np.array([[1], [0]])) / 2
"""Points between 0 and 1, and what each weighs in an integral over them."""


@given(t=counts, pairs=counts, many=counts, few=counts)
def test_error_costs_are_mean_gains_and_add_up(t: int, pairs: int, many: int, few: int) -> None:
    predicted, true = t + pairs + many, t + pairs + few
    costs = f1_costs(t, predicted, true)
    paid = pairs * costs.pair + many * costs.box + few * costs.object
    lacking = 1 - 2 * t / (predicted + true) if predicted + true else 0
    assert min(costs) >= 0
    assert float(paid) == pytest.approx(lacking, abs=1e-12)
    if true and predicted:
        whole = predicted + true + SHARE * (few - many)
        part = 2 * (t + SHARE * (pairs + few))
        pair = (2 / whole) @ WEIGHT
        box = (part / whole**2) @ WEIGHT
        assert np.array(costs) == pytest.approx(np.array([pair, box, pair - box]))


@pytest.mark.parametrize("n", [10, 1000, 10**7])
def test_costs_are_smooth_where_predictions_equal_objects(n: int) -> None:
    """Around equal numbers, and around the change from series to quotient."""
    for centre in (n, int(n * 1.0202)):
        near = [f1_costs(n // 2, centre + step, n) for step in (-1, 0, 1)]
        for below, here, above in zip(*near, strict=True):
            assert abs(below - 2 * here + above) <= 20 * here / n**2 + 1e-13 * here


def test_numbers_and_arrays_have_the_same_costs() -> None:
    queries = [query for query, _ in CASES.values()]
    each = [total([query]) for query in queries] + [{}, total(queries)]
    names = {name for item in each for name in item}
    arrays = {name: np.array([item.get(name, 0) for item in each], float) for name in names}
    result = ANALYSIS.points(arrays)
    for at, item in enumerate(each):
        points = ANALYSIS.points(item)
        assert {key: values[at] for key, values in result.items()} == pytest.approx(points)
        assert sum(points.values()) == pytest.approx(ANALYSIS.lost(item), abs=1e-9)


boxes = st.tuples(*[st.integers(0, 12).map(float)] * 4)
labelled = st.tuples(st.sampled_from(["cat", "dog"]), boxes, st.integers(0, 2))
reasons = st.sampled_from([None, *FormatFailure])


@given(st.lists(labelled, max_size=6), st.lists(labelled, max_size=5), reasons, st.booleans())
def test_for_any_answer_the_counts_add_up(
    predicted: list[Any], true: list[Any], reason: FormatFailure | None, cut: bool
) -> None:
    true.sort(key=lambda item: item[2])
    if reason is FormatFailure.FAILED_CALL:
        predicted = []
    query = answered(predicted, true, reason, cut)
    (events,) = classify_errors([query])
    hits = query.match.tp
    for of, places in (
        (predicted, Counter(event.box for event in events if event.box is not None)),
        (true, Counter(event.object for event in events if event.object is not None)),
    ):
        assert hits + places.total() == len(of)
        assert max(places.values(), default=1) == 1
    result = total([query])
    assert sum(ANALYSIS.points(result).values()) == pytest.approx(ANALYSIS.lost(result), abs=1e-9)


@pytest.mark.parametrize(
    ("box", "size"),
    [((0, 0, 31.9, 32), "small"), ((0, 0, 32, 32), "medium"), ((0, 0, 96, 95.9), "medium"),
     ((0, 0, 1, 9216), "large"), (FLAT, "no area"), (TURNED, "no area")],
)  # fmt: skip
def test_sizes_are_coco_s(box: Box, size: str) -> None:
    assert coco_size(box) == size


# --- benchmarks without an error analysis ---------------------------------------------------


def row(right: float, reason: str | None = None, failed: bool = False, asked: int = 1) -> ScoredRow:
    return ScoredRow(0, "a.jpg", {"right": right, "asked": asked}, failed, reason)


@pytest.mark.parametrize(
    ("given_", "events"),
    [
        (row(1, "odd"), {}),
        (row(0), {WRONG.key: 1}),
        (row(0, "no letter"), {"lost: no letter": 1}),
        (row(0, "odd"), {UNREADABLE.key: 1}),
        (row(0, "no letter", failed=True), {FAILED_CALL.key: 1}),
        (row(0.25), {WRONG.key: 0.75}),
        (row(0, asked=0), {}),
    ],
)
def test_what_a_row_lacks_is_a_single_event(given_: ScoredRow, events: dict[str, float]) -> None:
    analysis = AnswerErrors(Metric("A", {"right": 1}, {"asked": 1}), ("no letter", "wrong answer"))
    assert analysis.events(given_) == events
    names = [item.name for item in analysis.error_types]
    assert names == ["failed call", "no letter", "not readable", "wrong answer"]


def test_a_lower_is_better_rate_is_its_loss() -> None:
    analysis = AnswerErrors(Metric("E", {"wrong": 1}, {"asked": 1}, better=Better.LOWER))
    result = ScoredRow(0, "a.jpg", {"wrong": 1, "asked": 4})
    added = {**result.sums, **analysis.events(result)}
    assert analysis.points(added)[WRONG.key] == analysis.lost(added) == 25
