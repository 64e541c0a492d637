"""``audit --review``: the page that is written, what is said of it, and the next page."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from doubtful_labels import EXPRESSIONS, ROWS, answering, expressions
from scored_runs import World

from vlmeval_findit.cli import main
from vlmeval_findit.protocol import Review, Reviews, ReviewVerdict, RowChoice
from vlmeval_findit.storage import write_reviews

ELSEWHERE = (140.0, 10.0, 180.0, 50.0)
WRONG = (3, 7, 20, 41)
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a table with four wrong labels, and runs of two models; return the truth."""
    world = World(tmp_path)
    world.at_hand(monkeypatch)
    monkeypatch.chdir(tmp_path)
    right = expressions(world, dict.fromkeys(WRONG, ELSEWHERE))
    for model in ("Left", "Right"):
        world.predict(model, EXPRESSIONS, answering(EXPRESSIONS, right))


def rows_of(page: Path) -> list[dict[str, Any]]:
    """Return the rows of a page, with what is sealed until the choice."""
    text = page.read_text(encoding="utf-8")
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    data = json.loads(found)
    rows = []
    for row in data["rows"]:
        rows.append({**row, **json.loads(base64.b64decode(row["sealed"])), "table": data["table"]})
    return rows


def listed_in(page: Path) -> list[int]:
    return sorted(row["index"] for row in rows_of(page) if row["drawn"] == "listed")


def test_the_page_has_listed_and_random_rows(capsys: Capture) -> None:
    assert main(["audit", "runs", "--review", "new/review.html"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(r"new/review.html: 4 listed rows and 20 random ones, \d+\.\d MB", out)
    page = Path("new/review.html")
    assert listed_in(page) == [*WRONG]
    assert len({row["index"] for row in rows_of(page)}) == 24


def test_the_next_page_begins_where_reviews_end(capsys: Capture) -> None:
    command = ["audit", "runs", "--top", "6", "--review", "review.html"]
    assert main(command) == 0
    first = rows_of(Path("review.html"))
    assert len(first) == 26
    reviews = []
    for row in first[:10]:
        known = (row["table"], row["index"], row["row"], ReviewVerdict.UNSURE, (), row["kind"])
        reviews.append(Review(*known, "ab", "2026-01-31", RowChoice(row["drawn"])))
    write_reviews(Path("reviews.jsonl"), Reviews(tuple(reviews)))
    assert main([*command, "--reviews", "reviews.jsonl"]) == 0
    second = rows_of(Path("review.html"))
    assert [row["index"] for row in second] == [row["index"] for row in first[10:]]
    assert [row["candidates"] for row in second] == [row["candidates"] for row in first[10:]]


def test_a_page_without_rows_is_not_written(capsys: Capture) -> None:
    command = ["audit", "runs", "--top", str(ROWS), "--review", "review.html"]
    assert main(command) == 0
    reviews = []
    for row in rows_of(Path("review.html")):
        known = (row["table"], row["index"], row["row"], ReviewVerdict.UNSURE, (), row["kind"])
        reviews.append(Review(*known, "ab", "2026-01-31", RowChoice(row["drawn"])))
    assert len(reviews) == ROWS
    write_reviews(Path("reviews.jsonl"), Reviews(tuple(reviews)))
    Path("review.html").unlink()
    assert main([*command, "--reviews", "reviews.jsonl"]) == 0
    assert "review.html: not written, as all rows" in capsys.readouterr().out
    assert not Path("review.html").exists()


def test_more_listed_rows_than_a_page_has(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlmeval_findit.cli.audit.MOST_REVIEW_ROWS", 3)
    assert main(["audit", "runs", "--review", "review.html"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "1 more listed row: with --reviews reviews.jsonl, the next page begins there" in out
    assert len(listed_in(Path("review.html"))) == 3


def test_missing_images_are_named(capsys: Capture) -> None:
    assert main(["audit", "runs", "--review", "review.html"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(r"Missing images: 24 \(first: \S+\.jpg\)\. Nobody can judge", out)
