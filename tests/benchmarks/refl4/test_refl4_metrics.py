"""Ref-L4: IoU, hits, sums and the twelve metrics, against slower computations."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.benchmarks.refl4 import (
    AUTHORS_CLASSES,
    AUTHORS_METRICS,
    BENCHMARK,
    CORRECTED_CLASSES,
    CORRECTED_METRICS,
    IOU_THRESHOLDS,
    MACC,
    METRICS,
    ONE_TOO_LOW,
    Annotation,
    Corners,
    RefL4Split,
    class_of,
    compare_boxes,
    object_size,
    paired_iou,
    predictions_from,
    slices_of,
    sums_of,
)
from vlmeval_findit.protocol import ScoredRow, metric_values, sum_rows
from vlmeval_findit.statistics import clustered_sums, estimate_metrics

NAN, INF = math.nan, math.inf


def truth(x: float, y: float, w: float, h: float, ori: str = "o365_1", number: int = 1, **more):
    given = {"split": RefL4Split.VAL, "ori_category_id": ori, **more}
    return Annotation(index=number, bbox=(x, y, w, h), **given)


def iou32(a: Corners, b: Corners) -> float:
    with np.errstate(over="ignore"):
        return float(paired_iou(np.array([a], np.float32), np.array([b], np.float32))[0])


def passed(a: Corners, b: Corners) -> int:
    return compare_boxes([truth(a[0], a[1], a[2] - a[0], a[3] - a[1])], [b])[1][0]


# --- IoU ------------------------------------------------------------------------------------------


def iou_step_by_step(a: Corners, b: Corners) -> np.float32:
    """One 32-bit operation after the other, in the order that the last bit depends on."""
    a32 = [np.float32(v) for v in a]
    b32 = [np.float32(v) for v in b]
    area_a = (a32[2] - a32[0]) * (a32[3] - a32[1])
    area_b = (b32[2] - b32[0]) * (b32[3] - b32[1])
    width = max(np.float32(0), min(a32[2], b32[2]) - max(a32[0], b32[0]))
    height = max(np.float32(0), min(a32[3], b32[3]) - max(a32[1], b32[1]))
    both = width * height
    return both / max((area_a + area_b) - both, np.float32(1e-6))


def test_the_order_of_the_sum_in_the_union_matters() -> None:
    # With the overlap subtracted from an area first, some quotients would have other bits.
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 500, (2000, 4)).astype(np.float32)
    a[:, 2:] += a[:, :2]
    b = a + rng.uniform(-30, 30, a.shape).astype(np.float32)
    expected = [iou_step_by_step(tuple(x), tuple(y)) for x, y in zip(a, b, strict=True)]
    assert paired_iou(a, b).tolist() == [float(value) for value in expected]
    tiny = (0.0, 0.0, 0.0009, 0.0009)
    assert iou32(tiny, tiny) == pytest.approx(0.81, abs=1e-4), "its area over a millionth"


WHOLE: Corners = (0, 0, 10, 10)


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ((5, 5, 5, 50), (5, 5, 5, 50), "no width"),
        (WHOLE, (10, 0, 0, 10), "swapped in x"),
        (WHOLE, (10, 10, 0, 0), "swapped in both: area is positive"),
        (WHOLE, (NAN, 0, 10, 10), "NaN"),
        (WHOLE, (0, 0, NAN, 10), "NaN at the far side"),
        (WHOLE, (-INF, -INF, INF, INF), "everything"),
        (WHOLE, (INF, INF, INF, INF), "infinity"),
        (WHOLE, (0, 0, 1e300, 1e300), "too large for 32 bits"),
        (WHOLE, (20, 20, 30, 30), "elsewhere"),
        ((0, 0, 5e-4, 5e-4), (0, 0, 5e-4, 5e-4), "perfect, but tiny"),
    ],
)
def test_boxes_that_miss(a: Corners, b: Corners, why: str) -> None:
    assert passed(a, b) == 0, why


def test_huge_integers_do_not_overflow_into_a_hit() -> None:
    # 2**32 squared is 0 in 64-bit integers: the union would be the overlap.
    reply = predictions_from([{"id": 1, "pred_bbox": [0, 0, 2**32, 2**32], "format": "xyxy"}])
    assert compare_boxes([truth(0, 0, 100, 100)], [reply[1]])[1] == [0]


# --- thresholds -----------------------------------------------------------------------------------


def test_thresholds_are_strict_and_32_bit() -> None:
    assert IOU_THRESHOLDS == tuple(round(0.5 + 0.05 * i, 2) for i in range(10))
    assert passed((0, 0, 10, 10), (0, 0, 10, 10)) == 10
    assert passed((0, 0, 10, 10), (0, 0, 10, 5)) == 0
    # As a 64-bit comparison has it, an IoU of three fifths is above 0.6.
    assert iou32((0, 0, 10, 10), (0, 0, 10, 6)) > 0.6
    assert passed((0, 0, 10, 10), (0, 0, 10, 6)) == 2


def test_corners_are_added_in_64_bits() -> None:
    x, w = 431.58, 0.033
    late = np.float32(x + w)
    early = np.float32(x) + np.float32(w)
    assert late != early
    annotation = truth(x, 0, w, 1)
    reply = predictions_from([{"id": 1, "pred_bbox": [x, 0, w, 1], "format": "xywh"}])
    for box in ((float(np.float32(x)), 0, float(late), 1), reply[1]):
        assert compare_boxes([annotation], [box])[0] == [1]


# --- what expressions are counted by --------------------------------------------------------------


def test_sizes() -> None:
    for size, sides in {
        "small": [(127.9, 128), (0, 900)],
        "medium": [(128, 128), (64, 256), (256, 256)],
        "large": [(256, 256.1), (1e200, 1e200)],
    }.items():
        assert [object_size(truth(0, 0, w, h)) for w, h in sides] == [size] * len(sides)


def test_the_ten_mended_classes_are_named_alike() -> None:
    for table in (AUTHORS_CLASSES, CORRECTED_CLASSES):
        assert len(table) == 80
        assert class_of("refcoco_37", table) == "sports ball"
        assert class_of("refcoco_12", table) == "refcoco_12"  # COCO does not use 12
        assert class_of("o365_56", table) == "Bus"
    changed = {key for key in AUTHORS_CLASSES if AUTHORS_CLASSES[key] != CORRECTED_CLASSES[key]}
    assert changed == {f"refcoco_{number}" for number in ONE_TOO_LOW}
    assert class_of("refcoco_67", AUTHORS_CLASSES) == "Cake"
    assert class_of("refcoco_67", CORRECTED_CLASSES) == "Dining Table"
    assert class_of("cat_1", AUTHORS_CLASSES) == "cat_1"


def test_slices_of_an_expression() -> None:
    words = {10: "<=10", 11: "11-20", 20: "11-20", 21: "21-40", 40: "21-40", 41: ">40"}
    captions = {count: truth(0, 0, 9, 9, caption="a " * count) for count in words}
    assert {count: slices_of(each)["words"] for count, each in captions.items()} == words
    assert slices_of(truth(0, 0, 9, 9, "refcoco_16", caption="a", is_rewrite=True)) == {
        **{"split": "val", "size": "small", "source": "COCO", "words": "<=10"},
        **{"wording": "rewritten", "class": "Bus", "corrected class": "Wild Bird"},
    }


# --- metrics --------------------------------------------------------------------------------------

KINDS = ("refcoco_16", "refcoco_6", "refcoco_37", "o365_56", "o365_57", "o365_200", "else_1")


@st.composite
def expressions(draw: st.DrawFn) -> tuple[Annotation, int]:
    """An annotation, and how many thresholds its box is above."""
    side = draw(st.sampled_from([10.0, 128.0, 200.0, 256.0, 300.0]))
    kind = draw(st.sampled_from(KINDS))
    return truth(0, 0, side, side, kind), draw(st.integers(0, 10))


def rows_of(judged: list[tuple[Annotation, int]]) -> list[ScoredRow]:
    return [
        ScoredRow(at, f"{at % 9}.jpg", sums_of(above, True), slices=slices_of(each))
        for at, (each, above) in enumerate(judged)
    ]


@given(st.lists(expressions(), min_size=1, max_size=30))
def test_values_of_classes_have_the_published_mean(judged: list[tuple[Annotation, int]]) -> None:
    sums = sum_rows(rows_of(judged))
    metric = BENCHMARK.class_metric
    assert metric is not None
    by_class = metric.values_over(sums)
    assert set(by_class) == {slices_of(each)["class"] for each, _ in judged}
    assert metric.value(sums) == pytest.approx(sum(by_class.values()) / len(by_class))
    for name, value in by_class.items():
        above = [above for each, above in judged if slices_of(each)["class"] == name]
        assert value == pytest.approx(10 * sum(above) / len(above))


@given(st.lists(expressions(), min_size=1, max_size=30))
def test_metrics_against_fractions(judged: list[tuple[Annotation, int]]) -> None:
    def exact(some: list[tuple[Annotation, int]], threshold: int) -> Fraction:
        return Fraction(100 * sum(above > threshold for _, above in some), len(some))

    def both(some: list[tuple[Annotation, int]]) -> tuple[Fraction, Fraction]:
        return exact(some, 0), sum((exact(some, i) for i in range(10)), Fraction()) / 10

    expected: dict[str, Fraction | None] = {
        "acc_0.5": exact(judged, 0),
        "acc_0.75": exact(judged, 5),
        "acc_0.9": exact(judged, 8),
        "macc": both(judged)[1],
    }
    for size in ("small", "medium", "large"):
        some = [each for each in judged if object_size(each[0]) == size]
        result = both(some) if some else (None, None)
        expected |= {f"{size}_acc": result[0], f"{size}_macc": result[1]}
    for table, more in ((AUTHORS_CLASSES, ""), (CORRECTED_CLASSES, " (corrected)")):
        classes: dict[str, list[tuple[Annotation, int]]] = {}
        for each in judged:
            classes.setdefault(class_of(str(each[0].ori_category_id), table), []).append(each)
        pairs = zip(*map(both, classes.values()), strict=True)
        means = [sum(some, Fraction()) / len(classes) for some in pairs]
        expected |= {f"class_acc{more}": means[0], f"class_macc{more}": means[1]}
    metrics = (*AUTHORS_METRICS, *CORRECTED_METRICS)
    rows = rows_of(judged)
    actual = sum_rows(rows)
    on_arrays = estimate_metrics(metrics, clustered_sums(rows, "RefL4"))
    assert [metric.name for metric in metrics] == list(expected)
    for metric in metrics:
        right = expected[metric.name]
        for value in (metric.value(actual), on_arrays.value(metric.name)):
            assert value == (None if right is None else pytest.approx(float(right), abs=1e-9))


def authors(judged: list[tuple[Annotation, int]]) -> dict[str, float | None]:
    """Compute the twelve in the authors' order of operations."""

    def shares(some: list[tuple[Annotation, int]]) -> list[float]:
        return [sum(above > at for _, above in some) / len(some) for at in range(10)]

    result: dict[str, float | None] = {
        f"acc_{threshold:g}": shares(judged)[at] * 100
        for at, threshold in ((0, 0.5), (5, 0.75), (8, 0.9))
    }
    result["macc"] = statistics.mean(shares(judged)) * 100
    for size in ("small", "medium", "large"):
        some = [each for each in judged if object_size(each[0]) == size]
        percent = [share * 100 for share in shares(some)] if some else []
        result[f"{size}_acc"] = percent[0] if percent else None
        result[f"{size}_macc"] = statistics.mean(percent) if percent else None
    classes: dict[str, list[tuple[Annotation, int]]] = {}
    for each in judged:
        classes.setdefault(class_of(str(each[0].ori_category_id), AUTHORS_CLASSES), []).append(each)
    tables = [[share * 100 for share in shares(some)] for some in classes.values()]
    by_threshold = [statistics.mean(column) for column in zip(*tables, strict=True)]
    result["class_acc"] = by_threshold[0]
    result["class_macc"] = statistics.mean(by_threshold)
    return result


