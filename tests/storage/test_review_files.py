"""Files of reviews: lines as they are written, damaged lines, saves that were interrupted."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.protocol import (
    Answer,
    AuditRecord,
    Review,
    Reviews,
    ReviewsError,
    ReviewVerdict,
    RowChoice,
)
from vlmeval_findit.storage import read_review_file, read_reviews, write_reviews

TABLE = f"sha256:{64 * 'a'}"
AUDIT = AuditRecord(TABLE, 10, (3, 5), 8, seed=0, voters=("m1", "m2"), judged="0-8, 11")
FIRST = Review(
    table=TABLE,
    index=3,
    row=f"sha256:{64 * '3'}",
    verdict=ReviewVerdict.MODEL,
    accept=(Answer(((10.0, 20.0, 50.5, 80.0),), ("dög",)),),
    kind="wrong object",
    reviewer="ab",
    date="2026-01-31",
    drawn=RowChoice.LISTED,
    p=0.93,
    voters=("m1", "m2"),
)
SECOND = Review(
    table=TABLE,
    index=7,
    row=f"sha256:{64 * '7'}",
    verdict=ReviewVerdict.UNSURE,
    accept=(),
    kind="",
    reviewer="ab",
    date="2026-01-31",
    drawn=RowChoice.RANDOM,
)
BOTH = Reviews((FIRST, SECOND), (AUDIT,))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    result = tmp_path / "a new folder" / "reviews.jsonl"
    write_reviews(result, BOTH)
    return result


def test_a_line_is_as_the_documents_say(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    audit = {"table": TABLE, "rows": 10, "listed": [3, 5], "unlisted": 8, "seed": 0}
    audit |= {"voters": ["m1", "m2"], "models": [], "judged": "0-8, 11"}
    assert lines[0] == {"format": 1, "audit": audit}
    assert lines[1] == {
        "format": 1,
        "table": TABLE,
        "index": 3,
        "row": FIRST.row,
        "verdict": "model",
        "accept": [{"boxes": [[10.0, 20.0, 50.5, 80.0]], "labels": ["dög"]}],
        "kind": "wrong object",
        "reviewer": "ab",
        "date": "2026-01-31",
        "drawn": "listed",
        "p": 0.93,
        "voters": ["m1", "m2"],
    }


def test_what_was_written_is_read(path: Path) -> None:
    actual = read_reviews([path])
    assert actual == BOTH
    assert read_review_file(path).cut == ""
    assert actual.places == (f"{path}, line 2", f"{path}, line 3")


numbers = st.floats(allow_nan=False, allow_infinity=False)
answers = st.lists(st.tuples(numbers, numbers, numbers, numbers), max_size=3)


@given(st.lists(st.tuples(st.text(min_size=1), st.text(), answers), max_size=5))
def test_any_words_and_numbers_are_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[str, str, Any]]
) -> None:
    reviews = [
        replace(FIRST, index=at, reviewer=name, kind=kind, accept=(Answer(tuple(boxes)),))
        for at, (name, kind, boxes) in enumerate(written)
    ]
    path = tmp_path_factory.mktemp("reviews") / "reviews.jsonl"
    write_reviews(path, Reviews(tuple(reviews)))
    assert read_reviews([path]) == Reviews(tuple(reviews))


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("begin", ["", "\ufeff", "\n"])
def test_other_ends_of_lines_and_blank_lines(begin: str, ends: str, path: Path) -> None:
    text = begin + path.read_text(encoding="utf-8").replace("\n", ends)
    path.write_text(text, encoding="utf-8", newline="")
    assert read_reviews([path]) == BOTH
    path.write_text(text.rstrip(), encoding="utf-8", newline="")  # Whole, without a line break
    assert read_reviews([path]) == BOTH


def test_an_interrupted_save_is_named_and_can_be_gone_over(path: Path) -> None:
    text = path.read_bytes()
    begin = text.rindex(b"\n", 0, -1) + 1
    for end in range(begin + 1, len(text) - 1):
        path.write_bytes(text[:end])
        file = read_review_file(path)
        assert file.cut == f"{path}, line 3: cut off, as by a save that was interrupted"
        assert file.reviews == Reviews((FIRST,), (AUDIT,))
    with pytest.raises(ReviewsError, match=r"line 3: cut off.*data reviews .*--out .*-whole.jsonl"):
        read_reviews([path])


def line(**change: Any) -> str:
    values = {
        "format": 1,
        "table": TABLE,
        "index": 7,
        "row": SECOND.row,
        "verdict": "unsure",
        "accept": [],
        "kind": "",
        "reviewer": "ab",
        "date": "2026-01-31",
        "drawn": "random",
    }
    values |= change
    return json.dumps({key: value for key, value in values.items() if value is not None})


@pytest.mark.parametrize(
    ("damaged", "says"),
    [
        ('{"format": 1, "tab', '\'{"format": 1, "tab\' should be a JSON object: is it a review?'),
        ("[1, 2]", "'[1, 2]' should be a JSON object: is it a review?"),
        ("null", "'null' should be a JSON object: is it a review?"),
        (line(format=2), "format: 2 is not known; reviews have 1"),
        (line(format=True), "format: True is not known; reviews have 1"),
        (line(format=None), "format: is missing; reviews have 1"),
        (line(verdict=None), "verdict is missing"),
        (line(verdict="Unsure"), "verdict: unknown verdict 'Unsure': did you mean unsure?"),
        (line(indx=7, index=None), "unknown key 'indx': did you mean index?"),
        (line(p=float("nan")), "p: nan should be a number from 0 to 1"),
        ('{"format": 1, "audit": {"rows": 3}}', "audit: table is missing"),
        ('{"format": 1, "audit": []}', "audit: should be a mapping with the keys table, rows"),
    ],
)
def test_a_damaged_line_is_refused_with_key_and_nearest_value(
    damaged: str, says: str, path: Path
) -> None:
    path.write_text(f"{line()}\n{damaged}\n{line()}\n", encoding="utf-8")
    with pytest.raises(ReviewsError) as refused:
        read_review_file(path)
    assert str(refused.value).startswith(f"{path}, line 2: {says}")


def test_files_are_joined_in_their_order(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "cd.jsonl"
    other.write_text(line(reviewer="cd") + "\n", encoding="utf-8")
    joined = read_reviews([path, other])
    assert [review.reviewer for review in joined.reviews] == ["ab", "ab", "cd"]
    assert joined.audits == (AUDIT,)
    write_reviews(tmp_path / "both.jsonl", joined)
    write_reviews(tmp_path / "both.jsonl", joined)
    assert read_reviews([tmp_path / "both.jsonl", path, other]) == joined


def test_no_review_is_lost_by_writing_over_a_file(path: Path) -> None:
    before = path.read_bytes()
    for fewer, lost in (
        (Reviews((FIRST,), (AUDIT,)), "1 review"),
        (Reviews((), (AUDIT,)), "2 reviews"),
        (Reviews((FIRST, SECOND)), "a record of an audit"),
    ):
        says = f"{path} has {lost} that these files do not have: name it among them"
        with pytest.raises(ReviewsError, match=re.escape(says)):
            write_reviews(path, fewer)
    assert path.read_bytes() == before


def test_a_file_that_is_no_text_is_refused(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04\xff")
    with pytest.raises(ReviewsError, match=r"reviews.jsonl, line 1: byte 0xff is not UTF-8"):
        read_reviews([path])
