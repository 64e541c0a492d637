"""Ref-L4: IoU, hits, sums and the twelve figures, against slower ways to the same numbers."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.benchmarks.refl4 import conformance
from vlmeval_findit.benchmarks.refl4.annotations import Annotation, Split, size_of
from vlmeval_findit.benchmarks.refl4.classes import (
    AUTHORS,
    CORRECTED,
    ONE_TOO_LOW,
    PictureSource,
    class_name,
    class_of,
    source_of,
)
from vlmeval_findit.benchmarks.refl4.conformance import agreement, difference
from vlmeval_findit.benchmarks.refl4.figures import NAMES, class_figures, corrected_figures, figures
from vlmeval_findit.benchmarks.refl4.judging import Judged, judge
from vlmeval_findit.benchmarks.refl4.overlap import THRESHOLDS, hits, iou
from vlmeval_findit.benchmarks.refl4.predictions import (
    Corners,
    MissReason,
    PredictedBox,
    predictions_from,
)
from vlmeval_findit.benchmarks.refl4.scoring import score
from vlmeval_findit.benchmarks.refl4.slices import slices
from vlmeval_findit.benchmarks.refl4.sums import By, Sums, add_up, sums, words_of
from vlmeval_findit.core.conformance import CaseError

NAN, INF = math.nan, math.inf


def truth(x: float, y: float, w: float, h: float, ori: str = "o365_1", number: int = 1, **more):
    return Annotation(number, (x, y, w, h), ori, more.pop("split", Split.VAL), **more)


def iou32(a: Corners, b: Corners) -> float:
    with np.errstate(over="ignore"):
        return float(iou(np.array([a], np.float32), np.array([b], np.float32))[0])


def passed(value: float) -> list[bool]:
    return hits(np.array([value], np.float32))[0].tolist()


# --- IoU ------------------------------------------------------------------------------------------


def iou64(a: Corners, b: Corners) -> float:
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    return width * height / max(areas - width * height, 1e-6)


def iou_step_by_step(a: Corners, b: Corners) -> np.float32:
    """One 32-bit operation after the other, in the order that the last bit depends on."""
    a32, b32 = [np.float32(v) for v in a], [np.float32(v) for v in b]
    area_a = (a32[2] - a32[0]) * (a32[3] - a32[1])
    area_b = (b32[2] - b32[0]) * (b32[3] - b32[1])
    width = max(np.float32(0), min(a32[2], b32[2]) - max(a32[0], b32[0]))
    height = max(np.float32(0), min(a32[3], b32[3]) - max(a32[1], b32[1]))
    both = width * height
    return both / max((area_a + area_b) - both, np.float32(1e-6))


@st.composite
def boxes(draw: st.DrawFn) -> Corners:
    value = st.floats(0, 2000, width=32)
    x1, x2 = sorted((draw(value), draw(value)))
    y1, y2 = sorted((draw(value), draw(value)))
    return x1, y1, x2 + 1, y2 + 1


@given(boxes(), boxes())
def test_iou_is_near_the_64_bit_one(a: Corners, b: Corners) -> None:
    assert iou32(a, b) == pytest.approx(iou64(a, b), abs=1e-3)
    assert 0 <= iou32(a, b) <= 1
    assert iou32(a, a) == 1


@given(boxes(), boxes())
def test_iou_has_the_last_bit_of_the_operations_in_order(a: Corners, b: Corners) -> None:
    assert iou32(a, b) == iou_step_by_step(a, b)


def test_the_order_of_the_sum_in_the_union_matters() -> None:
    # Were the overlap taken from one area first, some of these quotients would have other bits.
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 500, (2000, 4)).astype(np.float32)
    a[:, 2:] += a[:, :2]
    b = a + rng.uniform(-30, 30, a.shape).astype(np.float32)
    expected = [iou_step_by_step(tuple(x), tuple(y)) for x, y in zip(a, b, strict=True)]
    assert iou(a, b).tolist() == [float(value) for value in expected]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param((5, 5, 5, 50), (5, 5, 5, 50), id="no width"),
        pytest.param((5, 5, 5, 5), (5, 5, 5, 5), id="a point"),
        pytest.param((0, 0, 10, 10), (10, 0, 0, 10), id="swapped in x"),
        pytest.param((0, 0, 10, 10), (10, 10, 0, 0), id="swapped in both: area is positive"),
        pytest.param((0, 0, 10, 10), (NAN, 0, 10, 10), id="NaN"),
        pytest.param((0, 0, 10, 10), (0, 0, NAN, 10), id="NaN at the far side"),
        pytest.param((0, 0, 10, 10), (-INF, -INF, INF, INF), id="everything"),
        pytest.param((0, 0, 10, 10), (INF, INF, INF, INF), id="infinity"),
        pytest.param((0, 0, 10, 10), (0, 0, 1e300, 1e300), id="too large for 32 bits"),
        pytest.param((0, 0, 10, 10), (20, 20, 30, 30), id="elsewhere"),
        pytest.param((0, 0, 5e-4, 5e-4), (0, 0, 5e-4, 5e-4), id="perfect, but tiny"),
    ],
)
def test_boxes_that_miss(a: Corners, b: Corners) -> None:
    assert not any(passed(iou32(a, b)))


def test_a_tiny_perfect_box_has_its_area_over_a_millionth() -> None:
    tiny = (0.0, 0.0, 0.0009, 0.0009)
    assert iou32(tiny, tiny) == pytest.approx(0.81, abs=1e-4)


def test_huge_integers_do_not_overflow_into_a_hit() -> None:
    annotations = [truth(0, 0, 100, 100)]
    # 2**32 squared is 0 in 64-bit integers: the union would be the overlap.
    said = predictions_from([{"id": 1, "pred_bbox": [0, 0, 2**32, 2**32], "format": "xyxy"}])
    assert score(annotations, said, Split.VAL).figures.acc_050 == 0


def test_shapes_are_held_against_each_other() -> None:
    with pytest.raises(ValueError, match=r"\(1, 4\) and \(2, 4\)"):
        iou(np.zeros((1, 4), np.float32), np.zeros((2, 4), np.float32))
    assert iou(np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32)).shape == (0,)


# --- thresholds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("i", range(10))
def test_thresholds_are_strict_and_32_bit(i: int) -> None:
    limit = np.float32(THRESHOLDS[i])
    assert passed(limit) == [k < i for k in range(10)]
    assert passed(np.nextafter(limit, np.float32(1))) == [k <= i for k in range(10)]


def test_an_iou_of_three_fifths_is_no_hit_at_three_fifths() -> None:
    value = iou32((0, 0, 10, 10), (0, 0, 10, 6))
    assert value > 0.6  # as a 64-bit comparison has it
    assert passed(value)[:3] == [True, True, False]


def test_there_are_ten_thresholds() -> None:
    assert THRESHOLDS == tuple(round(0.5 + 0.05 * i, 2) for i in range(10))
    assert passed(1.0) == [True] * 10
    assert passed(NAN) == passed(0.5) == [False] * 10


# --- corners --------------------------------------------------------------------------------------


def test_corners_are_added_in_64_bits() -> None:
    x, w = 431.58, 0.033
    late, early = np.float32(x + w), np.float32(x) + np.float32(w)
    assert late != early
    annotation = truth(x, 0, w, 1)
    (one,) = judge([annotation], [PredictedBox((float(np.float32(x)), 0, float(late), 1))])
    assert one.iou == 1
    said = predictions_from([{"id": 1, "pred_bbox": [x, 0, w, 1], "format": "xywh"}])
    assert judge([annotation], [said[1]])[0].iou == 1


def test_a_missing_box_is_a_miss_with_its_reason() -> None:
    (one,) = judge([truth(0, 0, 0, 0)], [PredictedBox(None, MissReason.NULL_BOX)])
    assert (one.reason, one.iou, any(one.hits)) == (MissReason.NULL_BOX, 0, False)
    with pytest.raises(ValueError, match="0 answers to 1 annotations"):
        judge([truth(0, 0, 1, 1)], [])


# --- what expressions are counted by --------------------------------------------------------------


@pytest.mark.parametrize(
    ("w", "h", "size"),
    [
        (127.9, 128, "small"),
        (128, 128, "medium"),
        (64, 256, "medium"),
        (256, 256, "medium"),
        (256, 256.1, "large"),
        (0, 900, "small"),
        (1e200, 1e200, "large"),
    ],
)
def test_sizes(w: float, h: float, size: str) -> None:
    assert size_of(truth(0, 0, w, h)) == size


@pytest.mark.parametrize(
    ("words", "name"),
    [(0, "<=10"), (10, "<=10"), (11, "11-20"), (20, "11-20"), (21, "21-40"), (40, "21-40"),
     (41, ">40"), (117, ">40")],
)  # fmt: skip
def test_ranges_of_words(words: int, name: str) -> None:
    assert words_of(truth(0, 0, 1, 1, caption=" a\t" * words)) == name
    assert words_of(truth(0, 0, 1, 1)) is None


def test_the_ten_mended_classes_are_named_alike() -> None:
    for table in (AUTHORS, CORRECTED):
        assert len(table) == 80
        assert class_of("refcoco_37", table) == "o365_100000"
        assert class_of("refcoco_12", table) == "refcoco_12"  # COCO does not use 12
        assert class_of("o365_56", table) == "o365_56"
    changed = {key for key in AUTHORS if AUTHORS[key] != CORRECTED[key]}
    assert changed == {f"refcoco_{number}" for number in ONE_TOO_LOW}
    assert class_name(class_of("refcoco_16", AUTHORS)) == "Bus"
    assert class_name(class_of("refcoco_16", CORRECTED)) == "Wild Bird"
    assert class_name(class_of("refcoco_89", CORRECTED)) == "Hair Dryer"
    alike = [key for key in AUTHORS if class_name(AUTHORS[key]).lower() == class_name(key)]
    mended = [key for key in CORRECTED if class_name(CORRECTED[key]).lower() == class_name(key)]
    assert set(alike) < set(mended)
    assert set(mended) - set(alike) == {"refcoco_67"}  # others are synonyms: bird, wild bird
    assert class_name("o365_100000") == "sports ball"
    assert class_name("o365_999") == "o365_999"
    assert class_name("refcoco_x") == "refcoco_x"
    assert class_name("cat_1") == "cat_1"


def test_sources() -> None:
    assert source_of("refcoco_1") is PictureSource.COCO
    assert source_of("o365_57") is PictureSource.O365_P1  # COCO's bird
    assert source_of("o365_13") is PictureSource.O365_P2  # COCO has no cabinet
    assert source_of("o365_365") is PictureSource.O365_P2
    assert source_of("lvis_1") is None


# --- sums and figures -----------------------------------------------------------------------------

KINDS = ("refcoco_16", "refcoco_6", "refcoco_37", "o365_56", "o365_57", "o365_200", "else_1")


@st.composite
def expressions(draw: st.DrawFn) -> Judged:
    above = draw(st.integers(0, 10))
    side = draw(st.sampled_from([10.0, 128.0, 200.0, 256.0, 300.0]))
    return Judged(
        Annotation(
            id=draw(st.integers()),
            bbox=(0.0, 0.0, side, side),
            ori_category_id=draw(st.sampled_from(KINDS)),
            split=draw(st.sampled_from([Split.VAL, Split.TEST])),
            caption=draw(st.none() | st.integers(0, 60).map(lambda n: "word " * n)),
            is_rewrite=draw(st.none() | st.booleans()),
        ),
        iou=0.0,
        hits=tuple(k < above for k in range(10)),
        reason=None if above else draw(st.none() | st.sampled_from(MissReason)),
    )


@given(st.lists(expressions(), max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_sums_of_shards_add_up(judged: list[Judged], i: int, j: int) -> None:
    i, j = sorted((i, j))
    parts = [sums(judged[:i]), sums(judged[i:j]), sums(judged[j:])]
    assert add_up(parts) == sums(judged) == reduce(Sums.__add__, reversed(parts))
    assert figures(add_up(parts)) == figures(sums(judged))


@given(st.lists(expressions(), max_size=30))
def test_tables_count_every_expression_once(judged: list[Judged]) -> None:
    counted = sums(judged)
    for by in (By.SPLIT, By.SIZE, By.CLASS, By.CORRECTED):
        assert sum(row.count for row in slices(counted, by)) == len(judged)
    for by in By:
        for row in slices(counted, by):
            assert row.count > 0
            assert row.acc_050 >= row.acc_075 >= row.acc_090
            assert row.acc_050 + 1e-9 >= row.macc
    assert sum(counted.misses.values()) == sum(one.reason is not None for one in judged)


@given(st.lists(expressions(), min_size=1, max_size=30))
def test_figures_against_fractions(judged: list[Judged]) -> None:
    def exact(some: list[Judged], threshold: int) -> Fraction:
        return Fraction(100 * sum(one.hits[threshold] for one in some), len(some))

    def expect(ours: float | None, theirs: Fraction | None) -> None:
        assert ours == (None if theirs is None else pytest.approx(float(theirs), abs=1e-9))

    got = figures(sums(judged)).named
    for name, i in (("acc_0.5", 0), ("acc_0.75", 5), ("acc_0.9", 8)):
        expect(got[name], exact(judged, i))
    expect(got["macc"], sum(exact(judged, i) for i in range(10)) / 10)
    for size in ("small", "medium", "large"):
        some = [one for one in judged if size_of(one.annotation) == size]
        expect(got[f"{size}_acc"], exact(some, 0) if some else None)
        expect(got[f"{size}_macc"], sum(exact(some, i) for i in range(10)) / 10 if some else None)
    for table, means in ((AUTHORS, class_figures), (CORRECTED, corrected_figures)):
        classes: dict[str, list[Judged]] = {}
        for one in judged:
            classes.setdefault(class_of(one.annotation.ori_category_id, table), []).append(one)
        at = [sum(exact(c, i) for c in classes.values()) / len(classes) for i in range(10)]
        expect(means(sums(judged)).class_acc, at[0])
        expect(means(sums(judged)).class_macc, sum(at) / 10)


def test_the_last_bit_follows_the_order_of_operations() -> None:
    # 28 hits of 50: the mean of shares, times 100, is not the mean of percentages.
    one = Judged(truth(0, 0, 10, 10), 0.0, (True,) * 5 + (False,) * 5, None)
    judged = [replace(one, hits=tuple(k < n for k in range(10))) for n in (8, 6, 6, 5, 3)]
    got = figures(sums(judged))
    assert (got.macc, got.small_macc) == (56.00000000000001, 56.0)
    assert got.class_macc == 56.0
    two_of_three = figures(sums([*judged[:1], *judged[:1], replace(one, hits=(False,) * 10)]))
    assert two_of_three.acc_050 == two_of_three.small_acc == 66.66666666666666


def test_an_absent_size_is_none_and_stays_so_when_rounded() -> None:
    got = figures(sums(judge([truth(0, 0, 10, 10)], [PredictedBox((0, 0, 10, 10))])))
    assert got.rounded == [100, 100, 100, 100, 100, 100, None, None, None, None, 100, 100]
    assert list(got.named) == list(NAMES)
    assert set(figures(Sums()).named.values()) == {None}


def test_corrected_classes_part_birds_from_buses() -> None:
    annotations = [truth(0, 0, 9, 9, "refcoco_16"), truth(0, 0, 9, 9, "refcoco_6", number=2)]
    counted = sums(judge(annotations, [PredictedBox((0, 0, 9, 9)), PredictedBox((50, 50, 60, 60))]))
    assert [(row.name, row.count) for row in slices(counted, By.CLASS)] == [("Bus", 2)]
    corrected = [(row.name, row.acc_050) for row in slices(counted, By.CORRECTED)]
    assert corrected == [("Bus", 0), ("Wild Bird", 100)]


def test_slices_keep_their_natural_order() -> None:
    annotations = [
        truth(0, 0, 300, 300, "o365_365", 1, split=Split.TEST, caption="a " * 50, is_rewrite=True),
        truth(0, 0, 10, 10, "refcoco_1", 2, caption="a", is_rewrite=False),
        truth(0, 0, 10, 10, "o365_1", 3, caption="a b"),
    ]
    counted = sums(judge(annotations, [PredictedBox((0, 0, 10, 10))] * 3))
    names = {by: [(row.name, row.count) for row in slices(counted, by)] for by in By}
    assert names[By.TOTAL] == [("total", 3)]
    assert names[By.SPLIT] == [("val", 2), ("test", 1)]
    assert names[By.SIZE] == [("small", 2), ("large", 1)]
    assert names[By.SOURCE] == [("COCO", 1), ("O365-P1", 1), ("O365-P2", 1)]
    assert names[By.WORDS] == [("<=10", 2), (">40", 1)]
    assert names[By.WORDING] == [("original", 1), ("rewritten", 1)]
    assert names[By.CLASS] == [("Person", 2), (class_name("o365_365"), 1)]


# --- cases ----------------------------------------------------------------------------------------

CASE = {
    "case": "one",
    "split": "all",
    "annotations": [{"id": 1, "bbox": [0, 0, 10, 10], "ori_category_id": "o365_1", "split": "val"}],
    "predictions": [{"id": 1.0, "pred_bbox": [0, 0, 10, 6], "format": "xywh"}],
    "authors": {"raises": {"type": "ZeroDivisionError", "why": "no_medium"}},
    "better": {"figures": {"acc_0.5": 100.0, "macc": 20.0, "medium_acc": None}},
}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, None),
        ({"better": {"figures": {"macc": 20.1}}}, "macc is 20.0, should be 20.1"),
        ({"better": {"figures": {"medium_acc": 0.0}}}, "medium_acc is None, should be 0.0"),
        ({"better": {"figures": {"acc_0.6": 0.0}}}, "no figure acc_0.6"),
        ({"better": {"refuse": "no_id"}}, "scored, should be refused as no_id"),
        (
            {"split": "test", "better": {"refuse": "no_id"}},
            "refused (annotations: none of 1 annotations is of the split test (empty_split)), "
            "should be refused as no_id",
        ),
        ({"split": "test"}, "refused (annotations: none of 1 annotations is of the split test"),
        ({"corrected_classes": {"class_macc": 1.0}}, "corrected class_macc is 20.0, should be 1.0"),
        (
            {"better": "same", "authors": {"figures": {}, "rounded": [1.0]}},
            "rounded are [100.0, 0.0, 0.0, 20.0, 100.0, 20.0, None, None, None, None, 100.0, 20.0]",
        ),
        ({"split": "test", "better": {"refuse": "empty_split"}}, None),
    ],
)
def test_differences_are_said(change: dict[str, object], says: str | None) -> None:
    why = difference({**CASE, **change})
    assert why is None if says is None else why is not None and why.startswith(says)


def test_case_files_are_plain_or_gzipped(tmp_path: Path) -> None:
    wrong = {**CASE, "better": {"refuse": "no_id"}}
    text = f"{json.dumps(CASE)}\n\n{json.dumps(wrong)}\n"
    plain, packed = tmp_path / "cases.jsonl", tmp_path / "cases.jsonl.gz"
    plain.write_text(text, encoding="utf-8")
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, packed):
        agreed, total, differences, *_ = agreement(path)
        assert (agreed, total) == (1, 2)
        assert differences == [f"{path.name}, line 3, case one: scored, should be refused as no_id"]


@pytest.mark.parametrize("line", ["{", "[]", "{}", json.dumps({**CASE, "split": "dev"})])
def test_lines_that_are_no_case(line: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(CaseError, match="line 1"):
        agreement(path)


@pytest.mark.shared
def test_the_public_cases_agree(shared: Path) -> None:
    path = shared / "parity" / "ref_l4_public.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"no {path}")
    assert agreement(path)[:3] == (51, 51, [])


@pytest.mark.shared
def test_the_public_cases_agree_to_the_last_bit(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shared / "parity" / "ref_l4_public.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"no {path}")
    monkeypatch.setattr(conformance, "TOLERANCE", 0.0)
    assert agreement(path)[:3] == (51, 51, [])
