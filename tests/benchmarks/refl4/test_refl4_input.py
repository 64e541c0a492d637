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

from vlmeval_findit.benchmarks.refl4.refl4_annotations import (
    RELEASE,
    Annotation,
    RefL4Split,
    RefusedError,
    annotation,
    boxes_of,
    of_split,
    predictions_from,
    read_annotations,
    read_box,
    replies_of,
    unlike_release,
)

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
ITEM = {"id": 7, "pred_bbox": [1.5, 2.0, 31.5, 42.0], "format": "xyxy"}


def truth(number: int | str = 7, split: str = "val", **more: object) -> Annotation:
    return annotation({**ROW, "id": number, "split": split, **more}, "here")


def code_of(call: Any, *args: Any) -> tuple[str, str]:
    with pytest.raises(RefusedError) as refused:
        call(*args)
    return refused.value.code.value, str(refused.value)


# --- annotations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ({"id": None}, "no_id", "here, id: is missing"),
        ({"bbox": None}, "bad_annotation", "here, bbox: is missing"),
        ({"bbox": [1, 2, 3, NAN]}, "bad_annotation", "nan should be a finite number"),
        ({"ori_category_id": 47}, "bad_annotation", "ori_category_id: 47 should be a text"),
        ({"file_name": "../x.jpg"}, "bad_annotation", "here, file_name: '../x.jpg'"),
        ({"width": 0}, "bad_annotation", "here, width: 0 is not a size in pixels"),
    ],
)
def test_rows_that_are_refused(change: dict[str, object], code: str, says: str) -> None:
    got, message = code_of(annotation, {**ROW, **change}, "here")
    assert got == code
    assert says in message


def test_all_is_val_and_then_test() -> None:
    rows = [truth(1, "test"), truth(2), truth(3, "test"), truth(4)]
    assert [each.index for each in of_split(rows, RefL4Split.ALL)] == [2, 4, 1, 3]
    assert [each.index for each in of_split(rows, RefL4Split.VAL)] == [2, 4]
    assert [each.index for each in of_split(rows, RefL4Split.TEST)] == [1, 3]


@pytest.mark.parametrize(
    ("rows", "code", "says"),
    [
        ([], "empty_split", "there: none of 0 annotations is of the split val"),
        ([truth(1, "test")], "empty_split", "there: none of 1 annotations"),
        ([truth(1), truth(2), truth(1.0)], "duplicate_id", "there, row 2, id: 1.0 is the"),
        ([truth(1), truth(2, bbox=[0, 0, -1, 5])], "negative_truth", "there, row 1, bbox"),
    ],
)  # fmt: skip
def test_splits_that_are_refused(rows: list[Annotation], code: str, says: str) -> None:
    got, message = code_of(of_split, rows, RefL4Split.VAL, "there")
    assert got == code
    assert message.startswith(says)


