"""Ref-L4: what is read from annotations and prediction files, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.benchmarks.refl4.annotations import (
    RELEASE,
    Annotation,
    Split,
    annotation,
    of_split,
    read_annotations,
    read_parquet,
    unlike_release,
)
from vlmeval_findit.benchmarks.refl4.predictions import (
    BoxOrder,
    MissReason,
    answers_to,
    predictions_from,
    read_box,
    read_predictions,
)
from vlmeval_findit.benchmarks.refl4.refusals import Code, RefusedError
from vlmeval_findit.benchmarks.refl4.scoring import score

NAN, INF = math.nan, math.inf
ROW: dict[str, Any] = {
    "id": 7,
    "caption": "a long look at  a cup",
    "bbox": [1.5, 2.0, 30.0, 40.0],
    "bbox_area": 1200.0,
    "bbox_id": 70,
    "ori_category_id": "refcoco_47",
    "image_id": "coco_1",
    "height": 480,
    "width": 640,
    "file_name": "COCO_train2014_000000000001.jpg",
    "is_rewrite": True,
    "split": "val",
}
SAID = {"id": 7, "pred_bbox": [1.5, 2.0, 31.5, 42.0], "format": "xyxy"}


def truth(number: int | str = 7, split: str = "val", **more: object) -> Annotation:
    return annotation({**ROW, "id": number, "split": split, **more}, "here")


def code_of(call: Any, *args: Any) -> tuple[str, str]:
    with pytest.raises(RefusedError) as refused:
        call(*args)
    return refused.value.code.value, str(refused.value)


# --- annotations ----------------------------------------------------------------------------------


def test_a_row_of_the_release() -> None:
    assert truth() == Annotation(
        id=7,
        bbox=(1.5, 2.0, 30.0, 40.0),
        ori_category_id="refcoco_47",
        split=Split.VAL,
        caption="a long look at  a cup",
        is_rewrite=True,
        bbox_id=70,
        image_id="coco_1",
        file_name="COCO_train2014_000000000001.jpg",
        width=640,
        height=480,
    )
    assert truth().words == 6


def test_a_case_has_less() -> None:
    few = {key: ROW[key] for key in ("id", "bbox", "ori_category_id", "split")}
    one = annotation(few, "here")
    assert (one.caption, one.words, one.is_rewrite, one.image_id) == (None,) * 4
    assert annotation({**few, "caption": NAN, "is_rewrite": NAN}, "here") == one


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ({"id": None}, "no_id", "here, id: is missing"),
        ({"id": True}, "no_id", "here, id: True is no id"),
        ({"id": NAN}, "no_id", "here, id: nan is no id"),
        ({"bbox": None}, "bad_annotation", "here, bbox: is missing"),
        ({"bbox": [1, 2, 3]}, "bad_annotation", "[1, 2, 3] is not four numbers"),
        ({"bbox": "1234"}, "bad_annotation", "'1234' is not four numbers"),
        ({"bbox": [1, 2, 3, "4"]}, "bad_annotation", "is not four numbers"),
        ({"bbox": [1, 2, 3, True]}, "bad_annotation", "is not four numbers"),
        ({"bbox": [1, 2, 3, NAN]}, "bad_annotation", "is not four finite numbers"),
        ({"bbox": [1, 2, INF, 3]}, "bad_annotation", "is not four finite numbers"),
        ({"bbox": [1, 2, 10**400, 3]}, "bad_annotation", "is not four finite numbers"),
        ({"ori_category_id": 47}, "bad_annotation", "here, ori_category_id: 47 is no text"),
        ({"split": "train"}, "bad_annotation", "here, split: 'train' is neither val nor test"),
        ({"split": ["val"]}, "bad_annotation", "is neither val nor test"),
        ({"is_rewrite": "False"}, "bad_annotation", "'False' is neither true nor false"),
    ],
)
def test_rows_that_are_refused(change: dict[str, object], code: str, says: str) -> None:
    got, message = code_of(annotation, {**ROW, **change}, "here")
    assert got == code
    assert says in message


@pytest.mark.parametrize("key", ["id", "bbox", "ori_category_id", "split"])
def test_keys_that_every_annotation_needs(key: str) -> None:
    row = {name: value for name, value in ROW.items() if name != key}
    code, message = code_of(annotation, row, "file, row 3")
    assert code == ("no_id" if key == "id" else "bad_annotation")
    assert message.startswith(f"file, row 3, {key}: is missing")


def test_all_is_val_and_then_test() -> None:
    rows = [truth(1, "test"), truth(2), truth(3, "test"), truth(4)]
    assert [one.id for one in of_split(rows, Split.ALL)] == [2, 4, 1, 3]
    assert [one.id for one in of_split(rows, Split.VAL)] == [2, 4]
    assert [one.id for one in of_split(rows, Split.TEST)] == [1, 3]


@pytest.mark.parametrize(
    ("rows", "code", "says"),
    [
        ([], "empty_split", "there: none of 0 annotations is of the split val"),
        ([truth(1, "test")], "empty_split", "there: none of 1 annotations"),
        ([truth(1), truth(2), truth(1.0)], "duplicate_id", "there, row 2, id: 1.0 is the"),
        ([truth(1), truth(2, bbox=[0, 0, -1, 5])], "negative_truth", "there, row 1, bbox"),
        ([truth(1), truth(2, bbox=[0, 0, 5, -1])], "negative_truth", "there, row 1, bbox"),
        ([truth(1), truth(2, bbox=[0, 0, -5, -1])], "negative_truth", "there, row 1, bbox"),
    ],
)  # fmt: skip
def test_splits_that_are_refused(rows: list[Annotation], code: str, says: str) -> None:
    got, message = code_of(of_split, rows, Split.VAL, "there")
    assert got == code
    assert message.startswith(says)


def test_only_what_is_scored_is_checked() -> None:
    rows = [truth(1), truth(1, "test"), truth(2, "test", bbox=[0, 0, -1, 5])]
    assert len(of_split(rows, Split.VAL)) == 1
    assert code_of(of_split, rows[:2], Split.ALL)[0] == "duplicate_id"
    assert len(of_split([truth(bbox=[0, 0, 0, 5])], Split.VAL)) == 1  # no side is no negative one


def write(folder: Path, split: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / f"ref-l4-{split}.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_parquet_files(tmp_path: Path) -> None:
    write(tmp_path, "val", [ROW, {**ROW, "id": 8}])
    write(tmp_path, "test", [{**ROW, "id": 9, "split": "test"}])
    assert read_annotations(tmp_path, Split.VAL) == (truth(), truth(8))
    assert [one.id for one in read_annotations(tmp_path, Split.ALL)] == [7, 8, 9]


@pytest.mark.parametrize(
    ("val", "code", "says"),
    [
        ([{**ROW, "split": "test"}], "bad_annotation", "ref-l4-val.parquet, row 0, split: test in"),
        ([ROW, ROW], "duplicate_id", "ref-l4-val.parquet, row 1, id: 7 is the id of row 0 too"),
        ([{**ROW, "id": 9}], "duplicate_id", "ref-l4-val.parquet and ref-l4-test.parquet, row 1"),
        ([{**ROW, "bbox": [0.0, 0.0, -1.0, 1.0]}], "negative_truth", "ref-l4-val.parquet, row 0"),
        ([{"id": 1}], "bad_annotation", "ref-l4-val.parquet, row 0, bbox: is missing"),
        ([], "empty_split", "ref-l4-val.parquet: none of 0 annotations"),
    ],
)
def test_parquet_files_that_are_refused(
    val: list[dict[str, Any]], code: str, says: str, tmp_path: Path
) -> None:
    write(tmp_path, "val", val)
    write(tmp_path, "test", [{**ROW, "id": 9, "split": "test"}])
    got, message = code_of(read_annotations, tmp_path, Split.ALL)
    assert got == code
    assert message.startswith(says)


def test_files_that_are_no_parquet(tmp_path: Path) -> None:
    path = tmp_path / "ref-l4-val.parquet"
    with pytest.raises(FileNotFoundError):
        read_parquet(path)
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1")
    assert code_of(read_parquet, path)[0] == "unreadable"


def test_counts_of_the_release() -> None:
    assert sum(RELEASE.rows.values()) == sum(RELEASE.sizes.values()) == 45341
    assert sum(RELEASE.instances.values()) == 18653
    assert sum(RELEASE.images.values()) == 9735
    assert unlike_release([truth()], Split.VAL) == ["1 expressions of val, the release has 13420"]
    said = unlike_release([truth()] * 13420, Split.ALL)
    assert said[0] == "0 expressions of test, the release has 31921"
    assert "1 instances of refcoco, the release has 14186" in said
    assert "13420 small boxes, the release has 9345" in said
    assert unlike_release([truth()] * 13420, Split.VAL) == []


# --- boxes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "how", "expected"),
    [
        ([1, 2, 3, 4], "xyxy", (1, 2, 3, 4)),
        ([1, 2, 3, 4], "xywh", (1, 2, 4, 6)),
        ((1, 2, 3, 4), "xywh", (1, 2, 4, 6)),
        ([1, 2, 3, 4, 5], "xywh", (1, 2, 4, 6)),
        ([1, 2, 3, 4, "0.9"], "xywh", (1, 2, 4, 6)),
        ([1, 2, 3, 4, None, {}], "xywh", (1, 2, 4, 6)),
        ([9, 9, 3, 4], "xyxy", (9, 9, 3, 4)),
        ([1, 2, -3, 4], "xywh", (1, 2, -2, 6)),
        ([1, 2, INF, 4], "xyxy", (1, 2, INF, 4)),
        ([1, 2, 10**400, -(10**400)], "xyxy", (1, 2, INF, -INF)),
        (np.array([1, 2, 3, 4]).tolist(), "xyxy", (1, 2, 3, 4)),
        (list(np.array([1, 2, 3, 4], np.float32)), "xyxy", (1, 2, 3, 4)),
        ([1, 2, 3, 4, 5], "xyxy", MissReason.WRONG_LENGTH),
        ([1, 2, 3], "xyxy", MissReason.WRONG_LENGTH),
        ([1, 2, 3], "xywh", MissReason.WRONG_LENGTH),
        ([], "xyxy", MissReason.WRONG_LENGTH),
        ([[1, 2, 3, 4]], "xyxy", MissReason.WRONG_LENGTH),
        (None, "xywh", MissReason.NULL_BOX),
        ("1,2,3,4", "xyxy", MissReason.NO_LIST),
        ("1234", "xyxy", MissReason.NO_LIST),
        ({"x1": 1, "y1": 2, "x2": 3, "y2": 4}, "xyxy", MissReason.NO_LIST),
        (0, "xyxy", MissReason.NO_LIST),
        (["1", "2", "3", "4"], "xyxy", MissReason.NOT_NUMBERS),
        ([1, 2, 3, None], "xyxy", MissReason.NOT_NUMBERS),
        ([1, 2, 3, True], "xyxy", MissReason.NOT_NUMBERS),
        ([1, 2, 3, [4]], "xywh", MissReason.NOT_NUMBERS),
        ([1, 2, 3, "4", 5], "xywh", MissReason.NOT_NUMBERS),
    ],
)
def test_boxes_as_they_come(numbers: object, how: str, expected: object) -> None:
    answer = read_box(numbers, BoxOrder(how))
    if isinstance(expected, MissReason):
        assert (answer.box, answer.reason) == (None, expected)
    else:
        assert (answer.box, answer.reason) == (expected, None)
        assert all(type(value) is float for value in answer.box or ())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(JSON, st.sampled_from(BoxOrder))
def test_no_box_is_an_exception(numbers: object, how: BoxOrder) -> None:
    answer = read_box(numbers, how)
    assert (answer.box is None) == (answer.reason is not None)
    said = predictions_from([{"id": 7, "pred_bbox": numbers, "format": how.value}])
    got = score([truth()], said, Split.VAL)
    assert sum(got.sums.misses.values()) == (answer.reason is not None)


# --- prediction lists -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "code", "says"),
    [
        ([SAID, SAID], "duplicate_id", "f, row 1, id: 7 is the id of row 0 too"),
        ([SAID, {**SAID, "id": 7.0}], "duplicate_id", "f, row 1, id: 7.0 is the id of row 0"),
        ([SAID, {**SAID, "id": "x"}, {**SAID, "id": "x"}], "duplicate_id", "f, row 2, id: 'x' is"),
        ([{"pred_bbox": [1, 2, 3, 4], "format": "xyxy"}], "no_id", "f, row 0, id: is missing"),
        ([SAID, {**SAID, "id": None}], "no_id", "f, row 1, id: None is no id"),
        ([{**SAID, "id": [7]}], "no_id", "f, row 0, id: [7] is no id"),
        ([{**SAID, "id": True}], "no_id", "f, row 0, id: True is no id"),
        ([{**SAID, "id": NAN}], "no_id", "f, row 0, id: nan is no id"),
        ([{"id": 7, "pred_bbox": [1, 2, 3, 4]}], "no_format", "f, row 0, format: is missing"),
        ([SAID, {"id": 99}], "no_format", "f, row 1, format: is missing"),
        ([{**SAID, "format": "XYXY"}], "unknown_format", "f, row 0, format: 'XYXY' is neither"),
        ([{**SAID, "format": None}], "unknown_format", "f, row 0, format: None is neither"),
        ([{**SAID, "format": ["xyxy"]}], "unknown_format", "f, row 0, format: ['xyxy'] is"),
        ([{**SAID, "format": "cxcywh"}], "unknown_format", "f, row 0, format: 'cxcywh' is"),
        ([SAID, {**SAID, "id": 99, "format": ""}], "unknown_format", "f, row 1, format: '' is"),
        ({"7": SAID}, "unreadable", "f: is no list of predictions"),
        ("[]", "unreadable", "f: is no list of predictions"),
        (None, "unreadable", "f: is no list of predictions"),
        ([7], "unreadable", "f, row 0: 7 is no object"),
    ],
)
def test_lists_that_are_refused(items: object, code: str, says: str) -> None:
    got, message = code_of(predictions_from, items, "f")
    assert got == code
    assert message.startswith(says)


def test_seven_is_seven() -> None:
    for asked, said in ((7, 7.0), (7.0, 7), ("007", "007")):
        predictions = predictions_from([{**SAID, "id": said}])
        assert score([truth(asked)], predictions, Split.VAL).figures.macc == 100


@pytest.mark.parametrize("said", ["7", 8, "007", 7.5])
def test_predictions_of_something_else_are_refused(said: object) -> None:
    predictions = predictions_from([{**SAID, "id": said}], "f")
    code, message = code_of(score, [truth()], predictions, Split.VAL, ("t", "f"))
    assert code == "no_prediction_id_matches"
    assert f"{said!r} is not like 7" in message


def test_predictions_of_the_other_split_only_are_refused() -> None:
    predictions = predictions_from([{**SAID, "id": 8}])
    code, _ = code_of(score, [truth(), truth(8, "test")], predictions, Split.VAL)
    assert code == "no_prediction_id_matches"


def test_without_any_prediction_everything_is_a_miss() -> None:
    got = score([truth(), truth(8)], predictions_from([]), Split.VAL)
    assert (got.figures.macc, got.figures.class_acc, got.unused) == (0, 0, 0)
    assert dict(got.sums.misses) == {MissReason.NO_PREDICTION: 2}


def test_unused_ids_and_misses_are_counted() -> None:
    items = [
        SAID,
        {"id": 8, "pred_bbox": None, "format": "xywh"},
        {"id": 9, "format": "xywh"},
        {"id": 10, "pred_bbox": [1, 2], "format": "xyxy"},
        {"id": "7", "pred_bbox": [0, 0, 9, 9], "format": "xyxy"},
        {"id": 99, "pred_bbox": None, "format": "xyxy"},
    ]
    truths = [truth(number) for number in (7, 8, 9, 10, 11)]
    got = score(truths, predictions_from(items), Split.VAL)
    assert got.unused == 2
    assert dict(got.sums.misses) == {
        MissReason.NULL_BOX: 1,
        MissReason.NO_BOX: 1,
        MissReason.WRONG_LENGTH: 1,
        MissReason.NO_PREDICTION: 1,
    }
    assert got.figures.acc_050 == 20
    assert [one.annotation.id for one in got.judged] == [7, 8, 9, 10, 11]
    answers = answers_to(truths, predictions_from(items)).answers
    assert [a.reason for a in answers] == [one.reason for one in got.judged]


def test_prediction_files(tmp_path: Path) -> None:
    path = tmp_path / "said.json"
    path.write_text("\ufeff" + json.dumps([SAID]), encoding="utf-8")
    assert read_predictions(path)[7].box == (1.5, 2.0, 31.5, 42.0)
    path.write_text('[{"id": 7, "pred_bbox": [NaN, 0, Infinity, 1], "format": "xyxy"}]')
    assert score([truth()], read_predictions(path), Split.VAL).figures.acc_050 == 0
    for text in ("", "{", '{"id": 7}\n{"id": 8}', "[" * 100_000):
        path.write_text(text)
        code, message = code_of(read_predictions, path)
        assert code == "unreadable"
        assert message.startswith("said.json: ")
    path.write_bytes(b"\xff\xfe[]")
    assert code_of(read_predictions, path)[0] == "unreadable"
    with pytest.raises(FileNotFoundError):
        read_predictions(tmp_path / "none.json")


def test_the_codes_of_the_cases() -> None:
    assert {code.value for code in Code} >= {
        "duplicate_id",
        "no_id",
        "no_format",
        "unknown_format",
        "negative_truth",
        "empty_split",
        "no_prediction_id_matches",
    }