@given(st.lists(expressions(), min_size=1, max_size=200))
def test_values_and_their_two_decimals_are_the_authors(
    judged: list[tuple[Annotation, int]],
) -> None:
    sums = sum_rows(rows_of(judged))
    expected = authors(judged)
    assert metric_values(AUTHORS_METRICS, sums) == expected
    printed = {metric.name: metric.printed(sums) for metric in AUTHORS_METRICS}
    assert printed == {k: None if v is None else round(v, 2) for k, v in expected.items()}


@pytest.mark.parametrize(
    ("hits", "asked", "printed"),
    [(49, 16, 30.63), (7, 16, 4.38), (27, 16, 16.88), (65, 16, 40.62), (1, 1, 10.0), (0, 3, 0.0)],
)
def test_the_mean_over_thresholds_is_rounded_as_theirs(
    hits: int, asked: int, printed: float
) -> None:
    """Of the halves all but 30.625 are exact in their program, and go to the even digit."""
    tenths = {f"hits_{threshold:g}": 0 for threshold in IOU_THRESHOLDS}
    for at in range(hits):
        tenths[f"hits_{IOU_THRESHOLDS[at // asked]:g}"] += 1
    assert MACC.printed({"asked": asked, **tenths}) == printed


def test_what_nobody_asked_has_no_figure() -> None:
    got = metric_values(METRICS, sum_rows(rows_of([(truth(0, 0, 10, 10), 10)])))
    assert (got["small_acc"], got["medium_acc"], got["large_macc"]) == (100, None, None)
    assert set(metric_values(METRICS, {}).values()) == {None}
