"""Ref-L4's lists of wrong expressions become reviews: by which keys entries find their rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from published_lists import entries_of, entry_of, write_list

from vlmeval_findit.benchmarks import benchmark_of
from vlmeval_findit.benchmarks.findit import FindItQuery, write_table
from vlmeval_findit.benchmarks.refl4 import (
    JoinKey,
    PublishedReviews,
    image_number,
    is_published_list,
    join_reviews,
    plain_number,
    read_published,
)
from vlmeval_findit.boxes import Truth
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import ReviewsError, ReviewVerdict, RowChoice

NAME = "FindIt_RefCOCO_testA_xyxy_json"
LEFT = (10.0, 10.0, 60.0, 90.0)
RIGHT = (100.0, 10.0, 160.0, 90.0)


def row(index: int, label: str, box: Any = LEFT, image: int = 7, **others: Any) -> FindItQuery:
    name = f"COCO_train2014_{image:012}.jpg"
    return FindItQuery(index, label, 200, 100, (name,), Truth((box,), (0,)), **others)


ROWS = (
    row(0, "the left cup"),
    row(1, "Left  cu p."),
    row(2, "right cup", RIGHT),
    row(3, "cup", LEFT, image=8),
    row(4, "cup", RIGHT, image=8),
)


class Joining:
    """Writes tables and lists, and joins them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, entries: list[dict[str, Any]], *rows: FindItQuery) -> PublishedReviews:
        write_table(self.folder, "RefCOCO_testA", rows or ROWS, {"source": "a test"})
        dataset = load_dataset(NAME)
        benchmark = benchmark_of(NAME)
        labels = {i: benchmark.label(dataset, query) for i, query in dataset.queries.items()}
        path = write_list(self.folder / "refcoco_testA_reviewed.json", entries)
        return join_reviews(read_published(path), dataset, labels)  # type: ignore[arg-type]


@pytest.fixture
def joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Joining:
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    return Joining(tmp_path)


def verdicts(result: PublishedReviews) -> dict[int, str]:
    return {review.index: review.verdict.value for review in result.reviews}


def test_errors_are_excluded_and_the_rest_keeps_its_label(joined: Joining) -> None:
    result = joined(entries_of(dict(enumerate(ROWS)), errors={1, 4}))
    assert verdicts(result) == {0: "label", 1: "exclude", 2: "label", 3: "label", 4: "exclude"}
    assert result.ways == {JoinKey.ANNOTATION: 0, JoinKey.IMAGE: 5, JoinKey.BOX: 0}
    assert result.contradicted == result.without_entry == result.without_row == ()
    first = result.reviews[0]
    assert first.accept[0].boxes == (LEFT,)
    assert (first.reviewer, first.drawn, first.voters) == ("Ref-L4", RowChoice.PUBLISHED, ())


@pytest.mark.parametrize(
    ("quality", "expected"),
    [(0, "exclude"), (0.0, "exclude"), (1, "label"), (2, "label"), (-1, "label"), (0.5, "label")],
)
def test_only_a_quality_of_zero_is_an_error(quality: Any, expected: str, joined: Joining) -> None:
    result = joined([entry_of(ROWS[0], quality)], ROWS[0])
    assert verdicts(result) == {0: expected}


def test_annotation_and_expression_are_joined_before_images(joined: Joining) -> None:
    """Another copy of the images has other numbers, but annotations keep theirs."""
    rows = [replace(ROWS[0], tags={"ann_id": "12"}), replace(ROWS[1], tags={"ann_id": "13"})]
    entries = [{**entry_of(ROWS[0], 0, 12), "image_id": 99}, entry_of(ROWS[1], 1, 13)]
    result = joined(entries, *rows)
    assert verdicts(result) == {0: "exclude", 1: "label"}
    assert result.ways == {JoinKey.ANNOTATION: 2, JoinKey.IMAGE: 0, JoinKey.BOX: 0}


