"""RefCOCO/+/g without wrong expressions: reading reviews, joining, and what finds no partner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.benchmarks.refl4.refl4_annotations import RefusedError
from vlmeval_findit.benchmarks.refl4.reviews import (
    ExpressionKey,
    ExpressionResult,
    Review,
    clean,
    compare,
    plain_id,
    read_reviews,
)

ENTRY = {"ann_id": 12, "caption": "the left cup", "caption_quality": 1}


def write(folder: Path, content: object) -> Path:
    path = folder / "refcoco_val_reviewed.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def read(folder: Path, *entries: object) -> list[Review]:
    return read_reviews(write(folder, {"annotation": list(entries)}))


def test_a_quality_of_zero_is_an_error_and_everything_else_is_kept(tmp_path: Path) -> None:
    qualities: list[Any] = [0, 1, 2, 0.0, -1, 0.5, None]
    reviews = read(tmp_path, *({**ENTRY, "caption_quality": quality} for quality in qualities))
    assert [one.is_error for one in reviews] == [True, False, False, True, False, False, False]
    assert reviews[0] == Review(ExpressionKey("12", "the left cup"), True)


@pytest.mark.parametrize("name", ["ann_id", "annotation_id", "original_id", "id"])
@pytest.mark.parametrize("text", ["caption", "expression", "sentence", "sent", "raw"])
def test_keys_of_other_layouts(name: str, text: str, tmp_path: Path) -> None:
    (one,) = read(tmp_path, {name: "12", text: "a", "caption_quality": 0, "image_id": 3})
    assert one == Review(ExpressionKey("12", "a"), True)


def test_the_annotation_id_comes_before_a_running_number(tmp_path: Path) -> None:
    (one,) = read(tmp_path, {"id": 0, **ENTRY})
    assert one.key.annotation_id == "12"


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        ([ENTRY], "unreadable", "has no list in the field annotation"),
        ({"annotations": [ENTRY]}, "unreadable", "has no list in the field annotation"),
        ({"annotation": {"0": ENTRY}}, "unreadable", "has no list in the field annotation"),
        ({"annotation": [{"ann_id": 1, "caption": "a"}]}, "unreadable", "no entry has a caption_q"),
        ({"annotation": [ENTRY, 3]}, "unreadable", "refcoco_val_reviewed.json, entry 1: 3 is no"),
        ({"annotation": [ENTRY, {"caption": "a"}]}, "no_id", "entry 1: no annotation id in any"),
        ({"annotation": [{**ENTRY, "ann_id": 1.5}]}, "no_id", "entry 0: no annotation id in any"),
        ({"annotation": [{**ENTRY, "caption": None}]}, "bad_annotation", "entry 0: no expression"),
        (
            {"annotation": [{**ENTRY, "caption_quality": "0"}]},
            "bad_annotation",
            "entry 0, caption_quality: '0'",
        ),
    ],
)
def test_files_that_are_refused(content: object, code: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"refcoco_val_reviewed\.json") as refused:
        read_reviews(write(tmp_path, content))
    assert refused.value.code == code
    assert says in str(refused.value)


def test_a_file_that_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("annotation")
    with pytest.raises(RefusedError, match=r"x\.json: no JSON"):
        read_reviews(path)


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


def review(number: str, text: str, is_error: bool = False) -> Review:
    return Review(ExpressionKey(number, text), is_error)


def test_both_accuracies_and_what_found_no_partner() -> None:
    reviews = [
        review("1", "left cup"),
        review("1", "the bird", is_error=True),
        review("2", "left cup"),
        review("3", "nobody asked", is_error=True),
    ]
    results = [
        ExpressionResult(ExpressionKey("1", "left cup"), True),
        ExpressionResult(ExpressionKey("1", "the bird"), False),
        ExpressionResult(ExpressionKey("2", "left cup"), False),
        ExpressionResult(ExpressionKey("9", "left cup"), True),
    ]
    assert clean(results, reviews).lines() == [
        "original 50.00 % of 4 expressions, kept 50.00 % of 2",
        "1 expressions without a review (original without them: 33.33 % of 3)",
        "  9: left cup",
        "1 reviews without an expression",
        "  3: nobody asked",
    ]


def test_case_and_blanks_of_expressions_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([{"id": 12.0, "sent": " The  left CUP", "iou": 0.5}]))
    found = compare(path, [write(tmp_path, {"annotation": [ENTRY]})])
    assert (found.kept, found.without_review, found.without_result) == ((False,), (), ())


def test_neither_the_id_nor_the_expression_alone_is_a_partner() -> None:
    got = clean(
        [ExpressionResult(ExpressionKey("1", "a"), True)], [review("1", "b"), review("2", "a")]
    )
    assert (got.joined, got.kept, len(got.without_result)) == ((), (), 2)
    assert got.lines(most=1)[-2:] == ["  1: b", "  and 1 more"]


def test_an_expression_that_occurs_twice_takes_partners_in_order() -> None:
    reviews = [review("1", "a"), review("1", "a", is_error=True)]
    got = clean(
        [ExpressionResult(ExpressionKey("1", "a"), hit) for hit in (True, False, True)], reviews
    )
    assert (got.joined, got.kept) == ((True, False), (True,))
    assert len(got.without_review) == 1
    assert got.without_result == ()


def test_nothing_at_all() -> None:
    assert clean([], []).lines() == ["original – % of 0 expressions, kept – % of 0"]


PAIRS = st.tuples(st.integers(0, 5), st.sampled_from("abc"), st.booleans())


@given(st.lists(PAIRS, max_size=20), st.lists(PAIRS, max_size=20))
def test_every_result_and_review_is_counted_once(
    mine: list[tuple[int, str, bool]], theirs: list[tuple[int, str, bool]]
) -> None:
    results = [
        ExpressionResult(ExpressionKey(str(number), text), hit) for number, text, hit in mine
    ]
    reviews = [review(str(number), text, wrong) for number, text, wrong in theirs]
    got = clean(results, reviews)
    assert len(got.joined) + len(got.without_review) == len(results)
    assert len(got.joined) + len(got.without_result) == len(reviews)
    errors = sum(one.is_error for one in reviews)
    assert len(got.kept) >= len(got.joined) - errors
    # Joined with itself, everything finds its partner, and what is kept is what is no error.
    whole = clean([ExpressionResult(one.key, True) for one in reviews], reviews)
    assert (len(whole.joined), len(whole.kept)) == (len(reviews), len(reviews) - errors)
