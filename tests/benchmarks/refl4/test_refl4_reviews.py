"""RefCOCO/+/g without wrong expressions: reading reviews, joining, keys without a partner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vlmeval_findit.benchmarks.refl4.refl4_annotations import RefusedError
from vlmeval_findit.benchmarks.refl4.reviews import (
    CleanedAccuracy,
    ExpressionKey,
    compare,
    plain_id,
    read_reviews,
)

ENTRY = {"ann_id": 12, "caption": "the left cup", "caption_quality": 1}
KEY = ExpressionKey("12", "the left cup")


def write(folder: Path, content: object, name: str = "refcoco_val_reviewed.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_only_a_quality_of_zero_is_an_error(tmp_path: Path) -> None:
    qualities: list[Any] = [0, 1, 2, 0.0, -1, 0.5, None]
    entries = [{**ENTRY, "caption_quality": quality} for quality in qualities]
    reviews = read_reviews(write(tmp_path, {"annotation": entries}))
    errors = [True, False, False, True, False, False, False]
    assert reviews == [(KEY, is_error) for is_error in errors]


@pytest.mark.parametrize("name", ["ann_id", "annotation_id", "original_id", "id"])
@pytest.mark.parametrize("text", ["caption", "expression", "sentence", "sent", "raw"])
def test_keys_of_other_layouts(name: str, text: str, tmp_path: Path) -> None:
    entry = {name: "12", text: "a", "caption_quality": 0, "image_id": 3, "id": "12"}
    assert read_reviews(write(tmp_path, {"annotation": [entry]})) == [
        (ExpressionKey("12", "a"), True)
    ]


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        ([ENTRY], "unreadable", "has no list in the field annotation"),
        ({"annotation": {"0": ENTRY}}, "unreadable", "has no list in the field annotation"),
        ({"annotation": [{"ann_id": 1, "caption": "a"}]}, "unreadable", "no entry has a caption_q"),
        ({"annotation": [ENTRY, 3]}, "unreadable", "refcoco_val_reviewed.json, entry 1: 3 is no"),
        ({"annotation": [ENTRY, {"caption": "a"}]}, "no_id", "entry 1: no annotation id in any"),
        ({"annotation": [{**ENTRY, "caption": None}]}, "bad_annotation", "entry 0: no expression"),
    ],
)
def test_files_that_are_refused(content: object, code: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"refcoco_val_reviewed\.json") as refused:
        read_reviews(write(tmp_path, content))
    assert refused.value.code == code
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, "7"), (7.0, "7"), ("7", "7"), (" 007 ", "7"), ("coco_7", "coco_7"), (7.5, None),
        ("", None), (None, None), (True, None), (float("nan"), None), (float("inf"), None),
        ([7], None), (10**400, str(10**400)),
    ],
)  # fmt: skip
def test_annotation_ids(value: object, expected: str | None) -> None:
    assert plain_id(value) == expected


def compared(
    folder: Path, results: list[tuple[Any, str, bool]], reviews: list[tuple[str, str, bool]]
) -> CleanedAccuracy:
    """Join (id, expression, hit) with (id, expression, is_error)."""
    entries = [
        {"ann_id": number, "caption": text, "caption_quality": int(not is_error)}
        for number, text, is_error in reviews
    ]
    actual = [{"id": number, "sent": text, "hit": hit} for number, text, hit in results]
    return compare(
        write(folder, actual, "mine.json"),
        [write(folder, {"annotation": entries})] if entries else [],
    )


def test_both_accuracies_and_keys_without_a_partner(tmp_path: Path) -> None:
    result = compared(
        tmp_path,
        [("1", "left cup", True), (1.0, " The  BIRD", False), ("2", "left cup", False),
         ("9", "left cup", True)],
        [("1", "left cup", False), ("1", "the bird", True), ("2", "left cup", False),
         ("3", "nobody asked", True)],
    )  # fmt: skip
    assert result.lines() == [
        "original 50.00 % of 4 expressions, kept 50.00 % of 2",
        "1 expressions without a review",
        "  9: left cup",
        "1 reviews without an expression",
        "  3: nobody asked",
    ]
    assert compared(tmp_path, [], []).lines() == ["original – % of 0 expressions, kept – % of 0"]


def test_neither_the_id_nor_the_expression_alone_is_a_partner(tmp_path: Path) -> None:
    result = compared(tmp_path, [("1", "a", True)], [("1", "b", False), ("2", "a", False)])
    assert (result.kept, len(result.without_result)) == ((), 2)
    assert result.lines(most=1)[-2:] == ["  1: b", "  and 1 more"]


def test_an_expression_that_occurs_twice_takes_partners_in_order(tmp_path: Path) -> None:
    results = [("1", "a", hit) for hit in (True, False, True)]
    result = compared(tmp_path, results, [("1", "a", False), ("1", "a", True)])
    assert (result.kept, len(result.without_review), result.without_result) == ((True,), 1, ())