def test_numbers_that_a_copy_gave_anew_are_not_followed(joined: Joining) -> None:
    renumbered = [replace(ROWS[0], tags={"ann_id": "13"}), replace(ROWS[1], tags={"ann_id": "12"})]
    entries = [entry_of(ROWS[0], 0, 12), entry_of(ROWS[1], 1, 13)]
    result = joined(entries, *renumbered)
    assert verdicts(result) == {0: "exclude", 1: "label"}
    assert result.ways == {JoinKey.ANNOTATION: 0, JoinKey.IMAGE: 2, JoinKey.BOX: 0}


def test_images_by_other_names_need_the_very_box(joined: Joining) -> None:
    """VLMEvalKit's copy names images by their hash, and states boxes in rounded fractions."""
    hashed = [replace(query, images=("3fa49b7.jpg",)) for query in ROWS[:3]]
    near = {**entry_of(ROWS[2], 0), "bbox": [100.4, 9.6, 60.0, 80.0]}
    result = joined([entry_of(ROWS[0], 0), entry_of(ROWS[1], 1), near], *hashed)
    assert verdicts(result) == {0: "exclude", 1: "label", 2: "exclude"}
    assert result.ways == {JoinKey.ANNOTATION: 0, JoinKey.IMAGE: 0, JoinKey.BOX: 3}
    other_box = {**entry_of(ROWS[0], 0), "bbox": [11.0, 10.0, 50.0, 80.0]}
    assert not joined([other_box], *hashed).reviews
    other_image = {**entry_of(ROWS[0], 0), "image_id": 8}
    assert verdicts(joined([entry_of(ROWS[0], 0), other_image, near], *hashed)) == {2: "exclude"}


def test_an_expression_of_two_objects_needs_its_box(joined: Joining) -> None:
    result = joined([entry_of(ROWS[3], 0), entry_of(ROWS[4], 1)], *ROWS[3:])
    assert verdicts(result) == {3: "exclude", 4: "label"}
    rounded = {**entry_of(ROWS[3], 0), "bbox": [10.4, 9.8, 50.0, 80.0]}
    assert verdicts(joined([rounded, entry_of(ROWS[4], 1)], *ROWS[3:])) == {
        3: "exclude",
        4: "label",
    }


def test_without_boxes_an_expression_of_two_objects_finds_none(joined: Joining) -> None:
    entries = [entry_of(ROWS[3], 0), entry_of(ROWS[4], 1), entry_of(ROWS[0], 0)]
    for entry in entries:
        del entry["bbox"]
    result = joined(entries)
    assert verdicts(result) == {0: "exclude"}
    assert result.without_entry == (1, 2, 3, 4)
    assert len(result.without_row) == 2


def test_another_object_another_image_or_words_are_no_partner(joined: Joining) -> None:
    entry = entry_of(ROWS[0], 0)
    others = [{**entry, "bbox": [100, 10, 60, 80]}, {**entry, "image_id": 70}]
    others.append({**entry, "caption": "the left cups"})
    result = joined(others, ROWS[0])
    assert not result.reviews
    assert result.without_entry == (0,)
    assert [each.place[-7:] for each in result.without_row] == ["entry 0", "entry 1", "entry 2"]


def test_entries_that_contradict_each_other_decide_nothing(joined: Joining) -> None:
    twice = [entry_of(ROWS[0], 0), entry_of(ROWS[0], 1), entry_of(ROWS[2], 0), entry_of(ROWS[2], 0)]
    result = joined(twice)
    assert verdicts(result) == {2: "exclude"}
    assert result.contradicted == (0,)
    assert not result.without_row


def test_entries_without_a_quality_are_set_apart(joined: Joining) -> None:
    result = joined([{**entry_of(ROWS[0], 0), "caption_quality": None}, entry_of(ROWS[2], 1)])
    assert verdicts(result) == {2: "label"}
    assert [entry.expression for entry in result.unjudged] == ["the left cup"]


@pytest.mark.parametrize("name", ["ann_id", "annotation_id", "original_id", "id"])
@pytest.mark.parametrize("text", ["caption", "expression", "sentence", "sent", "raw"])
@pytest.mark.parametrize("image", ["file_name", "image", "image_id"])
def test_keys_of_other_layouts(name: str, text: str, image: str, tmp_path: Path) -> None:
    shown = "COCO_train2014_000000000007_2.jpg"
    entry = {name: "12", text: "a", image: shown, "caption_quality": 0, "id": "12"}
    (actual,) = read_published(write_list(tmp_path / "list.json", [entry]))
    assert (actual.annotation, actual.expression, actual.image) == ("12", "a", "7")


