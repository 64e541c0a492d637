"""Ref-L4: what is read from annotations and prediction files, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refl4_stand_in import TEST, VAL, write_parquet

from vlmeval_findit.benchmarks.refl4 import (
    RELEASE_COUNTS,
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
ROW = {**VAL[0], "id": 7}
ITEM = {"id": 7, "pred_bbox": [1.5, 2.0, 31.5, 42.0], "format": "xyxy"}


def truth(number: int | float | str = 7, split: str = "val", **more: object) -> Annotation:
    return annotation({**ROW, "id": number, "split": split, **more}, "here")


def refused(code: str, says: str, call: Any, *args: Any) -> None:
    with pytest.raises(RefusedError) as error:
        call(*args)
    assert error.value.code == code
    assert says in str(error.value)


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
    refused(code, says, annotation, {**ROW, **change}, "here")


def test_all_is_val_and_then_test() -> None:
    rows = [truth(1, "test"), truth(2), truth(3, "test"), truth(4)]
    for split, ids in {"all": [2, 4, 1, 3], "val": [2, 4], "test": [1, 3]}.items():
        assert [each.index for each in of_split(rows, RefL4Split(split))] == ids


@pytest.mark.parametrize(
    ("rows", "code", "says"),
    [
        ([truth(1, "test")], "empty_split", "there: none of 1 annotations is of the split val"),
        ([truth(1), truth(2), truth(1.0)], "duplicate_id", "there, row 2, id: 1.0 is the"),
        ([truth(1), truth(2, bbox=[0, 0, -1, 5])], "negative_truth", "there, row 1, bbox"),
    ],
)
def test_splits_that_are_refused(rows: list[Annotation], code: str, says: str) -> None:
    refused(code, says, of_split, rows, RefL4Split.VAL, "there")


def test_an_id_of_both_files_is_refused(tmp_path: Path) -> None:
    write_parquet(tmp_path, val=VAL[:1], test=[{**TEST[0], "id": VAL[0]["id"]}])
    says = "ref-l4-val.parquet and ref-l4-test.parquet, row 1"
    refused("duplicate_id", says, read_annotations, tmp_path, RefL4Split.ALL)


def test_counts_of_the_release() -> None:
    kinds = {"expressions": 45341, "boxes": 45341, "instances": 18653, "images": 9735}
    for kind, total in kinds.items():
        assert sum(count for what, count in RELEASE_COUNTS.items() if kind in what) == total
    assert unlike_release([truth()] * 13420, RefL4Split.VAL) == []
    unlike = unlike_release([truth()] * 13420, RefL4Split.ALL)
    assert unlike[0] == "0 expressions of test, the release has 31921"
    assert "1 instances of refcoco, the release has 14186" in unlike
    assert "13420 small boxes, the release has 9345" in unlike


# --- predictions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "form", "expected"),
    [
        ([1, 2, 3, 4], "xywh", (1, 2, 4, 6)),
        ([1, 2, 3, 4, 5], "xywh", (1, 2, 4, 6)),
        ([9, 9, 3, 4], "xyxy", (9, 9, 3, 4)),
        ([1, 2, INF, 4], "xyxy", (1, 2, INF, 4)),
        (list(np.array([1, 2, 3, 4], np.float32)), "xyxy", (1, 2, 3, 4)),
        ([1, 2, 3, 4, 5], "xyxy", None),
        ([1, 2, 3], "xywh", None),
        ("1,2,3,4", "xyxy", None),
        (["1", "2", "3", "4"], "xyxy", None),
        ([1, 2, 3, True], "xyxy", None),
    ],
)
def test_boxes_as_they_come(numbers: object, form: str, expected: object) -> None:
    box = read_box(numbers, form)
    assert box == expected
    assert all(type(value) is float for value in box or ())


@pytest.mark.parametrize(
    ("items", "code", "says"),
    [
        ([ITEM, {**ITEM, "id": 7.0}], "duplicate_id", "f, row 1, id: 7.0 is the id of row 0"),
        (
            [{"pred_bbox": [1, 2, 3, 4], "format": "xyxy"}],
            "no_id",
            "f, row 0, id: None is not an id",
        ),
        ([{**ITEM, "id": True}], "no_id", "f, row 0, id: True is not an id"),
        ([{"id": 7, "pred_bbox": [1, 2, 3, 4]}], "no_format", "format: None is neither"),
        ([{**ITEM, "format": "XYXY"}], "unknown_format", "f, row 0, format: 'XYXY' is neither"),
        ({"7": ITEM}, "unreadable", "f: should be a list of predictions"),
        ([7], "unreadable", "f, row 0: 7 is not an object"),
    ],
)
def test_lists_that_are_refused(items: object, code: str, says: str) -> None:
    refused(code, says, predictions_from, items, "f")


def test_foreign_predictions_are_refused_and_missing_ones_are_empty() -> None:
    for number in ("7", 8):
        of_others = predictions_from([{**ITEM, "id": number}], "f")
        says = f"{number!r} is not like 7"
        refused("no_prediction_id_matches", says, boxes_of, [truth()], of_others, "f")
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
    path.write_text(json.dumps([{**ITEM, "pred_bbox": [1.5, 2, 30, 40], "format": "xywh"}]))
    (each, two) = replies_of(path, [truth(), truth(8)])
    assert (each.index, json.loads(each.text)) == (7, [{"bbox": [1.5, 2.0, 31.5, 42.0]}])
    assert each.recorded.space == {"kind": "file_pixels"}
    assert (two.index, two.text, two.failed) == (8, "", False)
