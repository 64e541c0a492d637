"""The page of a label review: what lies in it, and in which order."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from review_pages import LABEL, PROPOSAL, TABLE, VOTERS, random_row, row_of, write_page

from vlmeval_findit.protocol import Answer
from vlmeval_findit.report import ReviewRow, differing_boxes

EVIL = "</script><img src=x onerror=\"document.title='run'\"><!--<script>"
SHIFTED = (LABEL[0] + 2, LABEL[1], LABEL[2], LABEL[3] - 3)


def data_of(page: Path) -> dict[str, Any]:
    text = page.read_text(encoding="utf-8")
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    data: dict[str, Any] = json.loads(found)
    return data


def opened(sealed: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(base64.b64decode(sealed))
    return told


# --- blindness ------------------------------------------------------------------------------------


def test_nothing_tells_the_label_before_the_choice(tmp_path: Path) -> None:
    rows = [row_of(tmp_path, 1), random_row(tmp_path, 2)]
    page = write_page(tmp_path / "review.html", rows)
    text = page.read_text(encoding="utf-8")
    told = opened(data_of(page)["rows"][0]["sealed"])
    assert (told["kind"], told["p"], told["drawn"]) == ("wrong object", 0.987654, "listed")
    assert (told["voters"], told["votes"]) == ([*VOTERS], 2)
    for word in ("wrong object", "0.987", "listed", *VOTERS):
        assert word not in text.split("<body>")[1].split("<script>")[0]
    listed, drawn = ({**row, "sealed": ""} for row in data_of(page)["rows"])
    assert listed.keys() == drawn.keys()


def test_the_order_of_candidates_is_random_but_fixed(tmp_path: Path) -> None:
    rows = [row_of(tmp_path, index) for index in range(60)]

    def firsts(of: Sequence[ReviewRow], seed: int) -> dict[int, str]:
        data = data_of(write_page(tmp_path / "review.html", of, seed=seed))
        return {row["index"]: opened(row["sealed"])["sources"][0] for row in data["rows"]}

    first = firsts(rows, 3)
    assert 15 < list(first.values()).count("label") < 45
    assert firsts(rows[::-1], 3) == first, "by the row, not by its place"
    assert firsts(rows, 4) != first


# --- candidates -----------------------------------------------------------------------------------

BIRDS = Answer((LABEL, PROPOSAL), ("crow", "jay"))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Answer((LABEL,)), Answer((PROPOSAL,)), ([0], [0])),
        (Answer((LABEL, PROPOSAL)), Answer((PROPOSAL,)), ([0], [])),
        (Answer(()), Answer((PROPOSAL,)), ([], [0])),
        (BIRDS, Answer((PROPOSAL, LABEL), ("jay", "crow")), ([], [])),
        (BIRDS, Answer((LABEL, PROPOSAL), ("crow", "crow")), ([1], [1])),
        (Answer((LABEL, LABEL)), Answer((LABEL,)), ([1], [])),
    ],
)
def test_what_differs_between_two_answers(
    one: Answer, other: Answer, expected: tuple[list[int], list[int]]
) -> None:
    assert (differing_boxes(one, other), differing_boxes(other, one)) == expected


def test_all_boxes_of_a_single_candidate_are_shown() -> None:
    assert differing_boxes(BIRDS, None) == [0, 1]


# --- the page -------------------------------------------------------------------------------------


def test_foreign_text_cannot_leave_its_place(tmp_path: Path) -> None:
    row = row_of(tmp_path, 1, asked=EVIL, classes=(EVIL,), kind=EVIL, voters=(EVIL,))
    row = replace(row, label=Answer((LABEL,), (EVIL,)))
    page = write_page(tmp_path / "review.html", [row], dataset=EVIL)
    text = page.read_text(encoding="utf-8")
    assert text.count("</script>") == 2
    assert "<img" not in text
    assert data_of(page)["rows"][0]["asked"] == EVIL


def test_the_header_is_the_first_line_of_the_file(tmp_path: Path) -> None:
    rows = [row_of(tmp_path, 7), random_row(tmp_path, 9)]
    header = opened(data_of(write_page(tmp_path / "review.html", rows))["header"])
    assert header["format"] == 1
    assert header["audit"]["table"] == TABLE
    assert header["audit"]["listed"] == [7]


def test_an_image_is_stored_once(tmp_path: Path) -> None:
    first = row_of(tmp_path, 1)
    rows = [first, replace(first, index=2), row_of(tmp_path, 3)]
    data = data_of(write_page(tmp_path / "review.html", rows))
    assert [image["name"] for image in data["images"]] == ["1.jpg", "3.jpg"]
    assert [row["image"] for row in data["rows"]] == [0, 0, 1]


def test_another_list_has_another_progress(tmp_path: Path) -> None:
    rows = [row_of(tmp_path, 1), row_of(tmp_path, 2)]

    def key(of: Sequence[ReviewRow]) -> str:
        return str(data_of(write_page(tmp_path / "review.html", of))["key"])

    assert key(rows) == key(rows)
    assert key(rows) != key(rows[:1])
    moved = replace(rows[1], other=Answer((SHIFTED,)))
    assert key(rows) != key([rows[0], moved])


def test_a_page_without_images_is_made(tmp_path: Path) -> None:
    row = replace(row_of(tmp_path, 1), image=tmp_path / "gone.jpg")
    (image,) = data_of(write_page(tmp_path / "review.html", [row]))["images"]
    assert image == {"name": "gone.jpg", "w": 400, "h": 300, "src": ""}