def test_images_are_named_by_a_table_of_their_own(tmp_path: Path) -> None:
    """As COCO has them: an entry has an id, which is not the number in the image's name."""
    images = [{"id": 1, "file_name": "COCO_train2014_000000000007.jpg"}]
    entry = {"id": 3, "image_id": 1, "caption": "a", "caption_quality": 1}
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"images": images, "annotation": [entry]}), encoding="utf-8")
    assert read_published(path)[0].image == "7"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([], "the field annotation has no list"),
        ({"annotations": []}, "the field annotation has no list"),
        ({"annotation": {"0": {}}}, "the field annotation has no list"),
        ({"annotation": []}, "no entry of annotation has a caption_quality"),
        ({"annotation": [{"id": 1, "caption": "a"}]}, "no entry of annotation has a caption_q"),
        (
            {"annotation": [{"caption_quality": 0, "caption": "a"}, 3]},
            "entry 1: 3 should be an obj",
        ),
        ({"annotation": [{"caption_quality": 0, "caption": " "}]}, "entry 0: no expression in a"),
        (
            {"annotation": [{"caption_quality": "0", "caption": "a"}]},
            "entry 0: caption_quality: '0' should be a finite number",
        ),
        (
            {"annotation": [{"caption_quality": 0, "caption": "a", "bbox": [1, 2, 3]}]},
            "entry 0: bbox: [1, 2, 3] should be four numbers: x, y, width, height",
        ),
    ],
)
def test_files_that_are_refused(content: object, says: str, tmp_path: Path) -> None:
    path = tmp_path / "refcoco_val_reviewed.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ReviewsError) as refused:
        read_published(path)
    assert str(refused.value).startswith(str(path))
    assert says in str(refused.value)


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "refcoco_val_reviewed.json"
    path.write_text('{"annotation": [', encoding="utf-8")
    with pytest.raises(ReviewsError, match=r"refcoco_val_reviewed.json: not JSON: "):
        read_published(path)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("refcoco_val_reviewed.json", '{"annotation": []}', True),
        ("a.JSON", '{\n "annotation": []}', True),
        ("reviews.jsonl", '{"format": 1}', False),
        ("reviews.json", '{"format": 1, "audit": {}}\n{"format": 1}', False),
        ("reviews.jsonl", '{"annotation": []}', False),
    ],
)
def test_lists_are_told_from_reviews(name: str, text: str, expected: bool, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert is_published_list(path) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, "7"), (7.0, "7"), ("7", "7"), (" 007 ", "7"), ("coco_7", "coco_7"), (7.5, None),
        ("", None), (None, None), (True, None), (float("nan"), None), (float("inf"), None),
        ([7], None), (10**400, str(10**400)),
    ],
)  # fmt: skip
def test_numbers_of_annotations(value: object, expected: str | None) -> None:
    assert plain_number(value) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("COCO_train2014_000000284008.jpg", "284008"),
        ("COCO_train2014_000000284008_2.jpg", "284008"),
        ("train2014/COCO_train2014_000000284008_38991.jpg", "284008"),
        ("000000284008.jpg", "284008"),
        ("284008", "284008"),
        ("coco_284008", "284008"),
        ("objects365_v2_01870494.jpg", "1870494"),
        ("scenes/1048576.png", "1048576"),
        ("picture.jpg", "picture.jpg"),
        ("3fa49b7.jpg", "3fa49b7.jpg"),
        ("9b7.jpg", "9b7.jpg"),
    ],
)
def test_numbers_of_images(name: str, expected: str) -> None:
    assert image_number(name) == expected


def test_an_expression_has_a_verdict_each(joined: Joining) -> None:
    """Two expressions of one object, as RefCOCO has three a person."""
    result = joined([entry_of(ROWS[0], 0), entry_of(ROWS[1], 1)])
    by_index = {review.index: review.verdict for review in result.reviews}
    assert by_index == {0: ReviewVerdict.EXCLUDE, 1: ReviewVerdict.LABEL}