def write(folder: Path, split: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / f"ref-l4-{split}.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_an_id_of_both_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "val", [{**ROW, "id": 9}])
    write(tmp_path, "test", [{**ROW, "id": 9, "split": "test"}])
    got, message = code_of(read_annotations, tmp_path, RefL4Split.ALL)
    assert got == "duplicate_id"
    assert message.startswith("ref-l4-val.parquet and ref-l4-test.parquet, row 1")


def test_counts_of_the_release() -> None:
    kinds = {"expressions": 45341, "boxes": 45341, "instances": 18653, "images": 9735}
    for kind, total in kinds.items():
        assert sum(count for what, count in RELEASE.items() if kind in what) == total
    assert unlike_release([truth()], RefL4Split.VAL) == [
        "1 expressions of val, the release has 13420"
    ]
    reply = unlike_release([truth()] * 13420, RefL4Split.ALL)
    assert reply[0] == "0 expressions of test, the release has 31921"
    assert "1 instances of refcoco, the release has 14186" in reply
    assert "13420 small boxes, the release has 9345" in reply
    assert unlike_release([truth()] * 13420, RefL4Split.VAL) == []


# --- boxes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "options", "expected"),
    [
        ([1, 2, 3, 4], "xyxy", (1, 2, 3, 4)),
        ([1, 2, 3, 4], "xywh", (1, 2, 4, 6)),
        ([1, 2, 3, 4, 5], "xywh", (1, 2, 4, 6)),
        ([9, 9, 3, 4], "xyxy", (9, 9, 3, 4)),
        ([1, 2, -3, 4], "xywh", (1, 2, -2, 6)),
        ([1, 2, INF, 4], "xyxy", (1, 2, INF, 4)),
        (list(np.array([1, 2, 3, 4], np.float32)), "xyxy", (1, 2, 3, 4)),
        ([1, 2, 3, 4, 5], "xyxy", None),
        ([1, 2, 3], "xyxy", None),
        ([1, 2, 3], "xywh", None),
        (None, "xywh", None),
        ("1,2,3,4", "xyxy", None),
        (["1", "2", "3", "4"], "xyxy", None),
        ([1, 2, 3, True], "xyxy", None),
    ],
)
def test_boxes_as_they_come(numbers: object, options: str, expected: object) -> None:
    box = read_box(numbers, options)
    assert box == expected
    assert all(type(value) is float for value in box or ())


# --- prediction lists -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "code", "says"),
    [
        (
            [ITEM, {**ITEM, "id": 7.0}],
            "duplicate_id",
            "f, row 1, id: 7.0 is the id of row 0",
        ),
        ([{"pred_bbox": [1, 2, 3, 4], "format": "xyxy"}], "no_id", "f, row 0, id: is missing"),
        ([{**ITEM, "id": True}], "no_id", "f, row 0, id: True is no id"),
        ([{"id": 7, "pred_bbox": [1, 2, 3, 4]}], "no_format", "f, row 0, format: is missing"),
        (
            [{**ITEM, "format": "XYXY"}],
            "unknown_format",
            "f, row 0, format: 'XYXY' is neither",
        ),
        ({"7": ITEM}, "unreadable", "f: is no list of predictions"),
        ([7], "unreadable", "f, row 0: 7 is no object"),
    ],
)
def test_lists_that_are_refused(items: object, code: str, says: str) -> None:
    got, message = code_of(predictions_from, items, "f")
    assert got == code
    assert message.startswith(says)


@pytest.mark.parametrize("reply", ["7", 8])
def test_predictions_of_something_else_are_refused(reply: object) -> None:
    predictions = predictions_from([{**ITEM, "id": reply}], "f")
    code, message = code_of(boxes_of, [truth()], predictions, "f")
    assert code == "no_prediction_id_matches"
    assert f"{reply!r} is not like 7" in message


def test_what_is_missing_is_no_box_and_what_is_too_much_is_not_used() -> None:
    items = [
        ITEM,
        {"id": 8, "pred_bbox": None, "format": "xywh"},
        {"id": 9, "format": "xywh"},
        {"id": 10, "pred_bbox": [1, 2], "format": "xyxy"},
        {"id": 99, "pred_bbox": None, "format": "xyxy"},
    ]
    truths = [truth(number) for number in (7, 8, 9, 10, 11)]
    expected = [(1.5, 2.0, 31.5, 42.0), None, None, None, None]
    assert boxes_of(truths, predictions_from(items)) == expected
    assert boxes_of(truths, predictions_from([])) == [None] * 5


def test_files_become_replies(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    reply = {**ITEM, "pred_bbox": [1.5, 2, 30, 40], "format": "xywh"}
    path.write_text(json.dumps([reply]))
    (each, two) = replies_of(path, [truth(), truth(8)])
    assert (each.index, json.loads(each.text)) == (7, [{"bbox": [1.5, 2.0, 31.5, 42.0]}])
    assert each.recorded.space == {"kind": "pixels"}
    assert (two.index, two.text, two.failed) == (8, "", False)
